"""Plots on matplotlib axes, in the style of the figures: `.plot()` of results, evaluations and comparisons.

Each function draws on `ax`, or on new axes if `ax` is None, and returns the axes.
"""

from collections.abc import Sequence
from typing import Any

from gradient_dd.errors import extra, one_of
from gradient_dd.evaluation import Evaluation, PolicyComparison
from gradient_dd.report.canvas import STYLE
from gradient_dd.report.figure import BLACK, BLUE, RED, error_range, panel, title_of
from gradient_dd.report.own_study import check_complete, lines_of
from gradient_dd.report.study_figure import key, over_alpha, over_time, strip_height
from gradient_dd.studies.results import Results

with extra("report"):
    import matplotlib as mpl
    from matplotlib import pyplot as plt

KINDS = ("step_sizes", "curves")
COLOURS = {"trust": BLUE, "with care": RED, "not": BLACK}


def plot_results(results: Results, kind: str, task: str | None, measure: str, ax: Any) -> Any:
    """Draw the error of each learner against its step size, or the learning curves of the tuned settings."""
    one_of("'kind'", kind, KINDS)
    check_complete(results, "gdd.run")
    shown = panel(results, next(iter(results.tasks)) if task is None else task, lines_of(results.study), measure)
    with mpl.rc_context(STYLE):
        axes = plt.subplots(figsize=(5.2, 3.6))[1] if ax is None else ax
        if kind == "curves":
            over_time(axes, shown, error_range([shown], "curve"), "episodes" if results.study.episodes else "steps")
            axes.set_title(title_of(shown.task))
        else:
            over_alpha(axes, shown, error_range([shown], "mean"), strip_height([shown]))
        axes.set_ylabel("RMS error")
        axes.legend(handles=[key(place, one.line) for place, one in enumerate(shown.lines)], frameon=False)
    return axes


def plot_evaluation(found: Evaluation, ax: Any) -> Any:
    """Draw the value with its interval, the estimates that it combines, and the value of the logging policy."""
    low, high = found.start_interval
    colour = COLOURS[found.verdict.word]
    rows = [{"name": "value", "value": found.start_value, "low": low, "high": high, "colour": colour}]
    for name, (estimate, start, end) in found.parts.items():
        rows.append({"name": name, "value": estimate, "low": start, "high": end})
    return forest(rows[::-1], None if found.logging is None else found.logging.estimate, ax)


def plot_comparison(found: PolicyComparison, ax: Any) -> Any:
    """Draw the values of the policies in the first question with their intervals, the largest value on top."""
    question = found.questions[0]
    records = [one | {"colour": COLOURS[one["verdict"]]} for one in question.records()]
    return forest(sorted(records, key=lambda one: one["value"]), question.baseline.found.value, ax)


def forest(records: Sequence[dict[str, Any]], line: float | None, ax: Any) -> Any:
    """Draw one row per record (name, value, low, high, colour), the first row at the bottom, and a dotted baseline."""
    with mpl.rc_context(STYLE):
        axes = plt.subplots(figsize=(6, 1 + 0.3 * len(records)), layout="constrained")[1] if ax is None else ax
        for place, one in enumerate(records):
            colour = one.get("colour", BLACK)
            axes.plot([one["low"], one["high"]], [place, place], color=colour)
            axes.plot(one["value"], place, "o", color=colour)
        axes.set_yticks(range(len(records)), [one["name"] for one in records])
        if line is not None:
            axes.axvline(line, color=BLACK, linestyle=":", linewidth=1)
        axes.set_xlabel("value")
    return axes
