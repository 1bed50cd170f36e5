"""Errors of the paper that can be shown: each test demonstrates one, and the correction."""

import numpy as np
import pytest

from gradient_dd import exact, tasks
from gradient_dd.engine import reference
from gradient_dd.engine.reference import Weights
from gradient_dd.learners import LEARNERS
from gradient_dd.statements import bootstrapped_boyan, check_statements


def combined(x, x_next, discount, reward):
    """Return G_n, H_n and g_{n+1} of one transition, as the paper defines them above [update-2n]."""
    p, u = len(x), x - discount * x_next
    zero = np.zeros((p, p))
    G = np.block([[np.outer(x, x), np.outer(x, u)], [-np.outer(u, x), zero]])
    H = np.block([[zero, zero], [zero, np.outer(x, x)]])
    return G, H, np.concatenate([reward * x, np.zeros(p)])


def test_erratum_1_the_sign_in_update_2n():
    """ρ_{n+1} = ρ_n − κα H(ρ_n − ρ_{n−1}) + α (g − G ρ_n); the printed + G ρ_n is another algorithm."""
    rng = np.random.default_rng(0)
    alpha, kappa, p = 0.1, 1.5, 3
    setting = LEARNERS["gradient_dd"].setting(alpha=alpha, kappa=kappa)
    weights = Weights(setting, rng.standard_normal(p))
    weights.eta, weights.w_prev = rng.standard_normal((2, p))
    x, x_next, reward, discount = *rng.standard_normal((2, p)), 0.7, 0.9
    now = np.concatenate([weights.eta, weights.w])
    before = np.concatenate([weights.eta, weights.w_prev])  # H does not look at its η half
    G, H, g = combined(x, x_next, discount, reward)
    weights.advance(setting, 1.0, x, reward, discount, x_next, rho=1.0)
    made = np.concatenate([weights.eta, weights.w])
    common = now - kappa * alpha * H @ (now - before)
    assert np.allclose(made, common + alpha * (g - G @ now), rtol=0, atol=1e-14)
    assert np.abs(made - (common + alpha * (G @ now + g))).max() > 0.05


def test_erratum_1_the_fixed_point_solves_g_equals_G_rho():
    task = tasks.random_mdp(seed=0)
    A, b, C = task.moments
    G = np.block([[C, A], [-A.T, np.zeros_like(A)]])
    g = np.concatenate([b, np.zeros_like(b)])
    rest = np.concatenate([np.zeros_like(b), task.fixed_point])
    assert np.allclose(G @ rest, g, atol=1e-12)
    assert np.abs(G @ rest + g).max() > 0.01
    assert np.linalg.eigvals(G).real.min() > 0  # so ρ' = g − Gρ is stable, and the printed ρ' = Gρ + g is not


@pytest.mark.parametrize("n", [7, 20])
def test_erratum_12_the_dashed_ratio_is_a_probability(n):
    """(N−1)/N is μ(dashed). As a ratio it gives E[ρ|s] = 1 + ((N−1)/N)²; the ratio of the policies is 0."""
    standard, printed = tasks.baird(n), tasks.baird(n, ratios="paper")
    assert np.allclose((standard.behaviour * standard.rho).sum(axis=1), 1)
    assert np.allclose((printed.behaviour * printed.rho).sum(axis=1), 1 + ((n - 1) / n) ** 2)


def test_erratum_12_with_the_printed_ratios_td_converges_at_seven_states():
    """The counterexample is gone: TD reaches zero error. With the policies' own ratios it diverges."""
    common = {"steps": 30_000, "every": 1000, "alpha": 0.02}
    printed = reference.run(tasks.baird(7, ratios="paper"), "td", **common)
    assert printed.errors[-1] < 1e-6
    standard = reference.run(tasks.baird(7), "td", **common)
    assert standard.errors[-1] > 1e6


@pytest.mark.parametrize(("n", "slowest"), [(7, 2.4e-5), (20, 4.8e-6)])
def test_erratum_13_the_plateau_of_baird_is_slow_modes_not_projection_error(n, slowest):
    task = tasks.baird(n)
    assert np.allclose(exact.projection(task.features, task.visits) @ task.true_values, task.true_values)
    assert task.rmsve(task.fixed_point) == 0  # V is representable: no residual error
    A, _, C = task.moments
    values = np.linalg.eigvalsh(A.T @ exact.inverse(C) @ A)
    assert values[values > 1e-12].min() == pytest.approx(slowest, rel=0.03)


@pytest.mark.parametrize("n", [7, 20])
def test_erratum_14_baird_breaks_the_theorem_s_assumption_a2(n):
    """There are p = N + 1 > N weights: A and C have rank N, and p ≤ |S| of Section 2 fails too."""
    task = tasks.baird(n)
    assert task.n_features == task.n_states + 1
    assert np.linalg.matrix_rank(task.moments.A) == np.linalg.matrix_rank(task.moments.C) == n
    hidden = np.linalg.svd(task.features)[2][-1]
    trace = reference.run(task, "gradient_dd", steps=500, alpha=0.01)
    assert hidden @ (trace.w - task.initial_weights) == pytest.approx(0, abs=1e-12)  # never learnt


def test_erratum_15_a_bootstrapped_terminal_makes_boyan_singular():
    """Features sum to 1 and γ = 1, so A 1 = 0; with discount 0 into the terminal A is regular."""
    A = bootstrapped_boyan(5)
    assert np.abs(A @ np.ones(5)).max() < 1e-15
    assert np.linalg.svd(A, compute_uv=False)[-1] < 1e-15
    assert np.linalg.svd(tasks.boyan_chain(5).moments.A, compute_uv=False)[-1] == pytest.approx(0.027, abs=1e-3)


def test_erratum_17_five_anchors_do_not_reach_the_last_state():
    five = tasks.random_walk(20, features="linear", n_features=5)
    six = tasks.random_walk(20, features="linear")
    assert six.n_features == 6
    assert 1 + np.flatnonzero(five.features[:, -1] == 1)[0] == 17  # S_{4p−3}, not S_{4p+1} = S_21
    assert five.features.min() < 0 <= six.features.min()  # five must extrapolate, six interpolate


def test_the_statements_say_what_they_measured():
    verdicts = {statement.where: statement.verdict for statement in check_statements()}
    assert verdicts["5.1 walk, m = 40"] == "holds"
    assert verdicts["5.3 Baird, N = 7, printed ratios"] == "does not hold"
    assert verdicts["5.3 Baird, N = 7, standard ratios"] == "holds"
