"""The numbers behind the interactive figures, as JSON: every setting of a study, once, for all figures that read it."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.learners import Setting
from gradient_dd.report.figure import NAMES, STRONG, Figure
from gradient_dd.report.panels import bin_middles
from gradient_dd.report.study_figure import title_of
from gradient_dd.studies import intervals
from gradient_dd.studies.frames import COMMON_PARAMETERS, MEASURES
from gradient_dd.studies.results import Results, tuned

POINTS = 50  # of a learning curve


def as_json(data: Any) -> str:
    """Return data as JSON that can stand inside a page."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def number(value: float) -> float | None:
    """Return a number with five digits; what is infinite or undefined is a gap."""
    return float(f"{value:.5g}") if np.isfinite(value) else None


def study_data(results: Results) -> dict[str, Any]:
    """Return the page's data of a study: for each task its settings, their errors, and curves of the tuned ones.

    `parameters` names every parameter that a learner of the study declares; a row has a place for each.
    """
    middles = bin_middles(results.study.horizon)
    thin = slice(None, None, max(1, len(middles) // POINTS))
    parameters = declared_parameters(results.study.settings())
    return {
        "time": "episodes" if results.study.episodes else "steps",
        "runs": results.study.runs,
        "exploded": intervals.EXPLODED,
        "parameters": parameters,
        "middles": middles[thin].tolist(),
        "tasks": [task_data(results, name, parameters, thin) for name in results.tasks],
    }


def declared_parameters(settings: Iterable[Setting]) -> list[str]:
    """Return the name of every parameter that one of the settings has, the well-known ones first."""
    rules = dict.fromkeys(setting.rule for setting in settings)
    names = dict.fromkeys(name for rule in rules for name in rule.defaults)
    return [*(name for name in COMMON_PARAMETERS if name in names), *(n for n in names if n not in COMMON_PARAMETERS)]


def task_data(results: Results, name: str, parameters: list[str], thin: slice) -> dict[str, Any]:
    """Return the first error of a task, and its settings: learner, ρ mode, the parameters, then of both measures the
    mean, its standard error and how many runs exploded.
    """
    task = results.tasks[name]
    first = task.rmsve(task.initial_weights)
    measured = {measure: results.errors(name, measure) for measure in MEASURES}
    settings = measured["last100"][0]
    estimates = [intervals.estimate(errors) for _, errors in measured.values()]
    exploded = [intervals.has_exploded(errors, first).sum(axis=1) for _, errors in measured.values()]
    rows = [
        [s.rule.name, s.rho_mode, *(s.values.get(parameter) for parameter in parameters)]
        + [value for one, gone in zip(estimates, exploded, strict=True) for value in measure_data(one, gone, i)]
        for i, s in enumerate(settings)
    ]
    best = sorted({place for _, errors in measured.values() for place in best_alphas(settings, errors)})
    curves = results.curves(name, [settings[place] for place in best]).mean(axis=1)[:, thin]
    shown = {place: [number(value) for value in curve] for place, curve in zip(best, curves, strict=True)}
    return {"title": title_of(task), "first": number(first), "rows": rows, "curves": shown}


def measure_data(one: intervals.Estimate, exploded: Array, place: int) -> list[float | None]:
    """Return what a row tells of a measure."""
    return [number(one.mean[place]), number(one.sem[place]), int(exploded[place])]


def best_alphas(settings: list[Setting], errors: Array) -> list[int]:
    """Return the place of the best alpha for each learner and each value of its other parameters."""

    def others(setting: Setting) -> Any:
        held = tuple(value for name, value in setting.values.items() if name != "alpha")
        return setting.rule.name, setting.rho_mode, held

    groups = dict.fromkeys(map(others, settings))
    return [tuned(settings, errors, lambda setting, group=group: others(setting) == group) for group in groups]  # type: ignore[misc]


def figure_data(figure: Figure) -> dict[str, Any]:
    """Return what a figure's page data are: its study, its measure and its lines."""
    lines = [
        {
            "label": line.label,
            "learner": line.learner,
            "mode": line.rho_mode,
            "name": NAMES.get(line.learner, line.learner),
            "held": dict(line.held),
            "colour": line.colour,
            "dashed": line.dashed,
            "strong": line.colour == STRONG,
        }
        for line in figure.lines
    ]
    return {"study": figure.study, "measure": figure.measure, "lines": lines}
