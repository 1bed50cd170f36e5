"""The pictures of the comparison: who leads where, what the DD term does, λ, step sizes, and what an update costs."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.errors import extra
from gradient_dd.experiments.drawing import Picture
from gradient_dd.experiments.experiment import Job
from gradient_dd.experiments.family.contest import Contest, Entrant, trace_length
from gradient_dd.experiments.family.ledger import SAME_ZETAS
from gradient_dd.experiments.family.problems import WITH_DD
from gradient_dd.experiments.family.ranks import mean_ranks
from gradient_dd.experiments.family.standings import Standing, costs_of, dd_comparisons, standings
from gradient_dd.experiments.verdicts import ClaimVerdict
from gradient_dd.learners import LEARNERS
from gradient_dd.report.canvas import plain_numbers, save, styled
from gradient_dd.report.figure import BLUE, COLOURS, MARKERS, RAMP, RED
from gradient_dd.studies.intervals import estimate, has_exploded

with extra("report"):
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.figure import Figure as Canvas

HEAT = LinearSegmentedColormap.from_list("heat", ["#ffffff", "#f6d7a7", "#d9733f", "#8c2d1f"])
LIGHT_INK = "#fefefe"  # not pure white, which a page in dark colours turns into the colour of its paper
SPAN = 2.0  # how far the axes of the DD term reach from 1
WORST = 4.0  # the ratio from which on a cell has the last colour
OVER_LAMBDA = ("td", "gtd2", "tdc", "tdrc", "htd", "pgtd2", "etd", "vtrace", "gradient_dd")
ACROSS = 5  # panels in a row
HIGHEST = 2.0  # times the first error: where the axes of errors over step sizes end


def draw(make: Callable[[], Any], name: str, note: str, folder: Path) -> None:
    """Draw a picture into folder/NAME.svg and .png; `make` returns its canvas, `note` is the warning it carries."""
    with styled():
        canvas = make()
        if note:
            canvas.text(0.005, 0.005, note.upper(), va="bottom", fontsize=7, color=RED)
        save(canvas, folder, name, dpi=130)


def late_pictures(job: Job, contest: Contest, verdicts: list[ClaimVerdict]) -> list[Picture]:
    """Return every picture, those of step sizes last."""
    made: dict[str, Callable[[], Any]] = {
        "matrix": partial(matrix, contest, standings(contest)),
        "lambda": partial(over_lambda, contest),
    }
    if dd_comparisons(verdicts):
        made["dd"] = partial(dd_forest, contest, verdicts)
        made["dd-zeta"] = partial(dd_forest, contest, verdicts, SAME_ZETAS)
    costs = costs_of(job, contest)
    if costs:
        made["cost"] = partial(cost_bars, costs)
    made |= {f"alpha-{one.name}": partial(over_alpha, contest, one.name) for one in contest.problems}
    return [Picture(name, partial(draw, make, name, job.note)) for name, make in made.items()]


def matrix(contest: Contest, found: list[Standing]) -> Any:
    """Draw learner × problem: the error over that of the best, and the rank."""
    ranks, problems = mean_ranks(contest), [one.name for one in contest.problems]
    cells = {(one.learner, one.problem): one for one in found}
    inner, tall = 0.9 * len(problems), 0.28 * len(ranks)
    wide, high = inner + 3.0, tall + 1.75
    canvas = Canvas(figsize=(wide, high))
    axes = canvas.add_axes((1.5 / wide, 0.25 / high, inner / wide, tall / high))
    ratios = np.array([[cells[name, problem].ratio.estimate for problem in problems] for name in ranks])
    axes.imshow(np.clip(ratios, 1, WORST), cmap=HEAT, norm=LogNorm(1, WORST), aspect="auto")
    for row, name in enumerate(ranks):
        for column, problem in enumerate(problems):
            one = cells[name, problem]
            dark = one.ratio.estimate > 2.6 or not np.isfinite(one.ratio.estimate)
            ink = LIGHT_INK if dark else "#222222"
            close = not one.ratio.low > 1
            weight = "bold" if close else "normal"
            text: dict[str, Any] = {"ha": "center", "va": "center", "color": ink, "fontsize": 8, "fontweight": weight}
            axes.text(column - 0.08, row, number(one.ratio.estimate), **text)
            axes.text(column + 0.45, row, f"{one.rank}", ha="right", va="center", color=ink, fontsize=5.5)
    axes.grid(visible=False)
    axes.set_yticks(range(len(ranks)), [LEARNERS[name].label for name in ranks])
    axes.set_xticks(range(len(problems)), problems, rotation=30, ha="left")
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for row, rank in enumerate(ranks.values()):
        told = f"{rank.mean:.1f}  [{rank.low:.1f}, {rank.high:.1f}]"
        axes.text(len(problems) - 0.35, row, told, va="center", fontsize=7)
    axes.text(len(problems) - 0.35, -0.75, "mean rank\nand interval", va="bottom", fontsize=7)
    title = "Error over the whole run relative to the learner that was best on the tuning runs; shown runs\n"
    title += "Small: rank. Bold: no clear difference from that learner, because the interval of the ratio contains 1"
    canvas.text(0.01, 1 - 0.1 / high, title, va="top", fontsize=8.5)
    return canvas


def number(value: float) -> str:
    """Return a ratio as a cell shows it."""
    return "∞" if not np.isfinite(value) else f"{value:.2f}" if value < 100 else "> 100"


def dd_forest(contest: Contest, verdicts: list[ClaimVerdict], same: str = "") -> Any:
    """Draw the ratio of errors with and without the DD term, a panel for each learner, two rows for each problem.

    With `same`, both learners have the same values of ζ; a learner with one ζ has no panel then.
    """
    compared = {
        dd: {reading: some for reading, some in readings.items() if reading.endswith(SAME_ZETAS) == bool(same)}
        for dd, readings in dd_comparisons(verdicts).items()
    }
    compared = {dd: readings for dd, readings in compared.items() if readings}
    problems = [one.name for one in contest.problems]
    wide, high = 1.6 + 2.1 * len(compared), 1.6 + 0.36 * len(problems)
    canvas = Canvas(figsize=(wide, high))
    panels = canvas.subplots(1, len(compared), sharey=True, sharex=True, squeeze=False)[0]
    canvas.subplots_adjust(left=1.35 / wide, right=0.985, top=1 - 1.05 / high, bottom=0.4 / high, wspace=0.08)
    for axes, (dd, readings) in zip(panels, compared.items(), strict=True):
        for (up, filled), comparisons in zip(((-0.17, True), (0.17, False)), readings.values(), strict=False):
            for one in comparisons:
                row = problems.index(one.task) + up
                colour = {"holds": RED, "fails": BLUE}.get(one.outcome, "#777777")
                ends = (float(np.clip(value, 1 / SPAN, SPAN)) for value in (one.low, one.estimate, one.high))
                low, middle, top = ends
                axes.plot([low, top], [row, row], color=colour, linewidth=1.6)
                inside = colour if filled else "white"
                mark = "<" if one.estimate < low else ">" if one.estimate > top else "o"
                axes.plot(middle, row, mark, color=colour, markersize=4.5, markerfacecolor=inside)
        axes.axvline(1.0, color="#444444", linewidth=0.9)
        axes.set_xscale("log")
        axes.set_xlim(0.95 / SPAN, 1.05 * SPAN)
        axes.set_title(f"{LEARNERS[dd].label} / {LEARNERS[WITH_DD[dd]].label}")
        axes.set_yticks(range(len(problems)), problems)
        axes.set_ylim(len(problems) - 0.5, -0.5)
    plain_numbers(panels[0].xaxis)
    title = "What the DD term does: error with it over error without, on shown runs; "
    title += "both choose among the same values of ζ\n" if same else "both choose among as many settings\n"
    title += "The intervals of one panel and one kind of mark hold together at 95 %"
    canvas.text(0.01, 1 - 0.08 / high, title, va="top", fontsize=9)
    legend = "Filled: λ tuned · hollow: λ = 0 · orange-red, left of the line: lower with the term · blue, right: higher"
    legend += " · grey: the interval contains 1 · triangles: beyond ½ or 2"
    canvas.text(0.01, 1 - 0.45 / high, legend, va="top", fontsize=8)
    return canvas


def cost_bars(costs: dict[str, dict[str, float]]) -> Any:
    """Draw the nanoseconds of an update of each learner, a group for each problem."""
    names = sorted(
        {name for one in costs.values() for name in one},
        key=lambda name: max(one.get(name, 0) for one in costs.values()),
    )
    high = 1.0 + 0.24 * len(names)
    canvas = Canvas(figsize=(7.5, high))
    axes = canvas.add_axes((0.22, 0.5 / high, 0.75, 1 - 1.0 / high))
    for place, (problem, measured) in enumerate(costs.items()):
        times, colour = [measured.get(name, np.nan) for name in names], RAMP[2 * place % len(RAMP)]
        axes.plot(times, range(len(names)), MARKERS[place], label=problem, color=colour, markersize=5)
    axes.set_xscale("log")
    plain_numbers(axes.xaxis)
    axes.set_yticks(range(len(names)), [LEARNERS[name].label for name in names])
    axes.set_xlabel("nanoseconds of an update of one setting, in the lanes of this study, errors included")
    axes.legend(loc="lower right", frameon=True)
    canvas.text(0.01, 1 - 0.1 / high, "What an update costs", va="top", fontsize=9, fontweight="bold")
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
            means = np.array([contest.shown(problem.name, Entrant(name, lam)).mean() for lam in lams])
            means[has_exploded(means, contest.first[problem.name])] = np.nan
            shown += means.tolist()
            look = {"marker": MARKERS[place], "color": COLOURS[name], "label": LEARNERS[name].label}
            axes.plot(range(len(lams)), means, linewidth=2.2 if name == "gradient_dd" else 1.2, markersize=3.5, **look)
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
        plain_numbers(axes.xaxis, axes.yaxis)
        axes.set_title(LEARNERS[name].label)
        axes.tick_params(labelsize=7)
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="upper right", ncols=3, frameon=False, fontsize=8)
    title = f"{problem}: error over the whole run against the step size α, all else tuned; tuning runs"
    canvas.text(0.01, 0.995, f"{title}\n× above: exploded · dotted: the first error", va="top", fontsize=9)
    return canvas
