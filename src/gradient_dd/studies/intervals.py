"""Estimates with intervals: all standard errors, quantiles and resamples of the project.

The functions are pure. The error of a diverged run is infinite, and no function drops or replaces the run: a mean
with a diverged run is infinite, a setting that diverged in any run is never selected over a setting that never
diverged, and diverged runs are counted.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from gradient_dd.arrays import Array, Integers
from gradient_dd.errors import bad_request

DRAWS = 10_000  # bootstrap resamples
LEVEL = 0.95
TAILS = (0.025, 0.975)  # the quantiles that bound a percentile interval
EXPLODED = 10.0  # a run above this multiple of the initial error counts in `exploded_runs`, finite or not


class Estimate(NamedTuple):
    """A mean, its standard error, and the number of diverged runs, each of shape (settings,)."""

    mean: Array
    sem: Array
    diverged: NDArray[np.int64]


class Interval(NamedTuple):
    """A difference or a ratio with its interval."""

    estimate: float
    low: float
    high: float


class Bounds(NamedTuple):
    """The bounds of an interval; their shape is the shape of the estimate."""

    low: Any
    high: Any


def estimate(errors: Array) -> Estimate:
    """Return means and standard errors over runs; errors: (settings, runs). With one run, the standard error is nan."""
    diverged = np.count_nonzero(~np.isfinite(errors), axis=1)
    runs = errors.shape[1]
    mean = errors.mean(axis=1)
    sem = np.full(len(errors), np.nan)
    whole = diverged == 0
    if runs > 1:
        sem[whole] = errors[whole].std(axis=1, ddof=1) / np.sqrt(runs)
        sem[~whole] = np.inf
    return Estimate(mean, sem, diverged)


def has_exploded(errors: Array, first: float | Array) -> NDArray[np.bool_]:
    """Return whether each error is infinite or far above the initial error; nan gives False."""
    return ~(errors <= EXPLODED * first) & ~np.isnan(errors)


def select(errors: Array) -> int:
    """Return the setting with the smallest mean; errors: (settings, runs). Ties go to the first setting.

    If every setting diverged in some run, return the setting with the fewest diverged runs, with ties broken by the
    other runs; its mean is infinite.
    """
    return int(order(errors)[0])


def order(errors: Array) -> NDArray[np.int64]:
    """Return the indices of all settings, best first, in the order of `select`; errors: (settings, runs)."""
    diverged = np.count_nonzero(~np.isfinite(errors), axis=1)  # an unfinished run (nan) counts as diverged
    finite = np.where(np.isfinite(errors), errors, 0.0).sum(axis=1)  # breaks ties: equally many finite runs
    return np.lexsort((finite, diverged))


def paired_bootstrap(left: Array, right: Array, seed: int = 0, draws: int = DRAWS, level: float = LEVEL) -> Interval:
    """Return mean(left − right) with a studentised bootstrap interval; left, right: (runs,) of the same runs.

    Both errors of a run are drawn together, so common variation cancels. With a diverged run the difference and its
    bounds are infinite or undefined. A single run has infinite bounds.
    """
    check_pair(left, right)
    with np.errstate(invalid="ignore"):
        differences = left - right
        mean = float(differences.mean())
    if not np.isfinite(differences).all():
        return Interval(mean, mean, mean)
    if len(differences) < 2:
        return Interval(mean, -np.inf, np.inf)
    moments = np.stack([differences, differences**2], axis=1)
    value, error = mean_and_error(moments.mean(axis=0), len(differences))
    again, again_error = mean_and_error(resamples(len(differences), seed, draws) @ moments, len(differences))
    below, above = reach(again - value, again_error, level)
    return Interval(mean, float(value - below * error), float(value + above * error))


def mean_and_error(moments: Array, runs: int) -> tuple[Array, Array]:
    """Return the mean and its standard error from the first two moments, (…, 2)."""
    mean = moments[..., 0]
    return mean, np.sqrt(np.maximum(moments[..., 1] - mean**2, 0) / (runs - 1))


def ratio_interval(*pairs: tuple[Array, Array], level: float = LEVEL, seed: int = 0, draws: int = DRAWS) -> Interval:
    """Return mean(left)/mean(right) of the first pair, divided by the ratios of the other pairs, with an interval.

    Each pair has the positive errors of two learners on the same runs, (runs,) each; pairs are independent. One
    pair gives a ratio of two learners; two pairs give the growth factor of the ratio from the second pair to the first.

    The bootstrap is studentised on the logarithm, where ratios are nearly symmetric. Each bound is the wider bound of
    the symmetric and the equal-tailed interval, because each alone undercovers on skewed errors. With a
    diverged run the ratio is 0, infinite or undefined, and so are the bounds.
    """
    for left, right in pairs:
        check_pair(left, right)
    with np.errstate(all="ignore"):
        logs = [np.log(left.mean()) - np.log(right.mean()) for left, right in pairs]
        value = float(logs[0] - sum(logs[1:]))
    ratio = float(np.exp(value))
    if not all(np.isfinite(one).all() and (one > 0).all() for pair in pairs for one in pair):
        return Interval(ratio, ratio, ratio)
    if min(len(left) for left, _ in pairs) < 2:
        return Interval(ratio, 0.0, np.inf)
    variance, again, again_variance = np.zeros(()), np.zeros(draws), np.zeros(draws)
    for place, (left, right) in enumerate(pairs):
        runs, sign = len(left), 1 if place == 0 else -1
        left, right = left / left.mean(), right / right.mean()  # so that squares stay finite
        moments = np.stack([left, right, left**2, right**2, left * right], axis=1)
        variance = variance + log_ratio(moments.mean(axis=0), runs)[1]
        one, one_variance = log_ratio(resamples(runs, seed + place, draws) @ moments, runs)
        again += sign * one
        again_variance += one_variance
    below, above = reach(again, np.sqrt(again_variance), level)
    error = float(np.sqrt(variance))
    return Interval(ratio, float(np.exp(value - below * error)), float(np.exp(value + above * error)))


def log_ratio(moments: Array, runs: int) -> tuple[Array, Array]:
    """Return log(E left / E right) and its variance by the delta method; moments (…, 5): l, r, l², r², lr."""
    left, right, left2, right2, both = np.moveaxis(moments, -1, 0)
    spread = left2 / left**2 + right2 / right**2 - 2 * both / (left * right)
    return np.log(left / right), np.maximum(spread, 0) / (runs - 1)


def reach(gaps: Array, errors: Array, level: float) -> tuple[float, float]:
    """Return the lower and upper half-widths of an interval in standard errors; gaps, errors: (draws,) of resamples."""
    with np.errstate(divide="ignore"):
        scores = np.divide(gaps, errors, out=np.zeros_like(gaps), where=(errors > 0) | (gaps != 0))
    tail = (1 - level) / 2
    symmetric = np.quantile(np.abs(scores), level, method="higher")
    low, high = (np.quantile(scores, share, method="higher") for share in (tail, 1 - tail))
    return float(max(symmetric, high)), float(max(symmetric, -low))


def percentile_interval(
    values: Array, statistic: Callable[[Array], Array], draws: int, tails: tuple[float, float] = TAILS
) -> Bounds:
    """Return the percentile bootstrap interval of a statistic of values (n,).

    `statistic` takes resamples (draws, n) and returns one number per resample, (draws,).
    """
    drawn = values[np.random.default_rng(0).integers(len(values), size=(draws, len(values)))]
    return Bounds(*np.quantile(statistic(drawn), tails).tolist())


@lru_cache(maxsize=8)
def resamples(runs: int, seed: int, draws: int) -> Array:
    """Return the weight of each run in each bootstrap resample, (draws, runs); rows sum to 1."""
    weights = resample_counts(np.random.default_rng(seed), runs, draws) / runs
    weights.setflags(write=False)
    return weights


def resample_counts(rng: np.random.Generator, units: int, draws: int) -> Integers:
    """Return how often each unit occurs in each bootstrap resample, (draws, units)."""
    return rng.multinomial(units, np.full(units, 1 / units), size=draws)


def student_factor(confidence: float, freedom: float) -> float:
    """Return the half-width of a two-sided interval of Student's t, in standard errors."""
    return float(stdtrit(freedom, 0.5 + confidence / 2))


def error_of_groups(pulls: Array, groups: int) -> float:
    """Return the standard error of an estimate from the influences of its groups, which sum to 0."""
    return float(np.sqrt(groups / max(1, groups - 1) * (pulls**2).sum()))


def check_pair(left: Array, right: Array) -> None:
    """Raise unless two arrays are errors of the same runs."""
    if left.shape != right.shape or left.ndim != 1 or not len(left):
        raise bad_request("Paired errors", "be (runs,) of the same runs", (left.shape, right.shape))
