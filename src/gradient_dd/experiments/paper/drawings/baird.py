"""Baird's counterexample: its frozen mode, and its states.

The mean weights by state obey m ← M m along trajectories (`theory.dynamics`). Let q be the eigenvalue of M nearest to
1, r and l its right and left eigenvectors with l·r = 1. After T steps all other modes have decayed, and

    m_T ≈ qᵀ (l·m_0) r

With N = 20, 1 − q is about 10⁻⁸: 200,000 steps hardly change this mode. So the final error is |l·m_0| times the error
of r, whatever the step size does to the other modes. l depends on the step size, so l·m_0 may change its sign.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch
from scipy.linalg import lu_factor, lu_solve

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.report.canvas import drawn, key, plain_numbers
from gradient_dd.report.figure import ORANGE, RAMP, RED
from gradient_dd.theory.dynamics import MeanOperator
from gradient_dd.theory.stability import in_row_space

N_STATES, STEPS, RUNS = 20, 200_000, 3
ITERATIONS = 8  # steps of the inverse iteration; the next mode decays ten thousand times faster
ALPHAS = np.geomspace(2.0**-12, 2.0**-7.25, 29)
SAMPLED = 2.0 ** -np.arange(12, 7.4, -0.5)
LEARNER: dict[str, tuple[str, dict[str, Any], str]] = {
    "Gradient-DD, κ = 4": ("gradient_dd", {"kappa": 4.0}, RED),
    "GTD2": ("gtd2", {}, ORANGE),
}
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
RADIUS = 0.5  # radius of a state in the diagram
STARTS = dict(zip((11, 12, 13, 14), RAMP, strict=False))  # seeds of random initial weights, and their colours


def slow_mode(task: tasks.Task, setting: Setting) -> tuple[float, Array, float]:
    """Return q − 1 of the slow mode along trajectories, its share of initial weights (p,), and its error.

    `task` is given in its row space.
    """
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
    return value, np.asarray(begin), task.rmsve(w)


def predicted(task: tasks.Task, settings: list[Setting], starts: Array) -> Array:
    """Return the final error of the slow mode relative to the initial, (starts, settings); starts: (starts, p)."""
    reduced = in_row_space(task)
    basis = np.linalg.lstsq(task.features, reduced.features, rcond=None)[0]
    first = np.array([task.rmsve(w) for w in starts])
    columns = []
    for setting in settings:
        shift, left, error = slow_mode(reduced, setting)
        columns.append((1 + shift) ** STEPS * np.abs(starts @ basis @ left) * error / first)
    return np.stack(columns, axis=1)


def sampled(task: tasks.Task, settings: list[Setting]) -> Array:
    """Return the mean final error of a few runs relative to the initial error, (settings,)."""
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


def draw_frozen_mode(folder: Path) -> None:
    """Draw folder/baird-frozen-mode.svg and .png: the predicted and the sampled final error."""

    def keys() -> list[Any]:
        lines = [key(label, colour) for label, (*_, colour) in LEARNER.items()]
        starts = [key(f"Gradient-DD, seed {seed}", colour) for seed, colour in STARTS.items()]
        dots = key("sampled", "#555555", "", marker="o", markerfacecolor="white")
        return [*lines, *starts, key("predicted by the slow mode", "#555555"), dots]

    first = tasks.baird(N_STATES)
    others = [tasks.baird(N_STATES, start_seed=seed) for seed in STARTS]
    shown = [(0, "Gradient-DD, κ = 4", [first]), (0, "GTD2", [first]), (1, "Gradient-DD, κ = 4", others)]
    words = f"Baird, N = {N_STATES}, usual ratios, ρ on the whole sample, {STEPS:,} steps; dots: mean of {RUNS} runs"
    texts = DRAWINGS["baird-frozen-mode"].title, words
    with drawn(folder, "baird-frozen-mode", texts, keys, 4, columns=2, heights=(3.2,), width=3.9) as sheet:
        panels = [sheet.axes(0, column) for column in range(2)]
        for column, label, some in shown:
            colours = [LEARNER[label][2]] if column == 0 else list(STARTS.values())
            lines = predicted(first, settings_of(label, ALPHAS), np.array([one.initial_weights for one in some]))
            for line, task, colour in zip(lines, some, colours, strict=True):
                dots = sampled(task, settings_of(label, SAMPLED))
                panels[column].plot(ALPHAS, line, color=colour, linewidth=1.5)
                panels[column].plot(SAMPLED, dots, "o", color=colour, markersize=4, markerfacecolor="white")
        for axes, title in zip(panels, ("the paper's initial weights", "four random initial weights"), strict=True):
            axes.set(title=title, xlabel="step size α", xscale="log", yscale="log", ylim=(1e-4, 1.5))
            plain_numbers(axes.xaxis, axes.yaxis)
        panels[0].set_ylabel("final error ÷ initial error")


def state_diagram(axes: Any, task: tasks.Task) -> None:
    """Draw the states with their values in terms of w, the solid action, and the targets of the dashed action."""
    n, table = task.n_states, task.outcomes
    places = {state: (1.45 * state, 1.0) for state in range(n - 1)} | {n - 1: (1.45 * (n - 2) / 2, -0.75)}
    solid = [sorted(set(table.next_state[(table.state == s) & (table.action == 1)])) for s in range(n)]
    dashed = sorted(set(table.next_state[table.action == 0]))
    look: dict[str, Any] = {
        "arrowstyle": "-|>",
        "mutation_scale": 7,
        "linestyle": "-",
        "color": "black",
        "linewidth": 0.9,
    }
    for state, place in places.items():
        terms = [  # terms of the value, such as 2w₁+w₈
            f"{'' if factor == 1 else f'{factor:g}'}w{str(i + 1).translate(SUBSCRIPTS)}"
            for i, factor in enumerate(task.features[state])
            if factor
        ]
        axes.add_patch(Circle(place, RADIUS, facecolor="white", edgecolor="black", linewidth=1.0, zorder=3))
        axes.text(*place, "+\n".join(terms), ha="center", va="center", zorder=4)
    for state in range(n - 1):
        for aim in solid[state]:
            axes.add_patch(FancyArrowPatch(places[state], places[aim], shrinkA=15, shrinkB=15, zorder=1, **look))
    (loop,) = solid[n - 1]
    right, height = places[loop][0] + 0.43, places[loop][1]
    ends = (right, height - 0.2), (right, height + 0.2)
    axes.add_patch(FancyArrowPatch(*ends, connectionstyle="arc3,rad=2", shrinkA=0, shrinkB=0, **look, zorder=5))
    axes.text(right + 0.75, height, action_text(task, 1, "solid").replace(", r", ",\nr"), va="center")
    left, top, end = -0.75, 1.75, 1.45 * (n - 2) + 0.75
    axes.plot([left, end], [top, top], "--", color="black", linewidth=0.9)
    axes.annotate("", (left, 1.0), (left, top), arrowprops={"arrowstyle": "-", "linestyle": "--", "linewidth": 0.9})
    named = ", ".join(str(aim + 1) for aim in dashed[:2]) + f" … {dashed[-1] + 1}"
    words = f"{action_text(task, 0, 'dashed')}:\nfrom every state to one of {named}, each with the same probability"
    axes.text((left + end) / 2, 1.85, words, ha="center", va="bottom")
    axes.set(xlim=(-1.2, 1.45 * (n - 2) + 1.2), ylim=(-1.3, 2.9), aspect="equal")
    axes.axis("off")


def action_text(task: tasks.Task, action: int, name: str) -> str:
    """Return an action with its probability under the behaviour and the target policy, and its ratio."""
    behaviour, target = task.behaviour[0, action], task.target[0, action]
    ratio = target / behaviour if task.ratios is None else task.ratios[0, action]
    return f"{name}: behaviour {behaviour:.3g}, target {target:g}, ratio {ratio:.3g}"
