"""Where Gradient-DD is stable: maps of its rate over step size and κ or ζ, and what κα costs off-policy.

The rate is what the slowest mode of the mean loses in one step; a negative one is unstable.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.patches import Patch

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.report.canvas import drawn, key, plain_numbers
from gradient_dd.report.figure import BLACK, GREEK, ORANGE, RED, SKY
from gradient_dd.theory.effective import diverging_mdps, flow_edge
from gradient_dd.theory.stability import RatePlane, SquareOperator, bisected, gradient_dd, in_row_space

SAMPLINGS = {"iid": "independent draws", "trajectory": "trajectories"}
ROWS = 19  # values of the parameter
SQUARES = 10  # of them, at which the mean square is computed
HATCHED: dict[str, Any] = {"facecolor": "white", "edgecolor": "#999999", "hatch": "////", "linewidth": 0}
DECADES = 3.0  # of the rate, shown in colours

COUNT = 12  # random tasks
SHARES = np.geomspace(3e-4, 3, 42)  # κα, in units of one over the largest ‖x‖²
CLASSES = {"stable": SKY, "diverges, GTD2 does not": ORANGE, "GTD2 diverges too": "#999999"}
SAFETY_PANELS = (("iid", 1e-4), ("trajectory", 1e-4), ("trajectory", 1e-2))  # how data come, and the step size


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


def draw_stability_maps(folder: Path) -> None:
    """Draw into folder/stability-maps.svg and .png."""
    chosen, texts = planes(), (DRAWINGS["stability-maps"].title, "exact mean dynamics of Gradient-DD, no sampling")
    shape: dict[str, Any] = {"columns": len(chosen), "heights": (2.3, 2.3, 0.13), "width": 3.3, "gap": 0.7}
    with drawn(folder, "stability-maps", texts, map_keys, 3, **shape) as sheet:
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
                axes.set_ylabel(GREEK[plane.parameter], rotation=0, labelpad=2)
                plain_numbers(axes.xaxis, axes.yaxis)
            bar = sheet.canvas.colorbar(mesh, cax=sheet.axes(2, column), orientation="horizontal", extend="min")
            bar.ax.set_xlabel("rate: what the slowest mode loses in one step")
            plain_numbers(bar.ax.xaxis)


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
    """Return rates masked where they are negative, except for two cells of a row that its edge may pass through."""
    filled = rates.copy()
    for row in filled:
        first = int(np.argmax(np.append(row, -1.0) <= 0))
        if first:
            row[first : first + 2] = np.where(row[first : first + 2] <= 0, row[first - 1], row[first : first + 2])
    return np.ma.masked_less_equal(filled, 0.0)


def mean_square_limit(axes: Any, plane: Plane, sampling: str, alphas: Array, values: Array) -> None:
    """Draw the largest alpha that is stable in mean square."""
    task, some = in_row_space(plane.task), values[:: (ROWS - 1) // (SQUARES - 1)]
    squares = [SquareOperator(task, gradient_dd(plane.parameter, value), sampling).is_stable for value in some]
    safe = [bisected(one, alphas[0], alphas[-1], precision=0.02) if one(alphas[0]) else 0.0 for one in squares]
    axes.plot(safe, some, color="white", linewidth=2.6)
    axes.plot(safe, some, color=BLACK, linewidth=1.4, linestyle="--")


def map_keys() -> list[Any]:
    """Return the entries of the legend of the maps."""
    return [
        Patch(**HATCHED, label="the mean diverges"),
        key("largest α at which the mean is stable", RED, width=1.8),
        key("… at which the mean square is (walk only)", BLACK, "--", 1.4),
    ]


def draw_safety(folder: Path) -> None:
    """Draw into folder/safety.svg and .png."""
    chosen = [tasks.baird(7), *diverging_mdps(COUNT)]
    edges = [flow_edge(task) * longest(task) for task in chosen]
    words = "exact mean dynamics of Gradient-DD, ζ = 1, on tasks whose A has an eigenvalue with negative real part"
    texts = DRAWINGS["safety"].title, f"{words}\nrandom: 3 states, 2 actions, 2 features, γ = 0.99, by seed"
    colours: dict[str, Any] = {"cmap": ListedColormap(list(CLASSES.values())), "vmin": -0.5, "vmax": len(CLASSES) - 0.5}
    with drawn(folder, "safety", texts, safety_keys, 4, columns=len(SAFETY_PANELS), heights=(3.6,)) as sheet:
        for place, (sampling, alpha) in enumerate(SAFETY_PANELS):
            axes = sheet.axes(0, place)
            grid = np.array([classes(task, sampling, alpha) for task in chosen])
            axes.pcolormesh(SHARES, np.arange(len(chosen)), grid, **colours, shading="nearest", rasterized=True)
            if sampling == "trajectory":
                for row, edge in enumerate(edges):
                    if edge < 0.999:  # else the flow stays stable as far as it is defined
                        axes.plot([edge, edge], [row - 0.5, row + 0.5], color=BLACK, linewidth=1.6)
            axes.set_title(f"{SAMPLINGS[sampling]}, α = {alpha:g}")
            frame(axes, len(chosen), chosen if place == 0 else [])


def classes(task: tasks.Task, sampling: str, alpha: float) -> Array:
    """Return the class, one of CLASSES, of every κα."""
    kappas = np.append(0.0, SHARES / longest(task) / alpha)
    rates = RatePlane(task, "kappa", sampling).rates(alpha, kappas)
    return np.where(rates[1:] > 0, 0, 1 if rates[0] > 0 else 2)


def longest(task: tasks.Task) -> float:
    """Return the largest ‖x‖² of a task."""
    return float((task.features**2).sum(axis=1).max())


def frame(axes: Any, count: int, named: list[tasks.Task]) -> None:
    """Set the axes of a panel with so many rows, and the names of the rows where there are any."""
    axes.set(xscale="log", xlim=(SHARES[0], SHARES[-1]), ylim=(count - 0.5, -0.5), xlabel="κα max‖x‖²")
    axes.grid(False)
    axes.hlines(np.arange(count - 1) + 0.5, *SHARES[[0, -1]], color="white", linewidth=1.5)
    names = ["Baird" if task.name == "baird" else f"seed {task.parameters['seed']}" for task in named]
    axes.set_yticks(range(count), names or [""] * count)
    axes.tick_params(axis="y", length=0)
    plain_numbers(axes.xaxis)


def safety_keys() -> list[Any]:
    """Return the entries of the legend of the rows."""
    edge: dict[str, Any] = {"marker": "|", "markersize": 9, "markeredgewidth": 1.6}
    patches = [Patch(color=colour, label=label) for label, colour in CLASSES.items()]
    return [*patches, key("limit by the effective matrix, α → 0", BLACK, "", **edge)]
