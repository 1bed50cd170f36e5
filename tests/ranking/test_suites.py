"""The suites: fixed tasks that meet their conditions, and runs that never mix."""

import numpy as np
import pytest

from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.ranking.standings import BUDGETS, TEST_RUNS
from gradient_dd.ranking.suites import (
    CLASSIC,
    FAMILIES,
    POINTS,
    SEEDS,
    SUITES,
    TEST,
    RandomTask,
    problems_of,
)
from trials.make_standings import EACH, acceptable, draw_seeds


def test_names_differ_and_lengths_divide():
    names = [one.name for one in SUITES["all"]]
    assert len(set(names)) == len(names) == 13 + 4 * EACH
    assert all(one.steps % POINTS == 0 for one in SUITES["all"])


@pytest.mark.parametrize("name", FAMILIES)
def test_the_seeds_of_a_family_meet_its_condition(name):
    tasks = [RandomTask(FAMILIES[name], place, seed).build() for place, seed in enumerate(SEEDS[name])]
    assert len(tasks) == EACH
    assert all(acceptable(FAMILIES[name], task) for task in tasks)
    assert all(task.policies == ("on-policy" if name == "on-policy" else "off-policy") for task in tasks)
    assert all(task.rmsve(task.fixed_point) < task.rmsve(task.initial_weights) for task in tasks if name == "on-policy")
    unstable = [np.linalg.eigvals(task.moments.A).real.min() < 0 for task in tasks]
    assert unstable == [name == "unstable"] * EACH


@pytest.mark.parametrize("name", ["moderate", "large"])
def test_the_seeds_are_the_first_ones(name):
    assert tuple(draw_seeds(FAMILIES[name], 0, 4)) == SEEDS[name][:4]


def test_tuning_and_test_runs_are_disjoint():
    assert all(BUDGETS[quick].finals[-1][1] < TEST for quick in TEST_RUNS)


def test_a_task_that_is_drawn_again_differs_between_runs():
    by_name = {one.name: one for one in CLASSIC}
    first, second = (by_name["collision"].tasks(run)[0].key for run in (0, 1))
    assert first != second
    assert by_name["baird-7"].tasks(0) == by_name["baird-7"].tasks(1)
    assert len(by_name["rooms"].tasks(0)) == 8


def test_an_error_is_ten_times_the_initial_one_at_most():
    walk = next(one for one in CLASSIC if one.name == "walk-19")
    errors = walk.errors([LEARNERS["td"].setting(alpha=alpha) for alpha in (1e-9, 50.0)], [0, TEST])
    assert errors.shape == (2, 2, 2)
    assert errors[0, 0] == pytest.approx(walk.initial_error, rel=1e-3)
    assert (errors[:, 1] == 10 * walk.initial_error).all()


def test_an_unknown_suite_is_refused():
    with pytest.raises(BadRequestError, match="'suite' must be"):
        problems_of("clasic")
