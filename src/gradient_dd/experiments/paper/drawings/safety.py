"""Safety: where Gradient-DD is stable off-policy as κα grows, on tasks on which TD diverges."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.report.canvas import Sheet, plain_numbers, styled
from gradient_dd.report.figure import BLACK, ORANGE, SKY
from gradient_dd.theory.effective import diverging_mdps
from gradient_dd.theory.rate_planes import RatePlane, flow_edge

COUNT = 12  # random tasks
SHARES = np.geomspace(3e-4, 3, 42)  # κα, in units of one over the largest ‖x‖²
CLASSES = {"stable": SKY, "diverges, GTD2 does not": ORANGE, "GTD2 diverges too": "#999999"}


class Column(NamedTuple):
    """A panel: how data come, and the step size."""

    title: str
    sampling: str
    alpha: float


COLUMNS = (
    Column("independent draws", "iid", 1e-4),
    Column("trajectories", "trajectory", 1e-4),
    Column("trajectories", "trajectory", 1e-2),
)


def draw(folder: Path) -> None:
    """Draw into folder/safety.svg and .png."""
    chosen = [tasks.baird(7), *diverging_mdps(COUNT)]
    edges = [flow_edge(task) * longest(task) for task in chosen]
    with styled():
        sheet = Sheet(len(COLUMNS), (3.6,), legend_rows=1)
        for place, column in enumerate(COLUMNS):
            axes = sheet.axes(0, place)
            grid = np.array([classes(task, column) for task in chosen])
            axes.pcolormesh(
                SHARES,
                np.arange(len(chosen)),
                grid,
                cmap=ListedColormap(list(CLASSES.values())),
                vmin=-0.5,
                vmax=len(CLASSES) - 0.5,
                shading="nearest",
                rasterized=True,
            )
            if column.sampling == "trajectory":
                for row, edge in enumerate(edges):
                    if edge < 0.999:  # else the flow stays stable as far as it is defined
                        axes.plot([edge, edge], [row - 0.5, row + 0.5], color=BLACK, linewidth=1.6)
            frame(axes, column, chosen if place == 0 else [])
        words = "exact mean dynamics of Gradient-DD, ζ = 1, on tasks whose A has an eigenvalue with negative real part"
        sheet.say(DRAWINGS["safety"].title, f"{words}\nrandom: 3 states, 2 actions, 2 features, γ = 0.99, by seed")
        sheet.legend(keys(), 4)
        sheet.save(folder, "safety")


def classes(task: tasks.Task, column: Column) -> Array:
    """Return for every κα which of CLASSES it is in."""
    kappas = np.append(0.0, SHARES / longest(task) / column.alpha)
    rates = RatePlane(task, "kappa", column.sampling).rates(column.alpha, kappas)
    return np.where(rates[1:] > 0, 0, 1 if rates[0] > 0 else 2)


def longest(task: tasks.Task) -> float:
    """Return the largest ‖x‖² of a task."""
    return float((task.features**2).sum(axis=1).max())


def frame(axes: Any, column: Column, named: list[tasks.Task]) -> None:
    """Set titles, and the names of the rows where there are any."""
    count = COUNT + 1
    axes.set(xscale="log", xlim=(SHARES[0], SHARES[-1]), ylim=(count - 0.5, -0.5), xlabel="κα max‖x‖²")
    axes.set_title(f"{column.title}, α = {column.alpha:g}")
    axes.grid(False)
    axes.hlines(np.arange(count - 1) + 0.5, *SHARES[[0, -1]], color="white", linewidth=1.5)
    axes.set_yticks(range(count), [name_of(task) for task in named] if named else [""] * count)
    axes.tick_params(axis="y", length=0)
    plain_numbers(axes.xaxis)


def name_of(task: tasks.Task) -> str:
    """Return a short name for a row."""
    return "Baird" if task.name == "baird" else f"seed {task.parameters['seed']}"


def keys() -> list[Any]:
    """Return the entries of the legend."""
    patches = [Patch(color=colour, label=label) for label, colour in CLASSES.items()]
    edge = Line2D([], [], color=BLACK, marker="|", markersize=9, markeredgewidth=1.6, linestyle="")
    edge.set_label("limit by the effective matrix, α → 0")
    return [*patches, edge]
