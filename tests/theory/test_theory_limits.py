"""Exact limits of alpha: they are those of the mean and of the mean square, and they end in time."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd import tasks
from gradient_dd.learners import LEARNERS, Rule
from gradient_dd.learners.rule import ALPHA
from gradient_dd.theory.stability import (
    SquareOperator,
    bisected,
    exact_limits,
    in_row_space,
    largest_stable,
    largest_stable_alpha,
    limit,
    rate,
)
from trials.theory_tables import largest_safe_alpha


@given(st.floats(1e-6, 1e6), st.floats(1.0001, 100), st.floats(1e-4, 0.1))
def test_a_bisection_ends_at_a_number_that_was_found_stable(edge, apart, precision):
    """It is within the precision below the edge; the unstable end is not returned."""
    found = bisected(lambda number: number < edge, edge / apart, edge * apart, precision)
    assert edge / (1 + 2 * precision) < found < edge


def test_the_largest_stable_number_of_a_scan():
    assert largest_stable(lambda number: number < 3.0, 0.01, 100.0, 2.0, 1e-6) == pytest.approx(3.0, rel=1e-5)
    assert largest_stable(lambda number: number < 3.0, 4.0, 100.0, 2.0, 1e-6) == 0
    assert largest_stable(lambda number: True, 0.01, 100.0, 2.0, 1e-6) == inf


def test_a_limit_is_searched_upwards_or_from_below():
    for alpha in (1e-4, 0.2, 50.0):
        assert limit(lambda number: number < 0.3, alpha, 1.0) == pytest.approx(0.3, rel=0.02)
    assert limit(lambda number: False, 0.1, 1.0) == 0
    assert limit(lambda number: True, 0.1, 1.0) == inf
    assert limit(lambda number: True, 0.1, 1.0, deadline=0.0) is None


@pytest.mark.parametrize("sampling", ["trajectory", "iid"])
@pytest.mark.parametrize("name", ["td", "tdrc", "gradient_dd"])
def test_limits_are_those_of_the_mean_and_of_the_mean_square(name, sampling):
    task, setting = tasks.random_walk(3), LEARNERS[name].setting(alpha=0.02)
    found = exact_limits(task, setting, sampling)
    assert found.stable == pytest.approx(largest_stable_alpha(task, name, sampling), rel=0.02)
    assert found.safe == pytest.approx(largest_safe_alpha(task, name, sampling), rel=0.03)
    assert found.safe <= 1.02 * found.stable
    assert found.rate == pytest.approx(rate(task, setting, sampling))


def test_limits_are_for_the_parameters_and_the_rho_mode_of_the_setting():
    task = tasks.baird(3)
    both = [exact_limits(task, LEARNERS["gtd2"].setting(rho_mode=mode, alpha=0.01), "trajectory") for mode in "RT"]
    assert both[0].safe != pytest.approx(both[1].safe, rel=0.05)
    small = exact_limits(task, LEARNERS["gtd2"].setting(zeta=0.1, alpha=0.01))
    operator = SquareOperator(in_row_space(task), LEARNERS["gtd2"].setting(zeta=0.1, alpha=1.0))
    assert [operator.is_stable(factor * small.safe) for factor in (0.98, 1.02)] == [True, False]
    assert small.safe != pytest.approx(both[0].safe, rel=0.05)
    assert exact_limits(tasks.baird(7), LEARNERS["td"].setting(alpha=0.01), "iid")[:2] == (0, 0)


def test_what_would_take_too_long_is_none():
    setting = LEARNERS["gradient_dd"].setting(alpha=0.1)
    assert exact_limits(tasks.random_walk(20), setting) == (None, None, None)
    assert exact_limits(tasks.random_walk(3), setting, deadline=0.0) == (None, None, None)
    one_group = exact_limits(tasks.random_walk(20), setting, "iid")
    assert one_group.stable > 1


def test_a_rule_that_is_not_linear_in_alpha_has_no_safe_limit_here():
    def step(alpha, delta):
        return (alpha**2 * delta,)

    rule = Rule("squared", "", step, ("w_x",), (ALPHA,), "", __name__)
    found = exact_limits(tasks.random_walk(3), rule.setting(alpha=0.1))
    assert found.safe is None
    assert found.stable > 0.5
