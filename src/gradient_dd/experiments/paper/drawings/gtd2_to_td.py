"""From GTD2 to TD: the rate of Gradient-DD along trajectories as κα grows."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.lines import Line2D

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.learners import LEARNERS
from gradient_dd.report.canvas import Sheet, plain_numbers, styled
from gradient_dd.report.figure import BLACK, ORANGE, RAMP
from gradient_dd.theory import rate
from gradient_dd.theory.effective import effective_matrix, flow_rate, interpolation
from gradient_dd.theory.largest_stable import bisected
from gradient_dd.theory.rate_planes import PRECISION, RatePlane

ALPHAS = {0.03: RAMP[0], 0.3: RAMP[2], 0.6: RAMP[4]}
EXACT = np.linspace(0, 1, 22) ** 1.5  # κα, as a share of the largest shown
NEAR = 1 - np.array([0.1, 0.05, 0.02, 0.005])  # shares of the κα at which the mean becomes unstable
FLOW = np.linspace(0, 0.99, 34)  # κα at which the effective matrix is made


class Column(NamedTuple):
    """A panel: its title, its task, the largest κα shown."""

    title: str
    task: tasks.Task
    largest: float


def draw(folder: Path) -> None:
    """Draw into folder/gtd2-to-td.svg and .png."""
    columns = [
        Column("walk, m = 10, tabular", tasks.random_walk(10), 2.3),
        Column("walk, m = 13, linear features, p = 4", tasks.random_walk(13, features="linear"), 2.3),
        Column("Boyan chain, p = 5", tasks.boyan_chain(5), 8.0),
    ]
    with styled():
        sheet = Sheet(len(columns), (3.2,), legend_rows=2)
        heights, depths = [1.0], list[float]()
        for place, column in enumerate(columns):
            axes = sheet.axes(0, place)
            heights.append(max(exact_line(axes, column, alpha, number) for number, alpha in enumerate(ALPHAS)))
            depths.append(flow_lines(axes, column.task))
            axes.set(title=column.title, xlabel="κα", yscale="log", xlim=(0, column.largest))
            if place == 0:
                axes.set_ylabel("rate, relative to that of TD")
        for axes in sheet.canvas.axes:
            axes.set_ylim(min(depths) / 6, 1.3 * max(heights))
            plain_numbers(axes.yaxis)
        sheet.say(DRAWINGS["gtd2-to-td"].title, "exact along trajectories, ζ = 1; all rates at the same step size")
        sheet.legend(keys(), 4)
        sheet.save(folder, "gtd2-to-td")


def exact_line(axes: Any, column: Column, alpha: float, place: int) -> float:
    """Draw the exact rate over that of TD, with a cross where the mean becomes unstable; return the largest."""
    colour = list(ALPHAS.values())[place]
    td = rate(column.task, LEARNERS["td"].setting(alpha=alpha))
    plane, x = RatePlane(column.task, "kappa"), column.largest * EXACT
    shares = plane.rates(alpha, x / alpha) / td
    end = int(np.argmax(np.append(shares, -1.0) <= 0))
    x, shares, beyond = x[:end], shares[:end], x[end:]
    if len(beyond):
        edge = bisected(lambda value: bool(plane.rates(alpha, value / alpha) > 0), x[-1], beyond[0], PRECISION)
        near = edge * NEAR
        near = near[near > x[-1]]
        x = np.concatenate([x, near, [edge]])
        shares = np.concatenate([shares, plane.rates(alpha, near / alpha) / td, [1e-9]])
        height = 0.025 + 0.045 * place  # of the axes
        cross = {"color": colour, "markersize": 7, "markeredgewidth": 2, "transform": axes.get_xaxis_transform()}
        axes.plot(edge, height, "x", zorder=4, **cross)
    axes.plot(x, shares, color=colour, linewidth=1.4)
    return float(shares.max())


def flow_lines(axes: Any, task: tasks.Task) -> float:
    """Draw the rates of the mean flow with the effective matrix, of GTD2 and of TD; return that of GTD2."""
    found = interpolation(task, FLOW)
    leading: Array = np.array([flow_rate(task, effective_matrix(task, 1.0, value)) for value in FLOW])
    axes.plot(FLOW, leading / found.td, color="#777777", linestyle="-.", linewidth=1.2)
    axes.plot(FLOW, found.effective / found.td, ":", color=BLACK, linewidth=2.2)
    axes.axhline(1.0, color=BLACK, linewidth=1.0)
    axes.axhline(found.gtd2 / found.td, color=ORANGE, linewidth=1.0)
    return float(found.gtd2 / found.td)


def keys() -> list[Any]:
    """Return the entries of the legend."""
    exact = [Line2D([], [], color=colour, label=f"exact, α = {alpha:g}") for alpha, colour in ALPHAS.items()]
    others = [
        Line2D([], [], color=BLACK, linestyle=":", linewidth=2.2, label="effective matrix, α → 0"),
        Line2D([], [], color="#777777", linestyle="-.", linewidth=1.2, label="… to leading order in κα"),
        Line2D([], [], color=BLACK, linewidth=1.0, label="TD"),
        Line2D([], [], color=ORANGE, linewidth=1.0, label="GTD2, α → 0"),
        Line2D([], [], color="#666666", marker="x", markeredgewidth=2, linestyle="", label="unstable from here"),
    ]
    entries = [*exact, others[-1], *others[:-1]]
    return [entries[i + 4 * j] for i in range(4) for j in range(2)]
