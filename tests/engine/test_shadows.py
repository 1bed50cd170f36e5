"""Shadows: growth against the reference engine and against exact exponents, and what they say of real runs."""

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine import shadows
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import run_lanes
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS


@pytest.mark.parametrize("name", ["td", "tdrc", "gradient_dd", "gtd2_to_td"])
@pytest.mark.parametrize("task", [tasks.baird(7)], ids=str)
def test_lanes_agree_with_the_reference_engine(task, name):
    setting = LEARNERS[name].setting(alpha=0.02)
    silent = shadows.reward_free(task, shadows.random_starts(task, 1, seed=3)[0])
    got = shadows.lane_growth(silent, [setting], 6, "trajectory", 1, 2)[:, 0]
    wanted = shadows.reference_growth(silent, setting, 6, "trajectory", 1, 2)
    assert np.allclose(got, wanted, rtol=0, atol=1e-12)


def test_a_shadow_sees_the_transitions_of_its_task():
    task = tasks.random_mdp(seed=1)
    silent = shadows.reward_free(task, np.ones(task.n_features))
    assert np.array_equal(OutcomeSampler(task, 4, 5).take(1000), OutcomeSampler(silent, 4, 5).take(1000))
    assert not silent.transitions.reward.any()
    assert silent.key != task.key


def test_a_shadow_is_the_difference_of_two_learners():
    """From two places on the same data: their difference is the shadow that starts at the difference."""
    task, d = tasks.random_mdp(seed=2), np.arange(1.0, 5.0)
    setting = LEARNERS["gtd2_to_td"].setting(alpha=0.05)
    rows = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    one, other, shadow = Weights(setting, d), Weights(setting, 0 * d), Weights(setting, d)
    for o in OutcomeSampler(task).take(200):
        for weights, paid in ((one, reward[o]), (other, reward[o]), (shadow, 0.0)):
            weights.advance(setting, 1.0, rows[row[o]], paid, discount[o], rows[next_row[o]], rho[o])
    assert np.allclose(one.w - other.w, shadow.w, rtol=0, atol=1e-12)


def test_the_exponent_of_one_state_is_exact():
    """One state, one feature: TD multiplies the shadow by 1 − α(1 − γ) at every step."""
    P, R = np.ones((1, 1, 1)), np.ones((1, 1, 1))
    task = tasks.from_tables(P, R, 0.9, np.ones((1, 1)))
    measured = shadows.exponents(task, [LEARNERS["td"].setting(alpha=a) for a in (0.5, 25.0)], steps=2500)
    assert np.allclose(measured.mean, np.log(np.abs([1 - 0.05, 1 - 2.5])), atol=1e-12)
    assert np.allclose(measured.high - measured.low, 0, atol=1e-12)


def test_a_learner_that_forgets_at_once_has_exponent_minus_infinity():
    """TD on a table with alpha = 1 replaces a value by its target: the start is gone after the first visit."""
    measured = shadows.exponents(tasks.random_walk(3), [LEARNERS["td"].setting(alpha=1.0)], steps=2500)
    assert measured.high[0] == -np.inf


def test_signs_tell_which_runs_diverge():
    """On Baird's counterexample TD diverges at every step size and GTD2 with a small one does not."""
    task = tasks.baird(7)
    settings = [LEARNERS[name].setting(alpha=alpha) for name, alpha in (("td", 0.1), ("gtd2", 0.02), ("gtd2", 3.0))]
    measured = shadows.exponents(task, settings)
    ends = run_lanes(task, settings, Horizon(steps=20_000, every=100)).last100[0]
    assert measured.low[0] > 0
    assert measured.low[2] > 0
    assert measured.mean[1] < 0
    assert ends[0] > 1e6
    assert not ends[2] < 1e6
    assert ends[1] < 10


@pytest.mark.parametrize("steps", [0, 2499, 2550])
def test_too_few_steps_are_refused(steps):
    with pytest.raises(BadRequestError, match=r"'steps' must be"):
        shadows.exponents(tasks.random_walk(3), [LEARNERS["td"].setting()], steps=steps)
