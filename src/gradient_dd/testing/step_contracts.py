"""Contracts about the step: it is pure, uses everything that the rule declares, and is equal in all engines."""

from collections.abc import Iterator
from math import inf
from typing import Any

import numpy as np

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine import reference, schedules
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.learners import Rule, Setting
from gradient_dd.learners.trace import Trace
from gradient_dd.stream.learner import Learner
from gradient_dd.tasks import Task
from gradient_dd.testing.mean_contracts import away_from_zero, for_each_form, modes

DRAWS = 50  # number of random inputs of a step
SIGNED = ("delta", "x_eta", "x_change", "z_eta", "b_eta", "x_next", "x_z", "x_trace")  # signals that may be negative
TOLERANCE = 1e-12


def random_signals(rule: Rule, arguments: tuple[str, ...]) -> list[dict[str, float]]:
    """Return DRAWS sets of random arguments; among positive arguments, only ratios and parameters exceed 1."""
    rng = np.random.default_rng(0)
    free = {parameter.name for parameter in rule.parameters if parameter.high == inf} - {"alpha", "zeta"}

    def draw(name: str) -> float:
        high = 2.0 if name.startswith("rho") or name in free else 0.9
        return rng.normal() if name in SIGNED else rng.uniform(0.1, high)

    return [{name: float(draw(name)) for name in arguments} for _ in range(DRAWS)]


@for_each_form
def is_a_pure_function(rule: Rule) -> None:
    """Check that the same inputs give the same outputs, one for each move."""
    draws = random_signals(rule, rule.arguments)
    first, second = ([rule.step(**draw) for draw in order] for order in (draws, draws[::-1]))
    assert first == second[::-1], f"{rule.name} keeps state: its step returns different numbers when called again"
    assert {len(moves) for moves in first} == {len(rule.moves)}, f"{rule.name} returns tuples of different lengths"


@for_each_form
def uses_all_it_declares(rule: Rule) -> None:
    """Check that every parameter is used, every argument has an effect, and every move is sometimes non-zero."""
    arguments = {*rule.arguments, *rule.trace_arguments} | ({"zeta"} if "beta" in rule.arguments else set())
    for parameter in rule.parameters:
        used = rule.natural if parameter.shared else parameter.name in arguments
        assert used, f"{rule.name} declares the parameter {parameter.name!r} but does not use it"
    traces: list[tuple[str, Rule | Trace]] = [(f"A trace of {rule.name}", trace) for trace in rule.traces]
    for what, one in [(rule.name, rule), *traces]:
        draws = random_signals(rule, one.arguments)
        for name in one.arguments:
            factor = -0.6 if name in SIGNED else 0.6  # a rule may use only the sign or only the size
            changed = [one.step(**draw) != one.step(**draw | {name: factor * draw[name]}) for draw in draws]
            assert any(changed), f"{what} takes {name!r}, which has no effect"
    draws = random_signals(rule, rule.arguments)
    for name, values in zip(rule.moves, zip(*(rule.step(**draw) for draw in draws), strict=True), strict=True):
        assert any(values), f"{rule.name} declares the move {name!r}, which is always zero"


@for_each_form
def keeps_to_its_step_sizes(rule: Rule) -> None:
    """Check that alpha = 0 keeps w fixed if w did not change in the previous step, and that beta = 0 keeps η fixed."""
    for step_size, still, weights in (("alpha", {"x_change": 0.0}, "w"), ("beta", {}, "eta")):
        for draw in random_signals(rule, rule.arguments):
            at_rest = {step_size: 0.0} | still
            signals = {name: at_rest.get(name, value) for name, value in draw.items()}
            made = rule.coefficients(signals) | {"w_change": 0.0}  # w did not change in the previous step
            moves = {name: move for name, move in made.items() if name.startswith(weights)}
            message = f"{rule.name} moves {weights} with {step_size} = 0: {moves}. Multiply these moves by {step_size}."
            assert not any(moves.values()), message


@for_each_form
def never_looks_past_the_end(rule: Rule) -> None:
    """Check that neither w nor η moves along x' if discount = 0, because the episode has ended."""
    for draw in random_signals(rule, rule.arguments):
        moves = rule.coefficients({name: 0.0 if name == "discount" else value for name, value in draw.items()})
        for weights in ("w", "eta"):
            move = moves[f"{weights}_next"]
            what = f"{rule.name} moves {weights} by {move:.3g} along x'"
            assert move == 0, f"{what} although discount = 0 ended the episode"


@for_each_form
def stands_still_with_step_size_zero(rule: Rule) -> None:
    """Check that w and η do not change if the schedule is always 0."""
    task, still = tasks.random_mdp(seed=4), schedules.Schedule(lambda n: 0.0)
    values: dict[str, Any] = {**away_from_zero(rule)}
    left = reference.run(task, rule, steps=50, schedule=still, **values)
    assert np.array_equal(left.w, task.initial_weights), f"{rule.name} moves w with step size zero"
    assert not left.eta.any(), f"{rule.name} moves η with step size zero"


# Engines ---------------------------------------------------------------------------------------------------------


@for_each_form
def treats_sparse_as_dense(rule: Rule) -> None:
    """Check that `Learner` computes the reference engine's weights from dense and from sparse features."""
    for task in (tasks.boyan_chain(4), tasks.baird(5), tasks.random_mdp(seed=2, episodic=True)):
        for rho_mode in modes(rule):
            setting = rule.setting(rho_mode, **away_from_zero(rule) | {"alpha": 0.01})
            values: dict[str, Any] = {**setting.values, "rho_mode": setting.rho_mode}
            by_hand = follow(task, setting)
            dense = list(task.row_features.toarray())
            sparse = [(row.indices, row.data) for row in task.row_features]
            for name, X in (("dense", dense), ("sparse", sparse)):
                agent = Learner(rule, task.n_features, initial_w=task.initial_weights, **values)
                for step in steps_of(task, X):
                    agent.update(*step)
                assert_same_weights(agent, by_hand, f"{rule.name} on {task}, {name} features, against the reference")


def joins_its_forms(rule: Rule) -> None:
    """Check that with lam = 0 the form with a trace computes the same weights as the form without a trace."""
    if len(rule.forms) == 1:
        return
    for task in (tasks.random_walk(5), tasks.baird(5), tasks.random_mdp(seed=2, episodic=True)):
        wanted, got = (follow(task, form.setting(rule.traced.rho_mode, alpha=0.01)) for form in rule.forms)
        assert_same_weights(got, wanted, f"{rule.name} on {task}, with a trace and lam = 0, against no trace")


@for_each_form
def runs_alike_in_both_engines(rule: Rule) -> None:
    """Check that the lane engine, compiled from the same step, computes the reference engine's results."""
    for task, horizon in (
        (tasks.random_walk(5), Horizon(episodes=120)),
        (tasks.baird(5), Horizon(steps=500, every=100)),
    ):
        for rho_mode in modes(rule):
            assert_alike(task, rule.setting(rho_mode, **away_from_zero(rule) | {"alpha": 0.01}), horizon)


def follow(task: Task, setting: Setting) -> Weights:
    """Return the reference engine's weights after 300 steps."""
    weights = Weights(setting, task.initial_weights)
    for step in steps_of(task, list(task.row_features.toarray())):
        weights.advance(setting, 1.0, *step)
    return weights


def steps_of(task: Task, X: list[Any], steps: int = 300) -> Iterator[tuple[Any, ...]]:
    """Yield sampled transitions with features `X`: x, reward, discount, x_next, rho, pi, mu."""
    row, next_row, reward, discount, rho, _ = task.transitions
    pi, mu = task.action_probabilities
    for o in OutcomeSampler(task, seed=1).take(steps):
        yield X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o], pi[o], mu[o]


def assert_alike(
    task: Task,
    setting: Setting,
    horizon: Horizon,
    schedule: schedules.Schedule = schedules.constant,
    sampling: str = "trajectory",
    seed: int = 0,
) -> None:
    """Raise unless both engines give the same weights, last100, mean_error and curve to a relative 1e-12."""
    lane_run = LaneRun(task, [setting], horizon, schedule, sampling, seed)
    lane_run.advance()
    values: dict[str, Any] = {**setting.values, "rho_mode": setting.rho_mode}
    common: dict[str, Any] = {"schedule": schedule, "sampling": sampling, "seed": seed}
    left = reference.run(task, setting.rule, episodes=horizon.episodes, steps=horizon.steps, **common, **values)
    what = f"{setting} on {task}, {schedule}, {sampling}: the lane engine's"
    for name, got, wanted in zip(("w", "η"), lane_run.weights(), (left.w, left.eta), strict=True):
        assert_close(got[0], wanted, f"{what} {name} against the reference")
    points = left.errors[horizon.every - 1 :: horizon.every]
    bins = np.bincount(horizon.bin_of(np.arange(1, horizon.points + 1)), points) / horizon.bin_sizes()
    results = lane_run.results()
    for name, got, wanted in (
        ("last100", results.last100[0], left.errors[-horizon.n_last :].mean(keepdims=True)),
        ("mean_error", results.mean_error[0], points.mean(keepdims=True)),
        ("curve", results.curve[0, 0], bins),
    ):
        assert_close(got, wanted, f"{what} {name} against the reference")


def assert_same_weights(got: Weights | Learner, wanted: Weights, what: str) -> None:
    """Raise unless w and η agree to a relative 1e-12."""
    assert_close(got.w, wanted.w, f"w of {what}")
    assert_close(got.eta, wanted.eta, f"η of {what}")


def assert_close(got: Array, wanted: Array, what: str) -> None:
    """Raise unless two vectors agree to a relative 1e-12."""
    scale = max(1e-3, float(np.abs(wanted).max()))  # below 0.001, rounding errors of the sums dominate
    gap = float(np.abs(got - wanted).max()) / scale
    assert gap <= TOLERANCE, f"{what}: the relative difference is {gap:.3g}"
