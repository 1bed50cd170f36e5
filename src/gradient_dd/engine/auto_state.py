"""What an `AutoLearner` knows, where each number of it stands, and the numbers that its steps are made with."""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.stream import blank_memory

# Multiples of the unit of step sizes: two rungs of TD, one of GTD2. What a feature needs for them is one cache line.
MULTIPLES = np.array([1.5, 0.25, 0.4])
RUNGS, FIRST_GTD2 = len(MULTIPLES), 2
UNIT = 0.3  # of step sizes, over the mean of max(1, ρ) ‖x‖², where no alpha is given
ZETA = 0.25  # ratio of the two step sizes of GTD2, which stands a larger step than TD and then wants a slow η
GROWTH, APART = 0.05, 4  # a reading comes when the age has grown by this share, and 1/APART steps for each number of v
BURST = 16.0  # a rung whose squared TD errors are so many times those of the first weights has burst
BLOCK = 50  # steps between two looks for bursts, once as many have been made
WINDOW = 200  # steps after which what is read out is compared with the windows before; two signs together are a change:
JUMP, DOUBT = 1.3, 3.0  # Σ |ρδ| is above JUMP times the largest one so far, by DOUBT times its noise,
CHANCE = 2.0  # and Σ ρδz, which is 0 but for noise, has a square of so many times that noise
CLIP = 5.0  # |ρδ| counts up to so many times its mean so far: one large reward is no change
FADE = 0.99  # of the largest sum from window to window
SLOWER = 0.25  # times the step size of a rung that starts again
AHEAD = 6  # rows by which the memory of sparse features is fetched ahead
FAR = 1e60  # no number beyond it is learnt from: squares of such numbers and sums of these are still finite

# Columns of the memory of a feature: its first weight; of every rung the difference of w from it, and u; η of GTD2.
FIRST, D, U, ETA = 0, 1, 1 + RUNGS, 1 + 2 * RUNGS
COLUMNS = ETA + RUNGS - FIRST_GTD2

# Places of the numbers that change: steps since the last reset and in all; sums of weights in A, b and C, and of max(1,
# ρ) ‖x‖²; the ages of the next reading, of the next look for bursts, and at which the present block and the present
# window began; of the first weights sums of (ρδ)² since the last reset and in the block, and of |ρδ| in the window; of
# what is read out a sum of (ρδ)² in the block, and of |ρδ| since the last reset, clipped in the window, and squared
# there; the largest of a window; resets; the share of least squares that is kept, and the residual of what is read out;
# sums of (ρδ)² and of its square at the first weights, with the weights of A.
AGE, STEPS, WEIGHTS, NORMS, NEXT, LOOK, BLOCK_BEGIN, WINDOW_BEGIN, FIRST_SUM, FIRST_BLOCK, FIRST_WINDOW = range(11)
ERRORS_SUM, ERRORS_BLOCK, ERRORS_WINDOW, SQUARES_WINDOW, LARGEST, RESETS, KEPT, RESIDUAL = range(11, 19)
SQUARES, FOURTHS = range(19, 21)
NUMBERS = 21


class AutoState(NamedTuple):
    """All that an `AutoLearner` knows. Changed in place.

    memory   (p, COLUMNS) of every feature, for rungs; (p, 1), the first weights, for least squares
    squares  (4, k, k) the sums A, C and D, and Q, the inverse of the noise of ρδz in a step; k is p, or how many rungs
    vectors  (4, k) the sums b and h, v that the sums were solved to last, and Σ ρδz of the present window
    numbers  (NUMBERS,)
    rungs    (2, rungs) multiples of the unit of step sizes, and Σ (ρδ)² of the present block; (2, 0) for least squares
    """

    memory: Array
    squares: Array
    vectors: Array
    numbers: Array
    rungs: Array

    @classmethod
    def begin(cls, first: Array, quadratic: bool) -> "AutoState":
        """Return what a learner knows that begins at weights (p,)."""
        memory, k = blank_memory(len(first), 1 if quadratic else COLUMNS), len(first) if quadratic else RUNGS
        numbers, rungs = np.zeros(NUMBERS), np.zeros((2, 0 if quadratic else RUNGS))
        memory[:, FIRST] = first
        numbers[NEXT] = numbers[LOOK] = 1.0
        if not quadratic:
            rungs[0] = MULTIPLES
        return cls(memory, np.zeros((4, k, k)), np.zeros((4, k)), numbers, rungs)

    def read_out(self, where: Any = slice(None)) -> Array:
        """Return the weights at these features, or at all."""
        memory, v = self.memory[where], self.vectors[2]
        if not self.rungs.size:
            return np.asarray(memory[:, FIRST] + v[where])
        age = self.numbers[AGE]
        averages = memory[:, D:U] - memory[:, U:ETA] / max(1.0, age * (age + 1.0) / 2.0)
        return np.asarray(memory[:, FIRST] + averages @ v)

    def advance(self, alpha: float, x: Any, x_next: Any, columns: tuple[Array, ...], deltas: Array, begin: int) -> int:
        """Make compiled steps from row `begin` on; return how many, as `run` does."""
        from gradient_dd.engine.kernels.auto_step import run as run_compiled

        return int(run_compiled(tuple(self), alpha, kernel_rows(x), kernel_rows(x_next), columns, deltas, begin))


def kernel_rows(rows: Any) -> tuple[Any, ...]:
    """Return begin, width, indices and values of rows as in `FeatureRows`, and whether all are known to be near."""
    begin, width, indices, values, largest = rows
    return begin, int(width), indices.astype(np.int64, copy=False), values, bool(largest <= FAR)
