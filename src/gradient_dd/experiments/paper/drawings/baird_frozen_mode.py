"""The frozen mode of Baird's counterexample: what a run ends with is what its slow mode began with.

The mean weights by state obey m ← M m along trajectories (`theory.dynamics`). Let q be the eigenvalue of M nearest to
1, r and l its right and left eigenvectors with l·r = 1. After T steps all other modes are gone and

    m_T ≈ qᵀ (l·m_0) r

With N = 20, 1 − q is about 10⁻⁸: 200,000 steps do not move it. So the final error is |l·m_0| times that of r, whatever
the step size does to the other modes. l depends on the step size, and its product with one m_0 may change its sign.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.lines import Line2D
from scipy.linalg import lu_factor, lu_solve

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.report.canvas import Sheet, plain_numbers, styled
from gradient_dd.report.figure import BLUE, GREEN, ORANGE, PURPLE, RED, SKY
from gradient_dd.theory.dynamics import MeanOperator
from gradient_dd.theory.stability import in_row_space

N_STATES, STEPS, RUNS = 20, 200_000, 3
ITERATIONS = 8  # of the inverse iteration; the next mode is ten thousand times faster
ALPHAS = np.geomspace(2.0**-12, 2.0**-7.25, 29)
SAMPLED = 2.0 ** -np.arange(12, 7.4, -0.5)
LEARNER: dict[str, tuple[str, dict[str, Any], str]] = {
    "Gradient-DD, κ = 4": ("gradient_dd", {"kappa": 4.0}, RED),
    "GTD2": ("gtd2", {}, ORANGE),
}
STARTS = {11: BLUE, 12: SKY, 13: GREEN, 14: PURPLE}  # seeds of random first weights, and their colours


class SlowMode(NamedTuple):
    """The mode nearest to rest: 1 − q, what of it weights (p,) begin with, and the error of the values it has."""

    rate: float
    left: Array
    error: float


def slow_mode(task: tasks.Task, setting: Setting) -> SlowMode:
    """Return the slow mode of the mean along trajectories; `task` is given in its row space."""
    operator = MeanOperator(task, setting)
    generator = operator.generator()
    factors = lu_factor(generator.toarray())
    right, left = np.ones((2, generator.shape[0]))
    for _ in range(ITERATIONS):
        right, left = lu_solve(factors, right), lu_solve(factors, left, trans=1)
        right, left = right / np.abs(right).max(), left / np.abs(left).max()
    value = float(left @ (generator @ right)) / float(left @ right)
    left = (left / (left @ right)).reshape(operator.shape)
    w = right.reshape(operator.shape)[:, operator.maps.part("w")].sum(axis=0)
    # m_0 has w in both w and w_prev, in every state by the start distribution; η is 0.
    parts = [operator.maps.part(name) for name in operator.maps.parts if name != "eta"]
    begin = sum(task.start[task.states] @ left[:, part] for part in parts)
    return SlowMode(-value, np.asarray(begin), task.rmsve(w))


def predicted(task: tasks.Task, settings: list[Setting], starts: Array) -> Array:
    """Return the error that the slow mode leaves at the end, over the first one; (starts, settings), starts (…, p)."""
    reduced = in_row_space(task)
    basis = np.linalg.lstsq(task.features, reduced.features, rcond=None)[0]
    first = np.array([task.rmsve(w) for w in starts])
    columns = []
    for setting in settings:
        mode = slow_mode(reduced, setting)
        columns.append((1 - mode.rate) ** STEPS * np.abs(starts @ basis @ mode.left) * mode.error / first)
    return np.stack(columns, axis=1)


def sampled(task: tasks.Task, settings: list[Setting]) -> Array:
    """Return the mean error of a few runs at their end, over the first one, (settings,)."""
    ends = []
    for run in range(RUNS):
        lanes = LaneRun(task, settings, Horizon(steps=STEPS, every=STEPS), run=run)
        while not lanes.done:
            lanes.advance(STEPS)
        ends.append(lanes.results().last100[0])
    return np.asarray(np.mean(ends, axis=0) / task.rmsve(task.initial_weights))


def settings_of(label: str, alphas: Array) -> list[Setting]:
    """Return a learner's settings at these step sizes."""
    name, values, _ = LEARNER[label]
    return [LEARNERS[name].setting(alpha=float(alpha), **values) for alpha in alphas]


def draw(folder: Path) -> None:
    """Draw into folder/baird-frozen-mode.svg and .png."""
    first = tasks.baird(N_STATES)
    others = [tasks.baird(N_STATES, start_seed=seed) for seed in STARTS]
    shown = [(0, "Gradient-DD, κ = 4", [first]), (0, "GTD2", [first]), (1, "Gradient-DD, κ = 4", others)]
    with styled():
        sheet = Sheet(2, (3.2,), width=3.9, legend_rows=2)
        panels = [sheet.axes(0, column) for column in range(2)]
        for column, label, some in shown:
            colours = [LEARNER[label][2]] if column == 0 else list(STARTS.values())
            lines = predicted(first, settings_of(label, ALPHAS), np.array([one.initial_weights for one in some]))
            for line, task, colour in zip(lines, some, colours, strict=True):
                dots = sampled(task, settings_of(label, SAMPLED))
                panels[column].plot(ALPHAS, line, color=colour, linewidth=1.5)
                panels[column].plot(SAMPLED, dots, "o", color=colour, markersize=4, markerfacecolor="white")
        for axes, title in zip(panels, ("the paper's first weights", "four random first weights"), strict=True):
            axes.set(title=title, xlabel="step size α", xscale="log", yscale="log", ylim=(1e-4, 1.5))
            plain_numbers(axes.xaxis)
            plain_numbers(axes.yaxis)
        panels[0].set_ylabel("final error over the first one")
        words = f"Baird, N = {N_STATES}, usual ratios, ρ placed R, {STEPS:,} steps; dots: mean of {RUNS} runs, seed 0"
        sheet.say(DRAWINGS["baird-frozen-mode"].title, words)
        sheet.legend(keys(), 4)
        sheet.save(folder, "baird-frozen-mode")


def keys() -> list[Any]:
    """Return the entries of the legend, column by column."""
    lines = [Line2D([], [], color=colour, label=label) for label, (*_, colour) in LEARNER.items()]
    starts = [Line2D([], [], color=colour, label=f"Gradient-DD, seed {seed}") for seed, colour in STARTS.items()]
    kinds = [
        Line2D([], [], color="#555555", label="predicted by the slow mode"),
        Line2D([], [], color="#555555", marker="o", markerfacecolor="white", linestyle="", label="sampled"),
    ]
    return [*lines, *starts, *kinds]
