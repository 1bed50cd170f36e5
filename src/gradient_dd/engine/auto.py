"""`AutoLearner`: what it knows, sums over transitions from which the TD equations are solved.

With δ₀ the TD error of the initial weights, z features, and d = z − γz', z' being those of the next state, the sums are

    A = Σ ρ z dᵀ    b = Σ ρ δ₀ z    c = Σ z²    S = Σ ρ² d dᵀ    e = Σ ρ² δ₀ d    Σ ρ² δ₀²

in which step s counts s times, so that what is old and may have changed counts less. `stream/shrinkage.py` makes v and
a share k of them, every now and then: what is predicted is the value of the initial weights plus k z·v.

Least squares: z is x itself, so that a step costs O(non-zeros²). Rungs: with many features, z has three numbers. TD at
two step sizes and GTD2 at one run side by side; z_k is the average of rung k over the run so far, less the initial
weights, times x. Nothing is judged on what it has learnt from, because the averages are those of before the step.

An average over the run so far costs O(non-zeros) a step: with weights s for w_s it is w − u / (t(t + 1)/2), where u is
the sum of all changes of w, each times the weights before it.
"""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.single import aligned

# Multiples of the unit of step sizes: two rungs of TD, one of GTD2. What a feature needs for them is one cache line.
MULTIPLES = np.array([1.5, 0.25, 0.4])
RUNGS, FIRST_GTD2 = len(MULTIPLES), 2
UNIT = 0.3  # of step sizes, over the mean of max(1, ρ) ‖x‖², where no alpha is given
ZETA = 0.25  # ratio of the two step sizes of GTD2, which stands a larger step than TD and then wants a slow η
BURST, BLOCK = 16.0, 50  # a rung has diverged if its squared TD errors in a block exceed BURST × the initial ones
SLOWER = 0.25  # times the step size of a rung that starts again
CLIP = 5.0  # in a window |ρδ| counts up to so many times its mean since the last reset: one large reward is no change
AHEAD = 6  # rows by which the memory of sparse features is fetched ahead
FAR = 1e60  # no number beyond it is learnt from: squares of such numbers and sums of these are still finite

# Columns of the memory of a feature: its first weight; of every rung the difference of w from it, and u; η of GTD2.
FIRST, D, U, ETA = 0, 1, 1 + RUNGS, 1 + 2 * RUNGS
COLUMNS = ETA + 1


class NumberPlaces(NamedTuple):
    """Where each of the numbers stands that change with every step."""

    age: int  # steps since the last reset
    steps: int  # steps in all
    stop: int  # age at which steps stop
    next: int  # age of the next reading
    resets: int  # how many there were
    share: int  # of the last solution
    residual: int  # of the last solution
    weights: int  # sum of the weights in A, b, c, S, e and first
    norms: int  # Σ max(1, ρ) ‖x‖²
    squares: int  # Σ (ρδ₀)²
    fourths: int  # Σ (ρδ₀)⁴
    block_end: int  # age at which the block of rungs ends
    first_block: int  # Σ (ρδ₀)² in that block
    first: int  # Σ ρ²δ₀² with these weights
    errors: int  # Σ |ρδ| of what is read out
    window_begin: int  # age at which the window began
    window_squares: int  # Σ (ρδ)² in it, clipped
    windows: int  # how many windows have ended
    windows_sum: int  # sum of their Σ (ρδ)²
    windows_squares: int  # sum of the squares of these


AT = NumberPlaces(*range(len(NumberPlaces._fields)))


class AutoState(NamedTuple):
    """All that an `AutoLearner` knows. Changed in place.

    memory   (p, COLUMNS) of every feature, for rungs; (p, 1), the initial weights, for least squares
    A, S     (k, k) the sums; k is p, or how many rungs
    vectors  (5, k) the sums b and c, v that they were solved to last, Σ ρδz of the present window, and the sum e
    numbers  (20,) see NumberPlaces
    rungs    (2, rungs) multiples of the unit of step sizes, and Σ (ρδ)² of the present block; (2, 0) for least squares
    """

    memory: Array
    A: Array
    S: Array
    vectors: Array
    numbers: Array
    rungs: Array

    @classmethod
    def begin(cls, first: Array, quadratic: bool) -> "AutoState":
        """Return what a learner knows that begins at weights (p,)."""
        memory, k = aligned((len(first), 1 if quadratic else COLUMNS)), len(first) if quadratic else RUNGS
        numbers, rungs = np.zeros(len(AT)), np.zeros((2, 0 if quadratic else RUNGS))
        memory[:, FIRST] = first
        numbers[[AT.next, AT.stop]] = 1.0
        if not quadratic:
            rungs[0] = MULTIPLES
        return cls(memory, np.zeros((k, k)), np.zeros((k, k)), np.zeros((5, k)), numbers, rungs)

    def forget(self) -> None:
        """Forget all sums and averages. The initial weights stay, and so do the weights and step sizes of rungs."""
        lasting = self.numbers[[AT.steps, AT.norms, AT.squares, AT.fourths]]
        resets = self.numbers[AT.resets] + 1.0
        for array in (self.A, self.S, self.vectors, self.numbers, self.rungs[1], self.memory[:, U:ETA]):
            array[...] = 0.0
        self.numbers[[AT.steps, AT.norms, AT.squares, AT.fourths]] = lasting
        self.numbers[[AT.resets, AT.next, AT.stop]] = resets, 1.0, 1.0

    def read_out(self, where: Any = slice(None)) -> Array:
        """Return the weights at these features, or at all."""
        memory, part = self.memory[where], self.numbers[AT.share] * self.vectors[2]
        if not self.rungs.size:
            return np.asarray(memory[:, FIRST] + part[where])
        age = self.numbers[AT.age]
        averages = memory[:, D:U] - memory[:, U:ETA] / max(1.0, age * (age + 1.0) / 2.0)
        return np.asarray(memory[:, FIRST] + averages @ part)

    def advance(self, alpha: float, x: Any, x_next: Any, columns: tuple[Array, ...], deltas: Array, begin: int) -> int:
        """Make steps from row `begin` on until it is time to look at the sums, and return how many.

        Fewer are made too where a number is beyond FAR.

        alpha      the unit of step sizes; 0 to take it from the data
        x, x_next  in the order of `FeatureRows`
        columns    reward, discount and rho, (n,) each;  deltas  (n,) is filled with the TD errors of what is read out
        """
        from gradient_dd.engine.kernels.auto import steps

        return int(steps(tuple(self), alpha, kernel_rows(x), kernel_rows(x_next), columns, deltas, begin))


def kernel_rows(rows: Any) -> tuple[Any, ...]:
    """Return begin, width, indices and values of rows as in `FeatureRows`, and whether all are known to be near."""
    begin, width, indices, values, largest = rows
    return begin, int(width), indices.astype(np.int64, copy=False), values, bool(largest <= FAR)
