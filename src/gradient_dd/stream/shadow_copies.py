"""The copies behind a `ShadowLearner`: the weights of all rungs and their shadows, how they move, how one is chosen.

A column of w and η belongs to one copy; a rung has COPIES of them: its own weights, STARTS bias shadows, a noise
shadow and a growth shadow. `stream/shadows.py` says what they are for. The arithmetic is that of
`engine/kernels/shadows.py`, operation by operation.
"""

from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine import ladder
from gradient_dd.errors import number, whole_number
from gradient_dd.files import DamagedFileError
from gradient_dd.stream.learner import LIMIT

# Arrays and numbers that a file of a learner needs; all else follows from the ladder.
ARRAYS = (
    *("w", "eta", "foretold", "start", "squares", "bias", "spread", "waits", "copied", "sums"),
    *("sizes", "risk", "shares"),
)
NUMBERS = ("norms", "blocks", "age", "chosen", "steps")


class ShadowCopies:
    """All copies of a ladder. sums  of a block, (x·(w − w₀))² and δ²; their recent means; B²."""

    def __init__(self, kept: ladder.Ladder, start: Array, vectors: Array) -> None:
        self.ladder, self.start = kept, start
        p, rungs = len(start), len(kept.rungs)
        *columns, averages = np.array(kept.rungs, dtype=float).T
        self.multiple, self.zeta, self.c, self.direct = (np.repeat(column, ladder.COPIES) for column in columns)
        self.averages = averages.astype(np.int64)
        self.learning = np.flatnonzero(self.multiple)[-1] + 1  # copies before this one can move by a step
        self.w, self.eta = np.zeros((2, p, rungs * ladder.COPIES))
        self.w[:, :: ladder.COPIES] = start[:, None]
        self.foretold = np.zeros(p)  # weights of the part of δ that x foretells
        self.squares = np.zeros(rungs * ladder.COPIES)  # of x·(every copy), summed over the block
        self.bias, self.spread, self.waits, self.copied = np.zeros((4, rungs))
        self.sums = np.zeros(5)
        self.sizes = np.zeros((2, rungs))  # of the growth shadows, at the last reading but one and at the last
        self.risk = np.ones(rungs)  # factors on the predicted errors², 1 for a rung whose growth shadow shrinks
        self.shares = np.zeros(rungs)  # of the rungs in the weights that are read out
        self.shares[kept.first] = 1.0
        self.norms, self.steps, self.chosen = 0.0, 0, kept.first  # norms: the sum of ‖x‖² so far
        self.restart(vectors)

    def restart(self, vectors: Array) -> None:
        """Start all bias shadows again, at vectors (p, STARTS), and all averages."""
        for j in range(ladder.STARTS):
            self.w[:, 1 + j :: ladder.COPIES], self.eta[:, 1 + j :: ladder.COPIES] = vectors[:, j, None], 0.0
        growth = slice(ladder.GROWTH, None, ladder.COPIES)
        self.w[:, growth], self.eta[:, growth] = vectors[:, 0, None], 0.0
        self.squares[:] = self.sums[:2] = self.waits[:] = self.copied[:] = 0.0
        self.blocks = self.age = self.steps = 0

    def kept(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the arrays and the numbers from which `take` restores all copies."""
        return {name: getattr(self, name) for name in ARRAYS}, {name: getattr(self, name) for name in NUMBERS}

    def take(self, arrays: dict[str, Array], numbers: dict[str, Any]) -> None:
        """Become the copies that `kept` returned these arrays and numbers of; raise if they are those of others."""
        shapes = {name: getattr(self, name).shape for name in ARRAYS}
        if {name: array.shape for name, array in arrays.items()} != shapes or set(numbers) != set(NUMBERS):
            raise DamagedFileError("other arrays")
        if not all(array.dtype == np.float64 for array in arrays.values()):
            raise DamagedFileError("arrays that are not numbers")
        for name in set(NUMBERS) - {"norms"}:
            whole_number(f"{name!r}", numbers[name], at_least=0)
        number("'norms'", "be zero or more", numbers["norms"], low=0.0)
        if numbers["chosen"] >= len(self.bias) or numbers["steps"] >= ladder.BLOCK:
            raise DamagedFileError("other numbers")
        for name, value in [*arrays.items(), *numbers.items()]:
            setattr(self, name, value)

    def own(self) -> int:
        """Return the column of the weights of the best rung."""
        return self.chosen * ladder.COPIES

    def read_out(self) -> Array:
        """Return the weights of all rungs, each with its share; those of the best where another has overflowed."""
        used = np.flatnonzero(self.shares)
        with np.errstate(over="ignore", invalid="ignore"):
            mixed = along(self.shares[used], np.ascontiguousarray(self.w[:, used * ladder.COPIES].T))
        return mixed if np.isfinite(mixed).all() else self.w[:, self.own()].copy()

    def step(
        self,
        here: Any,
        x: Array,
        there: Any,
        x_next: Array,
        reward: float,
        discount: float,
        rho: float,
        alpha: float | None,
        factor: float,
        sign: float,
        update: int,
    ) -> float:
        """Make a step of all copies, and a choice at the end of a block; return δ of the best rung.

        A δ that is too large is returned before anything has changed. `alpha` is None for the wide ladder, `update`
        the number of this update, from 1.
        """
        x_w, next_w = along(x, self.w[here]), along(x_next, self.w[there])
        x_eta = along(x, self.eta[here, : self.learning])
        own = self.own()
        delta = float(reward + discount * next_w[own] - x_w[own])
        if not abs(delta) <= LIMIT:
            return delta
        known = np.column_stack([self.start[here], self.foretold[here], x])
        began, guess, norm = along(x, known).tolist()
        self.squares += x_w * x_w
        self.sums[0] += (x_w[own] - began) * (x_w[own] - began)
        self.sums[1] += delta * delta
        self.norms += norm
        if self.ladder.centre > 0 and self.norms > 0:
            share = self.ladder.centre * update / self.norms * rho
            self.foretold[here] += x * (share / max(1.0, share * norm) * (delta - guess))
        rewards = np.zeros_like(x_w)
        rewards[:: ladder.COPIES] = reward
        rewards[ladder.NOISE :: ladder.COPIES] = sign * (delta - guess)
        unit = (ladder.UNIT * update / self.norms if self.norms > 0 else 0.0) if alpha is None else alpha
        move = slice(self.learning)
        size = unit * factor * self.multiple[move]
        deltas = rewards[move] + discount * next_w[move] - x_w[move]
        w_x = size * rho * np.where(self.direct[move] != 0, deltas, x_eta)
        w_next = -size * rho * ((1.0 - self.c[move]) * discount) * x_eta
        eta_x = self.zeta[move] * size * (rho * deltas - x_eta)
        self.w[here, move] += x[:, None] * w_x
        self.eta[here, move] += x[:, None] * eta_x
        self.w[there, move] += x_next[:, None] * w_next
        self.steps += 1
        if self.steps == ladder.BLOCK:
            self.end_block(self.norms / update)
        return delta

    def end_block(self, mean_norm: float) -> None:
        """Move the averages, and choose."""
        self.age += 1
        self.blocks = min(self.blocks + 1, ladder.MEMORY)
        share = min(1.0, ladder.AVERAGE / self.age)
        for k in np.flatnonzero(self.averages >= 0):
            place, source = columns_of(k), columns_of(self.averages[k])
            for array in (self.w, self.eta):
                array[:, place] += share * (array[:, source] - array[:, place])
        self.measure_growth()
        self.choose(mean_norm)
        self.squares[:] = self.sums[:2] = 0.0
        self.steps = 0

    def measure_growth(self) -> None:
        """Set the factor on every rung's predicted error²: what its growth shadow grew by in the last part of the run.

        The sizes are read at blocks 1, 2, 4, 8, … and then every WINDOW blocks. The last reading but one is where the
        last part begins, so it is a half to three quarters of a short run, and bounded in a long one.
        """
        w, eta = self.w[:, ladder.GROWTH :: ladder.COPIES], self.eta[:, ladder.GROWTH :: ladder.COPIES]
        size = np.sqrt(np.add.reduce(w * w + eta * eta, axis=0))
        lost = ~(size < ladder.HUGE)
        w[:, lost], eta[:, lost], self.sizes[:, lost], size[lost] = 1.0, 0.0, 0.0, np.sqrt(len(w))
        far = (size > ladder.FAR) | ((size > 0) & (size < 1 / ladder.FAR))
        for array in (w, eta, self.sizes):
            array[:, far] /= size[far]
        size[far] = 1.0
        if self.age == 1:
            self.sizes[:] = size
        grown = np.where(size == 0, 0.0, ladder.STEEPEST)
        known = self.sizes[0] > 0
        grown[known] = np.minimum(size[known] / self.sizes[0, known], ladder.STEEPEST)
        self.risk = np.maximum(1.0, grown * grown)
        self.risk[self.averages >= 0] = self.risk[self.averages[self.averages >= 0]]
        if self.age & (self.age - 1) == 0 or self.age % ladder.WINDOW == 0:
            self.sizes[:] = self.sizes[1], size

    def predicted(self) -> Array:
        """Return the predicted error² of every rung."""
        predicted: Array = (self.ladder.caution * self.sums[4] * self.bias + self.spread) * self.risk
        return predicted

    def choose(self, mean_norm: float) -> None:
        """Predict the error of every rung from its shadows, find the best, start hopeless ones again from it."""
        means = np.array([level(total / ladder.BLOCK) for total in self.sums[:2]])
        self.sums[2:4] += (means - self.sums[2:4]) / self.blocks
        largest = max([self.sums[4], *means[means < ladder.HUGE]])
        self.sums[4] = largest if self.ladder.largest else self.sums[2] + self.sums[3]
        for k in range(len(self.bias)):
            squares = self.squares[k * ladder.COPIES : (k + 1) * ladder.COPIES]
            bias = 0.0
            for start in range(ladder.STARTS):
                bias += squares[1 + start] / (ladder.STARTS * ladder.BLOCK)
            self.bias[k] = self.averaged(self.bias[k], bias / mean_norm if mean_norm else 0.0)
            self.spread[k] = self.averaged(self.spread[k], squares[ladder.NOISE] / ladder.BLOCK)
        predicted = self.predicted()
        favoured = predicted.copy()
        favoured[self.chosen] *= ladder.STAY
        waiting = (self.waits > 0) & (np.arange(len(self.waits)) != self.chosen)
        self.waits[waiting] -= 1.0
        favoured[waiting] = np.inf
        best = self.chosen = int(favoured.argmin()) if favoured.min() < np.inf else self.chosen
        for worse in np.flatnonzero(predicted > ladder.WORSE**2 * predicted[best]):
            for array in (self.w, self.eta):
                array[:, columns_of(worse)][:, : ladder.GROWTH] = array[:, columns_of(best)][:, : ladder.GROWTH]
            self.bias[worse], self.spread[worse] = self.bias[best], self.spread[best]
            self.copied[worse] += 1.0
            self.waits[worse] = self.ladder.wait * 2.0 ** min(self.copied[worse] - 1.0, 50.0)
        self.share_out(self.predicted())

    def share_out(self, predicted: Array) -> None:
        """Give every rung that need not wait its share of the weights that are read out.

        A predicted error² that is twice as large gets a quarter of the share.
        """
        joins = (self.waits == 0) | (np.arange(len(predicted)) == self.chosen)
        least = predicted[joins].min()
        shares = np.zeros(len(predicted))
        shares[self.chosen] = 1.0
        if 0 < least < np.inf:
            shares[joins] = (least / predicted[joins]) * (least / predicted[joins])
        self.shares = shares / np.add.accumulate(shares)[-1]

    def averaged(self, old: float, value: float) -> float:
        """Return a level after one more block; a rise counts at once if the ladder says so."""
        value = level(value)
        return value if self.ladder.sudden and value > old else old + (value - old) / self.blocks


def columns_of(rung: Any) -> slice:
    """Return the columns of a rung's copies."""
    return slice(int(rung) * ladder.COPIES, (int(rung) + 1) * ladder.COPIES)


def along(values: Array, rows: Array) -> Array:
    """Return Σ_i values_i rows_i, added one after the other: the order of the compiled version, to the bit."""
    if not len(values):
        return np.zeros(rows.shape[1])
    return np.add.reduce(values[:, None] * rows, axis=0)


def level(value: float) -> float:
    """Return a mean square, or HUGE where it is beyond that or not a number."""
    return value if value < ladder.HUGE else ladder.HUGE
