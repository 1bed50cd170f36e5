"""The page of a standing: the rule's rank, the table, the pictures, and LaTeX for a paper."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.errors import extra, file_path
from gradient_dd.files import check_regular
from gradient_dd.ranking.standing import Standing
from gradient_dd.ranking.standings import OCTAVES
from gradient_dd.report.canvas import plain_numbers, styled, svg_text
from gradient_dd.report.figure import BLACK, BLUE, RED
from gradient_dd.report.page import render
from gradient_dd.report.plots import forest
from gradient_dd.report.svg import inline_svg

with extra("report"):
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.figure import Figure as Canvas

HEAT = ("#fffdf8", "#f6d7a7", "#d9733f", "#8c2d1f")  # colours of ratios to the best learner, from 1 and from each bound
BOUNDS = (1.05, 1.25, 2.0)
LARGEST = 1e9  # largest ratio on the colour scale
GREY = "#999999"
CELL, ACROSS = 0.16, 5  # size of a cell of the heat map in inches; number of panels in a row


def write_report(standing: Standing, path: Any) -> Path:
    """Write the page, with the tables and the pictures in the same folder; return the path of the page."""
    page: Path = file_path("The path of the page", path)
    check_regular(page)
    pictures = []
    for name, (_, caption) in PICTURES.items():
        file = page.with_name(f"{page.stem}-{name.replace('_', '-')}.svg")
        picture(name, standing).save(file)
        pictures.append((name, inline_svg(file, name), caption))
    title = standing.rules[standing.own].label if standing.own else "All learners"
    text = render("ranking.html", standing=standing, title=title, pictures=pictures)
    page.write_text(text, encoding="utf-8")
    standing.problem_frame().to_csv(page.with_suffix(".csv"), index=False)
    page.with_suffix(".tex").write_text(standing.to_latex() + "\n", encoding="utf-8")
    return page


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


def picture(name: str, standing: Standing) -> StandingPicture:
    """Return a picture by its name in PICTURES."""
    with styled():
        canvas = Canvas(layout=None if name == "step_sizes" else "constrained")  # "constrained" is slow for 45 panels
        PICTURES[name][0](standing, canvas)
        return StandingPicture(svg_text(canvas))


def highlighted(standing: Standing) -> dict[str, str]:
    """Return the rule (or else the best learner) and its rivals, each with its colour; other learners are grey."""
    names = dict.fromkeys([standing.own or next(iter(standing.ranks)), *standing.rivals])
    return dict(zip(names, (RED, BLUE, BLACK, BLACK), strict=False))


def heat(standing: Standing, canvas: Any) -> None:
    """Draw a cell for each learner and problem: the ratio of the error to the lowest error on that problem."""
    names, problems = list(standing.ranks), standing.problems
    canvas.set_size_inches(2.6 + CELL * len(problems), 1.9 + CELL * len(names))
    axes = canvas.subplots()
    ratios = np.minimum([standing.means[name] / standing.best for name in names], LARGEST)
    scale: dict[str, Any] = {"cmap": ListedColormap(HEAT), "norm": BoundaryNorm((0, *BOUNDS, LARGEST), len(HEAT))}
    axes.pcolormesh(ratios, **scale, edgecolor=GREY, linewidth=0.3, rasterized=True)
    labels = [("▸ " if name == standing.own else "") + standing.rules[name].label for name in names]
    axes.set_yticks(np.arange(len(names)) + 0.5, labels)
    axes.set_xticks(np.arange(len(problems)) + 0.5, [one.name for one in problems])
    axes.tick_params(axis="x", rotation=90)
    axes.tick_params(length=0)
    axes.invert_yaxis()
    axes.set_title(f"Error over the best one: darker from {', '.join(f'{one:g}' for one in BOUNDS)} on")


def ratios(standing: Standing, canvas: Any) -> None:
    """Draw a forest plot of the paired ratios to the first rival, one row per problem, the first problem on top."""
    canvas.set_size_inches(5.0, 1.0 + 0.2 * len(standing.problems))
    name = standing.own or next(iter(standing.ranks))
    rival = next((one for one in standing.rivals if one != name), standing.rivals[0])
    records: list[dict[str, Any]] = []
    for problem in reversed(standing.problems):
        value, low, high = standing.ratio(name, rival, problem)
        colour = RED if high < 1 else BLUE if low > 1 else BLACK
        records.append({"name": problem.name, "value": value, "low": low, "high": high, "colour": colour})
    axes = forest(records, 1.0, canvas.subplots())
    values = [one["value"] for one in records if 0 < one["value"] < np.inf]
    low, high = min([*values, 0.8]), max([*values, 1.25])  # without intervals, as wide ones squeeze estimates
    axes.set(xscale="log", xlim=(max(low / 2, 1e-4), min(high * 2, 1e4)), xlabel="ratio of errors")
    axes.set_title(f"{standing.rules[name].label} over {standing.rules[rival].label}")
    plain_numbers(axes.xaxis)


def profile(standing: Standing, canvas: Any) -> None:
    """Draw for each learner the share of problems on which its error is at most τ times the lowest error."""
    canvas.set_size_inches(6.0, 3.2)
    axes, taus, colours = canvas.subplots(), np.geomspace(1.0, 4.0, 81), highlighted(standing)
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


def step_sizes(standing: Standing, canvas: Any) -> None:
    """Draw a small panel for each problem: the error of the rule and of its rivals against the step size."""
    rows = -(-len(standing.problems) // ACROSS)
    high = 0.9 + 1.25 * rows
    canvas.set_size_inches(9.0, high)
    canvas.subplots_adjust(0.05, 0.55 / high, 0.99, 1 - 0.45 / high, wspace=0.1, hspace=0.35)
    grid = canvas.subplots(rows, ACROSS, sharex=True, sharey=True, squeeze=False)
    for axes, problem in zip(grid.flat, standing.problems, strict=False):
        for name, colour in highlighted(standing).items():
            curve = np.minimum(standing.entries[name, problem.name].curve.astype(float), 1.1)
            there, label = np.isfinite(curve), standing.rules[name].label
            axes.plot(2.0 ** OCTAVES[there], curve[there], color=colour, linewidth=1.4, label=label)
        axes.set_title(problem.name, fontweight="normal", pad=2)
        axes.set(xscale="log", ylim=(0, 1.15), xticks=(1e-3, 1e-1), xticklabels=("0.001", "0.1"))
        axes.minorticks_off()
    for axes in grid.flat[len(standing.problems) :]:
        axes.set_visible(False)
    words = "Error over the initial error against α, other parameters tuned"
    canvas.text(0.5, 1 - 0.1 / high, words, ha="center", va="top", fontweight="bold")
    canvas.legend(*grid.flat[0].get_legend_handles_labels(), loc="lower center", ncols=4, frameon=False)


PICTURES: dict[str, tuple[Callable[[Standing, Any], None], str]] = {  # by name: its function, and its caption
    "heat": (heat, "Each cell is the error of a learner on a problem over the error of the best learner on it."),
    "ratios": (
        ratios,
        "A dot is the ratio of the mean errors on the same test runs with its 95 % interval; below 1 is better.",
    ),
    "profile": (profile, "The higher a line, the more problems on which the learner is close to the best."),
    "step_sizes": (
        step_sizes,
        "The flatter a line, the less the step size matters. Colours as in the profile.",
    ),
}
