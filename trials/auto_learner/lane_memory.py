"""Many settings of one rule on one stream, compiled: what the rivals of AutoLearner run on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.engine.single import INDEX, NO_INDICES, FeatureRows, plain
from gradient_dd.learners import PLAIN_MOVES, PLAIN_SIGNALS, Setting

STRIP = 8  # lanes are filled up to a multiple of this


def lane_rows(indices: Integers | None, values: Array) -> FeatureRows:
    """Return rows as lanes read them from (n, k) indices and values, or from dense (n, p) values."""
    n, k = values.shape
    flat = NO_INDICES if indices is None else plain(indices, INDEX).reshape(-1)
    return FeatureRows(np.arange(n + 1) * k, k, flat, plain(values).reshape(-1), np.inf)


class LaneMemory:
    """The weights of some lanes, and what they remember from one step to the next.

    memory    (p, parts, lanes) w and, where the rule has one, η over its scale
    stopped   (lanes,) the step that a diverging lane refused; −1 where there is none
    sums      (p, lanes) the sum of w after every so many steps, and `counted` how many
    """

    saved = ("memory", "scale", "stopped", "last", "moved", "sums", "every", "counted", "steps")

    def __init__(self, settings: Sequence[Setting], initial_w: Array, dtype: Any = np.float64) -> None:
        rule, p = settings[0].rule, len(initial_w)
        rule.check_known("The lane engine of streams", PLAIN_SIGNALS, PLAIN_MOVES)
        count, lanes = len(settings), -(-len(settings) // STRIP) * STRIP
        self.rule, self.count = rule, count
        parts = 2 if rule.has_eta else 1
        self.memory = np.zeros((p, parts, lanes), dtype)
        self.memory[:, 0] = initial_w[:, None]
        self.scale = np.ones(lanes)
        names = [q.name for q in rule.parameters if q.name not in ("alpha", "zeta") and not q.shared]
        self.start, self.own = np.zeros((2, lanes)), np.zeros((max(1, len(names)), lanes))
        for lane, setting in enumerate(settings):
            self.start[:, lane] = setting.values["alpha"], setting.values.get("zeta", 0.0)
            self.own[: len(names), lane] = [setting.values[name] for name in names]
        self.only_next = np.zeros(lanes, bool)
        self.only_next[:count] = [setting.rho_mode == "T" for setting in settings]
        self.stopped = np.full(lanes, -1)
        self.last, self.moved = np.zeros((p if "x_change" in rule.arguments else 0, 2)), np.zeros((2, lanes))
        self.sums: Array = np.zeros((0, lanes))
        self.every = self.counted = self.steps = 0

    @property
    def w(self) -> Array:
        """(p, lanes) the weights; a view."""
        return self.memory[:, 0, : self.count]

    @property
    def eta(self) -> Array:
        """(p, lanes) the secondary weights; a copy."""
        if self.memory.shape[1] == 1:
            return np.zeros_like(self.w)
        return self.memory[:, 1, : self.count] * self.scale[: self.count]

    def average_from_now(self, every: int) -> None:
        """Begin a new average, of w after every so many steps."""
        self.sums, self.every, self.counted = np.zeros(self.memory[:, 0].shape), every, 0

    def advance(
        self,
        x: FeatureRows,
        x_next: FeatureRows,
        columns: tuple[Array, Array, Array],
        factor: Array,
        block: Integers | None = None,
        weights: Array | None = None,
    ) -> None:
        """Make a step of every lane for each of n rows; a row of x_next is not used where all its discounts are 0.

        columns  reward, discount and rho, each (n, 1), or each (n, count)
        factor   (n,) of the schedule
        weights  (blocks, count) factors on alpha; `block` (n,) says which of them are in force
        """
        from gradient_dd.engine.kernels.compiler import subnormals_flushed
        from trials.auto_learner.lane_kernel import lanes_kernel

        n, per_lane = len(factor), columns[0].shape[1] > 1
        numbers = [self._filled(one) if per_lane else plain(one) for one in columns]
        blocks = np.zeros(n, np.int64) if block is None else plain(block, np.int64)
        weight = np.ones((1, len(self.scale))) if weights is None else self._filled(weights)
        data = (*numbers, (columns[1] != 0).any(axis=1), plain(factor), blocks, weight)
        kernel = lanes_kernel(self.rule, x.dense, per_lane, self.memory.dtype == np.float64)
        state = self.memory, self.scale, self.stopped, self.last, self.moved, self.sums
        constants = self.start, self.own, self.only_next
        with np.errstate(all="ignore"), subnormals_flushed():
            kernel(state, constants, tuple(x), tuple(x_next), data, (self.every, self.steps))
        if self.every:
            self.counted += (self.steps + n) // self.every - self.steps // self.every
        self.steps += n

    def _filled(self, columns: Array) -> Array:
        """Return (n, count) numbers as (n, lanes); the lanes that fill up get zeros."""
        filled = np.zeros((len(columns), len(self.scale)))
        filled[:, : self.count] = columns
        return filled
