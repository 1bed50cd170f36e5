"""Contracts about the engines: `Learner`, dense and sparse, and the lane engine agree with the reference engine."""

from typing import Any

import numpy as np

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine import reference, schedules
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.trajectories import Stream
from gradient_dd.learners import Rule, Setting
from gradient_dd.stream.learner import Learner
from gradient_dd.tasks import Task
from gradient_dd.testing.forms import for_each_form
from gradient_dd.testing.mean_update import away_from_zero, modes

TOLERANCE = 1e-12


@for_each_form
def treats_sparse_as_dense(rule: Rule) -> None:
    """`Learner` gives the reference engine's weights, from dense and from sparse features."""
    for task in (tasks.boyan_chain(4), tasks.baird(5), tasks.random_mdp(seed=2, episodic=True)):
        for rho_mode in modes(rule):
            setting = rule.setting(rho_mode, **away_from_zero(rule) | {"alpha": 0.01})
            by_hand = follow(task, setting, steps=300)
            dense, sparse = (feed(task, setting, steps=300, sparse=kind) for kind in (False, True))
            for name, agent in (("dense", dense), ("sparse", sparse)):
                for which, wanted, got in (("w", by_hand.w, agent.w), ("η", by_hand.eta, agent.eta)):
                    assert_close(
                        got,
                        wanted,
                        f"{which} of {rule.name} on {task}, {name} features, against the reference",
                    )


def joins_its_forms(rule: Rule) -> None:
    """With lam = 0 the form along the trace gives the weights of the form without one."""
    if len(rule.forms) == 1:
        return
    plain, traced = rule.forms
    for task in (tasks.random_walk(5), tasks.baird(5), tasks.random_mdp(seed=2, episodic=True)):
        first, second = (form.setting(traced.rho_mode, alpha=0.01) for form in (plain, traced))
        wanted, got = (follow(task, setting, steps=300) for setting in (first, second))
        for which, one, other in (("w", got.w, wanted.w), ("η", got.eta, wanted.eta)):
            assert_close(one, other, f"{which} of {rule.name} on {task}, with a trace and lam = 0, against without")


@for_each_form
def runs_alike_in_both_engines(rule: Rule) -> None:
    """The lane engine gives the reference engine's weights and errors, compiled from the same step."""
    for task, horizon in (
        (tasks.random_walk(5), Horizon(episodes=120)),
        (tasks.baird(5), Horizon(steps=500, every=100)),
    ):
        for rho_mode in modes(rule):
            setting = rule.setting(rho_mode, **away_from_zero(rule) | {"alpha": 0.01})
            assert_alike(task, setting, horizon)


def follow(task: Task, setting: Setting, steps: int) -> Weights:
    """Return the reference engine's weights after some steps."""
    weights = Weights(setting, task.initial_weights)
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    pi, mu = task.action_probabilities
    for o in Stream(task, seed=1).take(steps):
        weights.advance(setting, 1.0, X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o], pi[o], mu[o])
    return weights


def feed(task: Task, setting: Setting, steps: int, sparse: bool) -> Learner:
    """Return a `Learner` fed with the same steps."""
    values: dict[str, Any] = {**setting.values, "rho_mode": setting.rho_mode}
    agent = Learner(setting.rule, task.n_features, initial_w=task.initial_weights, **values)
    rows = task.row_features
    X = [(row.indices, row.data) if sparse else row.toarray()[0] for row in rows]
    row, next_row, reward, discount, rho, _ = task.transitions
    pi, mu = task.action_probabilities
    for o in Stream(task, seed=1).take(steps):
        agent.update(X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o], pi[o], mu[o])
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
