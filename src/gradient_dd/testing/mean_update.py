"""The mean update of a rule: averaged over the transitions of a task, and as the rule states it."""

from collections.abc import Callable
from functools import cache, wraps

import numpy as np

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine.mean_step import Sample, mean_move, samples
from gradient_dd.learners import Rule, Setting
from gradient_dd.learners.trace import B, Z
from gradient_dd.tasks import Task, exact
from gradient_dd.tasks.exact import inverse

Contract = Callable[[Rule], str | None]

HARSH_TASKS = ((2730, False), (4221, False), (5537, True))  # seeds, and whether episodes end


def for_each_form(contract: Contract) -> Contract:
    """Return the contract for a learner, which is run on each of its forms; their notes become one."""

    @wraps(contract)
    def run(rule: Rule) -> str | None:
        notes = [note for form in rule.forms if (note := contract(form))]
        return " ".join(dict.fromkeys(notes)) or None

    return run


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


def away_from_zero(rule: Rule) -> dict[str, float]:
    """Return 0.6 for each parameter that is 0 by default, as λ is, so that it counts."""
    return {parameter.name: 0.6 for parameter in rule.parameters if parameter.default == 0}


def expected_move(
    rule: Rule, task: Task, w: Array, eta: Array, w_prev: Array, rho_mode: str = "R", **values: float
) -> tuple[Array, Array]:
    """Return the change of w and of η averaged over all transitions of a task, (p,) each.

    Transitions weigh as under independent draws, d(s) μ(a|s) P(s'|s,a), and traces stand at their mean along a
    trajectory that leads there. The metric of a natural rule stands at C.
    """
    setting = rule.setting(rho_mode=rho_mode, **values)
    w_move, eta_move = mean_move(setting, samples(task, setting), w, eta, w_prev)
    return (inverse(task.moments.C) @ w_move if rule.natural else w_move), eta_move


def task_matrices(task: Task, setting: Setting) -> dict[str, Array]:
    """Return the matrices of TERMS for a task, those of the setting's traces.

    Without a trace and for the trace z ← ρ (γ λ z + x) they come from the table alone; others from the mean traces.
    """
    rule, (A, b, C) = setting.rule, task.moments
    X, discount, D = task.features, task.discount[task.states], task.visits[:, None]
    found = mean_matrices(samples(task, setting), setting.values.get("lam", 0.0))
    if not rule.traces:
        return found | {"A": A, "b": b, "B": (X.T * discount) @ task.P.T @ (D * X), "C": C}
    for trace, names, P, r in (
        (Z, ("A", "b"), task.P, task.r),
        (B, ("A_mu",), task.chain(task.behaviour)[0].toarray(), None),
    ):
        if trace in rule.traces:
            made = exact.trace_moments(X, task.visits, P, task.r if r is None else r, discount, setting.values["lam"])
            found |= dict(zip(names, made, strict=False))
    if Z in rule.traces:
        found["B"] = C - found["A"].T
    return found | {"C": C}


def mean_matrices(weighted: list[tuple[float, Sample]], lam: float) -> dict[str, Array]:
    """Return the matrices of TERMS averaged over samples."""
    parts = [(weight, sample_matrices(sample, lam)) for weight, sample in weighted]
    return {name: np.sum([weight * part[name] for weight, part in parts], axis=0) for name in parts[0][1]}


def sample_matrices(sample: Sample, lam: float) -> dict[str, Array]:
    """Return the matrices of TERMS for one transition."""
    x, reward, discount, x_next, rho, z, b = sample
    u = x - discount * x_next
    return {
        "A": np.outer(z, u),
        "b": reward * z,
        "B": discount * (1 - lam) * np.outer(x_next, z),
        "C": np.outer(x, x),
        "A_rho": rho * np.outer(z, u),
        "b_rho": rho * reward * z,
        "A_mu": np.outer(b, u),
        "A_u": rho * np.outer(u, u),
        "b_u": rho * reward * u,
    }


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
