"""Intervals: on synthetic scores where the truth is known."""

import numpy as np
import pytest

from gradient_dd.errors import BadRequestError
from gradient_dd.studies import intervals


def test_mean_and_standard_error():
    errors = np.array([[1.0, 2.0, 3.0], [1.0, np.inf, 3.0]])
    mean, sem, diverged = intervals.estimate(errors)
    assert mean.tolist() == [2, np.inf]
    assert sem.tolist() == [pytest.approx(1 / np.sqrt(3)), np.inf]
    assert diverged.tolist() == [0, 1]
    assert np.isnan(intervals.estimate(np.ones((1, 1))).sem).all()


def test_the_standard_error_covers_the_truth():
    """About 95 % of means ± 1.96 standard errors contain it."""
    errors = np.random.default_rng(0).normal(3.0, 1.0, size=(4000, 50))
    mean, sem, _ = intervals.estimate(errors)
    assert np.mean(np.abs(mean - 3.0) < 1.96 * sem) == pytest.approx(0.95, abs=0.015)


def test_a_setting_that_diverged_once_is_not_selected():
    assert intervals.select(np.array([[0.1, np.inf], [0.5, 0.6]])) == 1
    assert intervals.select(np.array([[np.inf, np.inf], [0.9, np.inf], [0.8, np.inf]])) == 2


def test_pairing_finds_what_unpaired_runs_hide():
    """Two learners on the same hard and easy runs, the one better by 0.05 each time."""
    rng = np.random.default_rng(2)
    run = rng.normal(1.0, 0.5, size=50)
    left, right = run, run + 0.05 + rng.normal(0, 0.02, size=50)
    paired = intervals.paired_bootstrap(left, right)
    assert paired.low < -0.05 < paired.high < 0
    shuffled = intervals.paired_bootstrap(left, rng.permutation(right))
    assert shuffled.low < 0 < shuffled.high


def test_the_interval_covers_the_truth():
    rng, hits = np.random.default_rng(3), 0
    for seed in range(400):
        difference = rng.normal(0.3, 1.0, size=40)
        interval = intervals.paired_bootstrap(difference, np.zeros(40), seed=seed, draws=1000)
        hits += interval.low <= 0.3 <= interval.high
    assert hits / 400 == pytest.approx(0.95, abs=0.03)


ERRORS = {
    "normal": lambda rng, runs: 1 + 0.2 * rng.standard_normal(runs),
    "exponential": lambda rng, runs: rng.exponential(1.0, runs),
    "lognormal": lambda rng, runs: np.exp(rng.standard_normal(runs)),
}


@pytest.mark.parametrize("runs", [25, 100])
@pytest.mark.parametrize("kind", ERRORS)
def test_the_interval_of_a_ratio_covers_the_truth_on_skewed_errors(kind, runs):
    """At least 94 % of them do, up to the noise of 1,000 trials (0.7 %). Run with -s to see the numbers."""
    rng, trials, hits = np.random.default_rng(0), 1000, 0
    for _ in range(trials):
        left, right = ERRORS[kind](rng, runs), ERRORS[kind](rng, runs)
        _, low, high = intervals.ratio_interval((left, right), draws=2000)
        hits += low <= 1 <= high
    covered = hits / trials
    print(f"{kind}, {runs} runs: {covered:.1%} of the intervals cover the truth")
    assert 0.93 <= covered <= 0.98


def test_the_percentile_bootstrap_would_cover_too_little():
    """What the studentised interval is for: one learner with lognormal errors, 25 runs."""
    rng, hits = np.random.default_rng(0), np.zeros(2)
    weights = intervals.resamples(25, 0, 1000)
    for _ in range(600):
        errors, ones = np.exp(rng.standard_normal(25) - 0.5), np.ones(25)
        _, low, high = intervals.ratio_interval((errors, ones), draws=1000)
        percentile = np.quantile(weights @ errors, [0.025, 0.975])
        hits += low <= 1 <= high, percentile[0] <= 1 <= percentile[1]
    ours, theirs = hits / 600
    assert theirs < 0.89 < 0.91 < ours


def test_the_interval_of_a_growth_covers_the_truth():
    """The ratio doubles from one task to another, whose runs are independent."""
    rng, hits = np.random.default_rng(5), 0
    draw = lambda: np.exp(0.5 * rng.standard_normal(40))  # noqa: E731
    for _ in range(600):
        interval = intervals.ratio_interval((4 * draw(), draw()), (2 * draw(), draw()), draws=1000)
        hits += interval.low <= 2 <= interval.high
    assert hits / 600 == pytest.approx(0.95, abs=0.025)


def test_a_ratio_is_paired_and_has_no_unit():
    rng = np.random.default_rng(6)
    run = np.exp(rng.standard_normal(50))
    left, right = run * np.exp(0.02 * rng.standard_normal(50)), 1.1 * run
    ratio, low, high = intervals.ratio_interval((left, right))
    assert ratio == pytest.approx(left.mean() / right.mean())
    assert low < ratio < high < 1
    assert high / low < 1.1  # what runs have in common cancels
    assert intervals.ratio_interval((1e60 * left, 1e60 * right)) == pytest.approx((ratio, low, high))
    turned = intervals.ratio_interval((right, left))
    assert turned.estimate == pytest.approx(1 / ratio)
    wider = intervals.ratio_interval((left, right), level=0.99)
    assert wider.low < low < high < wider.high


def test_a_ratio_with_a_diverged_run_is_not_averaged_away():
    fine, broken = np.array([0.1, 0.2]), np.array([0.1, np.inf])
    assert intervals.ratio_interval((fine, broken)) == (0, 0, 0)
    assert intervals.ratio_interval((broken, fine)) == (np.inf, np.inf, np.inf)
    assert np.isnan(intervals.ratio_interval((broken, broken))).all()
    assert intervals.ratio_interval((fine[:1], fine[:1])) == (1, 0, np.inf)  # one run has no interval
    assert intervals.paired_bootstrap(fine[:1], fine[:1]) == (0, -np.inf, np.inf)


def test_the_seed_reaches_the_draw():
    left, right = np.random.default_rng(4).random((2, 20))
    again = [intervals.paired_bootstrap(left, right, seed=seed, draws=200) for seed in (0, 0, 1)]
    assert again[0] == again[1] != again[2]


def test_divergence_is_not_averaged_away():
    interval = intervals.paired_bootstrap(np.array([0.1, np.inf]), np.array([0.2, 0.3]))
    assert interval.estimate == interval.high == np.inf


def test_unpaired_arrays_are_refused():
    with pytest.raises(BadRequestError, match="Paired errors must be"):
        intervals.paired_bootstrap(np.zeros(3), np.zeros(4))
