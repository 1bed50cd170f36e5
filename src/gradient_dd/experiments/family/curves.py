"""The curves of the comparison: the tuned error against λ, and against the step size."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradient_dd.errors import extra
from gradient_dd.experiments.family.contest import Contest, Entrant, trace_length
from gradient_dd.learners import LEARNERS
from gradient_dd.report.canvas import plain_numbers
from gradient_dd.report.figure import BLACK, BLUE, GREEN, MARKERS, ORANGE, PURPLE, RAMP, RED, SKY, YELLOW
from gradient_dd.studies.statistics import estimate, has_exploded

with extra("report"):
    from matplotlib.figure import Figure as Canvas

BROWN = "#7d5a46"
OVER_LAMBDA = {
    "td": BLACK, "gtd2": ORANGE, "tdc": GREEN, "tdrc": SKY, "htd": PURPLE, "pgtd2": YELLOW, "etd": BLUE,
    "vtrace": BROWN, "gradient_dd": RED,
}  # fmt: skip
ACROSS = 5  # panels in a row
HIGHEST = 2.0  # times the first error: where the axes of errors over step sizes end


def panels_for(count: int, wide: float, tall: float, across: int = ACROSS) -> tuple[Any, list[Any]]:
    """Return a canvas with so many panels, some in a row."""
    down = -(-count // across)
    high = 0.9 + tall * down
    canvas = Canvas(figsize=(wide * across, high))
    axes = canvas.subplots(down, across, squeeze=False).ravel()
    for empty in axes[count:]:
        empty.set_visible(False)
    canvas.subplots_adjust(left=0.06, right=0.985, top=1 - 0.75 / high, bottom=0.42 / high, wspace=0.28, hspace=0.6)
    return canvas, list(axes[:count])


def over_lambda(contest: Contest) -> Any:
    """Draw the tuned error against λ on the shown runs, a panel for each problem."""
    canvas, panels = panels_for(len(contest.problems), 2.5, 2.15)
    learners = [name for name in OVER_LAMBDA if name in contest.learners]
    for axes, problem in zip(panels, contest.problems, strict=True):
        shown = []
        for place, name in enumerate(learners):
            lams = contest.lambdas(problem.name, name)
            means = np.array([contest.shown(problem.name, Entrant(name, lam)).mean() for lam in lams])
            means[has_exploded(means, contest.first[problem.name])] = np.nan
            shown += means.tolist()
            width = 2.2 if name == "gradient_dd" else 1.2
            axes.plot(
                range(len(lams)),
                means,
                marker=MARKERS[place],
                color=OVER_LAMBDA[name],
                linewidth=width,
                markersize=3.5,
                label=LEARNERS[name].label,
            )
            axes.set_xticks(range(len(lams)), [f"{lam:g}" for lam in lams])
        axes.set_yscale("log")
        axes.set_ylim(*limits(shown))
        plain_numbers(axes.yaxis)
        axes.set_title(problem.name)
        axes.set_xlabel("λ", labelpad=1)
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="upper right", ncols=len(handles), frameon=False, fontsize=8)
    canvas.text(0.01, 0.99, "Error over the whole run against λ,\nall else tuned; shown runs", va="top", fontsize=9)
    return canvas


def limits(values: Sequence[float]) -> tuple[float, float]:
    """Return limits about positive values; what has exploded is left out."""
    finite = [value for value in values if np.isfinite(value) and value > 0] or [1.0]
    return min(finite) / 1.15, max(finite) * 1.15


def over_alpha(contest: Contest, problem: str) -> Any:
    """Draw the error against α on the tuning runs, a panel for each learner, a line for each λ, all else tuned."""
    canvas, panels = panels_for(len(contest.learners), 2.2, 1.75, across=5)
    settings, errors = contest.table(problem, "area")
    means = estimate(errors).mean
    gone = has_exploded(means, contest.first[problem])
    low, high = limits([*means[~gone], contest.first[problem]])
    high = min(high, HIGHEST * contest.first[problem])
    for axes, name in zip(panels, contest.learners, strict=True):
        ours = [place for place, one in enumerate(settings) if one.rule.name == name]
        for colour, lam in zip(
            (RAMP[0], RAMP[2], RAMP[4]), sorted({trace_length(settings[i]) for i in ours}), strict=False
        ):
            by_alpha: dict[float, float] = {}
            for place in (i for i in ours if trace_length(settings[i]) == lam):
                alpha, value = settings[place].values["alpha"], np.inf if gone[place] else means[place]
                by_alpha[alpha] = min(by_alpha.get(alpha, np.inf), value)
            alphas = np.array(sorted(by_alpha))
            best = np.array([by_alpha[alpha] for alpha in alphas])
            axes.plot(
                alphas, np.where(np.isfinite(best), best, np.nan), color=colour, linewidth=1.4, label=f"λ = {lam:g}"
            )
            crosses = alphas[~np.isfinite(best)]
            axes.plot(crosses, np.full(len(crosses), high), "x", color=colour, markersize=3, clip_on=False)
        axes.axhline(contest.first[problem], color="#888888", linewidth=0.8, linestyle=":")
        axes.set(xscale="log", yscale="log", ylim=(low, high), xlim=(2.0**-12, 1.4))
        plain_numbers(axes.xaxis)
        plain_numbers(axes.yaxis)
        axes.set_title(LEARNERS[name].label)
        axes.tick_params(labelsize=7)
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="upper right", ncols=3, frameon=False, fontsize=8)
    title = f"{problem}: error over the whole run against the step size α, all else tuned; tuning runs"
    canvas.text(0.01, 0.995, f"{title}\n× above: exploded · dotted: the first error", va="top", fontsize=9)
    return canvas
