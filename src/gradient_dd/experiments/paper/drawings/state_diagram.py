"""The state diagram of Baird's counterexample, read from the task's own table."""

from typing import Any

import numpy as np
from matplotlib.patches import Circle, FancyArrowPatch

from gradient_dd.tasks import Task

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
RADIUS = 0.5


def state_diagram(axes: Any, task: Task) -> None:
    """Draw the states with their values in terms of w, the solid action, and where the dashed one leads."""
    n = task.n_states
    places = {state: (1.45 * state, 1.0) for state in range(n - 1)}
    places[n - 1] = (1.45 * (n - 2) / 2, -0.75)
    solid, dashed = aims(task)
    for state, place in places.items():
        axes.add_patch(Circle(place, RADIUS, facecolor="white", edgecolor="black", linewidth=1.0, zorder=3))
        axes.text(*place, value_text(task.features[state]), ha="center", va="center", zorder=4)
    for state in range(n - 1):
        for aim in solid[state]:
            axes.add_patch(arrow(places[state], places[aim], "-"))
    (loop,) = solid[n - 1]
    right, height = places[loop][0] + 0.43, places[loop][1]
    ends = (right, height - 0.2), (right, height + 0.2)
    axes.add_patch(FancyArrowPatch(*ends, connectionstyle="arc3,rad=2", shrinkA=0, shrinkB=0, **look("-"), zorder=5))
    axes.text(right + 0.75, height, action_text(task, 1, "solid").replace(", r", ",\nr"), va="center")
    top = -0.75, 1.75, 1.45 * (n - 2) + 0.75
    axes.plot([top[0], top[2]], [top[1], top[1]], "--", color="black", linewidth=0.9)
    axes.annotate(
        "", (top[0], 1.0), (top[0], top[1]), arrowprops={"arrowstyle": "-", "linestyle": "--", "linewidth": 0.9}
    )
    named = ", ".join(str(aim + 1) for aim in dashed[:2]) + f" … {dashed[-1] + 1}"
    words = f"{action_text(task, 0, 'dashed')}:\nfrom every state to one of {named}, each with the same probability"
    axes.text((top[0] + top[2]) / 2, 1.85, words, ha="center", va="bottom")
    axes.set(xlim=(-1.2, 1.45 * (n - 2) + 1.2), ylim=(-1.3, 2.9), aspect="equal")
    axes.axis("off")


def aims(task: Task) -> tuple[list[list[int]], list[int]]:
    """Return where the solid action leads from each state, and where the dashed one leads from any."""
    table = task.outcomes
    reach = [sorted(set(table.next_state[(table.state == s) & (table.action == 1)])) for s in range(task.n_states)]
    return reach, sorted(set(table.next_state[table.action == 0]))


def value_text(row: np.ndarray) -> str:
    """Return a state's value in terms of the weights, e.g. 2w₁+w₈."""
    terms = [
        f"{'' if factor == 1 else f'{factor:g}'}w{str(i + 1).translate(SUBSCRIPTS)}"
        for i, factor in enumerate(row)
        if factor
    ]
    return "+\n".join(terms)


def action_text(task: Task, action: int, name: str) -> str:
    """Return an action with its probability under the behaviour and the target policy, and its ratio."""
    behaviour, target = task.behaviour[0, action], task.target[0, action]
    ratio = target / behaviour if task.ratios is None else task.ratios[0, action]
    return f"{name}: behaviour {behaviour:.3g}, target {target:g}, ratio {ratio:.3g}"


def look(style: str) -> dict[str, Any]:
    """Return how an arrow looks."""
    return {"arrowstyle": "-|>", "mutation_scale": 7, "linestyle": style, "color": "black", "linewidth": 0.9}


def arrow(begin: tuple[float, float], end: tuple[float, float], style: str) -> FancyArrowPatch:
    """Return an arrow between two states."""
    return FancyArrowPatch(begin, end, shrinkA=15, shrinkB=15, zorder=1, **look(style))
