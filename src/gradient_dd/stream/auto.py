"""AutoLearner: a learner with nothing to tune.

It runs TD and GTD2 side by side at several step sizes, and one learner that stands still, and reads out the weighted
mean of their averages whose error on data that they have not yet seen is least. `engine/held_out.py` has the method,
docs/auto-learner.md what it is worth. A step costs O(non-zeros) of the features; O(p) work is done as often as as many
non-zeros have been seen.
"""

from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from gradient_dd.arrays import Array, check_memory
from gradient_dd.engine import held_out
from gradient_dd.engine.held_out import STILL, HeldOut
from gradient_dd.errors import DivergedError, number, show, whole_number
from gradient_dd.files import DamagedFileError, FileKind, open_saved, write_file
from gradient_dd.stream.transitions import flat_transitions, predicted, single_row, start_weights

AUTO_FILE = FileKind("auto learner", "an AutoLearner saved by gradient-dd", 1)


class Rung(NamedTuple):
    """One of the learners that run side by side: "still", "td" or "gtd2", and its multiple of the unit of steps."""

    learner: str
    multiple: float


RUNG_LIST = tuple(
    Rung("still" if k == STILL else "td" if k < held_out.FIRST_GTD2 else "gtd2", float(multiple))
    for k, multiple in enumerate(held_out.MULTIPLES)
)


class AutoLearner:
    """A learner to feed one transition at a time, whose rule and step size need no choice.

    n_features  length of the feature vectors
    alpha       the unit of step sizes, of which `rungs` have multiples; left out, 0.3 over the mean of max(1, ρ) ‖x‖²
    initial_w   (n_features,) or a number; default 0

    >>> agent = AutoLearner(n_features=2)
    >>> agent.update([1, 0], reward=1.0, discount=0.9, x_next=[0, 1])
    1.0
    """

    def __init__(self, n_features: int, alpha: float | None = None, *, initial_w: Any = 0.0) -> None:
        p = self.n_features = whole_number("'n_features'", n_features)
        rule = "be a positive number"
        self.alpha = None if alpha is None else number("'alpha'", rule, alpha, low=0.0, positive=True)
        check_memory(f"An AutoLearner of {show(p)} features", 8.0 * held_out.COLUMNS * p, "Use fewer features.")
        self._state = HeldOut.begin(start_weights(initial_w, p))

    def __repr__(self) -> str:
        alpha = "" if self.alpha is None else f"alpha={self.alpha:g}, "
        return f"<AutoLearner {alpha}{self.n_features} features, {self.updates} updates, mostly {self.choice}>"

    @property
    def updates(self) -> int:
        """How many transitions it has learnt from."""
        return int(self._state.numbers[held_out.STEPS])

    @property
    def resets(self) -> int:
        """How often it found that the stream had changed, and forgot its averages and errors."""
        return int(self._state.numbers[held_out.RESETS])

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """The learners that run side by side."""
        return RUNG_LIST

    @property
    def shares(self) -> Array:
        """(rungs,) the share of every rung in the weights that are read out, of sum 1; some may be negative. A copy."""
        return self._state.shares.copy()

    @property
    def choice(self) -> Rung:
        """The rung with the largest share."""
        return RUNG_LIST[int(np.argmax(self._state.shares))]

    @property
    def residual(self) -> float:
        """The held-out projected TD error of what is read out, with its noise, at the last reading: 0 before it."""
        return float(self._state.numbers[held_out.RESIDUAL])

    @property
    def w(self) -> Array:
        """(p,) the weights that are read out: the averages of all rungs, each with its share; a copy."""
        return self._state.read_out()

    def predict(self, x: Any) -> Any:
        """Return x·w: a number for one feature vector, (n,) for n rows, in any form that `update_many` takes."""
        return predicted(x, self.n_features, self._state.read_out)

    def update(self, x: Any, reward: float, discount: float, x_next: Any, rho: float = 1.0) -> float:
        """Learn from one transition; return the TD error of what was read out before. Arguments as in `Learner.update`.

        Nothing changes if an argument is refused.
        """
        reward = number("'reward'", "be a finite number", reward)
        discount = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
        rho = number("'rho'", "be a number that is zero or more", rho, low=0.0)
        here = single_row("x", x, self.n_features)
        there = here if discount == 0 else single_row("x_next", x_next, self.n_features)
        deltas = np.empty(1)
        columns = np.array([reward]), np.array([discount]), np.array([rho])
        self._advance(here, there, columns, deltas)
        return float(deltas[0])

    def update_many(self, x: Any, reward: Any, discount: Any, x_next: Any, rho: Any = None) -> Array:
        """Learn from n transitions, one after the other, and return their TD errors (n,).

        The result is that of `update` for each of them, to the bit. Arguments as in `Learner.update_many`. Nothing
        changes if an argument is refused.
        """
        data = flat_transitions(x, reward, discount, x_next, 1.0 if rho is None else rho, self.n_features)
        deltas = np.empty(len(data.reward))
        self._advance(data.x, data.x_next, (data.reward, data.discount, data.rho), deltas)
        return deltas

    def _advance(self, x: Any, x_next: Any, columns: tuple[Array, ...], deltas: Array) -> None:
        done = self._state.advance(self.alpha or 0.0, x, x_next, columns, deltas)
        if done < len(deltas):
            raise DivergedError(
                f"{self!r} met a TD error beyond {held_out.FAR:g} at its first weights. What came before is learnt."
            )

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything it knows to one file (.npz, no pickle); an older file is replaced only when done."""
        write_file(path, AUTO_FILE, {"n_features": self.n_features, "alpha": self.alpha}, self._state._asdict())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the learner that a file holds; it learns on as if it had never been saved."""
        with open_saved(path, AUTO_FILE) as (header, arrays):
            if arrays["memory"].shape != (header["n_features"], held_out.COLUMNS):  # before one of that size is made
                raise DamagedFileError("another number of features")
            agent = cls(header["n_features"], header["alpha"])
            wanted = {name: array.shape for name, array in agent._state._asdict().items()}
            if {name: array.shape for name, array in arrays.items()} != wanted:
                raise DamagedFileError("other arrays")
            if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values()):
                raise DamagedFileError("arrays that are not finite numbers")
            agent._state = HeldOut(**arrays)
            return agent
