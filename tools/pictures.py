"""The pictures of the documentation, docs/images: `python -m tools.pictures RESULTS [NAME ...]`.

RESULTS is the folder of a full `gradient-dd reproduce walk boyan Baird`. `docs/images/pictures.json` records for every
picture a fingerprint of what it shows; a test compares it with the present code. Screenshots need Chromium.
"""

import ast
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gradient_dd as gdd
from gradient_dd.experiments.drawing import draw_drawing
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.fingerprint import digest, fingerprint
from gradient_dd.learners import LEARNERS
from gradient_dd.studies import Study, read_study
from tools.chromium import Chromium
from tools.programs import ROOT

IMAGES = ROOT / "docs" / "images"
RECORD = IMAGES / "pictures.json"
REPRODUCED = ("walk", "boyan", "Baird")
DRAWN = ("gtd2-to-td", "stability-maps", "safety", "baird-frozen-mode")
ROLES = {"episode": "visit", "observation": "interest", "action": "banner", "reward": "bought"}
ROLES |= {"terminated": "left", "behaviour_probability": "chance"}


def lanes(study: Study) -> str:
    """Return a fingerprint of all results of a study: tasks, rules, settings, schedule, seed, engine and runs."""
    return fingerprint([key for task in study.built_tasks for key, *_ in study.lanes(task)], study.runs)


def code(module: str) -> str:
    """Return a fingerprint of the code of a module, which comments and layout do not change."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return digest(ast.dump(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))))


def of_a_figure(name: str) -> str:
    """Return the fingerprint of a figure of the paper."""
    figure = FIGURES[name]
    return fingerprint(repr(figure), lanes(STUDIES[figure.study]))


def of_a_drawing(name: str) -> str:
    """Return the fingerprint of a drawing: its code, and the rules of the learners it may show."""
    rules = [LEARNERS[learner].key for learner in ("td", "gtd2", "gradient_dd")]
    return fingerprint(code(DRAWINGS[name].drawn_by.partition(":")[0]), rules)


def comparison() -> Any:
    """Return the comparison of the tutorial docs/tutorials/csv-to-decision.md."""
    names: dict[str, Any] = {}
    exec(compile((ROOT / "examples/new_banner.py").read_text(), "new_banner.py", "exec"), names)
    targets = {"today": None, "policy": names["policy"]}
    return gdd.compare(ROOT / "examples/visits.csv", targets=targets, discount=0.9, columns=ROLES)


def of_the_comparison() -> str:
    """Return the fingerprint of the comparison: four digits of every number in its table."""
    table = [{k: f"{v:.3g}" if isinstance(v, float) else v for k, v in one.items()} for one in comparison().table]
    return fingerprint([{k: one[k] for k in ("name", "value", "low", "high", "verdict")} for one in table])


def small_study() -> Study:
    """Return the study of the tutorial docs/tutorials/compare-learners.md."""
    return read_study(ROOT / "examples/study.toml")


FINGERPRINTS: dict[str, Callable[[], str]] = {
    **{name: lambda name=name: of_a_figure(name) for name in REPRODUCED},  # type: ignore[misc]
    **{name: lambda name=name: of_a_drawing(name) for name in DRAWN},  # type: ignore[misc]
    "comparison": of_the_comparison,
    "comparison-page": of_the_comparison,
    "error-against-alpha": lambda: lanes(small_study()),
}


def screenshot(target: Path) -> None:
    """Save what is first seen of the page that `gradient-dd compare --report` writes."""
    with tempfile.TemporaryDirectory() as folder, Chromium(1100, 900) as browser:
        page = Path(folder) / "page.html"
        comparison().report(page)
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("<html", '<html data-state="ready"', 1), encoding="utf-8")  # nothing runs on it
        browser.open(page)
        browser.picture(target, height=900)


def error_against_alpha(target: Path) -> None:
    """Draw the final error of TD and Gradient-DD against the step size, for the study of the tutorial."""
    pyplot = import_module("matplotlib.pyplot")
    with tempfile.TemporaryDirectory() as folder:
        frame = gdd.run(small_study(), Path(folder) / "results.db").frame()
    figure, axes = pyplot.subplots(figsize=(6, 3.6))
    for (learner, kappa), rows in frame.groupby(["learner", "kappa"], dropna=False):
        label = learner if learner == "td" else f"{learner}, κ = {kappa:g}"
        axes.errorbar(rows["alpha"], rows["last100_mean"], rows["last100_sem"], marker="o", capsize=2, label=label)
    axes.set(xscale="log", yscale="log", xlabel="step size α", ylabel="mean of the last 100 errors")
    axes.legend()
    figure.tight_layout()
    figure.savefig(target, dpi=130)


def make(name: str, results: Path) -> None:
    """Write docs/images/NAME.png."""
    target = IMAGES / f"{name}.png"
    if name in REPRODUCED:
        shutil.copyfile(results / "figures" / f"{name}.png", target)
    elif name in DRAWN:
        with tempfile.TemporaryDirectory() as folder:
            draw_drawing(DRAWINGS[name], Path(folder))
            shutil.copyfile(Path(folder) / f"{name}.png", target)
    elif name == "comparison":
        comparison().plot().figure.savefig(target, dpi=130, bbox_inches="tight")
    elif name == "comparison-page":
        screenshot(target)
    else:
        error_against_alpha(target)


def main(results: str, *names: str) -> None:
    """Make all pictures, or those named, and record what they show."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for name in names or tuple(FINGERPRINTS):
        make(name, Path(results))
        recorded[name] = FINGERPRINTS[name]()
        print(f"docs/images/{name}.png ({(IMAGES / f'{name}.png').stat().st_size / 1000:.0f} kB)")
    RECORD.write_text(json.dumps(dict(sorted(recorded.items())), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
