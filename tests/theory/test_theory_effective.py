"""Why Gradient-DD works: the effective matrix, the way from GTD2 to TD, and rates predicted and measured."""

import numpy as np
import pytest

from gradient_dd import LEARNERS, BadRequestError, tasks
from gradient_dd.theory import diverging_mdps, interpolation, rate
from gradient_dd.theory.effective import averaged_flow, effective_matrix, flow_rate
from trials.sampled_rates import measured_rate, rate_row, slowest_mode

GRADIENT_DD = LEARNERS["gradient_dd"]


def rates_of(task, alpha, kappas):
    """Return the exact rate of Gradient-DD's mean along trajectories at every κ."""
    return np.array([rate(task, GRADIENT_DD.setting(alpha=alpha, kappa=kappa)) for kappa in kappas])


def columns(task):
    """Return the likelihood under independent draws, x, x', the discount and the ratio of every outcome."""
    row, next_row, _, discount, rho, _ = task.transitions
    X = task.row_features.toarray()
    likely = task.visits[row] * task.behaviour[task.outcomes.state, task.outcomes.action] * task.outcomes.probability
    return likely, X[row], X[next_row], discount, rho


@pytest.mark.parametrize("seed", [0, 1])
def test_the_effective_matrix_is_the_formula(seed):
    """Aᵀ + κα (E[ρ γ x' x'ᵀx' xᵀ] − E[ρ x' x'ᵀx xᵀ]), where no episode ends."""
    task, alpha, kappa = tasks.random_mdp(seed=seed), 0.1, 2.0
    added = sum(
        q * rho * (g * np.outer(x_next, x) * (x_next @ x_next) - np.outer(x_next, x) * (x_next @ x))
        for q, x, x_next, g, rho in zip(*columns(task), strict=True)
    )
    A_eff = effective_matrix(task, alpha, kappa)
    assert np.allclose(A_eff.T, task.moments.A.T + alpha * kappa * added, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kappa_alpha", [0.0, 0.4, 1.0])
def test_a_table_without_self_loops_has_its_bootstrapped_half_scaled(kappa_alpha):
    task = tasks.random_walk(7)
    likely, x, x_next, discount, rho = columns(task)
    bootstrapped = (x_next.T * (likely * rho * discount)) @ x
    expected = task.moments.C - (1 - kappa_alpha) * bootstrapped
    assert np.allclose(effective_matrix(task, 0.2, kappa_alpha / 0.2).T, expected, rtol=0, atol=1e-15)
    assert np.allclose(averaged_flow(task)(kappa_alpha).T, expected, rtol=0, atol=1e-15)


def test_both_matrices_agree_to_leading_order():
    task = tasks.random_mdp(episodic=True)
    gaps = [np.abs(averaged_flow(task)(k) - effective_matrix(task, k, 1.0)).max() for k in (1e-3, 5e-4)]
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.01)


@pytest.mark.parametrize("episodic", [False, True])
@pytest.mark.parametrize("kappa_alpha", [0.02, 0.1])
def test_the_exact_rate_is_that_of_the_averaged_flow_as_alpha_vanishes(kappa_alpha, episodic):
    task, alpha = tasks.random_mdp(n_states=5, n_features=3, seed=1, episodic=episodic), 1e-6
    exact = rates_of(task, alpha, [kappa_alpha / alpha])[0] / alpha
    flow = flow_rate(task, averaged_flow(task)(kappa_alpha))
    assert exact == pytest.approx(flow, rel=1e-3)
    assert abs(flow / flow_rate(task, task.moments.A) - 1) > 0.01


def test_gradient_dd_goes_from_gtd2_to_td():
    found = interpolation(tasks.random_walk(20), np.linspace(0, 1, 12))
    assert (np.diff(found.effective) > 0).all()
    likeness = (found.effective - found.gtd2) / (found.td - found.gtd2)
    assert likeness[0] == 0
    assert np.abs(likeness - found.kappa_alpha).max() < 0.03
    assert found.td > 50 * found.gtd2


def test_off_policy_safety_is_lost_where_td_diverges():
    """Along trajectories, at κα‖x‖² well below 1. Neither GTD2 nor independent draws lose it."""
    for task in diverging_mdps(3):
        kappa_alpha, alpha = 0.5 / (task.features**2).sum(axis=1).max(), 1e-5
        found = interpolation(task, [kappa_alpha])
        assert found.td < 0 < found.gtd2
        assert found.effective[0] < 0
        rates = rates_of(task, alpha, [0, kappa_alpha / alpha])
        assert rates[1] < 0 < rates[0]
        assert rate(task, GRADIENT_DD.setting(alpha=alpha, kappa=kappa_alpha / alpha), "iid") > 0


def test_on_baird_s_counterexample_safety_stays_and_speed_is_lost():
    task, alpha = tasks.baird(7), 1e-4
    kappa_alphas = np.array([0, 0.05, 0.1, 0.19])
    found = interpolation(task, kappa_alphas)
    assert found.td < 0
    assert (found.effective > 0).all()
    assert (np.diff(found.effective) < 0).all()
    exact = rates_of(task, alpha, kappa_alphas / alpha) / alpha
    assert np.allclose(exact, found.effective, rtol=0.01, atol=0)


def test_diverging_mdps_are_the_first_seeds():
    assert [task.parameters["seed"] for task in diverging_mdps(2)] == [8, 56]


@pytest.mark.parametrize(("learner", "alpha"), [("td", 0.3), ("gtd2", 0.3), ("gradient_dd", 0.3), ("gradient_dd", 0.5)])
def test_measured_rates_are_the_exact_ones(learner, alpha):
    row = rate_row(10, LEARNERS[learner].setting(alpha=alpha))
    assert abs(row.gap) < 0.1
    assert row.error < 0.03 * row.measured
    assert row.trajectory_first_order < row.exact < 2.5 * row.trajectory_first_order
    if learner == "gradient_dd":
        assert row.measured > 10 * row.iid_first_order


def test_a_run_along_the_slowest_mode_loses_it_alone():
    """On a walk of one state TD's only mode loses α a step, exactly and without chance: reward or not."""
    task = tasks.random_walk(1)
    assert slowest_mode(task, LEARNERS["td"].setting(alpha=0.01)).tolist() == [1.0]
    assert measured_rate(task, LEARNERS["td"].setting(alpha=0.01), 200, 2).rate == pytest.approx(0.01, rel=1e-6)


def test_bad_requests_are_one_sentence():
    task = tasks.random_walk(5)
    with pytest.raises(BadRequestError, match="'kappa_alpha' must be so small that the changes of w converge"):
        averaged_flow(tasks.random_mdp())(10.0)
    with pytest.raises(BadRequestError, match="'alpha' must be a positive number"):
        effective_matrix(task, 0.0, 1.0)
    with pytest.raises(BadRequestError, match="'runs' must be"):
        measured_rate(task, LEARNERS["td"].setting(), 100, 1)
    with pytest.raises(BadRequestError, match="'count' must be"):
        diverging_mdps(0)
