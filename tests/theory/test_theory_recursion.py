"""The theorem's recursion against the learner's own steps, and its assumptions, where they hold and where not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd import LEARNERS, BadRequestError, tasks
from gradient_dd.engine.schedules import Schedule, constant, tapered
from gradient_dd.theory import check_assumptions, recursion_eigenvalues

GDD = LEARNERS["gradient_dd"]
PAPER = tapered(1000)


@given(st.integers(0, 10**6))
def test_the_eigenvalues_are_those_of_the_moments(seed):
    task = tasks.random_mdp(n_states=5, n_actions=2, n_features=3, seed=seed, episodic=bool(seed % 2))
    A, _, C = task.moments
    G = np.block([[C / 2, A / 2], [-A.T, np.zeros_like(A)]])
    found = recursion_eigenvalues(task, GDD.setting(zeta=0.5))
    assert np.poly(found) == pytest.approx(np.poly(G), abs=1e-9)


def test_the_fixed_point_attracts():
    assert recursion_eigenvalues(tasks.random_mdp(seed=3), GDD.setting()).real.min() > 0
    baird = recursion_eigenvalues(tasks.baird(7), GDD.setting())
    assert baird.real.min() > 0  # without the direction in which nothing moves


def verdicts(task, schedule=PAPER, sampling="iid", **values):
    return {one.name: one.holds for one in check_assumptions(task, GDD.setting(**values), schedule, sampling)}


def test_all_assumptions_hold_where_the_paper_says_so():
    assert verdicts(tasks.random_walk(10)) == dict.fromkeys(["A0", "A1", "A2", "A3", "A4"], True)


@pytest.mark.parametrize(
    ("schedule", "alpha", "holds"),
    [
        (constant, 0.1, False),
        (tapered(1000), 0.1, True),
        (tapered(1000), 1.0, False),
        (tapered(1000), 1.5, False),
        (Schedule(lambda n: n**-0.5), 0.1, False),
        (Schedule(lambda n: n**-0.7), 0.1, True),
        (Schedule(lambda n: n**-1.2), 0.1, False),
        (Schedule(lambda n: 0.0), 0.1, False),
        (Schedule(lambda n: float(n < 10)), 0.1, False),
    ],
)
def test_a0_asks_for_step_sizes_below_one_that_vanish_slowly(schedule, alpha, holds):
    assert verdicts(tasks.random_walk(5), schedule, alpha=alpha)["A0"] == holds


def test_a0_fails_where_episodes_never_end_and_the_schedule_counts_them():
    assert not verdicts(tasks.baird(7), tapered(1000), alpha=0.01)["A0"]
    assert verdicts(tasks.baird(7), tapered(1000, per="step"), alpha=0.01)["A0"]


def test_a1_fails_along_trajectories_and_a2_on_baird():
    assert not verdicts(tasks.random_walk(5), sampling="trajectory")["A1"]
    assert not verdicts(tasks.baird(7), alpha=0.01)["A2"]
    (a2,) = (one for one in check_assumptions(tasks.baird(7), GDD.setting(alpha=0.01)) if one.name == "A2")
    assert a2.why == "rank 7 of 8 for A, rank 7 of 8 for C"


def test_a3_is_judged_by_the_mean():
    walk = tasks.random_walk(10)
    assert verdicts(walk, constant, alpha=3.6)["A3"]
    assert not verdicts(walk, constant, alpha=3.8)["A3"]
    assert not verdicts(walk, constant, "trajectory", alpha=1.0)["A3"]
    assert verdicts(walk, tapered(1000), alpha=3.8)["A3"]  # it vanishes in the end


def test_only_gradient_dd_and_gtd2_have_this_recursion():
    with pytest.raises(BadRequestError, match="The learner of the recursion must be gradient_dd or gtd2"):
        recursion_eigenvalues(tasks.random_walk(5), LEARNERS["tdc"].setting())
