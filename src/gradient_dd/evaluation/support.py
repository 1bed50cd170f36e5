"""Whether there are data near a point, and how wide an interval must be where there are none.

    leverage of x:  xᵀ (Σ x xᵀ)⁻¹ x          one over the number of rows that say something about x

A feature row with a part that no row of the data has says nothing at all: it has no value. Where the leverage is above
1/2, fewer than two rows say something: the interval is as wide as the rewards allow.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans
from gradient_dd.stream.features import Rows
from gradient_dd.studies.intervals import Bounds

UNUSED = 1e-9  # of the largest eigenvalue: directions below it were never seen
OUTSIDE = 1e-6  # share of |x|² that may be in such directions
ALONE = 0.5  # leverage above which a point has no data nearby


class Support(NamedTuple):
    """What was seen of the features, and what a value can be at all.

    squares     (p,) Σ x² of each feature;  directions (p, k)  the eigenvectors of Σ x xᵀ;  sizes (k,) its eigenvalues
                both are empty where p is large, and each feature then counts alone
    low, high   the smallest and the largest value that the rewards of the data allow
    """

    squares: Array
    directions: Array
    sizes: Array
    low: float
    high: float

    def leverage(self, rows: Rows) -> Array:
        """Return the leverage of each row, (n,); infinite where a part of the row was never seen, or the row is 0."""
        square = (rows.values**2).sum(axis=1)
        if self.sizes.size:
            along = rows.dense(len(self.squares)) @ self.directions
            outside = square - (along**2).sum(axis=1)
            found = (along**2 / self.sizes).sum(axis=1)
        else:
            seen = self.squares if rows.indices is None else self.squares[rows.indices]
            part = rows.values**2
            outside = np.where(seen > 0, 0.0, part).sum(axis=1)
            found = (part**2 / np.where(seen > 0, seen, 1.0)).sum(axis=1) / np.maximum(square, 1e-300)
        return np.where((square == 0) | (outside > OUTSIDE * square), np.inf, found)

    def known(self, rows: Rows) -> Booleans:
        """Return which rows have a value at all, (n,)."""
        return np.isfinite(self.leverage(rows))

    def widened(self, rows: Rows, bounds: Bounds) -> Bounds:
        """Return intervals, (n,) each, as wide as the rewards allow where a row has no data nearby."""
        leverage = self.leverage(rows)
        alone, unknown = leverage > ALONE, np.isinf(leverage)
        low, high = np.minimum(bounds.low, self.low), np.maximum(bounds.high, self.high)
        low, high = np.where(alone, low, bounds.low), np.where(alone, high, bounds.high)
        return Bounds(np.where(unknown, self.low, low), np.where(unknown, self.high, high))


def support_of(squares: Array, C: Array, reachable: Bounds) -> Support:
    """Return the support of data with Σ x² and, where p is small, Σ x xᵀ (p, p); else C is empty."""
    directions, sizes = np.empty((len(squares), 0)), np.empty(0)
    if C.size:
        sizes, directions = np.linalg.eigh(C)
        kept = sizes > UNUSED * max(float(sizes[-1]), 1e-300)
        sizes, directions = sizes[kept], directions[:, kept]
    return Support(squares, directions, sizes, float(reachable.low), float(reachable.high))


def reachable_values(rewards: Bounds, discount: float, longest: int) -> Bounds:
    """Return the smallest and the largest value that rewards within bounds allow.

    discount  the largest one;  longest  steps of an episode, which count where nothing is discounted
    """
    steps = 1 / (1 - discount) if discount < 1 - 1e-9 else float(max(1, longest))
    return Bounds(min(rewards.low, rewards.low * steps), max(rewards.high, rewards.high * steps))
