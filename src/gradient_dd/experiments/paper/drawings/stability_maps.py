"""Maps of stability: the rate of Gradient-DD's slowest mode over step size and κ, and over step size and ζ."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.report.canvas import Sheet, plain_numbers, styled
from gradient_dd.report.figure import BLACK, RED
from gradient_dd.theory.rate_planes import RatePlane, SquarePlane

SAMPLINGS = {"iid": "independent draws", "trajectory": "trajectories"}
SYMBOLS = {"kappa": "κ", "zeta": "ζ"}
ROWS = 19  # values of the parameter
SQUARES = 10  # of them, at which the mean square is looked at
HATCHED: dict[str, Any] = {"facecolor": "white", "edgecolor": "#999999", "hatch": "////", "linewidth": 0}
DECADES = 3.0  # of the rate, shown in colours


class Plane(NamedTuple):
    """A column of the figure: a task, the parameter and its range, the range of alpha."""

    title: str
    task: tasks.Task
    parameter: str
    values: tuple[float, float]
    alphas: tuple[float, float]
    columns: int
    squares: bool


def planes() -> list[Plane]:
    """Return the columns. Second moments of Baird's task are left out: they take ten seconds."""
    walk, baird = tasks.random_walk(5), tasks.baird(7)
    return [
        Plane("walk, m = 5, ζ = 1", walk, "kappa", (1 / 16, 16), (0.01, 4), 32, True),
        Plane("walk, m = 5, κ = 1", walk, "zeta", (1 / 64, 16), (0.01, 4), 32, True),
        Plane("Baird, N = 7, ζ = 1", baird, "kappa", (1 / 16, 16), (0.001, 1), 26, False),
    ]


def draw(folder: Path) -> None:
    """Draw into folder/stability-maps.svg and .png."""
    chosen = planes()
    with styled():
        sheet = Sheet(len(chosen), (2.3, 2.3, 0.13), width=3.3, legend_rows=1, gap=0.7)
        for column, plane in enumerate(chosen):
            alphas, values = np.geomspace(*plane.alphas, plane.columns), np.geomspace(*plane.values, ROWS)
            means = {sampling: RatePlane(plane.task, plane.parameter, sampling) for sampling in SAMPLINGS}
            rates = {sampling: mean.rates(alphas, values[:, None]) for sampling, mean in means.items()}
            top = max(float(found.max()) for found in rates.values())
            for row, (sampling, mean) in enumerate(means.items()):
                axes = sheet.axes(row, column)
                limit = np.array([mean.edge(alphas, *pair) for pair in zip(rates[sampling], values, strict=True)])
                mesh = map_of(axes, alphas, values, rates[sampling], limit, LogNorm(top / 10**DECADES, top))
                if plane.squares:
                    mean_square_limit(axes, plane, sampling, alphas, values)
                axes.set(xlim=plane.alphas, ylim=plane.values)
                axes.set(title=f"{plane.title}: {SAMPLINGS[sampling]}", xlabel="step size α")
                axes.set_ylabel(SYMBOLS[plane.parameter], rotation=0, labelpad=2)
                plain_numbers(axes.xaxis)
                plain_numbers(axes.yaxis)
            bar = sheet.canvas.colorbar(mesh, cax=sheet.axes(2, column), orientation="horizontal", extend="min")
            bar.ax.set_xlabel("rate: what the slowest mode loses in one step")
            plain_numbers(bar.ax.xaxis)
        sheet.say(DRAWINGS["stability-maps"].title, "exact mean dynamics of Gradient-DD, no sampling")
        sheet.legend(keys(), 3)
        sheet.save(folder, "stability-maps")


def map_of(axes: Any, alphas: Array, values: Array, rates: Array, limit: Array, norm: LogNorm) -> Any:
    """Draw rates in colours over hatching, which is seen where the mean is unstable."""
    axes.patch.set(**HATCHED)
    axes.set(xscale="log", yscale="log")
    axes.grid(False)
    shown = up_to_the_edge(rates)
    mesh = axes.pcolormesh(alphas, values, shown, norm=norm, cmap="viridis", shading="nearest", rasterized=True)
    begin = np.minimum(limit, alphas[-1])
    axes.fill_betweenx(values, begin, begin * (alphas[1] / alphas[0]) ** 5, **HATCHED)
    axes.plot(np.where(np.isinf(limit), np.nan, limit), values, color=RED, linewidth=1.8)
    return mesh


def up_to_the_edge(rates: Array) -> Any:
    """Return rates masked where they are negative, but for two cells of a row that its edge may pass through."""
    filled = rates.copy()
    for row in filled:
        first = int(np.argmax(np.append(row, -1.0) <= 0))
        if first:
            row[first : first + 2] = np.where(row[first : first + 2] <= 0, row[first - 1], row[first : first + 2])
    return np.ma.masked_less_equal(filled, 0.0)


def mean_square_limit(axes: Any, plane: Plane, sampling: str, alphas: Array, values: Array) -> None:
    """Draw the largest alpha that is stable in mean square."""
    square, some = SquarePlane(plane.task, plane.parameter, sampling), values[:: (ROWS - 1) // (SQUARES - 1)]
    safe = [square.edge(alphas[0], alphas[-1], value) for value in some]
    axes.plot(safe, some, color="white", linewidth=2.6)
    axes.plot(safe, some, color=BLACK, linewidth=1.4, linestyle="--")


def keys() -> list[Any]:
    """Return the entries of the legend."""
    return [
        Patch(**HATCHED, label="the mean diverges"),
        Line2D([], [], color=RED, linewidth=1.8, label="largest α at which the mean is stable"),
        Line2D([], [], color=BLACK, linewidth=1.4, linestyle="--", label="… at which the mean square is (walk only)"),
    ]
