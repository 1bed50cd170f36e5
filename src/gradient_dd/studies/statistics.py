"""Fair statistics: functions of arrays whose shapes stand in the docstrings. They run nothing.

Errors are infinite where a lane diverged. Nothing here drops or replaces such a run: a mean that contains one is
infinite, a setting that diverged once is never selected over one that did not, and the runs are counted.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.errors import must


class Estimate(NamedTuple):
    """A mean with its standard error, and how many of the runs diverged; each (settings,)."""

    mean: Array
    sem: Array
    diverged: NDArray[np.int64]


class Interval(NamedTuple):
    """A difference with an interval about it."""

    difference: float
    low: float
    high: float


class HeldOut(NamedTuple):
    """The setting selected, its error on the runs it was selected on, and on fresh ones."""

    selected: int
    on_selection: float
    on_fresh: float


def estimate(errors: Array) -> Estimate:
    """Return mean and standard error over runs; errors: (settings, runs). One run has no standard error: nan."""
    diverged = np.count_nonzero(~np.isfinite(errors), axis=1)
    runs = errors.shape[1]
    mean = errors.mean(axis=1)
    sem = np.full(len(errors), np.nan)
    whole = diverged == 0
    if runs > 1:
        sem[whole] = errors[whole].std(axis=1, ddof=1) / np.sqrt(runs)
        sem[~whole] = np.inf
    return Estimate(mean, sem, diverged)


def select(errors: Array) -> int:
    """Return the setting with the smallest mean; errors: (settings, runs). Ties go to the first.

    Where every setting diverged in some run, the one that diverged least is returned, and among those the one that is
    best on its other runs: something must be shown, and its infinite mean says what it is.
    """
    mean, _, diverged = estimate(errors)
    if np.isfinite(mean).any():
        return int(np.argmin(np.where(np.isfinite(mean), mean, np.inf)))  # a mean of runs not done yet is nan
    finite = np.where(np.isfinite(errors), errors, 0.0).sum(axis=1) / np.maximum(1, errors.shape[1] - diverged)
    return int(np.lexsort((finite, diverged))[0])


def paired_bootstrap(left: Array, right: Array, seed: int = 0, draws: int = 10_000, level: float = 0.95) -> Interval:
    """Return mean(left − right) with a percentile bootstrap interval; left, right: (runs,) of the same runs.

    Runs are drawn together, so what the two have in common cancels. With a diverged run the difference is infinite or
    undefined, and so are the bounds.
    """
    if left.shape != right.shape or left.ndim != 1 or not len(left):
        raise must("Paired errors", "be (runs,) of the same runs", (left.shape, right.shape))
    with np.errstate(invalid="ignore"):
        differences = left - right
        mean = float(differences.mean())
    if not np.isfinite(differences).all():
        return Interval(mean, mean, mean)
    rng = np.random.default_rng(seed)
    picked = rng.integers(0, len(differences), size=(draws, len(differences)))
    means = differences[picked].mean(axis=1)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(mean, float(low), float(high))


def held_out(selection: Array, fresh: Array) -> HeldOut:
    """Select on one set of runs, evaluate on another; selection: (settings, runs), fresh: (settings, other runs).

    The smallest of many noisy means is too small: the winner owes part of its victory to luck. Its error on runs it was
    not selected on is unbiased.
    """
    winner = select(selection)
    return HeldOut(winner, float(selection[winner].mean()), float(fresh[winner].mean()))


def sensitivity(errors: Array, parameter: Array) -> tuple[Array, Array]:
    """Return the values of a parameter, ascending, and for each the smallest mean over all else.

    errors: (settings, runs); parameter: (settings,) the value each setting has.
    """
    values = np.unique(parameter)
    mean = estimate(errors).mean
    return values, np.array([mean[parameter == value].min() for value in values])
