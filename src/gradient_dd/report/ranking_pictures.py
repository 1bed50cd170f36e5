"""The pictures of a standing: each stands alone as SVG, and inside a page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.errors import extra
from gradient_dd.ranking.standing import Standing
from gradient_dd.ranking.standings import OCTAVES
from gradient_dd.report.canvas import plain_numbers, styled, svg_text
from gradient_dd.report.figure import BLACK, BLUE, RED
from gradient_dd.report.plots import forest

with extra("report"):
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure as Canvas

HEAT = ("#fffdf8", "#f6d7a7", "#d9733f", "#8c2d1f")  # of ratios to the best learner: 1, and the bounds below
BOUNDS = (1.05, 1.25, 2.0)
LARGEST = 1e9  # ratio, on the scale of colours
OWN = (RED, BLUE, BLACK, BLACK)  # the rule and its rivals; all others are grey
GREY = "#999999"
CELL, ACROSS = 0.16, 5  # inches of a cell of the heat map; panels in a row


class StandingPicture(NamedTuple):
    """A picture as SVG."""

    svg: str

    def __repr__(self) -> str:
        return f"<StandingPicture: {len(self.svg) / 1000:.0f} kB of SVG>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: Any) -> None:
        """Write the picture to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")


def picture(
    draw: Callable[[Standing, Any], None], standing: Standing, wide: float, high: float, layout: Any = "constrained"
) -> StandingPicture:
    """Return what a function draws on a canvas of so many inches."""
    with styled():
        canvas = Canvas(figsize=(wide, high), layout=layout)
        draw(standing, canvas)
        return StandingPicture(svg_text(canvas))


def label_of(standing: Standing, name: str) -> str:
    """Return the label of a learner, with a mark for the user's own."""
    return ("▸ " if name == standing.own else "") + standing.rules[name].label


def shown(standing: Standing) -> dict[str, str]:
    """Return the rule, or the best learner, and its rivals, each with its colour."""
    names = dict.fromkeys([standing.own or next(iter(standing.ranks)), *standing.rivals])
    return dict(zip(names, OWN, strict=False))


def heat(standing: Standing) -> StandingPicture:
    """Return learners × problems: the ratio of each error to the best one on that problem."""
    return picture(draw_heat, standing, 2.6 + CELL * len(standing.problems), 1.9 + CELL * len(standing.ranks))


def draw_heat(standing: Standing, canvas: Any) -> None:
    """Draw a cell for each learner and problem."""
    names, axes = list(standing.ranks), canvas.subplots()
    ratios = np.array([standing.means[name] / standing.best for name in names])
    scale = BoundaryNorm((0, *BOUNDS, LARGEST), len(HEAT))
    axes.pcolormesh(
        np.minimum(ratios, LARGEST),
        cmap=ListedColormap(HEAT),
        norm=scale,
        edgecolor=GREY,
        linewidth=0.3,
        rasterized=True,
    )
    axes.set_yticks(np.arange(len(names)) + 0.5, [label_of(standing, name) for name in names])
    axes.set_xticks(np.arange(len(standing.problems)) + 0.5, [one.name for one in standing.problems])
    axes.tick_params(axis="x", rotation=90)
    axes.tick_params(length=0)
    axes.invert_yaxis()
    axes.set_title(f"Error over the best one: darker from {', '.join(f'{one:g}' for one in BOUNDS)} on")


def ratios(standing: Standing) -> StandingPicture:
    """Return a forest plot of the paired ratios against the first rival."""
    return picture(draw_ratios, standing, 5.0, 1.0 + 0.2 * len(standing.problems))


def draw_ratios(standing: Standing, canvas: Any) -> None:
    """Draw a row for each problem, the first on top."""
    name = standing.own or next(iter(standing.ranks))
    rival = next((one for one in standing.rivals if one != name), standing.rivals[0])
    records: list[dict[str, Any]] = []
    for problem in reversed(standing.problems):
        value, low, high = standing.ratio(name, rival, problem)
        colour = RED if high < 1 else BLUE if low > 1 else BLACK
        records.append({"name": problem.name, "value": value, "low": low, "high": high, "colour": colour})
    axes = forest(records, 1.0, canvas.subplots())
    values = [one["value"] for one in records if 0 < one["value"] < np.inf]
    low, high = min([*values, 0.8]), max([*values, 1.25])  # wide intervals do not squeeze the estimates together
    axes.set(xscale="log", xlim=(max(low / 2, 1e-4), min(high * 2, 1e4)), xlabel="ratio of errors")
    axes.set_title(f"{standing.rules[name].label} over {standing.rules[rival].label}")
    plain_numbers(axes.xaxis)


def profile(standing: Standing) -> StandingPicture:
    """Return for every learner the share of problems on which its error is at most τ times the best one."""
    return picture(draw_profile, standing, 6.0, 3.2)


def draw_profile(standing: Standing, canvas: Any) -> None:
    """Draw a line for each learner, those that are compared in colour."""
    axes, taus, colours = canvas.subplots(), np.geomspace(1.0, 4.0, 81), shown(standing)
    for name, means in standing.means.items():
        shares = ((means / standing.best)[:, None] <= taus).mean(axis=0)
        label, is_shown = standing.rules[name].label, name in colours
        look = {"color": colours.get(name, GREY), "linewidth": 2.2 if is_shown else 0.6, "zorder": 2 + is_shown}
        axes.plot(taus, shares, label=label if is_shown else "", **look)
    axes.set(xscale="log", xlim=(1, 4), ylim=(0, 1.02), xlabel="τ")
    axes.set_xticks([1, 1.5, 2, 3, 4], ["1", "1.5", "2", "3", "4"])
    axes.set_xticks([], minor=True)
    axes.set_title("Share of problems with an error of at most τ times the best")
    canvas.legend(loc="outside right upper", frameon=False)


def step_sizes(standing: Standing) -> StandingPicture:
    """Return a small panel for each problem: the error against the step size, of the rule and of its rivals."""
    rows = -(-len(standing.problems) // ACROSS)
    return picture(
        draw_step_sizes, standing, 9.0, 0.9 + 1.25 * rows, layout=None
    )  # the layout of 45 panels takes seconds


def draw_step_sizes(standing: Standing, canvas: Any) -> None:
    """Draw the panels on common axes."""
    high = canvas.get_figheight()
    canvas.subplots_adjust(0.05, 0.55 / high, 0.99, 1 - 0.45 / high, wspace=0.1, hspace=0.35)
    grid = canvas.subplots(-(-len(standing.problems) // ACROSS), ACROSS, sharex=True, sharey=True, squeeze=False)
    for axes, problem in zip(grid.flat, standing.problems, strict=False):
        for name, colour in shown(standing).items():
            curve = np.minimum(standing.entries[name, problem.name].curve.astype(float), 1.1)
            there = np.isfinite(curve)
            axes.plot(
                2.0 ** OCTAVES[there], curve[there], color=colour, linewidth=1.4, label=standing.rules[name].label
            )
        axes.set_title(problem.name, fontweight="normal", pad=2)
        axes.set(xscale="log", ylim=(0, 1.15), xticks=(1e-3, 1e-1), xticklabels=("0.001", "0.1"))
        axes.minorticks_off()
    for axes in grid.flat[len(standing.problems) :]:
        axes.set_visible(False)
    words = "Error over the initial error against α, other parameters tuned"
    canvas.text(0.5, 1 - 0.1 / high, words, ha="center", va="top", fontweight="bold")
    canvas.legend(*grid.flat[0].get_legend_handles_labels(), loc="lower center", ncols=4, frameon=False)


PICTURES: dict[str, Callable[[Standing], StandingPicture]] = {
    one.__name__: one for one in (heat, ratios, profile, step_sizes)
}
