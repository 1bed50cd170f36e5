"""Least squares that shrink by themselves: against Bayes' rule, at both ends, and whatever the units."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from gradient_dd.stream.shrinkage import SIZES, EquationMeans, directions_of, shrunk_solution


def regression(seed=0, k=4, n=400, noise=1.0):
    """Return the means of n regressions with k features, and the true v: without a next state, TD is regression."""
    rng = np.random.default_rng(seed)
    z, v = rng.standard_normal((n, k)) @ rng.standard_normal((k, k)), rng.standard_normal(k)
    target = z @ v + noise * rng.standard_normal(n)
    C, b, square = z.T @ z / n, z.T @ target / n, float(np.mean(target**2))
    return EquationMeans(C, b, C, C, b, square, n, n), v


def test_with_many_data_it_is_lstd():
    means, _ = regression()
    found = shrunk_solution(means._replace(t=1e9, events=1e9))
    assert np.allclose(found.v, np.linalg.solve(means.A, means.b), rtol=1e-6)
    assert found.kept == pytest.approx(1.0, abs=1e-6)


def test_with_few_data_it_is_nothing():
    """The noise of b is then as large as b."""
    means, _ = regression()
    found = shrunk_solution(means._replace(square=1e4 * means.square, t=20))
    assert not found.v.any()
    assert found.kept == 0.0
    assert found.residual > 0


def test_on_noisy_data_it_is_nearer_than_lstd():
    ours, lstd = [], []
    for seed in range(40):
        means, v = regression(seed, n=20, noise=10.0)
        for gaps, w in ((ours, shrunk_solution(means).v), (lstd, np.linalg.lstsq(means.A, means.b, rcond=None)[0])):
            gaps.append((w - v) @ means.C @ (w - v))
    assert np.mean(ours) < 0.8 * np.mean(lstd)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_bayes_rule_with_the_likeliest_size(seed):
    """C is 1: b = A v + noise of a known level, and v ~ N(0, τ² √(mean λ / λ_i)) in the directions of AᵀA."""
    rng = np.random.default_rng(seed)
    A, level = rng.standard_normal((5, 5)) / np.arange(1, 6), 0.01
    b = A @ rng.standard_normal(5) + np.sqrt(level) * rng.standard_normal(5)
    t, nothing = 1e6, np.zeros((5, 5))  # with D and h of 0 the noise does not depend on v
    found = shrunk_solution(EquationMeans(A, b, np.eye(5), nothing, nothing[0], level * t, t, t))
    squares, V = np.linalg.eigh(A.T @ A)
    expected = V @ np.diag(np.sqrt(squares.mean() / squares)) @ V.T
    logs = [
        multivariate_normal(cov=level * (np.eye(5) + size / squares.mean() * A @ expected @ A.T)).logpdf(b)
        for size in SIZES[SIZES < 1e8]
    ]
    prior = SIZES[int(np.argmax(logs))] / squares.mean() * expected
    assert np.allclose(found.v, prior @ A.T @ np.linalg.solve(np.eye(5) + A @ prior @ A.T, b), rtol=1e-4)
    assert np.allclose(found.inverse, np.eye(5) / (level * t), rtol=1e-4)


def test_the_noise_is_that_of_the_solution():
    """Transitions whose rewards v explains have no noise, so that few of them are enough."""
    means, v = regression(noise=0.0)
    assert np.allclose(shrunk_solution(means).v, v, rtol=1e-3)
    level = means.noise(np.array([np.zeros(4), v]), np.zeros(2), 4)
    assert level[0] == pytest.approx(means.square / means.t)
    assert level[1] == pytest.approx(means.square / means.t**3)  # the least that t transitions can show
    assert means.noise(v[None], np.array([300.0]), 4) == pytest.approx(level[1:])
    twice = means._replace(events=2.0).noise(np.zeros((1, 4)), np.zeros(1), 4)
    assert twice[0] == pytest.approx(2 * level[0])


def test_the_noise_is_the_mean_square_of_what_is_left():
    rng = np.random.default_rng(1)
    z, target, v = rng.standard_normal((50, 3)), rng.standard_normal(50), rng.standard_normal(3)
    C, b = z.T @ z / 50, z.T @ target / 50
    means = EquationMeans(C, b, C, C, b, float(np.mean(target**2)), 50, 50)
    assert means.noise(v[None], np.zeros(1), 3)[0] == pytest.approx(np.mean((target - z @ v) ** 2) / 50)


def test_what_has_fitted_too_much_is_not_believed():
    """12 transitions, 8 features: all of b can be explained, but by a quarter of t numbers at most."""
    means, _ = regression(k=8, n=12)
    assert shrunk_solution(means).kept * 8 <= 3
    rising = [means.noise(np.zeros((1, 8)), np.array([n]), 8)[0] for n in (0.0, 3.0, 9.0)]
    assert rising == pytest.approx([rising[0], rising[0] * 12 / 9, rising[0] * 4])


def test_the_units_of_features_do_not_matter():
    means, _ = regression(seed=3, n=30, noise=3.0)
    unit = np.array([1e-6, 1.0, 1e3, 1e8])
    A, b, C, D, h, *rest = means
    square = np.outer(unit, unit)
    plain, scaled = (
        shrunk_solution(means),
        shrunk_solution(EquationMeans(square * A, unit * b, square * C, square * D, unit * h, *rest)),
    )
    assert np.allclose(plain.v, unit * scaled.v, rtol=1e-6)
    assert plain.kept == pytest.approx(scaled.kept)
    assert plain.residual == pytest.approx(scaled.residual)


def test_features_that_are_never_seen_or_always_equal():
    means, _ = regression(k=3)
    A, b, C, D, h, square, *_ = means
    # The fourth feature is the third, the fifth is 0.
    copy = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]])
    plain = shrunk_solution(EquationMeans(A, b, C, D, h, square, 1e9, 1e9)).v
    more = [copy @ A @ copy.T, copy @ b, copy @ C @ copy.T, copy @ D @ copy.T, copy @ h]
    found = shrunk_solution(EquationMeans(*more, square, 1e9, 1e9)).v
    assert found[4] == 0.0
    assert np.allclose(copy.T @ found, plain, rtol=1e-5)
    assert found[2] == pytest.approx(found[3])


def test_directions():
    means, _ = regression(k=3)
    c, root = directions_of(means.C)
    assert np.allclose(root.T @ means.C @ root, np.eye(3))
    assert c.sum() == pytest.approx(3)  # the diagonal of C is 1 in the units of the features


def test_nothing_seen_is_nothing_learnt():
    nothing = np.zeros((3, 3))
    found = shrunk_solution(EquationMeans(nothing, nothing[0], nothing, nothing, nothing[0], 0.0, 1.0, 0.0))
    assert not found.v.any()
    assert not found.inverse.any()
    assert (found.kept, found.residual) == (0.0, 0.0)
    means, _ = regression(k=3)
    assert not shrunk_solution(means._replace(A=nothing)).v.any()
