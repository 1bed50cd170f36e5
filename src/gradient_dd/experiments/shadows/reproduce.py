"""Run what the shadows report needs, draw it, judge it, and write the page."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from gradient_dd.experiments.shadows import draw
from gradient_dd.experiments.shadows.measure import (
    SHOWN,
    TUNED,
    choices_over_time,
    reduced_cases,
    reduced_trial,
    stability_maps,
)
from gradient_dd.experiments.shadows.trial import lines
from gradient_dd.experiments.shadows.verdicts import Verdict, map_verdicts, trial_verdicts
from gradient_dd.report.page import render

FIGURES = {
    "shadows-plane": "Speed against safety.",
    "shadows-bars": "Geometric mean, 95th percentile and worst task of every learner.",
    "shadows-choices": "What is chosen over time on four tasks.",
    "shadows-maps": "Stability over c and alpha, measured and computed.",
}


class Made(NamedTuple):
    """What was made: the page and the verdicts."""

    page: Path
    verdicts: list[Verdict]


def reproduce_shadows(folder: Path, on_stage: Callable[[str], None]) -> Made:
    """Make report.html, figures and verdicts.json in a folder; the trial goes on from the tasks that are done."""
    figures = folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    count = len(reduced_cases())
    on_stage(f"a reduced trial of {count} tasks, {TUNED} runs to tune and {SHOWN} to show: about four minutes")
    trial = reduced_trial(folder / "trial.rows", lambda task: on_stage(f"  done: {task}"))
    on_stage("choices over time, and stability maps")
    choices, maps = choices_over_time(), stability_maps()
    draw.draw_plane(trial["tables"], figures)
    draw.draw_bars(trial["tables"]["all tasks"], figures)
    draw.draw_choices(choices, figures)
    draw.draw_maps(maps, figures)
    verdicts = [*trial_verdicts(trial["tables"]), *map_verdicts(maps)]
    (folder / "verdicts.json").write_text(json.dumps([one._asdict() for one in verdicts], indent=1), encoding="utf-8")
    page = folder / "report.html"
    page.write_text(page_text(trial, verdicts, figures, count), encoding="utf-8")
    return Made(page, verdicts)


def page_text(trial: dict[str, Any], verdicts: list[Verdict], figures: Path, tasks: int) -> str:
    """Return the page."""
    drawings = {name: (words, (figures / f"{name}.svg").read_text(encoding="utf-8")) for name, words in FIGURES.items()}
    return render(
        "experiments.shadows",
        "page.html",
        {},
        tasks=tasks,
        runs=(TUNED, SHOWN),
        verdicts=verdicts,
        drawings=drawings,
        table="\n".join(lines(trial)),
    )
