"""Contracts about the mean update: what a rule states, where it rests, and whether it is stable."""

from dataclasses import replace
from typing import Any

import numpy as np

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine.mean_step import Sample, mean_move, sample_move, samples
from gradient_dd.learners import Rule, Setting
from gradient_dd.learners.trace import Z
from gradient_dd.tasks import Task
from gradient_dd.tasks.exact import inverse
from gradient_dd.testing.mean_update import (
    HARSH_TASKS,
    away_from_zero,
    expected_move,
    for_each_form,
    harsh_task,
    modes,
    sample_matrices,
    stated_move,
    task_matrices,
)

PRECISION = 1e-10  # of two sums of the same terms, relative to the larger
LARGE_ZETA = 100.0  # η then follows w closely on the harsh tasks, as the theory of two time scales asks


@for_each_form
def moves_as_it_states(rule: Rule) -> str | None:
    """On every single transition the step moves the weights as `expected` says.

    With the matrices of a single transition in the places of A, b, B and C, z (x − γx')ᵀ, r z, γ (1 − λ) x'zᵀ and
    x xᵀ, `expected` is the update of that transition; without a trace z is ρ x. This sees the sign, the step size and
    the ratio of every term.
    """
    if not rule.affine:
        return f"{rule.name} is not affine, so there is no mean update to compare its terms with."
    if rule.expected is None:
        return (
            f"{rule.name} states no `expected`, so its terms were not compared with an equation: a wrong sign or a "
            "missing ratio was noticed only if it moves the fixed point or makes the mean unstable."
        )
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, x_next, w, eta, w_prev = rng.standard_normal((5, 3))
        reward, discount, rho = (
            rng.standard_normal(),
            rng.choice([0.0, rng.random()]),
            rng.choice([0.0, 3 * rng.random()]),
        )
        setting = random_setting(rule, rng)
        z, b = rng.standard_normal((2, 3)) if rule.traces else (rho * x, x)
        sample = Sample(x, reward, discount, x_next, rho, z, b)
        matrices = sample_matrices(sample, setting.values.get("lam", 0.0))
        stated = stated_move(setting, matrices, w, eta, w_prev)
        what = f"on a transition with rho = {rho:.3g} and discount = {discount:.3g}, {setting}"
        compare(rule, what, sample_move(setting, sample, w, eta, w_prev), stated)
    return None


@for_each_form
def moves_on_average_as_it_states(rule: Rule) -> None:
    """On off-policy tasks the mean of the sampled updates is `expected`, wherever w, η and w_prev are.

    Here A, b, B and C come from the tables of the tasks. Both placements of ρ have this mean, because E[ρ|s] = 1.
    """
    if rule.expected is None or rule.uses_sample_twice:
        return  # `moves_as_it_states` says so; or the mean is that of two independent draws
    rng = np.random.default_rng(1)
    for which in (*HARSH_TASKS, (0, True)):
        task = harsh_task(*which)
        for mode in modes(rule):
            setting = random_setting(rule, rng, mode)
            w, eta, w_prev = rng.standard_normal((3, task.n_features))
            w_move, eta_move = stated_move(setting, task_matrices(task, setting), w, eta, w_prev)
            if rule.natural:
                w_move = inverse(task.moments.C) @ w_move
            got = expected_move(rule, task, w, eta, w_prev, mode, **setting.values)
            compare(rule, f"on average over {task.name}, {setting}", got, (w_move, eta_move))


def compare(rule: Rule, where: str, got: tuple[Array, Array], stated: tuple[Array, Array]) -> None:
    """Raise unless the moves of w and η are those stated."""
    for name, one, other in zip(("w", "η"), got, stated, strict=True):
        gap = np.abs(one - other).max()
        assert gap <= PRECISION * max(np.abs([one, other]).max(), PRECISION), (
            f"{rule.name} does not move {name} as its `expected` states {where}: "
            f"{np.array2string(one, precision=4)} against {np.array2string(other, precision=4)}"
        )


def random_setting(rule: Rule, rng: np.random.Generator, rho_mode: str = "R") -> Setting:
    """Return the rule with a value for each parameter, none of them special."""
    values: dict[str, Any] = {name: rng.uniform(0.2, 0.9) for name in rule.defaults}
    return rule.setting(rho_mode, **values)


@for_each_form
def rests_at_the_fixed_point(rule: Rule) -> None:
    """At w*, η = 0 and w_prev = w* the expected update is zero, if the rule has the TD fixed point.

    With a trace w* solves E[δ z] = 0, or E[ρ δ z] = 0 where the trace leaves out the present ρ.
    """
    for seed in range(3) if rule.td_fixed_point else ():
        task = tasks.random_mdp(5, 2, 3, seed=seed, episodic=seed == 1)
        for rho_mode in modes(rule):
            setting = rule.setting(rho_mode, **away_from_zero(rule))
            w, zero = fixed_point(task, setting), np.zeros(task.n_features)
            size = np.abs(expected_move(rule, task, w, zero, w, rho_mode, **setting.values)).max()
            assert size < 1e-12, f"{rule.name} moves by {size:.3g} on average at the TD fixed point of {task}"


def fixed_point(task: Task, setting: Setting) -> Array:
    """Return w*, where E[δ z] = 0."""
    if not setting.rule.traces:
        return task.fixed_point
    matrices = task_matrices(task, setting)
    own = "_rho" if Z not in setting.rule.traces and "rho" in setting.rule.arguments else ""
    return np.asarray(np.linalg.solve(matrices[f"A{own}"], matrices[f"b{own}"]), dtype=float)


@for_each_form
def is_stable_on_policy(rule: Rule) -> str | None:
    """On-policy, where even TD is stable, the mean update with a small step size is stable."""
    return check_stability(rule, {"alpha": 1e-3}, on_policy=True)


@for_each_form
def is_stable_off_policy(rule: Rule) -> str | None:
    """Off-policy, where TD is not stable, the mean update is stable with a small alpha and a large zeta.

    Only rules with `stable_off_policy` promise this.
    """
    if not rule.stable_off_policy:
        return None
    zeta = {"zeta": LARGE_ZETA} if "zeta" in rule.defaults else {}
    return check_stability(rule, {"alpha": 1e-3 / LARGE_ZETA, **zeta}, on_policy=False)


def check_stability(rule: Rule, values: dict[str, float], on_policy: bool) -> str | None:
    """Raise if the mean update leads away from its rest point on a harsh task, with either placement of ρ."""
    if not rule.affine:
        return f"{rule.name} is not affine, so the stability of its mean update was not checked."
    if rule.uses_sample_twice and rule.expected is None:
        return f"{rule.name} uses a sample twice and states no `expected`, so its stability was not checked."
    values = away_from_zero(rule) | values
    for which in HARSH_TASKS:
        task = harsh_task(*which)
        if on_policy:
            task = replace(task, target=np.array(task.behaviour))
        for mode in modes(rule):
            radius = mean_radius(rule, task, mode, values)
            if radius is None:
                return (
                    f"{rule.name} is not affine in the weights, so the stability of its mean update was not checked. "
                    "Say so: affine=False."
                )
            assert radius < 1, (
                f"{rule.name} drives the mean away from its rest point {'on' if on_policy else 'off'}-policy: "
                f"spectral radius 1 + {radius - 1:.3g} on {task.name} with {values}"
            )
    return None


def mean_radius(rule: Rule, task: Task, mode: str, values: dict[str, float]) -> float | None:
    """Return the spectral radius of the mean step (w, η, w_prev) ↦ (w + Δw, η + Δη, w); None if it is not affine."""
    p, setting = task.n_features, rule.setting(mode, **values)
    metric = inverse(task.moments.C) if rule.natural else np.eye(p)
    if rule.uses_sample_twice:  # the mean over two independent draws
        stated = task_matrices(task, setting)
    else:
        weighted = samples(task, setting)

    def mean_step(state: Array) -> Array:
        w, eta, w_prev = state.reshape(3, p)
        if rule.uses_sample_twice:
            w_move, eta_move = stated_move(setting, stated, w, eta, w_prev)
        else:
            w_move, eta_move = mean_move(setting, weighted, w, eta, w_prev)
        return np.concatenate([w + metric @ w_move, eta + eta_move, w])

    origin = mean_step(np.zeros(3 * p))
    matrix = np.column_stack([mean_step(unit) - origin for unit in np.eye(3 * p)])
    probe = 10 * np.random.default_rng(2).standard_normal(3 * p)
    if not np.allclose(mean_step(probe) - origin - matrix @ probe, 0, atol=1e-9 * np.abs(probe).max()):
        return None
    used = np.abs(matrix - np.eye(3 * p)).any(axis=1)  # η of a learner without it stays where it is
    return float(np.abs(np.linalg.eigvals(matrix[np.ix_(used, used)])).max())
