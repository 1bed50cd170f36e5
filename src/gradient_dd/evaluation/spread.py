"""What makes the interval of a value: weights that are not shrunk, and copies of them from bootstrap samples."""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation.choice import Candidate
from gradient_dd.evaluation.moments import GroupSums
from gradient_dd.evaluation.portfolio import Portfolio
from gradient_dd.studies.intervals import Bounds, poisson_resamples, student_factor

BOOTSTRAPS = 200  # of the LSTD solution


class Spread(NamedTuple):
    """What makes an interval: weights that are not shrunk towards anything, and copies of them.

    anchor  (p,) where A is small the plain LSTD solution, else the weights themselves
    copies  (copies, p) the same from bootstrap samples;  starts  (copies, p) the mean first features in them
    drift   (p,) how far the weights moved from one window of the average to the next; 0 for LSTD
    factor  on the root mean square of the deviations, or 0 where there are enough copies for their own quantile
    """

    anchor: Array
    copies: Array
    starts: Array
    drift: Array
    factor: float
    confidence: float

    def around(self, values: Array, anchors: Array, copies: Array, drifts: Array) -> Bounds:
        """Return the interval about anchors (n,) with copies (n, copies), made wide enough to hold the values too."""
        away = np.abs(copies - anchors[:, None])
        if self.factor:
            half = self.factor * np.sqrt((away**2).mean(axis=1))
        else:
            half = np.quantile(away, self.confidence, axis=1)
        half = half + np.abs(drifts)
        return Bounds(np.minimum(values, anchors - half), np.maximum(values, anchors + half))

    def of_mean(self, x: Array, w: Array, samples: Array | None = None) -> Bounds:
        """Return the interval of x·w for one feature vector (p,), the mean over some states, say.

        `samples` (copies, p) are the vectors in the place of x in the bootstrap samples, where they differ.
        """
        value, anchor, drift = (np.array([x @ one]) for one in (w, self.anchor, self.drift))
        copies = self.copies @ x if samples is None else (samples * self.copies).sum(axis=1)
        low, high = self.around(value, anchor, copies[None], drift)
        return Bounds(float(low[0]), float(high[0]))


def spread_of(
    chosen: Candidate,
    lstd: Candidate | None,
    portfolio: Portfolio,
    moved: tuple[Array, Array] | None,
    sums: GroupSums,
    confidence: float,
) -> Spread:
    """Return the interval's makings: LSTD and its bootstrap where it was solved, else the copies of the chosen lane.

    A learner that stopped early, or a ridge, shrinks values and their spread: the plain solution, `lstd`, does not.
    """
    nothing = np.zeros(len(chosen.w))
    if lstd is not None and sums.small:
        weights = poisson_resamples(len(sums.rows), BOOTSTRAPS, [portfolio.seed, 1])
        copies = sums.solutions(weights, lstd.ridge or 0.0, portfolio.initial_w).T
        return Spread(lstd.w, copies, sums.mean_starts(weights), nothing, 0.0, confidence)
    factor = student_factor(confidence, portfolio.copies)
    starts = sums.mean_starts(portfolio.weights)
    if lstd is not None:
        return Spread(lstd.w, lstd.copies, starts, nothing, factor, confidence)
    drift = nothing if moved is None else moved[1] - moved[0]
    return Spread(chosen.w, chosen.copies, starts, drift, factor, confidence)
