"""The pictures of the comparison: who leads where, what the DD term does, λ, step sizes, and what an update costs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.errors import extra
from gradient_dd.family.contest import Contest, trace_length
from gradient_dd.family.ledger import WITH_DD
from gradient_dd.family.standings import Standing, dd_comparisons, mean_ranks
from gradient_dd.learners import LEARNERS
from gradient_dd.paper.claims.verdict import Verdict
from gradient_dd.report.canvas import plain_numbers, shorten, styled
from gradient_dd.report.figure import BLACK, BLUE, GREEN, MARKERS, ORANGE, PURPLE, RAMP, RED, SKY, YELLOW
from gradient_dd.studies.statistics import estimate, has_exploded

with extra("report"):
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.figure import Figure as Canvas

OVER_LAMBDA = {
    "td": BLACK, "gtd2": ORANGE, "tdc": GREEN, "tdrc": SKY, "htd": PURPLE, "pgtd2": YELLOW, "etd": BLUE,
    "vtrace": RAMP[3], "gradient_dd": RED,
}  # fmt: skip
HEAT = LinearSegmentedColormap.from_list("heat", ["#ffffff", "#f6d7a7", "#d9733f", "#8c2d1f"])
WORST = 4.0  # the ratio from which on a cell has the last colour
ACROSS = 5  # panels in a row


def save(canvas: Any, folder: Path, name: str) -> None:
    """Save a picture as SVG and PNG."""
    canvas.savefig(folder / f"{name}.svg", metadata={"Date": None}, transparent=True)
    shorten(folder / f"{name}.svg")
    canvas.savefig(folder / f"{name}.png", dpi=130)


def draw_all(
    contest: Contest,
    found: list[Standing],
    verdicts: list[Verdict],
    costs: dict[str, dict[str, float]],
    folder: Path,
    note: str,
) -> list[str]:
    """Draw every picture into a folder and return their names, those of step sizes last."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {"matrix": lambda: matrix(contest, found), "lambda": lambda: over_lambda(contest)}
    if dd_comparisons(verdicts):
        drawn["dd"] = lambda: dd_forest(contest, verdicts)
    if costs:
        drawn["cost"] = lambda: cost_bars(costs)
    drawn |= {f"alpha-{one.name}": (lambda name=one.name: over_alpha(contest, name)) for one in contest.problems}  # type: ignore[misc]
    with styled():
        for name, draw in drawn.items():
            canvas = draw()
            if note:
                canvas.text(0.995, 0.995, note.upper(), ha="right", va="top", fontsize=8, color=RED)
            save(canvas, folder, name)
    return list(drawn)


def matrix(contest: Contest, found: list[Standing]) -> Any:
    """Draw learner × problem: the error over that of the best, and the rank."""
    ranks, problems = mean_ranks(found), [one.name for one in contest.problems]
    cells = {(one.learner, one.problem): one for one in found}
    high = 1.9 + 0.3 * len(ranks)
    canvas = Canvas(figsize=(2.6 + 0.95 * len(problems), high))
    axes = canvas.add_axes((1.5 / (2.6 + 0.95 * len(problems)), 0.25 / high, 0.95 * len(problems) / (2.6 + 0.95 * len(problems)), 0.3 * len(ranks) / high))
    ratios = np.array([[cells[name, problem].ratio.estimate for problem in problems] for name in ranks])
    axes.imshow(np.clip(ratios, 1, WORST), cmap=HEAT, norm=LogNorm(1, WORST), aspect="auto")
    for row, name in enumerate(ranks):
        for column, problem in enumerate(problems):
            one = cells[name, problem]
            dark = one.ratio.estimate > 2.6 or not np.isfinite(one.ratio.estimate)
            ink = "#ffffff" if dark else "#222222"
            close = not one.ratio.low > 1
            axes.text(column - 0.08, row, number(one.ratio.estimate), ha="center", va="center", color=ink, fontsize=8, fontweight="bold" if close else "normal")
            axes.text(column + 0.45, row, f"{one.rank}", ha="right", va="center", color=ink, fontsize=5.5)
    axes.grid(visible=False)
    axes.set_yticks(range(len(ranks)), [LEARNERS[name].label for name in ranks])
    axes.set_xticks(range(len(problems)), problems, rotation=30, ha="left")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for row, rank in enumerate(ranks.values()):
        axes.text(len(problems) - 0.35, row, f"{rank:.1f}", va="center", fontsize=8)
    axes.text(len(problems) - 0.35, -0.75, "mean\nrank", va="bottom", fontsize=7)
    title = "Error over the whole run, relative to the learner that was best on the tuning runs; small: rank. Bold: its interval reaches 1"
    canvas.text(0.01, 1 - 0.1 / high, title, va="top", fontsize=8.5)
    return canvas


def number(value: float) -> str:
    """Return a ratio as a cell shows it."""
    return "∞" if not np.isfinite(value) else f"{value:.2f}" if value < 100 else "> 100"


def dd_forest(contest: Contest, verdicts: list[Verdict]) -> Any:
    """Draw the ratio of errors with and without the DD term, a panel for each learner, a row for each problem."""
    compared = dd_comparisons(verdicts)
    problems = [one.name for one in contest.problems]
    canvas = Canvas(figsize=(1.6 + 2.1 * len(compared), 1.5 + 0.26 * len(problems)))
    panels = canvas.subplots(1, len(compared), sharey=True, sharex=True, squeeze=False)[0]
    canvas.subplots_adjust(left=1.35 / (1.6 + 2.1 * len(compared)), right=0.985, top=0.76, bottom=0.14, wspace=0.08)
    for axes, (dd, comparisons) in zip(panels, compared.items(), strict=True):
        for one in comparisons:
            row = problems.index(one.task)
            colour = {"holds": RED, "fails": BLUE}.get(one.outcome, BLACK)
            low, middle, high = (float(np.clip(value, 0.1, 10)) for value in (one.low, one.estimate, one.high))
            axes.plot([low, high], [row, row], color=colour, linewidth=1.6)
            axes.plot(middle, row, "o", color=colour, markersize=5)
        axes.axvline(1.0, color="#444444", linewidth=0.9)
        axes.set_xscale("log")
        axes.set_title(f"{LEARNERS[dd].label} / {LEARNERS[WITH_DD[dd]].label}")
        axes.set_yticks(range(len(problems)), problems)
        axes.set_ylim(len(problems) - 0.5, -0.5)
    plain_numbers(panels[0].xaxis)
    canvas.text(0.01, 0.985, "What the DD term does: error with it over error without, on shown runs, with intervals that hold together at 95 %", va="top", fontsize=9)
    canvas.text(0.01, 0.92, "Orange-red, left of the line: lower with it · blue, right: higher · grey: cannot be told", va="top", fontsize=8)
    return canvas


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
            means = np.array([contest.errors(problem.name, name, lam).mean() for lam in lams])
            means[has_exploded(means, contest.first[problem.name])] = np.nan
            shown += means.tolist()
            width = 2.2 if name == "gradient_dd" else 1.2
            axes.plot(range(len(lams)), means, marker=MARKERS[place], color=OVER_LAMBDA[name], linewidth=width, markersize=3.5, label=LEARNERS[name].label)
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
    settings, errors = contest.tuning[problem]
    means = estimate(errors["area"]).mean
    gone = has_exploded(means, contest.first[problem])
    low, high = limits([*means[~gone], contest.first[problem]])
    for axes, name in zip(panels, contest.learners, strict=True):
        ours = [place for place, one in enumerate(settings) if one.rule.name == name]
        for colour, lam in zip((RAMP[0], RAMP[2], RAMP[4]), sorted({trace_length(settings[i]) for i in ours}), strict=False):
            by_alpha: dict[float, float] = {}
            for place in (i for i in ours if trace_length(settings[i]) == lam):
                alpha, value = settings[place].values["alpha"], np.inf if gone[place] else means[place]
                by_alpha[alpha] = min(by_alpha.get(alpha, np.inf), value)
            alphas = np.array(sorted(by_alpha))
            best = np.array([by_alpha[alpha] for alpha in alphas])
            axes.plot(alphas, np.where(np.isfinite(best), best, np.nan), color=colour, linewidth=1.4, label=f"λ = {lam:g}")
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


def cost_bars(costs: dict[str, dict[str, float]]) -> Any:
    """Draw the nanoseconds of an update of each learner, a group for each problem."""
    names = sorted({name for one in costs.values() for name in one}, key=lambda name: max(one.get(name, 0) for one in costs.values()))
    high = 1.0 + 0.24 * len(names)
    canvas = Canvas(figsize=(7.5, high))
    axes = canvas.add_axes((0.22, 0.5 / high, 0.75, 1 - 1.0 / high))
    for place, (problem, measured) in enumerate(costs.items()):
        axes.plot([measured.get(name, np.nan) for name in names], range(len(names)), MARKERS[place], label=problem, color=RAMP[2 * place % len(RAMP)], markersize=5)
    axes.set_xscale("log")
    plain_numbers(axes.xaxis)
    axes.set_yticks(range(len(names)), [LEARNERS[name].label for name in names])
    axes.set_xlabel("nanoseconds of an update of one setting, in the lanes of this study, errors included")
    axes.legend(loc="lower right", frameon=True)
    canvas.text(0.01, 1 - 0.1 / high, "What an update costs", va="top", fontsize=9, fontweight="bold")
    return canvas
