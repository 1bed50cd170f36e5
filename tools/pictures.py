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
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import gradient_dd as gdd
from gradient_dd import features
from gradient_dd.experiments.drawing import draw_drawing
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.fingerprint import digest, fingerprint
from gradient_dd.learners import LEARNERS
from gradient_dd.report.play.page import live_page
from gradient_dd.studies import Study, read_study
from tools.chromium import Chromium
from tools.programs import ROOT

IMAGES = ROOT / "docs" / "images"
RECORD = IMAGES / "pictures.json"
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


def of_the_live_page() -> str:
    """Return the fingerprint of the files that the live page is made from, except the rules of the learners."""
    folder = ROOT / "src/gradient_dd/report/play"
    return digest("".join(file.read_text(encoding="utf-8") for file in sorted(folder.iterdir()) if file.is_file()))


def hill(x: np.ndarray) -> np.ndarray:
    """Return values that rise smoothly and fall off a cliff at 0.7; x: (n,) from 0 to 1."""
    return np.where(x < 0.7, np.sin(np.pi * x / 1.4), 0.1)


def fitted_hill() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return points, and by feature map the least-squares fit of the hill there from 1,000 noisy samples."""
    maps: dict[str, Any] = {
        "TileCoder, 4 tilings": features.TileCoder([0.0], [1.0], tiles=4, tilings=4),
        "Fourier, order 15": features.Fourier([0.0], [1.0], order=15),
        "RadialBasis, 16 bumps": features.RadialBasis([0.0], [1.0], per_dimension=16),
        "Polynomial, degree 3": features.Polynomial([0.0], [1.0], degree=3),
    }
    rng = np.random.default_rng(0)
    x, points = rng.uniform(size=1000), np.linspace(0.0, 1.0, 400)
    noisy = hill(x) + rng.normal(scale=0.3, size=1000)
    fits = {}
    for name, one in maps.items():
        X, grid = (one.rows(place[:, None]).dense(one.n_features) for place in (x, points))
        fits[name] = grid @ np.linalg.lstsq(X, noisy, rcond=1e-8)[0]
    return points, fits


def of_the_hill() -> str:
    """Return the fingerprint of the picture of four feature maps: two digits of every fit."""
    return fingerprint({name: [round(float(v), 2) + 0.0 for v in fit[::20]] for name, fit in fitted_hill()[1].items()})


def screenshot(text: str, target: Path, width: int, height: int) -> None:
    """Save what is first seen of a page."""
    with tempfile.TemporaryDirectory() as folder, Chromium(width, height) as browser:
        page = Path(folder) / "page.html"
        page.write_text(text, encoding="utf-8")
        browser.open(page)
        browser.picture(target, height=height)


def draw_the_live_page(_: Path, target: Path) -> None:
    """Save the live page as `gradient-dd play` writes it, after its runs."""
    screenshot(live_page(), target, width=1200, height=1020)


def draw_the_comparison_page(_: Path, target: Path) -> None:
    """Save the page that `gradient-dd compare --report` writes."""
    with tempfile.TemporaryDirectory() as folder:
        comparison().report(Path(folder) / "page.html")
        text = (Path(folder) / "page.html").read_text(encoding="utf-8")
    screenshot(text.replace("<html", '<html data-state="ready"', 1), target, width=1100, height=900)  # nothing runs


def draw_the_comparison(_: Path, target: Path) -> None:
    """Draw the values of both policies with their intervals."""
    comparison().plot().figure.savefig(target, dpi=130, bbox_inches="tight")


def draw_error_against_alpha(_: Path, target: Path) -> None:
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


def draw_features(_: Path, target: Path) -> None:
    """Draw a hill with a cliff and its fits with four feature maps."""
    points, fits = fitted_hill()
    figure, grid = import_module("matplotlib.pyplot").subplots(1, 4, figsize=(11, 2.6), sharey=True)
    for axes, (name, fit) in zip(grid, fits.items(), strict=True):
        axes.plot(points, hill(points), color="0.6", linewidth=3, label="truth")
        axes.plot(points, fit, color="tab:blue", label="fit")
        axes.set(title=name, xlabel="observation")
    grid[0].set(ylabel="value")
    grid[-1].legend(loc="upper right", frameon=False)
    figure.tight_layout()
    figure.savefig(target, dpi=130)


def copy_figure(results: Path, target: Path) -> None:
    """Copy a figure of the reproduction."""
    shutil.copyfile(results / "figures" / target.name, target)


def draw_theory(_: Path, target: Path) -> None:
    """Draw what follows from theory alone, as `gradient-dd plot NAME` does."""
    with tempfile.TemporaryDirectory() as folder:
        draw_drawing(DRAWINGS[target.stem], Path(folder))
        shutil.copyfile(Path(folder) / target.name, target)


PICTURES: dict[str, tuple[Callable[[Path, Path], None], Callable[[], str]]] = {
    **{name: (copy_figure, partial(of_a_figure, name)) for name in ("walk", "boyan", "Baird")},
    **{
        name: (draw_theory, partial(of_a_drawing, name))
        for name in ("gtd2-to-td", "stability-maps", "safety", "baird-frozen-mode")
    },
    "comparison": (draw_the_comparison, of_the_comparison),
    "comparison-page": (draw_the_comparison_page, of_the_comparison),
    "error-against-alpha": (draw_error_against_alpha, lambda: lanes(small_study())),
    "features": (draw_features, of_the_hill),
    "play": (draw_the_live_page, of_the_live_page),
}


def main(results: str, *names: str) -> None:
    """Make all pictures, or those named, and record what they show."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for name in names or PICTURES:
        draw, fingerprint_now = PICTURES[name]
        target = IMAGES / f"{name}.png"
        draw(Path(results), target)
        recorded[name] = fingerprint_now()
        print(f"docs/images/{name}.png ({target.stat().st_size / 1000:.0f} kB)")
    RECORD.write_text(json.dumps(dict(sorted(recorded.items())), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
