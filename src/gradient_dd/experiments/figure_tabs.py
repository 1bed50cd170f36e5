"""The figures of the report: a tab for each, its panels under every way of tuning that has data."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gradient_dd.experiments.job import Job
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.experiments.summary import Way, switched
from gradient_dd.experiments.tuning import ByStudy, StudyEvidence, case_name, initial_error
from gradient_dd.experiments.wording import upper
from gradient_dd.report.figure import Figure, LineData, Panel, panels_of
from gradient_dd.report.own_study import lines_of
from gradient_dd.report.panels import columns_of, legend
from gradient_dd.studies import intervals

SUFFIX = {"p": "", "a": "-alike", "f": "-fully"}  # of the name of a study, by way of tuning
OTHER = "The figure keeps the paper’s tuning: it has no other."
NO_GRID = "A search tries no grid of step sizes, so only learning curves are shown."
Shown = tuple[list[Panel], bool]  # the panels of a figure, and whether their learning curves are of test runs


def figure_tabs(figure: Figure, job: Job, evidence: ByStudy) -> list[dict[str, Any]]:
    """Return the tabs of a figure: one, or one for each value of the parameter that it is split by.

    A tab shows pictures, legend and caption under each way of tuning, and a note where a figure does not have it.
    """
    found = {way: panels_under(figure, evidence, way) for way in SUFFIX}
    unit = "episodes" if STUDIES[figure.study].episodes else "steps"

    def value_of(panel: Panel) -> str:
        return str(panel.task.parameters.get(figure.split, ""))

    def view(way: Way, value: str) -> dict[str, Any]:
        panels, is_tested = found[way.key] or found["p"] or ([], False)
        columns = columns_of([one for one in panels if value_of(one) == value], unit)
        note = OTHER if not found[way.key] else "" if columns[0].above else NO_GRID
        words = caption(figure, is_tested, bool(columns[0].above))
        return {"columns": columns, "legend": legend(panels[0].lines), "caption": words, "note": note}

    values, tabs = sorted({value_of(one) for one in (found["p"] or ([],))[0]}), []
    for value in values:
        name = figure.name + (f"-{value or 'plain'}" if len(values) > 1 else "")
        tab = figure.tabs.get(value, figure.tab) or figure.name
        shown = switched(partial(view, value=value))
        tabs.append({"name": name, "tab": tab, "shown": shown, "files": f"figures/{figure.name}"})
    return tabs


def caption(figure: Figure, is_tested: bool, has_alphas: bool) -> str:
    """Return what a figure shows."""
    lead = f"Paper’s {figure.source}." if figure.source else "Not in the paper."
    above = f"Top: {'final' if figure.measure == 'last100' else 'mean'} error on tuning runs. " if has_alphas else ""
    below = f"{'Bottom: l' if has_alphas else 'L'}earning curves at the best setting{', on test runs' * is_tested}."
    return f"{lead} {above}{below}" + (f" {upper(figure.remark)}." if figure.remark else "")


def panels_under(figure: Figure, evidence: ByStudy, way: str) -> Shown | None:
    """Return the panels of a figure under a way of tuning; None where it has none.

    Learning curves are of the selected settings on test runs, if all of them were run there, else of the tuning runs.
    """
    one = evidence.get(figure.study + SUFFIX[way])
    if one is None or (way != "p" and not figure.compares_rivals):
        return None
    own = figure if way == "p" else replace(figure, lines=lines_of(one.study))
    panels = blank_panels(own, one) if way == "f" else panels_of(own, one.results)
    found = []
    for panel in panels:
        case = case_name(panel.task)
        chosen = [one.choose(case, line.line, figure.measure).setting for line in panel.lines]
        fresh = one.fresh.get(case)
        if fresh is None or not set(map(str, chosen)) <= set(map(str, fresh.study.settings())):
            return (panels, False) if len(panel.middle) else None
        middle, curves = fresh.curves(next(iter(fresh.tasks)), chosen)
        means = [intervals.estimate(curve.T) for curve in curves]
        lines = [
            line._replace(curve=mean.mean, curve_sem=mean.sem) for line, mean in zip(panel.lines, means, strict=True)
        ]
        found.append(panel._replace(lines=lines, middle=middle))
    return found, True


def blank_panels(figure: Figure, one: StudyEvidence) -> list[Panel]:
    """Return panels without errors over step sizes: the settings that a search tried lie on no grid."""
    none, panels = np.empty(0), []
    for task in one.results.tasks.values():
        lines = [
            LineData(line, none, none, none, none, best.setting, none, none)
            for line in figure.lines
            for best in [one.choose(case_name(task), line, figure.measure)]
        ]
        panels.append(Panel(task, lines, none, initial_error(task)))
    return panels
