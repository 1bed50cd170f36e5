"""The trust region, exactly: against a general optimiser, and against its own conditions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from gradient_dd import exact, tasks
from gradient_dd.errors import BadRequestError
from gradient_dd.theory.trust_region import constrained_step, kappa_of_mu, penalised_step

KAPPAS = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)
SOLVED = [tasks.random_walk(5), tasks.boyan_chain(4), tasks.baird(7), tasks.random_mdp(seed=3)]
seeds = st.integers(0, 10**6)
solved = pytest.mark.parametrize("task", SOLVED, ids=str)


def mu_of_kappa(task, v, kappa):
    """Return μ(κ) = ‖w(κ) − v‖²_C: the squared radius of the trust region that a penalty κ amounts to at v."""
    step = penalised_step(task, v, kappa) - v
    return step @ task.moments.C @ step


def random_problem(seed):
    task = tasks.random_mdp(n_states=6, n_actions=2, n_features=3, seed=seed, episodic=bool(seed % 2))
    return task, np.random.default_rng(seed + 1).standard_normal(3)


def start(task):
    """Return weights away from the fixed point in every mode."""
    return task.initial_weights + np.random.default_rng(0).standard_normal(task.n_features)


@given(seeds, st.floats(0.01, 100))
def test_the_step_is_the_closed_form(seed, kappa):
    """w(κ) = (AᵀC⁻¹A + κC)⁻¹ (AᵀC⁻¹b + κC v), solved as printed."""
    task, v = random_problem(seed)
    A, b, C = task.moments
    S = A.T @ np.linalg.inv(C)
    printed = np.linalg.solve(S @ A + kappa * C, S @ b + kappa * C @ v)
    assert np.allclose(penalised_step(task, v, kappa), printed, rtol=1e-6, atol=1e-8)


@solved
@pytest.mark.parametrize("kappa", [0.1, 1.0])
def test_a_general_optimiser_finds_the_same_weights(task, kappa):
    """SLSQP on min J subject to ‖w − v‖²_C ≤ μ knows nothing of κ; the values agree where w is not unique (Baird)."""
    v, (A, b, C) = start(task), task.moments
    mu = mu_of_kappa(task, v, kappa)
    found = minimize(
        lambda w: exact.mspbe(w, A, b, C),
        v,
        jac=lambda w: exact.mspbe_gradient(w, A, b, C),
        constraints={
            "type": "ineq",
            "fun": lambda w: mu - (w - v) @ C @ (w - v),
            "jac": lambda w: -2 * C @ (w - v),
        },
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    ours = constrained_step(task, v, mu)
    assert task.features @ found.x == pytest.approx(task.features @ ours, abs=1e-6 * np.abs(task.features @ v).max())
    assert exact.mspbe(ours, A, b, C) <= exact.mspbe(found.x, A, b, C) + 1e-9


@solved
def test_mu_falls_strictly_with_kappa(task):
    v = start(task)
    radii = [mu_of_kappa(task, v, kappa) for kappa in KAPPAS]
    assert (np.diff(radii) < 0).all()
    gap = task.fixed_point - v
    assert radii[0] == pytest.approx(gap @ task.moments.C @ gap, rel=1e-9)  # μ(0) = ‖w* − v‖²_C
    assert radii[-1] < 0.01 * radii[0]


@given(seeds, st.floats(1e-3, 1e3))
def test_kappa_and_mu_are_one_for_one(seed, kappa):
    task, v = random_problem(seed)
    assert kappa_of_mu(task, v, mu_of_kappa(task, v, kappa)) == pytest.approx(kappa, rel=1e-8)


@solved
def test_a_region_that_reaches_the_optimum_has_multiplier_zero(task):
    v = start(task)
    reach = mu_of_kappa(task, v, 0.0)
    far = 1.01 * reach
    assert kappa_of_mu(task, v, far) == kappa_of_mu(task, v, (1 + 1e-9) * reach) == 0
    assert kappa_of_mu(task, v, 0.99 * reach) > 0
    assert task.rmsve(constrained_step(task, v, far)) == pytest.approx(task.rmsve(task.fixed_point), abs=1e-9)
    assert kappa_of_mu(task, task.fixed_point, 1e-3) == 0  # from the optimum no step is needed


@solved
@pytest.mark.parametrize("part", [0.1, 0.9, 1.5])
def test_the_optimum_meets_the_kkt_conditions(task, part):
    """Within the radius μ(0) the constraint binds, beyond it does not; the conditions hold either way."""
    v = start(task)
    mu = part * mu_of_kappa(task, v, 0.0)
    w, kappa = constrained_step(task, v, mu), kappa_of_mu(task, v, mu)
    assert (kappa > 0) == (part < 1)
    excess = (w - v) @ task.moments.C @ (w - v) - mu
    small = 1e-9 * max(1, np.linalg.norm(exact.mspbe_gradient(v, *task.moments)), mu)
    assert np.linalg.norm(exact.j_gdd_gradient(w, v, kappa, *task.moments)) < small  # stationary
    assert excess < small  # feasible
    assert kappa >= 0
    assert abs(kappa * excess) < small  # slack where κ is not 0


def test_where_the_values_do_not_see_the_weights_they_stay():
    """Baird has one direction too many: the step leaves that part of v alone, whatever κ."""
    task = tasks.baird(7)
    v, hidden = start(task), np.linalg.svd(task.features)[2][-1]
    for kappa in (0.0, 0.5):
        assert hidden @ (penalised_step(task, v, kappa) - v) == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: penalised_step(tasks.random_walk(3), np.zeros(3), -1),
            "'kappa' must be a number that is zero or more",
        ),
        (lambda: kappa_of_mu(tasks.random_walk(3), np.zeros(3), 0), "'mu' must be a positive number. Got 0."),
        (lambda: kappa_of_mu(tasks.random_walk(3), np.zeros(2), 1), r"The shape of 'v' must be \(3,\). Got \(2,\)."),
    ],
)
def test_mistakes_are_told(call, sentence):
    with pytest.raises(BadRequestError, match=sentence):
        call()
