"""The reference engine and the schedules."""

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import reference
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.reference import Metric
from gradient_dd.engine.schedules import Schedule, constant, tapered
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS

WALK = tasks.random_walk(5)


def test_td_by_hand():
    """A walk of one state: every episode is one step, w ← w + α (r − w)."""
    walk = tasks.random_walk(1)
    trace = reference.run(walk, "td", episodes=4, alpha=0.5, seed=3)
    ends = [abs(error) for error in trace.errors]
    w, possible = 0.5, []
    rewards = walk.transitions.reward[reference.OutcomeSampler(walk, 3).take(4)]
    for reward in rewards:
        w += 0.5 * (reward - w)
        possible.append(abs(w - 0.5))
    assert ends == pytest.approx(possible)
    assert trace.steps == 4


@pytest.mark.parametrize(
    ("name", "sampling"),
    [
        (name, one)
        for name, rule in LEARNERS.items()
        for one in ("trajectory", "iid")
        if one != "iid" or not rule.traces
    ],
)
def test_every_learner_learns_the_walk(name, sampling):
    alpha = {"gtd": 0.5, "natural_gtd2": 0.05, "natural_tdc": 0.02}.get(name, 0.1)
    trace = reference.run(WALK, name, episodes=400, alpha=alpha, schedule=tapered(100), sampling=sampling)
    assert len(trace.errors) == 400
    assert trace.errors[-50:].mean() < 0.8 * WALK.rmsve(WALK.initial_weights)


def test_errors_after_episodes_are_errors_after_their_last_steps():
    by_episode = reference.run(WALK, "td", episodes=20, alpha=0.1)
    by_step = reference.run(WALK, "td", steps=by_episode.steps, alpha=0.1)
    ends = WALK.transitions.ends[reference.OutcomeSampler(WALK).take(by_episode.steps)]
    assert np.array_equal(by_step.errors[ends], by_episode.errors)


def test_blocks_are_every_so_many_steps():
    fine, coarse = (reference.run(WALK, "td", steps=100, every=every) for every in (1, 25))
    assert np.array_equal(fine.errors[24::25], coarse.errors)


def test_divergence_is_recorded():
    task = tasks.baird(7)
    trace = reference.run(task, "td", steps=5000, every=10, alpha=1.0)
    assert trace.diverged_at is not None
    known = trace.diverged_at // 10 - 1
    assert np.all(trace.errors[:known] <= reference.DIVERGED)
    assert np.isinf(trace.errors[known:]).all()
    assert trace.errors[known - 1] > 1e90


@pytest.mark.parametrize("per", ["episode", "step"])
def test_a_schedule_is_the_paper_s(per):
    schedule = tapered(1000, per)
    assert schedule.factor(1) == 1
    assert schedule.factor(1002) == 0.5
    assert str(schedule) == f"tapered(1000) per {per}"


def test_the_schedule_scales_both_step_sizes():
    """A constant factor of one half is half of alpha, beta being zeta alpha."""
    half = reference.run(WALK, "gtd2", episodes=30, alpha=0.2, schedule=Schedule(lambda n: 0.5))
    assert np.array_equal(half.w, reference.run(WALK, "gtd2", episodes=30, alpha=0.1).w)
    assert str(constant) == "constant"


def test_per_step_and_per_episode_differ():
    runs = [reference.run(WALK, "td", episodes=30, schedule=tapered(5, per)).w for per in ("episode", "step")]
    assert not np.array_equal(*runs)


def test_sherman_morrison_is_the_inverse():
    rng = np.random.default_rng(0)
    metric, total = Metric(4, ridge=0.3), 0.3 * np.eye(4)
    for x in rng.standard_normal((200, 4)):
        metric.observe(x)
        total += np.outer(x, x)
    x = rng.standard_normal(4)
    assert np.allclose(metric.direction(x), np.linalg.solve(total / 201, x), rtol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "A run must have either 'episodes' or 'steps'."),
        ({"episodes": 3, "steps": 3}, "A run must have either 'episodes' or 'steps'."),
        ({"episodes": 0}, "'episodes' must be a whole number, 1 or more. Got 0."),
        ({"steps": 105, "every": 10}, "'every' must divide the number of steps (105). Got 10."),
        (
            {"episodes": 3, "schedule": "tapered"},
            "'schedule' must be 'constant', 'tapered(1000)' or 'tapered(1000) per step'. Got 'tapered'.",
        ),
        ({"episodes": 3, "alpha": -1}, "'alpha' of td must be a positive number. Got -1."),
        (
            {"episodes": 3, "schedule": Schedule(lambda n: -1.0)},
            "The schedule <lambda> per episode at n = 1 must be",
        ),
    ],
)
def test_a_run_that_cannot_be_gets_one_sentence(arguments, sentence):
    with pytest.raises(BadRequestError) as caught:
        reference.run(WALK, "td", **arguments)
    assert str(caught.value).startswith(sentence)


def test_numbers_of_every_kind_make_a_schedule():
    assert tapered(np.int64(1000)).factor(1) == 1
    assert Schedule(lambda n: np.float32(0.5)).factor(3) == 0.5
    assert len(reference.run(WALK, "td", episodes=3, schedule=Schedule(lambda n: n**-1)).errors) == 3


def test_a_task_is_a_task():
    with pytest.raises(BadRequestError, match=r"'task' must be a Task, e.g. tasks.random_walk\(20\). Got 'walk'."):
        reference.run("walk", "td", episodes=3)


def test_a_continuing_task_has_no_episodes():
    with pytest.raises(BadRequestError, match="A run of baird must be given in 'steps'"):
        reference.run(tasks.baird(7), "td", episodes=3)


def test_a_schedule_that_cannot_be_gets_one_sentence():
    with pytest.raises(BadRequestError, match=r"'per' of a schedule must be 'episode' or 'step'. Got 'day'."):
        tapered(10, per="day")
    with pytest.raises(BadRequestError, match=r"'n0' of a tapered schedule must be a number that is zero or more"):
        tapered(-1)
    with pytest.raises(BadRequestError, match=r"must be a function of n. Got 0.5."):
        Schedule(0.5)
    with pytest.raises(BadRequestError, match=r"^The schedule len per episode must be a function of n"):
        Schedule(len)
    late = Schedule(lambda n: 1 / (3 - n))
    with pytest.raises(BadRequestError, match=r"at n = 3\. Got ZeroDivisionError: division by zero\.$"):
        reference.run(WALK, "td", episodes=5, schedule=late)


@pytest.mark.xdist_group("kernels of gradient_dd")
def test_engines_agree_far_out_where_changes_are_small_beside_the_weights():
    """A feature of 0.5 lets changes of w fade below its rounding; one of 1.25 lets them grow again, to 1e66."""
    P = np.array([[[0.985, 0.015]] * 2, [[0.03, 0.97]] * 2])
    behaviour, target = np.tile([0.98, 0.02], (2, 1)), np.tile([0.0, 1.0], (2, 1))
    task = tasks.from_tables(P, 1e30, 0.9, behaviour, target, features=np.array([[0.5], [1.25]]))
    for seed in range(3):
        trace = reference.run(task, "gradient_dd", steps=2000, alpha=1.0, seed=seed)
        lanes = LaneRun(task, [LEARNERS["gradient_dd"].setting(alpha=1.0)], Horizon(steps=2000), seed=seed)
        lanes.advance()
        assert abs(trace.w[0]) > 1e35
        assert lanes.weights()[0][0] == pytest.approx(trace.w, rel=1e-9)
