"""Whether there are data near a point, and how wide an interval must be where there are none.

    leverage of x:  xᵀ (Σ x xᵀ)⁻¹ x          one over the number of rows that say something about x

A state with a part that no row of the data has says nothing at all: it has no value. Where the leverage of a state and
an action is above 1/2, fewer than two rows say something: the interval is as wide as the rewards allow.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Booleans
from gradient_dd.evaluation.behaviour import cells
from gradient_dd.evaluation.design import BLOCKS, Design, Taken
from gradient_dd.studies.intervals import Bounds

UNUSED = 1e-9  # of the largest eigenvalue: directions below it were never seen
OUTSIDE = 1e-6  # share of |x|² that may be in such directions
ALONE = 0.5  # leverage above which a point has no data nearby
MOST = 1000  # features of states and actions, beyond which the features of states alone are looked at


class Seen:
    """The directions of feature rows that were seen, from Σ x xᵀ (p, p)."""

    def __init__(self, C: Array) -> None:
        sizes, directions = np.linalg.eigh(C)
        kept = sizes > UNUSED * max(float(sizes[-1]), 1e-300)
        self.sizes, self.directions = sizes[kept], directions[:, kept]

    def leverage(self, X: Array) -> Array:
        """Return the leverage of each row, (n,); infinite where a part of the row was never seen, or the row is 0."""
        square, along = (X**2).sum(axis=1), X @ self.directions
        found = (along**2 / self.sizes).sum(axis=1)
        outside = square - (along**2).sum(axis=1)
        return np.where((square == 0) | (outside > OUTSIDE * square), np.inf, found)


class Support:
    """What was seen of states and actions, and what a value can be at all.

    counts   (p, actions) rows of each cell, of a table;  bounds  the smallest and the largest possible value
    """

    def __init__(self, design: Design, taken: Sequence[Taken], bounds: Bounds) -> None:
        self.design, self.bounds = design, bounds
        self.table = not isinstance(taken[0].X, np.ndarray)
        if self.table:
            self.counts = np.zeros((design.p, design.actions))
            for one in taken:
                assert one.action is not None
                np.add.at(self.counts, (cells(one.X), one.action), 1.0)
            return
        self.states = Seen(np.sum([one.X.T @ one.X for one in taken], axis=0))
        self.actions: list[Seen] = []
        if design.form == BLOCKS and taken[0].action is not None:
            for a in range(design.actions):
                own = [one.X[one.action == a] for one in taken]
                self.actions.append(Seen(np.sum([X.T @ X for X in own], axis=0)))
        elif design.q <= MOST:
            dense = [one.dense() for one in taken]
            self.actions.append(Seen(np.sum([phi.T @ phi for phi in dense], axis=0)))

    def known(self, X: Any) -> Booleans:
        """Return which states have a value at all, (n,)."""
        if self.table:
            state = cells(X)
            return np.asarray((self.counts.sum(axis=1)[state] > 0) & (state < self.design.p - 1))
        return np.isfinite(self.states.leverage(X))

    def leverage(self, U: Array, X: Any) -> Array:
        """Return the leverage of states X (n, p) with probabilities or features of actions U (n, actions), (n,)."""
        if self.table:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.nansum(np.where(U != 0, U**2 / self.counts[cells(X)], 0.0), axis=1)
        if len(self.actions) == U.shape[1]:
            each = np.column_stack([one.leverage(X) for one in self.actions])
            with np.errstate(invalid="ignore"):
                return np.where(U != 0, U**2 * each, 0.0).sum(axis=1)
        if self.actions:
            return self.actions[0].leverage(self.design.mean(U, X))
        return self.states.leverage(X)

    def widened(self, U: Array, X: Any, bounds: Bounds) -> Bounds:
        """Return intervals, (n,) each, as wide as the rewards allow where a point has no data nearby."""
        alone, known = self.leverage(U, X) > ALONE, self.known(X)
        low, high = np.minimum(bounds.low, self.bounds.low), np.maximum(bounds.high, self.bounds.high)
        low, high = np.where(alone, low, bounds.low), np.where(alone, high, bounds.high)
        return Bounds(np.where(known, low, self.bounds.low), np.where(known, high, self.bounds.high))
