"""The convergence theorem, run: i.i.d. transitions, step sizes that obey (A0), any κ, ten million updates.

With α_n ≈ c/n and c times the slowest rate above ½, w − w* is asymptotically normal with covariance α_n Σ,

    (K + I/2c) Σ + Σ (K + I/2c)ᵀ + Q = 0,     K = [[−C, −A], [Aᵀ, 0]],     Q = [[E[ρ²δ²x xᵀ], 0], [0, 0]]

δ being that of w*. κ is not in it: it changes w by the order of α_n² alone.
"""

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov

from gradient_dd import LEARNERS, tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.schedules import tapered
from gradient_dd.theory import check_assumptions
from gradient_dd.theory.effective import flow_rate

KAPPAS, ALPHA, N0 = (0.0, 1.0, 4.0), 0.005, 40_000
SETTINGS = [LEARNERS["gradient_dd"].setting(alpha=ALPHA, kappa=kappa) for kappa in KAPPAS]
TAPER = tapered(N0, per="step")
POINTS = np.logspace(5, 7, 21).astype(int)  # two decades, ten points each, then the last
RUNS = 2


def predicted_square(task):
    """Return tr Σ of w: E‖w_n − w*‖² / α_n."""
    (A, _, C), p, w = task.moments, task.n_features, task.fixed_point
    row, next_row, reward, discount, rho, _ = task.transitions
    X = task.row_features.toarray()
    delta = reward + discount * (X[next_row] @ w) - X[row] @ w
    likely = task.visits[row] * task.behaviour[task.outcomes.state, task.outcomes.action] * task.outcomes.probability
    Q, zero = np.zeros((2 * p, 2 * p)), np.zeros((p, p))
    Q[:p, :p] = (X[row].T * (likely * (rho * delta) ** 2)) @ X[row]
    K = np.block([[-C, -A], [A.T, zero]]) + np.eye(2 * p) / (2 * ALPHA * N0)
    return np.trace(solve_continuous_lyapunov(K, -Q)[p:, p:])


def squares(task, run):
    """Return ‖w_n − w*‖² / α_n, (points, settings)."""
    lanes = LaneRun(task, SETTINGS, Horizon(steps=10**7, every=10**6), TAPER, "iid", run=run)
    found = []
    for n in POINTS:
        lanes.advance(int(n) - lanes.steps)
        found.append(((lanes.weights()[0] - task.fixed_point) ** 2).sum(axis=1) / (ALPHA * TAPER.factor(int(n))))
    return np.array(found)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_w_approaches_the_fixed_point_like_the_root_of_alpha(seed):
    """In both decades the mean square is within a factor of 2 of α_n tr Σ; over them α_n falls 30-fold and more."""
    task = tasks.random_mdp(n_states=5, n_features=3, seed=seed)
    assert all(assumption.holds for assumption in check_assumptions(task, SETTINGS[-1], TAPER, "iid"))
    assert ALPHA * N0 * flow_rate(task, task.moments.A) > 1
    mean = np.mean([squares(task, run) for run in range(RUNS)], axis=0) / predicted_square(task)
    for decade in (mean[:10], mean[10:]):
        assert (decade.mean(axis=0) > 0.5).all()
        assert (decade.mean(axis=0) < 2).all()
    assert TAPER.factor(10**5) / TAPER.factor(10**7) > 30
    assert np.allclose(mean[10:], mean[10:, :1], rtol=0.1)  # κ hardly matters
