"""Shadows over transitions of a user's own, a log or a stream: the growth of copies that get no reward.

`engine/shadows.py` says what a shadow is. There a task gives the transitions; here they are arrays, in the order in
which they are to be met.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.shadows import BLOCK, Exponents, finite_log, summarised, whole_blocks
from gradient_dd.engine.stream_lanes import LaneMemory, lane_rows
from gradient_dd.errors import must
from gradient_dd.learners import Setting


class RewardlessRows(NamedTuple):
    """Transitions without their rewards: x and x_next (n, p), discount and rho (n,)."""

    x: Array
    discount: Array
    x_next: Array
    rho: Array


def log_exponents(rows: RewardlessRows, settings: Sequence[Setting], *, starts: int = 2, seed: int = 0) -> Exponents:
    """Return the measured exponents of all settings on transitions."""
    x, blocks = rows.x, whole_blocks(len(rows.x))
    if any(setting.rule.natural for setting in settings):
        raise must("The rule of a shadow over a log", "be one whose step takes linear time", "a natural one")
    vectors = np.random.default_rng(seed).standard_normal((starts, len(x))) @ x  # in the span of the features
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    growth = np.empty((starts, blocks, len(settings)))
    for rule in dict.fromkeys(setting.rule for setting in settings):
        chosen = [k for k, setting in enumerate(settings) if setting.rule == rule]
        for start, vector in enumerate(vectors):
            lanes = LaneMemory([settings[k] for k in chosen], vector)
            growth[start][:, chosen] = memory_growth(lanes, blocks, rows)
    return summarised(growth)


def memory_growth(lanes: LaneMemory, blocks: int, rows: RewardlessRows) -> Array:
    """Return the growth per step in every block, (blocks, lanes), of lanes that begin with size 1."""
    growth = np.empty((blocks, lanes.count))
    for block in range(blocks):
        x, discount, x_next, rho = (column[block * BLOCK : (block + 1) * BLOCK] for column in rows)
        columns = np.zeros((BLOCK, 1)), discount[:, None], rho[:, None]
        lanes.advance(lane_rows(None, x), lane_rows(None, x_next), columns, np.ones(BLOCK))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            size = np.sqrt((lanes.w**2).sum(axis=0) + (lanes.eta**2).sum(axis=0))
            growth[block] = np.where(lanes.stopped[: lanes.count] >= 0, np.inf, finite_log(size))
            factors = np.ones(len(lanes.scale))
            factors[: lanes.count] = np.where(np.isfinite(size) & (size > 0), 1 / size, 1.0)
        lanes.memory *= factors
        lanes.moved *= factors
    return growth / BLOCK
