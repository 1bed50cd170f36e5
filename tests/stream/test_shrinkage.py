"""LSTD that shrinks by itself: against Bayes' rule, at both ends, and whatever the units."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from gradient_dd.stream import shrinkage
from gradient_dd.stream.shrinkage import (
    CLEAR,
    EVENTS,
    FREE,
    OTHERS,
    POWER,
    RIDGE,
    SIGNALS,
    EquationMeans,
    shrunk_solution,
)


def regression(seed=0, k=4, n=400, noise=1.0):
    """Return the means of n regressions with k features, and the true v: without a next state, TD is regression."""
    rng = np.random.default_rng(seed)
    mix, v = rng.standard_normal((k, k)), rng.standard_normal(k)
    z = rng.standard_normal((n, k)) @ mix
    target = z @ v + noise * rng.standard_normal(n)
    C, b = z.T @ z / n, z.T @ target / n
    return EquationMeans(C, b, C.diagonal(), C, b, float(np.mean(target**2)), float(n), float(n)), v


def alone(means, transitions=RIDGE):
    """Return LSTD's solution with the ridge of so many transitions."""
    scale = means.c + OTHERS * means.c.mean()
    return np.linalg.solve(means.A + transitions * np.diag(scale) / means.t, means.b)


def noisy(means, level):
    """Return the same means with noise of the same level, whatever is added."""
    return means._replace(S=0 * means.S, e=0 * means.e, first=level)


def sure(means):
    """Return the same means without noise: all of the solution is then added."""
    return noisy(means, 0.0)._replace(events=1e9)


def test_with_many_data_it_is_lstd():
    means, _ = regression()
    found = shrunk_solution(means._replace(t=1e12, events=1e12))
    assert np.allclose(found.v, np.linalg.solve(means.A, means.b), rtol=1e-9)
    assert found.share == pytest.approx(1.0, abs=1e-6)


def test_the_ridge_is_a_part_of_a_transition_or_one_over_alpha(monkeypatch):
    monkeypatch.setattr(shrinkage, "FREE", 1e9)
    means, _ = regression(n=10)
    for alpha in (None, 0.2):
        transitions = RIDGE if alpha is None else 1 / (alpha * (1 + OTHERS) * means.c.mean())
        found = shrunk_solution(sure(means)._replace(t=10.0), alpha)
        plain = alone(means, transitions)
        # Whatever is added lies along directions of that solution: where shares are all alike, it is that solution.
        assert found.share > 0
        scale = means.c + OTHERS * means.c.mean()
        M = means.A / np.sqrt(np.outer(scale, scale)) + transitions / 10 * np.eye(4)
        _, sigma, W = np.linalg.svd(M)
        along, wanted = W @ (np.sqrt(scale) * found.share * found.v), W @ (np.sqrt(scale) * plain)
        kept = along / wanted
        signals = kept / (1 - kept)
        assert np.allclose(signals / signals[0], (sigma / sigma[0]) ** POWER, rtol=1e-6)


def test_from_one_transition_alpha_is_the_step_size_of_td():
    x = np.array([1.0, -1.0, 1.0])
    ahead, reward, alpha = x - 0.9 * np.array([0.0, 1.0, 1.0]), 2.0, 1e-6
    means = EquationMeans(np.outer(x, ahead), reward * x, x * x, np.zeros((3, 3)), np.zeros(3), 0.0, 1.0, 1e9)
    found = shrunk_solution(means, alpha)
    assert np.allclose(found.v, alpha * reward * x, rtol=1e-4)


def test_with_few_data_it_is_nothing():
    """The noise of b is then as large as b."""
    means, _ = regression()
    found = shrunk_solution(noisy(means, 1e4 * means.first))
    assert found.share == 0.0
    assert found.residual > 0


def test_on_noisy_data_it_is_nearer_than_lstd():
    ours, lstd = [], []
    for seed in range(40):
        means, v = regression(seed, n=30, noise=10.0)
        found = shrunk_solution(means)
        for gaps, w in ((ours, found.share * found.v), (lstd, np.linalg.lstsq(means.A, means.b, rcond=None)[0])):
            gaps.append((w - v) @ means.A @ (w - v))
    assert np.mean(ours) < 0.8 * np.mean(lstd)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_bayes_rule_with_the_likeliest_signal(seed, monkeypatch):
    """What is added is the mean of v, where b = A v + noise of a known level, and v has variance s σ^POWER / σ².

    No direction is held back here.
    """
    monkeypatch.setattr(shrinkage, "FREE", 1e9)
    rng = np.random.default_rng(seed)
    A, noise, t = rng.standard_normal((5, 5)) / np.arange(1, 6), 0.01, 1e9
    b = 0.25 * rng.standard_normal(5)
    found = shrunk_solution(EquationMeans(A, b, np.full(5, 1 / (1 + OTHERS)), 0 * A, 0 * b, noise * t, t, t))
    _, sigma, W = np.linalg.svd(A)
    expected = W.T @ np.diag((sigma / sigma.mean()) ** POWER / sigma**2) @ W
    known = [multivariate_normal(cov=noise * (np.eye(5) + s * A @ expected @ A.T)) for s in SIGNALS[SIGNALS < 1e8]]
    best = SIGNALS[int(np.argmax([one.logpdf(b) for one in known]))]
    assert 0 < best < 100  # so that a 2 in place of the 1 in 1 + s would show
    prior = best * expected
    mean = prior @ A.T @ np.linalg.solve(np.eye(5) + A @ prior @ A.T, b)
    assert np.allclose(found.share * found.v, mean, rtol=1e-6)
    assert found.share == pytest.approx(np.mean(1 - 1 / (1 + best * (sigma / sigma.mean()) ** POWER)))


def test_the_noise_is_that_of_what_is_added():
    """With all of v the noise is what v leaves of the TD errors: none where it explains them."""
    means, v = regression(noise=0.0)
    found = shrunk_solution(means)
    assert found.share > 0.999
    assert np.allclose(found.share * found.v, v, rtol=0.02)
    assert shrunk_solution(means._replace(S=1e3 * means.S)).share < 0.5  # TD errors with v are far larger than without


def test_a_direction_with_a_large_standard_error_is_held_back():
    """The first direction is known: 1, with hardly an error. That of the second is 100, and y is 50 or 1000 there."""
    noise, A, t = 0.01, np.diag([1.0, 0.001]), 1e9
    for y in (50.0, 1000.0):
        b, c = np.array([1.0, 0.001 * y]), np.full(2, 1 / (1 + OTHERS))
        found = shrunk_solution(EquationMeans(A, b, c, 0 * A, 0 * b, noise * t, t, t))
        parts = [found.share * found.v[0], found.share * found.v[1] / y]
        free = parts[0] / (1 - parts[0]) * 0.001**POWER  # the signal of the second direction
        error = np.sqrt(noise) / 0.001
        known = np.sqrt(parts[0] ** 2 * (1 - noise))
        most = max(FREE * known / error, 1 - (CLEAR * error / y) ** 2)
        assert parts[1] == pytest.approx(min(free / (1 + free), most), rel=1e-6)
    assert parts[1] > 0


def test_noise_of_few_events_counts_more():
    means, _ = regression(n=100, noise=5.0)
    few = shrunk_solution(means._replace(events=3.0))
    assert shrunk_solution(means._replace(events=4.0 * EVENTS)).share == shrunk_solution(means).share
    assert few.share < shrunk_solution(means).share
    many = EVENTS * 4 / 3.0
    more = means._replace(S=many * means.S, e=many * means.e, first=many * means.first)
    assert few.share == shrunk_solution(more).share


def test_what_is_not_explained_is_noise():
    """A of 0 explains nothing of b, however large b is."""
    means, _ = regression()
    found = shrunk_solution(noisy(means, 1e-9)._replace(A=np.zeros((4, 4))))
    assert found.share == 0.0


def test_what_is_not_explained_counts_for_each_feature(monkeypatch):
    """A explains the first of two features alone: half of the square of the second is the level of the noise."""
    monkeypatch.setattr(shrinkage, "FREE", 1e12)
    A, t, unseen = np.diag([1.0, 0.0]), 1e9, 0.3
    means = EquationMeans(A, np.array([1.0, unseen]), np.full(2, 1 / (1 + OTHERS)), 0 * A, np.zeros(2), 0.0, t, t)
    found = shrunk_solution(means)
    sigma = np.array([1 + RIDGE / t, RIDGE / t])
    signals = SIGNALS[:, None] * (sigma / sigma.mean()) ** POWER
    spread = unseen**2 / 2 * (1 + signals)
    best = int(np.argmax(-(np.log(spread) + np.array([1.0, unseen**2]) / spread).sum(axis=1)))
    assert found.share == pytest.approx((signals / (1 + signals)).mean(axis=1)[best])


def test_the_residual_is_the_length_of_what_is_left_with_its_noise():
    means, _ = regression(n=50, noise=3.0)
    v, share, residual = shrunk_solution(means)
    gap = means.b - share * means.A @ v
    level = means.first - 2 * share * means.e @ v + share**2 * v @ means.S @ v
    scale = means.c + OTHERS * means.c.mean()
    assert residual == pytest.approx(np.sqrt(np.sum(gap**2 / scale) + 4 * level / 50))


def test_the_unit_of_all_features_does_not_matter():
    means, _ = regression(seed=3, n=30, noise=3.0)
    plain = shrunk_solution(means)
    A, b, c, S, e, *rest = means
    scaled = shrunk_solution(EquationMeans(1e12 * A, 1e6 * b, 1e12 * c, 1e12 * S, 1e6 * e, *rest))
    assert np.allclose(plain.v, 1e6 * scaled.v)
    assert plain.share == pytest.approx(scaled.share)
    assert plain.residual == pytest.approx(scaled.residual)


def test_features_of_different_units_are_solved_for():
    means, v = regression(n=4000, noise=0.1)
    unit = np.array([1e-3, 1.0, 1e2, 1e4])
    found = shrunk_solution(
        sure(means)._replace(A=np.outer(unit, unit) * means.A, b=unit * means.b, c=unit**2 * means.c, t=1e15)
    )
    assert np.allclose(unit * found.v, v, rtol=0.02)


def test_a_feature_that_was_hardly_seen_has_a_ridge_of_its_neighbours():
    """Its mean square so far is 10⁻⁸ of theirs; where it is seen at last, its weight has not run away."""
    means, _ = regression(k=2, n=10)
    unit = np.array([1.0, 1e-4])
    rare = sure(means)._replace(A=np.outer(unit, unit) * means.A, b=unit * means.b, c=unit**2 * means.c)
    assert abs(shrunk_solution(rare).v[1]) < 1.0


def test_features_that_are_never_seen_or_always_equal():
    means, _ = regression(k=3)
    # The fourth feature is the third, the fifth is 0.
    copy = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]])
    plain = shrunk_solution(sure(means)._replace(t=1e6))
    plain = plain.share * plain.v
    more = sure(means)._replace(A=copy @ means.A @ copy.T, b=copy @ means.b, c=copy @ means.c, t=1e6)
    more = more._replace(S=np.zeros((5, 5)), e=np.zeros(5))
    found = shrunk_solution(more)
    found = found.share * found.v
    assert found[4] == 0.0
    assert np.allclose(copy.T @ found, plain, rtol=1e-5)
    assert found[2] == pytest.approx(found[3])  # the ridge decides that: with t = 1e12 it is below rounding


def test_nothing_seen_is_nothing_learnt():
    nothing = np.zeros((3, 3))
    found = shrunk_solution(EquationMeans(nothing, nothing[0], nothing[0], nothing, nothing[0], 0.0, 1.0, 0.0))
    assert not found.v.any()
    assert (found.share, found.residual) == (0.0, 0.0)
