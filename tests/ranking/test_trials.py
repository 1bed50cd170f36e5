"""The trials beside the standings: PGTD2 with two samples, and the projected error of TDRC's comparison."""

import numpy as np
import pytest

from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.reference import run
from gradient_dd.tasks import build
from trials.published_orderings import projected_errors
from trials.two_samples import mean_error_of_pgtd2


def test_pgtd2_with_its_own_sample_again_is_pgtd2():
    tasks, runs = [build("collision", seed=1), build("collision", seed=2)], [1, 2]
    settings, horizon = np.array([[0.1, 1.0], [0.02, 0.125]]), Horizon(steps=300, every=10)
    ours = mean_error_of_pgtd2(tasks, runs, settings, horizon, reuse=True)
    for lane, (alpha, zeta) in enumerate(settings):
        for place, (one, number) in enumerate(zip(tasks, runs, strict=True)):
            reference = run(one, "pgtd2", steps=300, every=10, run=number, alpha=alpha, zeta=zeta)
            assert ours[lane, place] == pytest.approx(reference.errors.mean(), rel=1e-10)
    other = mean_error_of_pgtd2(tasks, runs, settings, horizon)
    assert not np.isclose(other, ours).any()


def test_the_projected_error_is_that_of_the_projected_bellman_equation():
    one = build("five_state_walk", features="dependent")
    w = np.random.default_rng(0).standard_normal((3, one.n_features))
    X, d = one.features, one.visits
    project = X @ np.linalg.solve(X.T @ (d[:, None] * X), X.T * d)
    for weights, error in zip(w, projected_errors(one, w), strict=True):
        values = X @ weights
        backed_up = one.r + one.P @ (one.discount[one.states] * values)
        assert error == pytest.approx(np.sqrt(d @ (values - project @ backed_up) ** 2))
    assert projected_errors(one, one.fixed_point[None]) == pytest.approx(0, abs=1e-7)
    assert np.isinf(projected_errors(one, np.full((1, one.n_features), np.inf)))
