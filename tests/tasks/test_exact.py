"""Exact quantities: identities, finite differences and hand-solved cases, on random off-policy problems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from gradient_dd import exact, tasks

seeds = st.integers(0, 10**6)


def random_task(seed):
    return tasks.random_mdp(n_states=6, n_actions=2, n_features=3, seed=seed, episodic=bool(seed % 2))


def random_weights(task, seed):
    return np.random.default_rng(seed + 1).standard_normal((2, task.n_features))


@given(seeds)
def test_true_values_solve_the_bellman_equation(seed):
    task = random_task(seed)
    V = task.true_values
    assert np.allclose(exact.bellman(V, task.P, task.r, task.discount[task.states]), V, atol=1e-10)


@given(seeds)
def test_visits_are_kept_by_the_behaviour_chain(seed):
    """Restarted where episodes end, the chain keeps d."""
    task = random_task(seed)
    P = task.chain(task.behaviour)[0].toarray()
    restart = np.outer(1 - P.sum(axis=1), task.start[task.states])
    assert np.allclose(task.visits @ (P + restart), task.visits, atol=1e-12)


@given(seeds)
def test_moments_are_expectations_over_the_table(seed):
    """A, b, C from their definition, one outcome at a time."""
    task = random_task(seed)
    X = task.row_features.toarray()
    outcome, (row, next_row, reward, discount, rho, _) = task.outcomes, task.transitions
    weight = task.visits[row] * task.behaviour[outcome.state, outcome.action] * outcome.probability
    u = X[row] - discount[:, None] * X[next_row]
    assert np.allclose((X[row].T * (weight * rho)) @ u, task.moments.A, atol=1e-12)
    assert np.allclose(X[row].T @ (weight * rho * reward), task.moments.b, atol=1e-12)
    assert np.allclose((X[row].T * weight) @ X[row], task.moments.C, atol=1e-12)


@given(seeds)
def test_mspbe_is_the_projected_error(seed):
    """(b − Aw)ᵀC⁻¹(b − Aw) = ‖V_w − ΠBV_w‖²_D."""
    task = random_task(seed)
    w, _ = random_weights(task, seed)
    V = task.features @ w
    target = exact.projection(task.features, task.visits) @ exact.bellman(V, task.P, task.r, task.discount[task.states])
    assert exact.mspbe(w, *task.moments) == pytest.approx(task.visits @ (V - target) ** 2, rel=1e-8)


@given(seeds)
def test_projection_is_a_projection(seed):
    task = random_task(seed)
    projection = exact.projection(task.features, task.visits)
    assert np.allclose(projection @ projection, projection, atol=1e-9)
    assert np.allclose(projection @ task.features, task.features, atol=1e-9)


@given(seeds)
def test_the_fixed_point_is_where_the_mspbe_is_zero(seed):
    task = random_task(seed)
    assert exact.mspbe(task.fixed_point, *task.moments) < 1e-15
    assert exact.neu(task.fixed_point, task.moments.A, task.moments.b) < 1e-15
    assert np.abs(exact.mspbe_gradient(task.fixed_point, *task.moments)).max() < 1e-8


@given(seeds, st.floats(0, 5))
def test_gradients_agree_with_finite_differences(seed, kappa):
    task = random_task(seed)
    w, w_prev = random_weights(task, seed)
    for function, gradient in (
        (lambda v: exact.mspbe(v, *task.moments), exact.mspbe_gradient(w, *task.moments)),
        (
            lambda v: exact.j_gdd(v, w_prev, kappa, *task.moments),
            exact.j_gdd_gradient(w, w_prev, kappa, *task.moments),
        ),
    ):
        assert np.allclose(approx_fprime(w, function), gradient, rtol=1e-3, atol=1e-4 * (1 + np.abs(gradient).max()))


@given(seeds, st.floats(0, 5))
def test_the_penalty_of_gradient_dd_is_the_change_of_the_values(seed, kappa):
    task = random_task(seed)
    w, w_prev = random_weights(task, seed)
    penalty = task.visits @ (task.features @ (w - w_prev)) ** 2
    assert exact.j_gdd(w, w_prev, kappa, *task.moments) == pytest.approx(
        exact.mspbe(w, *task.moments) + kappa * penalty, rel=1e-9
    )


def test_msbe_is_zero_at_the_true_values_only():
    task = tasks.random_walk(6)
    arguments = task.features, task.P, task.r, task.discount[task.states], task.visits
    assert exact.msbe(task.true_values, *arguments) < 1e-28
    assert exact.msbe(task.initial_weights, *arguments) > 1e-3


def test_rmsve_by_hand():
    """Walk with one state: V = ½, d = 1."""
    assert tasks.random_walk(1).rmsve(np.array([0.8])) == pytest.approx(0.3)


def test_singular_tasks_have_finite_answers():
    """Baird: p > n, so A and C are singular; the pseudo-inverse gives the solution of least norm."""
    task = tasks.baird(7)
    assert np.allclose(task.fixed_point, 0)
    projection = exact.projection(task.features, task.visits)
    assert np.allclose(projection, np.eye(7))
    w = task.initial_weights
    V = task.features @ w
    error = task.visits @ (V - exact.bellman(V, task.P, task.r, task.discount)) ** 2
    assert exact.mspbe(w, *task.moments) == pytest.approx(error)
    gradient = exact.mspbe_gradient(w, *task.moments)
    hidden = np.linalg.svd(task.features)[2][-1]  # the direction the values do not see
    assert abs(gradient @ hidden) < 1e-12


def test_the_inverse_takes_tiny_singular_values_for_zero():
    """Below 1e-13 of the largest one a singular value is rounding; above it, it counts."""
    assert np.allclose(exact.inverse(np.diag([4.0, 4e-12])), np.diag([0.25, 2.5e11]), rtol=1e-9, atol=0)
    assert np.array_equal(exact.inverse(np.diag([4.0, 4e-14])), np.diag([0.25, 0.0]))


def test_a_single_continuing_state_is_always_visited():
    task = tasks.random_mdp(n_states=1, n_features=1)
    assert task.visits == [1]
