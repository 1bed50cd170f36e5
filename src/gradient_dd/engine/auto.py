"""The state of `AutoLearner`: sums over transitions, from which it solves the TD equations.

If δ₀ is the TD error of the initial weights, z and z' are the features of both states, and d = z − γz', the sums are

    A = Σ ρ z dᵀ    b = Σ ρ δ₀ z    c = Σ z²    S = Σ ρ² d dᵀ    e = Σ ρ² δ₀ d    Σ ρ² δ₀²

where step s has weight s, so that old and possibly outdated steps count less. From time to time,
`stream/shrinkage.py` computes v and a share k from the sums; predictions are the initial values plus k z·v.

Least squares: z is x, so a step costs O(non-zeros²). Rungs, for many features: z has three numbers. TD at two step
sizes and GTD2 at one step size run in parallel, and z_k is x times the average weights of rung k, relative to the
initial weights. Averages exclude the current step, so no rung is evaluated on a transition that it has learnt from.

Averaging costs O(non-zeros) per step: if w_s has weight s, the average is w − u / (t(t + 1)/2), where u is the sum of
all changes of w, each times the sum of the earlier weights s.
"""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.single import aligned

# Step sizes in multiples of the unit: two rungs run TD, one runs GTD2. The numbers of a feature fill one cache line.
MULTIPLES = np.array([1.5, 0.25, 0.4])
RUNGS, FIRST_GTD2 = len(MULTIPLES), 2
UNIT = 0.3  # unit of step sizes times the mean of max(1, ρ) ‖x‖², if no alpha is given
ZETA = 0.25  # β/α of GTD2: it tolerates a larger α than TD, but η must then change slowly
BURST, BLOCK = 16.0, 50  # a rung has diverged if its squared TD errors in a block exceed BURST × the initial ones
SLOWER = 0.25  # factor of a rung's step size when it restarts
CLIP = 5.0  # limit of |ρδ| in a window over its mean since the last reset: one large reward is no change
AHEAD = 6  # number of rows by which memory of sparse features is prefetched
FAR = 1e60  # largest number to learn from, so that squares and their sums stay finite

# Memory columns of a feature: its initial weight; for each rung w minus that weight, then u; η of GTD2.
FIRST, D, U, ETA = 0, 1, 1 + RUNGS, 1 + 2 * RUNGS
COLUMNS = ETA + 1


class NumberPlaces(NamedTuple):
    """Positions of the numbers in `AutoState.numbers`."""

    age: int  # steps since the last reset
    steps: int  # total steps
    stop: int  # age at which `advance` returns
    next: int  # age at which the equations are solved next
    resets: int  # number of resets
    share: int  # k of the last solution
    residual: int  # residual of the last solution
    weights: int  # sum of the weights in A, b, c, S, e and first
    norms: int  # Σ max(1, ρ) ‖x‖²
    squares: int  # Σ (ρδ₀)²
    fourths: int  # Σ (ρδ₀)⁴
    block_end: int  # age at which the block of rungs ends
    first_block: int  # Σ (ρδ₀)² in that block
    first: int  # Σ ρ²δ₀² with the weights of A
    errors: int  # Σ |ρδ| of predictions
    window_begin: int  # age at which the window began
    window_squares: int  # Σ (ρδ)² in the window, clipped
    windows: int  # number of finished windows
    windows_sum: int  # sum of Σ (ρδ)² over these windows
    windows_squares: int  # sum of (Σ (ρδ)²)² over these windows


AT = NumberPlaces(*range(len(NumberPlaces._fields)))


class AutoState(NamedTuple):
    """The state of an `AutoLearner`, which changes in place.

    memory   for rungs (p, COLUMNS); for least squares (p, 1), the initial weights
    A, S     (k, k) the sums A and S; k is p, or the number of rungs
    vectors  (5, k) the sums b and c, the last solution v, Σ ρδz of the current window, and the sum e
    numbers  (20,) see NumberPlaces
    rungs    (2, rungs) step sizes in multiples of the unit, and Σ (ρδ)² of the current block; (2, 0) for least squares
    """

    memory: Array
    A: Array
    S: Array
    vectors: Array
    numbers: Array
    rungs: Array

    @classmethod
    def begin(cls, first: Array, quadratic: bool) -> "AutoState":
        """Return the initial state for initial weights (p,)."""
        memory, k = aligned((len(first), 1 if quadratic else COLUMNS)), len(first) if quadratic else RUNGS
        numbers, rungs = np.zeros(len(AT)), np.zeros((2, 0 if quadratic else RUNGS))
        memory[:, FIRST] = first
        numbers[[AT.next, AT.stop]] = 1.0
        if not quadratic:
            rungs[0] = MULTIPLES
        return cls(memory, np.zeros((k, k)), np.zeros((k, k)), np.zeros((5, k)), numbers, rungs)

    def forget(self) -> None:
        """Reset the equations, averages and windows; keep weights, step sizes, and total norms and squared errors."""
        lasting = self.numbers[[AT.steps, AT.norms, AT.squares, AT.fourths]]
        resets = self.numbers[AT.resets] + 1.0
        for array in (self.A, self.S, self.vectors, self.numbers, self.rungs[1], self.memory[:, U:ETA]):
            array[...] = 0.0
        self.numbers[[AT.steps, AT.norms, AT.squares, AT.fourths]] = lasting
        self.numbers[[AT.resets, AT.next, AT.stop]] = resets, 1.0, 1.0

    def read_out(self, where: Any = slice(None)) -> Array:
        """Return the weights of some features, by default of all."""
        memory, part = self.memory[where], self.numbers[AT.share] * self.vectors[2]
        if not self.rungs.size:
            return np.asarray(memory[:, FIRST] + part[where])
        age = self.numbers[AT.age]
        averages = memory[:, D:U] - memory[:, U:ETA] / max(1.0, age * (age + 1.0) / 2.0)
        return np.asarray(memory[:, FIRST] + averages @ part)

    def advance(self, alpha: float, x: Any, x_next: Any, columns: tuple[Array, ...], deltas: Array, begin: int) -> int:
        """Learn from rows, starting at `begin`, until the age reaches `stop`, and return their number.

        Learning also stops at a number beyond FAR.

        alpha      the unit of step sizes; 0 derives it from the data
        x, x_next  in the order of `FeatureRows`
        columns    reward, discount and rho, (n,) each;  deltas  (n,) receives the TD errors of predictions
        """
        from gradient_dd.engine.kernels.auto import steps

        return int(steps(tuple(self), alpha, kernel_rows(x), kernel_rows(x_next), columns, deltas, begin))


def kernel_rows(rows: Any) -> tuple[Any, ...]:
    """Return begin, width, indices and values of rows as in `FeatureRows`, and whether none is beyond FAR."""
    begin, width, indices, values, largest = rows
    return begin, int(width), indices.astype(np.int64, copy=False), values, bool(largest <= FAR)
