"""The four figures of the shadows report."""

from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import extra
from gradient_dd.experiments.shadows.measure import MAP_ALPHAS, POINTS, SHARES, Choices, StabilityMap
from gradient_dd.experiments.shadows.trial import CHOOSERS
from gradient_dd.report.canvas import drawn, plain_numbers, thousands
from gradient_dd.report.figure import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, YELLOW

with extra("report"):
    from matplotlib.colors import SymLogNorm

SHORT = {CHOOSERS[0]: "shadows", CHOOSERS[1]: "not tuned"}
COLOURS = {
    "TD": BLACK,
    "TDC": GREEN,
    "TDRC": SKY,
    "GTD2": ORANGE,
    "Gradient-DD": PURPLE,
    CHOOSERS[0]: RED,
    CHOOSERS[1]: YELLOW,
}
NEAR = 0.03  # logs of points of the plane nearer than this: the lower one has its label below
SMALLEST, LARGEST = 1e-5, 0.1  # growth per step at which the colours of a map begin and end


def colour_of(name: str) -> str:
    """Return the colour of a learner; HTD and those with a fixed c share one."""
    return COLOURS.get(name, BLUE)


def draw_plane(tables: dict[str, dict[str, Any]], folder: Path) -> None:
    """Draw the plane of speed (where TD is stable) against safety (where it is not)."""
    stable, unstable = tables["TD stable"], tables["TD unstable"]
    places = {name: (row["geometric_mean"], unstable[name]["geometric_mean"]) for name, row in stable.items()}
    counts = [next(iter(table.values()))["tasks"] for table in (stable, unstable)]
    texts = (
        "Speed against safety: ratio to the best rival of each task",
        f"Geometric means over {counts[0]} tasks on which TD is stable and {counts[1]} on which it is not.\n"
        "Down and left is better.",
    )
    with drawn(folder, "shadows-plane", texts, columns=1, heights=(3.6,), width=6.0) as sheet:
        axes = sheet.axes(0, 0)
        for name, place in places.items():
            axes.plot(*place, "o", color=colour_of(name), markersize=9 if name in CHOOSERS else 6)
            higher = [other for other in places.values() if other[1] > place[1]]
            below = any(np.abs(np.log(np.divide(place, other))).max() < NEAR for other in higher)
            axes.annotate(name, place, xytext=(7, -11 if below else 4), textcoords="offset points", fontsize=8)
        axes.set(xscale="log", yscale="log", xlabel="where TD is stable", ylabel="where TD is unstable")
        plain_numbers(axes.xaxis, axes.yaxis)


def draw_choices(runs: list[Choices], folder: Path) -> None:
    """Draw the error and the choice over time on every task."""
    texts = (
        "What is chosen over time, with nothing tuned",
        "Above: ‖X(w − w*)‖. Below: c of the best rung by its prediction, 0 is GTD2 and 1 is TD;\n"
        "dark is a small step size, light a large one; a grey bar below 0: it stands still.",
    )
    with drawn(folder, "shadows-choices", texts, columns=len(runs), heights=(1.6, 1.6), width=2.7) as sheet:
        for column, run in enumerate(runs):
            steps = POINTS * np.arange(1, len(run.errors) + 1)
            top, below = sheet.axes(0, column), sheet.axes(1, column)
            top.plot(steps, run.errors, color=RED)
            top.set(yscale="log", title=run.name, ylabel="error" if column == 0 else "")
            below.scatter(steps, run.shares, s=6, c=np.log10(run.sizes), cmap="viridis", vmin=-2.6, vmax=0)
            below.plot(steps[np.isnan(run.shares)], np.full(np.isnan(run.shares).sum(), -0.15), "|", color=BLACK)
            below.set(ylim=(-0.25, 1.1), xlabel="step", ylabel="c of the choice" if column == 0 else "")
            plain_numbers(top.yaxis)
            for axes in (top, below):
                thousands(axes.xaxis)


def draw_maps(maps: list[StabilityMap], folder: Path) -> None:
    """Draw measured against computed growth over c and alpha."""
    heads = ("measured by shadows", "mean, computed", "mean square, computed")
    texts = (
        "Where the learner with share c diverges: growth per step",
        "Blue shrinks, red grows, on a logarithmic scale from 10⁻⁵ to 0.1; the line is 0. gtd2_to_td with zeta 4.\n"
        "Shadows see what nearly every run does; the mean square counts rare bursts too.",
    )
    with drawn(folder, "shadows-maps", texts, columns=3, heights=(2.0,) * len(maps)) as sheet:
        for row, one in enumerate(maps):
            for column, growth in enumerate((one.measured, one.mean, one.square)):
                axes = sheet.axes(row, column)
                draw_map(axes, growth)
                axes.set(title=heads[column] if row == 0 else "", ylabel=f"{one.name}\nc" if column == 0 else "")
                axes.set_xlabel("alpha × mean ‖x‖²" if row + 1 == len(maps) else "")


def draw_map(axes: Any, growth: Array) -> None:
    """Draw the growth over c and alpha, with the line on which it is 0."""
    shown = np.clip(np.nan_to_num(growth, posinf=1.0, neginf=-1.0), -LARGEST, LARGEST)
    colours = SymLogNorm(SMALLEST, vmin=-LARGEST, vmax=LARGEST)
    axes.pcolormesh(MAP_ALPHAS, SHARES, shown, cmap="RdBu_r", norm=colours, shading="nearest")
    if shown.min() < 0 < shown.max():
        axes.contour(MAP_ALPHAS, SHARES, shown, levels=[0.0], colors="black", linewidths=1)
    axes.set(xscale="log")
    axes.grid(visible=False)
    plain_numbers(axes.xaxis)


def draw_bars(table: dict[str, Any], folder: Path) -> None:
    """Draw the geometric mean, the 95th percentile and the worst ratio of every learner."""
    names, count = list(table), next(iter(table.values()))["tasks"]
    words = {"geometric_mean": "geometric mean", "percentile_95": "95th percentile", "worst": "worst task"}
    texts = (
        "Ratio to the best rival of each task",
        f"Over the {count} tasks of the reduced trial; every rival is tuned over 60 settings.",
    )
    with drawn(folder, "shadows-bars", texts, columns=3, heights=(2.6,)) as sheet:
        for column, (key, title) in enumerate(words.items()):
            axes = sheet.axes(0, column)
            values = [table[name][key] for name in names]
            axes.barh(range(len(names)), np.array(values) - 1, left=1, color=[colour_of(name) for name in names])
            axes.set(title=title, xscale="log", xlim=(0.95, max(values) ** 1.3))
            labels = [SHORT.get(one, one) if column == 0 else "" for one in names]
            axes.set_yticks(range(len(names)), labels)
            axes.tick_params(axis="y", labelsize=7)
            axes.invert_yaxis()
            plain_numbers(axes.xaxis)
            for place, value in enumerate(values):
                axes.text(max(value, 1.0), place, f" {value:.2f}", va="center", fontsize=7)
