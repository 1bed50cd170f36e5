"""The contracts every learner keeps: run them on a rule of your own.

    from gradient_dd.testing import check_learner
    check_learner(MY_RULE)

Each contract is a function of a rule that returns nothing or raises AssertionError with what it saw. The
project's own tests run the same functions over `LEARNERS`, so that a learner is covered by being listed.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine import reference, schedules
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.trajectories import Stream
from gradient_dd.learners import MOVES, Rule, Setting
from gradient_dd.online.learner import Learner
from gradient_dd.tasks import Task

TOLERANCE = 1e-12


def check_learner(rule: Rule) -> None:
    """Run every contract on a rule."""
    for contract in CONTRACTS:
        contract(rule)


def expected_move(rule: Rule, task: Task, w: Array, eta: Array, w_prev: Array, rho_mode: str = "R", **values: float):
    """Return the change of w and of η averaged over all transitions of a task, (p,) each.

    Transitions weigh as under i.i.d. sampling, d(s) μ(a|s) P(s'|s,a). For a natural rule the metric stands still
    at C.
    """
    setting = rule.setting(rho_mode=rho_mode, **values)
    outcome, row, next_row, reward, discount, rho, _ = task.outcomes, *task.transitions
    X = task.row_features.toarray()
    weight = task.visits[row] * task.behaviour[outcome.state, outcome.action] * outcome.probability
    metric = np.linalg.inv(task.moments.C) if rule.natural else np.eye(task.n_features)
    w_move, eta_move = np.zeros_like(w), np.zeros_like(w)
    for o in np.flatnonzero(weight):
        x, x_next = X[row[o]], X[next_row[o]]
        signals = setting.signals(1.0, rho[o]) | {
            "discount": discount[o],
            "delta": reward[o] + discount[o] * x_next @ w - x @ w,
            "x_eta": x @ eta,
            "x_change": x @ (w - w_prev),
        }
        move = rule.coefficients(signals)
        w_move += weight[o] * metric @ (move["w_x"] * x + move["w_next"] * x_next)
        eta_move += weight[o] * (move["eta_x"] * x + move["eta_eta"] * eta)
    return w_move, eta_move


def rests_at_the_fixed_point(rule: Rule) -> None:
    """At w*, η = 0 and w_prev = w* the expected update is zero."""
    for seed in range(3):
        task = tasks.random_mdp(seed=seed, episodic=seed == 1)
        w, zero = task.fixed_point, np.zeros(task.n_features)
        for rho_mode in modes(rule):
            moves = expected_move(rule, task, w, zero, w, rho_mode)
            size = np.abs(moves).max()
            assert size < 1e-12, f"{rule.name} moves by {size:.3g} on average at the TD fixed point of {task}"


def drives_the_mean_to_the_fixed_point(rule: Rule) -> None:
    """On-policy, where even TD is stable, the mean update with a small step size leads to the fixed point.

    One mean step is an affine map of (w, η, w_prev); its matrix must have no eigenvalue beyond the unit circle.
    The wrong sign of a step or of a leak shows here.
    """
    task = tasks.random_mdp(n_states=5, n_actions=2, n_features=3, seed=6)
    task = replace(task, target=np.array(task.behaviour))
    p = task.n_features

    def mean_step(state: Array) -> Array:
        w, eta, w_prev = state.reshape(3, p)
        w_move, eta_move = expected_move(rule, task, w, eta, w_prev, alpha=0.01)
        return np.concatenate([w + w_move, eta + eta_move, w])

    origin = mean_step(np.zeros(3 * p))
    matrix = np.column_stack([mean_step(unit) - origin for unit in np.eye(3 * p)])
    used = np.abs(matrix - np.eye(3 * p)).any(axis=1)  # η of a learner without it stays where it is
    radius = np.abs(np.linalg.eigvals(matrix[np.ix_(used, used)])).max()
    assert radius < 1, f"{rule.name} drives the mean away from the fixed point: spectral radius {radius:.6f}"


def stands_still_with_step_size_zero(rule: Rule) -> None:
    """With a schedule that is zero nothing changes, whatever the data."""
    task = tasks.random_mdp(seed=4)
    trace = reference.run(task, rule, steps=50, schedule=schedules.Schedule(lambda n: 0.0))
    assert np.array_equal(trace.w, task.initial_weights), f"{rule.name} moves w with step size zero"
    assert not trace.eta.any(), f"{rule.name} moves η with step size zero"


def treats_sparse_as_dense(rule: Rule) -> None:
    """`Learner` gives the reference engine's weights, from dense and from sparse features."""
    for task in (tasks.boyan_chain(4), tasks.baird(5), tasks.random_mdp(seed=2, episodic=True)):
        for rho_mode in modes(rule):
            setting = rule.setting(rho_mode=rho_mode, alpha=0.01)
            by_hand = follow(task, setting, steps=300)
            dense, sparse = (feed(task, setting, steps=300, sparse=kind) for kind in (False, True))
            for name, agent in (("dense", dense), ("sparse", sparse)):
                for which, wanted, got in (("w", by_hand.w, agent.w), ("η", by_hand.eta, agent.eta)):
                    assert_close(
                        got,
                        wanted,
                        f"{which} of {rule.name} on {task}, {name} features, against the reference",
                    )


def runs_alike_in_both_engines(rule: Rule) -> None:
    """The lane engine gives the reference engine's weights and errors, compiled from the same step."""
    for task, horizon in (
        (tasks.random_walk(5), Horizon(episodes=120)),
        (tasks.baird(5), Horizon(steps=500, every=100)),
    ):
        for rho_mode in modes(rule):
            setting = rule.setting(rho_mode=rho_mode, alpha=0.01)
            assert_alike(task, setting, horizon)


def reads_only_what_it_names(rule: Rule) -> None:
    """The step is a pure function of its scalars: the same numbers in, the same numbers out."""
    rng = np.random.default_rng(0)
    draws = [dict(zip(rule.arguments, map(float, rng.random(len(rule.arguments))), strict=True)) for _ in range(5)]
    first, second = ([rule.step(**draw) for draw in order] for order in (draws, draws[::-1]))
    assert first == second[::-1], f"{rule.name} remembers: its step gives other numbers when called again"
    assert all(len(left) == len(right) for left, right in pairwise(first)), f"{rule.name} returns tuples of two lengths"
    assert set(rule.moves) <= set(MOVES)


CONTRACTS: tuple[Callable[[Rule], None], ...] = (
    rests_at_the_fixed_point,
    drives_the_mean_to_the_fixed_point,
    stands_still_with_step_size_zero,
    treats_sparse_as_dense,
    runs_alike_in_both_engines,
    reads_only_what_it_names,
)


def modes(rule: Rule) -> tuple[str, ...]:
    """Return the placements of ρ that make a difference to a rule."""
    return ("R", "T") if rule.has_rho_mode else ("R",)


def follow(task: Task, setting: Setting, steps: int) -> Weights:
    """Return the reference engine's weights after some steps."""
    weights = Weights(setting, task.initial_weights)
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    for o in Stream(task, seed=1).take(steps):
        weights.advance(setting, 1.0, X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
    return weights


def feed(task: Task, setting: Setting, steps: int, sparse: bool) -> Learner:
    """Return a `Learner` fed with the same steps."""
    values: dict[str, Any] = {**setting.values, "rho_mode": setting.rho_mode}
    agent = Learner(setting.rule, task.n_features, initial_w=task.initial_weights, **values)
    rows = task.row_features
    X = [(row.indices, row.data) if sparse else row.toarray()[0] for row in rows]
    row, next_row, reward, discount, rho, _ = task.transitions
    for o in Stream(task, seed=1).take(steps):
        agent.update(X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
    return agent


def assert_alike(
    task: Task,
    setting: Setting,
    horizon: Horizon,
    schedule: schedules.Schedule = schedules.constant,
    sampling: str = "trajectory",
    seed: int = 0,
) -> None:
    """Raise unless both engines give the same weights, last100, area and curve to a relative 1e-12."""
    lane_run = LaneRun(task, [setting], horizon, schedule, sampling, seed)
    lane_run.advance()
    values: dict[str, Any] = {**setting.values, "rho_mode": setting.rho_mode}
    common: dict[str, Any] = {"schedule": schedule, "sampling": sampling, "seed": seed}
    trace = reference.run(task, setting.rule, episodes=horizon.episodes, steps=horizon.steps, **common, **values)
    what = f"{setting} on {task}, {schedule}, {sampling}: the lane engine's"
    for name, got, wanted in zip(("w", "η"), lane_run.weights(), (trace.w, trace.eta), strict=True):
        assert_close(got[0], wanted, f"{what} {name} against the reference")
    points = trace.errors[horizon.every - 1 :: horizon.every]
    bins = np.bincount(horizon.bin_of(np.arange(1, horizon.points + 1)), points) / horizon.bin_sizes()
    results = lane_run.results()
    for name, got, wanted in (
        ("last100", results.last100[0], trace.errors[-horizon.n_last :].mean(keepdims=True)),
        ("area", results.area[0], points.mean(keepdims=True)),
        ("curve", results.curve[0, 0], bins),
    ):
        assert_close(got, wanted, f"{what} {name} against the reference")


def assert_close(got: Array, wanted: Array, what: str) -> None:
    """Raise unless two vectors agree to a relative 1e-12."""
    scale = max(1e-3, float(np.abs(wanted).max()))  # below a thousandth, rounding of what was added up counts
    gap = float(np.abs(got - wanted).max()) / scale
    assert gap <= TOLERANCE, f"{what}: differ by {gap:.3g} relative"
