"""What an `AutoLearner` knows, where each number of it stands, and the numbers that its steps are made with."""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.single import blank_memory

# Multiples of the unit of step sizes: two rungs of TD, one of GTD2. What a feature needs for them is one cache line.
MULTIPLES = np.array([1.5, 0.25, 0.4])
RUNGS, FIRST_GTD2 = len(MULTIPLES), 2
UNIT = 0.3  # of step sizes, over the mean of max(1, ρ) ‖x‖², where no alpha is given
ZETA = 0.25  # ratio of the two step sizes of GTD2, which stands a larger step than TD and then wants a slow η
BURST, BLOCK = 16.0, 50  # a rung whose squared TD errors in a block are so many times the first weights' has burst
SLOWER = 0.25  # times the step size of a rung that starts again
CLIP = 5.0  # in a window |ρδ| counts up to so many times its mean since the last reset: one large reward is no change
AHEAD = 6  # rows by which the memory of sparse features is fetched ahead
FAR = 1e60  # no number beyond it is learnt from: squares of such numbers and sums of these are still finite

# Columns of the memory of a feature: its first weight; of every rung the difference of w from it, and u; η of GTD2.
FIRST, D, U, ETA = 0, 1, 1 + RUNGS, 1 + 2 * RUNGS
COLUMNS = ETA + 1

# Places of the numbers that change: steps since the last reset, and in all; the ages at which steps stop, and of the
# next reading; resets; share and residual of the last solution; sums of weights in A, b and c, of max(1, ρ) ‖x‖², of
# (ρδ₀)² and of (ρδ₀)⁴; the age at which the block of rungs ends, and the sum of (ρδ₀)² in it. Of later transitions than
# the solution was made from, with u = (z − γz')·v: how many they are, and sums of ρ²δ₀², ρ²δ₀u and ρ²u². Of what is
# read out, the sum of |ρδ|; the age at which the window began, and Σ (ρδ)² in it, clipped; how many windows have ended,
# the sum of their Σ (ρδ)², and that of the squares of these.
AGE, STEPS, STOP, NEXT, RESETS, SHARE, RESIDUAL, WEIGHTS, NORMS, SQUARES, FOURTHS, BLOCK_END, FIRST_BLOCK = range(13)
LATER, LATER_FIRST, LATER_MIXED, LATER_SOLVED = range(13, 17)
ERRORS, WINDOW_BEGIN, WINDOW_SQUARES, WINDOWS, WINDOWS_SUM, WINDOWS_SQUARES = range(17, 23)
NUMBERS = 23


class AutoState(NamedTuple):
    """All that an `AutoLearner` knows. Changed in place.

    memory   (p, COLUMNS) of every feature, for rungs; (p, 1), the first weights, for least squares
    A        (k, k) the sum; k is p, or how many rungs
    vectors  (4, k) the sums b and c, v that they were solved to last, and Σ ρδz of the present window
    numbers  (NUMBERS,)
    rungs    (2, rungs) multiples of the unit of step sizes, and Σ (ρδ)² of the present block; (2, 0) for least squares
    """

    memory: Array
    A: Array
    vectors: Array
    numbers: Array
    rungs: Array

    @classmethod
    def begin(cls, first: Array, quadratic: bool) -> "AutoState":
        """Return what a learner knows that begins at weights (p,)."""
        memory, k = blank_memory(len(first), 1 if quadratic else COLUMNS), len(first) if quadratic else RUNGS
        numbers, rungs = np.zeros(NUMBERS), np.zeros((2, 0 if quadratic else RUNGS))
        memory[:, FIRST] = first
        numbers[[NEXT, STOP]] = 1.0
        if not quadratic:
            rungs[0] = MULTIPLES
        return cls(memory, np.zeros((k, k)), np.zeros((4, k)), numbers, rungs)

    def forget(self) -> None:
        """Forget all sums and averages. The first weights stay, and so do the weights and step sizes of rungs."""
        kept = self.numbers[[STEPS, NORMS, SQUARES, FOURTHS]]
        resets = self.numbers[RESETS] + 1.0
        for array in (self.A, self.vectors, self.numbers, self.rungs[1], self.memory[:, U:ETA]):
            array[...] = 0.0
        self.numbers[[STEPS, NORMS, SQUARES, FOURTHS]] = kept
        self.numbers[[RESETS, NEXT, STOP]] = resets, 1.0, 1.0

    def read_out(self, where: Any = slice(None)) -> Array:
        """Return the weights at these features, or at all."""
        memory, part = self.memory[where], self.numbers[SHARE] * self.vectors[2]
        if not self.rungs.size:
            return np.asarray(memory[:, FIRST] + part[where])
        age = self.numbers[AGE]
        averages = memory[:, D:U] - memory[:, U:ETA] / max(1.0, age * (age + 1.0) / 2.0)
        return np.asarray(memory[:, FIRST] + averages @ part)

    def advance(self, alpha: float, x: Any, x_next: Any, columns: tuple[Array, ...], deltas: Array, begin: int) -> int:
        """Make compiled steps from row `begin` on; return how many, as `run` does."""
        from gradient_dd.engine.kernels.auto_step import run as run_compiled

        return int(run_compiled(tuple(self), alpha, kernel_rows(x), kernel_rows(x_next), columns, deltas, begin))


def kernel_rows(rows: Any) -> tuple[Any, ...]:
    """Return begin, width, indices and values of rows as in `FeatureRows`, and whether all are known to be near."""
    begin, width, indices, values, largest = rows
    return begin, int(width), indices.astype(np.int64, copy=False), values, bool(largest <= FAR)
