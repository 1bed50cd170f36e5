"""Is TD stable on this stream? Shadows say so without a matrix: copies of TD that get no reward.

A shadow is the difference of two TD learners that began in different places. Where it dies out TD forgets where it
began; where it grows TD diverges, whatever the rewards. Its size is the root mean square of its values at the states
visited, chunk after chunk.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.stream_lanes import LaneMemory
from gradient_dd.evaluation.moments import lane_values
from gradient_dd.evaluation.portfolio import as_lane_rows, precision
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.learners import LEARNERS

STARTS = 2  # shadows of each step size
MULTIPLES = (0.4, 0.2, 0.1, 0.04)  # step sizes, over 1 / mean |x|²
DEAD, GROWN = 0.05, 20.0  # a shadow of this size, over its size at the beginning, has died out or has grown
CHUNK = 1000  # rows between two readings


class TdStability(NamedTuple):
    """What the shadows say of TD.

    verdict  "stable", "unstable", or "unclear" where the stream is too short to tell
    dead     share of the shadows that died out;  grown  share of those that grew
    """

    verdict: str
    dead: float
    grown: float


class TdShadows:
    """Shadows of TD at several step sizes, fed with the same batches as the learners."""

    def __init__(self, n_features: int, unit: float, seed: int) -> None:
        settings = [LEARNERS["td"].setting(alpha=unit * multiple) for multiple in MULTIPLES for _ in range(STARTS)]
        self.lanes = LaneMemory(settings, np.zeros(n_features), precision(n_features))
        vectors = np.random.default_rng(seed).standard_normal((n_features, STARTS))
        self.lanes.w[:] = np.tile(vectors, len(MULTIPLES))
        self.sizes: list[Array] = []

    def learn(self, batch: Transitions) -> None:
        """Let the shadows follow a batch."""
        for begin in range(0, len(batch), CHUNK):
            part = batch.part(slice(begin, begin + CHUNK))
            with np.errstate(over="ignore", invalid="ignore"):
                self.sizes.append(np.sqrt((lane_values(part.x, self.lanes.w) ** 2).mean(axis=0)))
            rows = as_lane_rows(part.x), as_lane_rows(part.x_next), part.x.indices is None
            columns = np.zeros((len(part), 1)), part.discount[:, None], part.rho[:, None]
            self.lanes.advance(*rows, columns, np.ones(len(part)))

    def verdict(self) -> TdStability:
        """Return whether TD is stable, step size by step size: the smallest one that tells is believed."""
        if not self.sizes:
            return TdStability("unclear", 0.0, 0.0)
        first, last = self.sizes[0], self.sizes[-1]
        stopped = self.lanes.stopped[: self.lanes.count] >= 0
        grown = (stopped | ~(last <= GROWN * first)).reshape(len(MULTIPLES), STARTS)
        dead = (last < DEAD * first).reshape(grown.shape) & ~grown
        shares = float(dead.mean()), float(grown.mean())
        for row in range(len(MULTIPLES) - 1, -1, -1):
            if dead[row].mean() > 0.5:
                return TdStability("stable", *shares)
            if grown[row].mean() > 0.5:
                return TdStability("unstable", *shares)
        return TdStability("unclear", *shares)
