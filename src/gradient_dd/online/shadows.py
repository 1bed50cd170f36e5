"""ShadowLearner: a learner that measures, while it learns, which learner it should be.

It runs a few learners side by side on the same transitions, TD, GTD2 and some between them, at several step sizes: the
rungs of a ladder (`engine/ladder.py`). Each rung k has beside its own weights w_k

    bias shadows    copies that get no reward and start from a random vector d. Such a copy *is* the error of the rung
                    without its noise: it shrinks as the rung forgets where it began, and grows where the rung diverges
    a noise shadow  a copy that starts at 0 and gets ±δ for a reward, with random signs, δ being the TD error of the
                    present choice: what it moves away from 0 is what the noise of the data does to the rung

Every BLOCK steps the squared values of the shadows at the states visited are averaged, and

    predicted error² of rung k = CAUTION B² (bias level of k) + noise level of k

B² being the largest mean square of x·(w − w₀) and of δ in a block so far. The rung with the smallest one is read out. A
rung whose predicted error is more than WORSE times the smallest starts again from the best: weights and shadows. So a
rung that diverges is brought back, and a slow rung with little noise goes on from where a quick one has come.

All is O(non-zeros) a step; a choice is O(p) every BLOCK steps.
"""

from typing import Any

import numpy as np

from gradient_dd.arrays import Array, numbers
from gradient_dd.engine import ladder
from gradient_dd.engine.ladder import Rung
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.errors import DivergedError, boolean, must, number, whole_number
from gradient_dd.online.feature_vector import checked_features
from gradient_dd.online.learner import LIMIT


class ShadowLearner:
    """A learner that chooses between TD, GTD2 and what lies between them, one transition at a time.

    n_features  length of the feature vectors
    alpha       step size of TD on the ladder; left out, the ladder covers two decades of step sizes below
                0.3 / (mean of ‖x‖²), and nothing has to be tuned
    initial_w   (n_features,) or a number; default 0
    schedule    factor on all step sizes; an update with discount 0 ends an episode
    seed        of the random vectors and signs of the shadows

    >>> agent = ShadowLearner(n_features=2)
    >>> agent.update([1, 0], reward=1.0, discount=0.9, x_next=[0, 1])
    1.0
    """

    def __init__(
        self,
        n_features: int,
        alpha: float | None = None,
        *,
        initial_w: Any = 0.0,
        schedule: Schedule = constant,
        seed: int = 0,
    ) -> None:
        p = self.n_features = whole_number("'n_features'", n_features)
        rule = "be a positive number"
        self.alpha = None if alpha is None else number("'alpha'", rule, alpha, low=0.0, positive=True)
        self.schedule = check_schedule(schedule)
        start = numbers("'initial_w'", initial_w)
        if start.shape not in ((), (p,)):
            raise must("The shape of 'initial_w'", f"be () or ({p},)", start.shape)
        self._start = np.array(np.broadcast_to(start, p))
        self.rungs = ladder.WIDE if alpha is None else ladder.NARROW
        self._copies = 1 + ladder.STARTS + 1  # of a rung: its own weights, bias shadows, the noise shadow
        self._random = np.random.default_rng(whole_number("'seed'", seed, at_least=0))
        self._signs = np.random.PCG64DXSM(seed)
        columns = [np.repeat(column, self._copies) for column in np.array(self.rungs, dtype=float).T]
        self._multiple, self._zeta, self._c, self._direct = columns
        size = len(self.rungs) * self._copies
        self._w, self._eta = np.zeros((2, p, size))  # a column for each copy
        self._own = slice(0, None, self._copies)
        self._noise = slice(self._copies - 1, None, self._copies)
        self._w[:, self._own] = self._start[:, None]
        self.updates = self.episodes = 0
        self._chosen = len(self.rungs) - 1
        self._norms = 0.0  # sum of ‖x‖² so far
        self._initial_error = 0.0  # B²
        self._bias, self._spread = np.zeros((2, len(self.rungs)))
        self.restart_shadows()

    def __repr__(self) -> str:
        alpha = "" if self.alpha is None else f"alpha={self.alpha:g}, "
        return f"<ShadowLearner {alpha}{self.n_features} features, {self.updates} updates, now {self.choice}>"

    def restart_shadows(self) -> None:
        """Start all bias shadows again: for a stream that is known to have changed. The weights stay."""
        vectors = self._random.standard_normal((self.n_features, ladder.STARTS))
        for start in range(ladder.STARTS):
            place = slice(1 + start, None, self._copies)
            self._w[:, place], self._eta[:, place] = vectors[:, start, None], 0.0
        self._begin_block()
        self._blocks = 0

    def _begin_block(self) -> None:
        self._squares = np.zeros(len(self._multiple))  # of x·(every copy), summed over the block
        self._moved = self._surprise = 0.0  # sums of (x·(w − w₀))² and of δ²
        self._steps = 0

    @property
    def choice(self) -> Rung:
        """The rung that is read out now."""
        return self.rungs[self._chosen]

    @property
    def w(self) -> Array:
        """(p,) the weights of the present choice; a copy."""
        return self._w[:, self._chosen * self._copies].copy()

    @property
    def eta(self) -> Array:
        """(p,) the secondary weights of the present choice; a copy."""
        return self._eta[:, self._chosen * self._copies].copy()

    def predict(self, x: Any) -> Any:
        """Return x·w: a number for one feature vector, dense or (indices, values); (n,) for the n rows of a matrix."""
        if isinstance(x, tuple):
            where, values = checked_features("x", x, self.n_features)
            return float(values @ self.w[where])
        matrix = numbers("'X'", x)
        if matrix.ndim not in (1, 2) or matrix.shape[-1] != self.n_features:
            raise must("The shape of 'X'", f"be ({self.n_features},) or (n, {self.n_features})", matrix.shape)
        values = matrix @ self.w
        return float(values) if matrix.ndim == 1 else values

    def update(
        self, x: Any, reward: float, discount: float, x_next: Any, rho: float = 1.0, *, ended: bool | None = None
    ) -> float:
        """Learn from one transition; return the TD error of the present choice. Arguments as in `Learner.update`."""
        reward = number("'reward'", "be a finite number", reward)
        discount = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
        rho = number("'rho'", "be a number that is zero or more", rho, low=0.0)
        ends = discount == 0 if ended is None else boolean("'ended'", ended)
        here, x_values = nonzeros("x", x, self.n_features)
        there, next_values = nonzeros("x_next", x_next, self.n_features) if discount else (here[:0], x_values[:0])
        n = self.updates if self.schedule.per == "step" else self.episodes
        factor = self.schedule.factor(n + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            x_w, x_eta = along(x_values, self._w[here]), along(x_values, self._eta[here])
            next_w = along(next_values, self._w[there])
            own = self._chosen * self._copies
            delta = reward + discount * next_w[own] - x_w[own]
            if not abs(delta) <= LIMIT:
                raise DivergedError(f"{self!r} diverged: all its rungs did. Try a smaller alpha.")
            self._watch(x_w, x_w[own] - along(x_values, self._start[here, None])[0], delta, x_values)
            rewards = np.zeros_like(x_w)
            rewards[self._own] = reward
            rewards[self._noise] = delta if self._signs.random_raw() & 1 else -delta
            self._move(here, x_values, there, next_values, factor, rho, discount, rewards, x_w, next_w, x_eta)
            if self._steps == ladder.BLOCK:
                self._choose()
        self.updates += 1
        self.episodes += ends
        return float(delta)

    def _watch(self, x_w: Array, moved: float, delta: float, x_values: Array) -> None:
        """Add this step to the sums of the block."""
        self._squares += x_w * x_w
        self._moved += moved * moved
        self._surprise += delta * delta
        for value in x_values:
            self._norms += value * value
        self._steps += 1

    def _move(
        self,
        here: Array,
        x: Array,
        there: Array,
        x_next: Array,
        factor: float,
        rho: float,
        discount: float,
        rewards: Array,
        x_w: Array,
        next_w: Array,
        x_eta: Array,
    ) -> None:
        """Move all copies by their rungs' rules."""
        unit = (
            ladder.UNIT * (self.updates + 1) / self._norms if self.alpha is None and self._norms else self.alpha or 0.0
        )
        alpha = unit * factor * self._multiple
        delta = rewards + discount * next_w - x_w
        w_x = alpha * rho * np.where(self._direct != 0, delta, x_eta)
        w_next = -alpha * rho * ((1.0 - self._c) * discount) * x_eta
        eta_x = self._zeta * alpha * (rho * delta - x_eta)
        self._w[here] += x[:, None] * w_x
        self._eta[here] += x[:, None] * eta_x
        self._w[there] += x_next[:, None] * w_next

    def _choose(self) -> None:
        """Predict the error of every rung from its shadows, read out the best, start hopeless ones again from it."""
        self._blocks = min(self._blocks + 1, ladder.MEMORY)
        moved, surprise = self._moved / ladder.BLOCK, self._surprise / ladder.BLOCK
        self._initial_error = max([self._initial_error, *(v for v in (moved, surprise) if v < ladder.HUGE)])
        mean_norm = self._norms / (self.updates + 1)
        for k in range(len(self.rungs)):
            squares = self._squares[k * self._copies : (k + 1) * self._copies]
            bias = 0.0
            for start in range(ladder.STARTS):
                bias += squares[1 + start] / (ladder.STARTS * ladder.BLOCK)
            self._bias[k] += (level(bias / mean_norm) - self._bias[k]) / self._blocks
            self._spread[k] += (level(squares[-1] / ladder.BLOCK) - self._spread[k]) / self._blocks
        predicted = ladder.CAUTION * self._initial_error * self._bias + self._spread
        favoured = predicted.copy()
        favoured[self._chosen] *= ladder.STAY
        best = self._chosen = int(favoured.argmin())
        source = slice(best * self._copies, (best + 1) * self._copies)
        for worse in np.flatnonzero(predicted > ladder.WORSE**2 * predicted[best]):
            place = slice(worse * self._copies, (worse + 1) * self._copies)
            self._w[:, place], self._eta[:, place] = self._w[:, source], self._eta[:, source]
            self._bias[worse], self._spread[worse] = self._bias[best], self._spread[best]
        self._begin_block()


def nonzeros(name: str, x: Any, p: int) -> tuple[Any, Array]:
    """Return where a checked feature vector is not zero, in order, and its values there."""
    where, values = checked_features(name, x, p)
    order = np.flatnonzero(values) if isinstance(where, slice) else np.argsort(where)
    return (order if isinstance(where, slice) else where[order]), values[order]


def along(values: Array, rows: Array) -> Array:
    """Return Σ_i values_i rows_i, added one after the other: the order of the compiled version, to the bit."""
    if not len(values):
        return np.zeros(rows.shape[1])
    return np.add.reduce(values[:, None] * rows, axis=0)


def level(value: float) -> float:
    """Return a mean square, or HUGE where it is beyond that or not a number."""
    return value if value < ladder.HUGE else ladder.HUGE
