"""A page from a template: one HTML file that opens from disk, offline, with its figures and their numbers inside.

The numbers behind the interactive figures are JSON: every setting of a study, once, for all figures that read it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import extra
from gradient_dd.learners import Setting
from gradient_dd.report import as_json, read
from gradient_dd.report.figure import NAMES, STRONG, Figure, LineData, Panel, figure_finding, title_of
from gradient_dd.report.panels import columns_of, legend
from gradient_dd.report.study_figure import scale
from gradient_dd.studies import Study, intervals
from gradient_dd.studies.provenance import provenance
from gradient_dd.studies.results import COMMON_PARAMETERS, MEASURES, Results, tuned

with extra("report"):
    import jinja2

SYMBOLS = {"alpha": "α", "zeta": "ζ", "kappa": "κ"}
POINTS = 50  # of a learning curve


@dataclass(frozen=True)
class Shown:
    """A figure on a page: its numbers, its study, and the name of its table.

    `finding` is its heading; without one the panels' own numbers make it.
    """

    figure: Figure
    panels: list[Panel]
    study: Study
    table: str = ""
    finding: str = ""


def render(
    room: str, template: str, results: Mapping[str, Results], studies: Sequence[Study] = (), **content: Any
) -> str:
    """Return the page of a template of a room, or of a folder of one such as experiments/paper.

    `results` are what its interactive figures read, `studies` what is described besides.
    """
    described = {one.name: str(one) for one in (*(one.study for one in results.values()), *studies)}
    return fill(
        f"{room}/{template}",
        "report/style.css",
        "report/twin.js",
        data={name: as_json(study_data(one)) for name, one in results.items()},
        studies=described.items(),
        provenance=provenance(),
        **content,
    )


def fill(template: str, style_file: str, script_file: str, **content: Any) -> str:
    """Return the page of a template, with the style and the script of two files."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(style=read(style_file), script=read(script_file), **content)


def figure_facts(shown: Shown) -> dict[str, Any]:
    """Return what a page shows of a figure."""
    figure, panels = shown.figure, shown.panels
    return {
        "name": figure.name,
        "title": figure.title,
        "finding": shown.finding or figure_finding(figure, panels),
        "remark": f"{figure.remark[:1].upper()}{figure.remark[1:]}." if figure.remark else "",
        "scale": scale(shown.study),
        "table": shown.table,
        "legend": legend(panels[0].lines),
        "columns": columns_of(panels, "episodes" if shown.study.episodes else "steps"),
        "data": as_json(figure_data(figure)),
        "best": [best_row(panel, line) for panel in panels for line in panel.lines],
    }


def setting_text(setting: Setting) -> str:
    """Return the parameters of a setting, with four digits."""
    return ", ".join(f"{SYMBOLS.get(name, name)} = {value:.4g}" for name, value in setting.values.items())


def best_row(panel: Panel, line: LineData) -> dict[str, str]:
    """Return the best setting of a line with its error, and where the line diverged."""
    gone = [f"α = {alpha:.3g}: {runs}" for alpha, runs in zip(line.alphas, line.exploded, strict=True) if runs]
    return {
        "task": f"{panel.task.name}, {title_of(panel.task)}",
        "line": line.line.label,
        "setting": setting_text(line.best),
        "error": f"{line.error:.4g}",
        "sem": f"{line.sem[line.place]:.2g}",
        "edge": line.edge,
        "exploded": ", ".join(gone) + (" runs" if gone else ""),
    }


def number(value: float) -> float | None:
    """Return a number with five digits; what is infinite or undefined is a gap."""
    return float(f"{value:.5g}") if np.isfinite(value) else None


def study_data(results: Results) -> dict[str, Any]:
    """Return the page's data of a study: for each task its settings, their errors, and curves of the tuned ones.

    `parameters` names every parameter that a learner of the study declares; a row has a place for each.
    """
    middles = results.study.horizon.bin_middles()
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
    """Return the initial error of a task, and its settings: learner, ρ mode, the parameters, then of both measures the
    mean, its standard error and how many runs diverged.
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
    curves = results.curves(name, [settings[place] for place in best])[1].mean(axis=1)[:, thin]
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
