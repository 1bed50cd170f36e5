"""Rates of the slowest mode against the step size: independent draws and trajectories."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.report.canvas import Sheet, plain_numbers, styled
from gradient_dd.report.figure import BLACK, ORANGE, RED
from gradient_dd.theory.effective import effective_matrix, flow_rate
from gradient_dd.theory.stability import rate_of_alpha

LEARNERS = {"td": ("TD", BLACK), "gtd2": ("GTD2", ORANGE), "gradient_dd": ("Gradient-DD, κ = 1", RED)}
SAMPLINGS = {"iid": "--", "trajectory": "-"}
FINE = np.geomspace(0.01, 1.0, 21)
COARSE = np.array([0.01, 0.04, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0])
SIZES = {5: FINE, 10: FINE, 20: COARSE}  # states of the walk, step sizes; one of them takes half a second at m = 40


def draw(folder: Path) -> None:
    """Draw into folder/rates.svg and .png."""
    with styled():
        sheet = Sheet(len(SIZES), (3.2,), legend_rows=2)
        all_axes = [sheet.axes(0, column) for column in range(len(SIZES))]
        for column, (axes, (size, alphas)) in enumerate(zip(all_axes, SIZES.items(), strict=True)):
            panel(axes, tasks.random_walk(size), alphas)
            axes.set(title=f"walk, m = {size}")
            if column == 0:
                axes.set_ylabel("rate: what the slowest mode loses in one step")
        limits = [limit for axes in all_axes for limit in axes.get_ylim()]
        for axes in all_axes:
            axes.set_ylim(min(limits), max(limits))
            plain_numbers(axes.yaxis)
        sheet.say(DRAWINGS["rates"].title, "exact mean dynamics on tabular random walks, ζ = 1, no sampling")
        sheet.legend(keys(), 3)
        sheet.save(folder, "rates")


def panel(axes: Any, task: tasks.Task, alphas: Array) -> None:
    """Draw all lines of one task; what is unstable is left out."""
    for learner, (_, colour) in LEARNERS.items():
        for sampling, style in SAMPLINGS.items():
            rate_at, _ = rate_of_alpha(task, learner, sampling, {})
            rates = np.array([rate_at(alpha) for alpha in alphas])
            axes.plot(alphas, np.where(rates > 0, rates, np.nan), color=colour, linestyle=style, linewidth=1.4)
    predicted = [alpha * flow_rate(task, effective_matrix(task, alpha, kappa=1.0)) for alpha in alphas]
    axes.plot(alphas, predicted, ":", color=RED, linewidth=2.2)
    axes.set(xscale="log", yscale="log", xlabel="step size α")
    plain_numbers(axes.xaxis)


def keys() -> list[Any]:
    """Return the entries of the legend, column by column."""
    lines = [Line2D([], [], color=colour, label=label) for label, colour in LEARNERS.values()]
    kinds = [
        Line2D([], [], color="#666666", linestyle="-", label="trajectories"),
        Line2D([], [], color="#666666", linestyle="--", label="independent draws"),
    ]
    first_order = Line2D([], [], color=RED, linestyle=":", linewidth=2.2, label="Gradient-DD, first order")
    entries = [*lines, *kinds, first_order]
    return [entries[i + 3 * j] for i in range(3) for j in range(2)]
