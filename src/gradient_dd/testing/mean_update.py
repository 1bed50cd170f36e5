"""The mean update of a rule: averaged over the transitions of a task, and as the rule states it."""

from functools import cache

import numpy as np

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.learners import Rule, Setting
from gradient_dd.tasks import Task
from gradient_dd.tasks.exact import inverse

KNOWN_SIGNALS = ("alpha", "beta", "rho", "rho_x", "discount", "delta", "x_eta", "x_change")
KNOWN_MOVES = ("w_x", "w_next", "eta_x", "eta_eta")
Sample = tuple[Array, float, float, Array, float]  # x, reward, discount, x_next, rho

HARSH_TASKS = ((2730, False), (4221, False), (5537, True))  # seeds, and whether episodes end


def modes(rule: Rule) -> tuple[str, ...]:
    """Return the placements of ρ that make a difference to a rule."""
    return ("R", "T") if rule.has_rho_mode else ("R",)


@cache
def harsh_task(seed: int, episodic: bool) -> Task:
    """Return a random off-policy task: 5 states, 3 features, a discount of its own into every state.

    Transitions and policies are uneven, so that ratios reach from 0.05 to 19. On HARSH_TASKS TD is unstable.
    """
    rng = np.random.default_rng([seed, episodic])
    n = 5 + episodic
    P = 0.95 * rng.dirichlet(np.full(n, 0.1), size=(n, 2)) + 0.05 / n
    R = rng.standard_normal((n, 2, n))
    if episodic:
        P[-1], R[-1] = np.eye(n)[-1], 0.0
    behaviour, target = 0.9 * rng.dirichlet(np.full(2, 0.4), size=(2, n)) + 0.05
    discount, features = rng.uniform(0.8, 1.0, n), rng.standard_normal((5, 3))
    return tasks.from_tables(P, R, discount, behaviour, target, features=features, name=f"harsh task {seed}")


def sample_move(setting: Setting, sample: Sample, w: Array, eta: Array, w_prev: Array) -> tuple[Array, Array]:
    """Return by how much one transition moves w and η, (p,) each; the M⁻¹ of a natural rule is left out."""
    x, reward, discount, x_next, rho = sample
    setting.rule.check_known("The mean update", KNOWN_SIGNALS, KNOWN_MOVES)
    signals = setting.signals(1.0, rho) | {
        "discount": discount,
        "delta": float(reward + discount * x_next @ w - x @ w),
        "x_eta": float(x @ eta),
        "x_change": float(x @ (w - w_prev)),
    }
    move = setting.rule.coefficients(signals)
    return move["w_x"] * x + move["w_next"] * x_next, move["eta_x"] * x + move["eta_eta"] * eta


def expected_move(
    rule: Rule, task: Task, w: Array, eta: Array, w_prev: Array, rho_mode: str = "R", **values: float
) -> tuple[Array, Array]:
    """Return the change of w and of η averaged over all transitions of a task, (p,) each.

    Transitions weigh as under independent draws, d(s) μ(a|s) P(s'|s,a). The metric of a natural rule stands at C.
    """
    setting = rule.setting(rho_mode=rho_mode, **values)
    outcome, row, next_row, reward, discount, rho, _ = task.outcomes, *task.transitions
    X = task.row_features.toarray()
    weight = task.visits[row] * task.behaviour[outcome.state, outcome.action] * outcome.probability
    w_move, eta_move = np.zeros_like(w), np.zeros_like(w)
    for o in np.flatnonzero(weight):
        sample = X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o]
        on_w, on_eta = sample_move(setting, sample, w, eta, w_prev)
        w_move += weight[o] * on_w
        eta_move += weight[o] * on_eta
    return (inverse(task.moments.C) @ w_move if rule.natural else w_move), eta_move


def task_matrices(task: Task) -> dict[str, Array]:
    """Return A, b, B and C of a task."""
    A, b, C = task.moments
    X, discount = task.features, task.discount[task.states]
    return {"A": A, "b": b, "B": (X.T * discount) @ task.P.T @ (task.visits[:, None] * X), "C": C}


def sample_matrices(sample: Sample) -> dict[str, Array]:
    """Return A, b, B and C of one transition."""
    x, reward, discount, x_next, rho = sample
    A, B = rho * np.outer(x, x - discount * x_next), rho * discount * np.outer(x_next, x)
    return {"A": A, "b": rho * reward * x, "B": B, "C": np.outer(x, x)}


def stated_move(
    setting: Setting, matrices: dict[str, Array], w: Array, eta: Array, w_prev: Array
) -> tuple[Array, Array]:
    """Return the change of w and of η that the rule states, (p,) each; the M⁻¹ of a natural rule is left out."""
    rule, known = setting.rule, setting.signals(1.0, 1.0) | matrices | {"w": w, "eta": eta, "change": w - w_prev}
    assert rule.expected, f"{rule.name} states no mean update"
    returned = rule.expected(**{name: known[name] for name in rule.expected_arguments})
    parts = ("w", "η") if rule.has_eta else ("w",)
    fits = isinstance(returned, tuple) and [np.shape(part) for part in returned] == [w.shape] * len(parts)
    assert fits, f"`expected` of {rule.name} must return a tuple with one vector for each of {', '.join(parts)}"
    return returned if rule.has_eta else (*returned, np.zeros_like(w))
