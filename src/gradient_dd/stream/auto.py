"""AutoLearner: a learner with nothing to tune.

Up to 250 features it solves the TD equations by least squares, with as much ridge as the data ask for. With more it
runs TD and GTD2 side by side at several step sizes, and solves the same equations for the best mix of their averages.
`engine/auto_state.py` has the sums, `stream/shrinkage.py` the solution, docs/auto-learner.md what it is worth.
"""

from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from gradient_dd.arrays import Array, check_memory
from gradient_dd.engine import auto_state
from gradient_dd.engine.auto_state import AGE, FIRST_GTD2, FOURTHS, KEPT, NEXT, RESIDUAL, SQUARES, WEIGHTS, AutoState
from gradient_dd.errors import DivergedError, boolean, must, number, show, whole_number
from gradient_dd.files import DamagedFileError, FileKind, open_saved, write_file
from gradient_dd.stream.shrinkage import EquationMeans, shrunk_solution
from gradient_dd.stream.transitions import flat_transitions, predicted, single_row, start_weights

AUTO_FILE = FileKind("auto learner", "an AutoLearner saved by gradient-dd", 2)
FEW_FEATURES = 250  # up to so many it keeps p² numbers, unless it is asked not to


class Rung(NamedTuple):
    """What takes part in the weights: "still", "lstd", "td" or "gtd2", and its multiple of the unit of step sizes."""

    learner: str
    multiple: float


class AutoLearner:
    """A learner to feed one transition at a time, whose rule and step size need no choice.

    n_features  length of the feature vectors
    alpha       unit of the step sizes of rungs, in place of 0.3 over the mean of max(1, ρ) ‖x‖²
    quadratic   whether to keep p² numbers and solve for all weights, or to mix rungs; left out, the first up to 250
                features and where no alpha is given
    initial_w   (n_features,) or a number; default 0

    >>> agent = AutoLearner(n_features=2)
    >>> agent.update([1, 0], reward=1.0, discount=0.9, x_next=[0, 1])
    1.0
    """

    def __init__(
        self, n_features: int, alpha: float | None = None, *, quadratic: bool | None = None, initial_w: Any = 0.0
    ) -> None:
        p = self.n_features = whole_number("'n_features'", n_features)
        rule = "be a positive number"
        self.alpha = None if alpha is None else number("'alpha'", rule, alpha, low=0.0, positive=True)
        few = p <= FEW_FEATURES and alpha is None
        self.quadratic = few if quadratic is None else boolean("'quadratic'", quadratic)
        if self.quadratic and alpha is not None:
            raise must("'alpha'", "be left out where 'quadratic' is true", alpha, "Least squares have no step size.")
        size = 8.0 * p * (3.0 * p + 4.0 if self.quadratic else auto_state.COLUMNS)
        check_memory(f"An AutoLearner of {show(p)} features", size, "Use fewer features.")
        self._state = AutoState.begin(start_weights(initial_w, p), self.quadratic)

    def __repr__(self) -> str:
        alpha = "" if self.alpha is None else f"alpha={self.alpha:g}, "
        return f"<AutoLearner {alpha}{self.n_features} features, {self.updates} updates, mostly {self.choice}>"

    @property
    def updates(self) -> int:
        """How many transitions it has learnt from."""
        return int(self._state.numbers[auto_state.STEPS])

    @property
    def resets(self) -> int:
        """How often it found that the stream had changed, and forgot what it had measured."""
        return int(self._state.numbers[auto_state.RESETS])

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """What takes part in the weights: the first weights, which stand still, and least squares or the rungs."""
        if self.quadratic:
            return Rung("still", 0.0), Rung("lstd", 1.0)
        moving = (Rung("td" if k < FIRST_GTD2 else "gtd2", float(m)) for k, m in enumerate(self._state.rungs[0]))
        return Rung("still", 0.0), *moving

    @property
    def shares(self) -> Array:
        """(rungs,) the share of each of `rungs` in the weights that are read out, of sum 1; some may be negative."""
        moving = self._state.numbers[KEPT : KEPT + 1] if self.quadratic else self._state.vectors[2]
        return np.concatenate([[1.0 - moving.sum()], moving])

    @property
    def choice(self) -> Rung:
        """The one of `rungs` with the largest share."""
        return self.rungs[int(np.argmax(self.shares))]

    @property
    def residual(self) -> float:
        """The projected TD error of what is read out, with its noise, at the last reading: 0 before it."""
        return float(self._state.numbers[RESIDUAL])

    @property
    def w(self) -> Array:
        """(p,) the weights that are read out; a copy."""
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
        done, numbers = 0, self._state.numbers
        while done < len(deltas):
            done += self._state.advance(self.alpha or 0.0, x, x_next, columns, deltas, done)
            if numbers[AGE] >= numbers[NEXT]:
                self._read()
            elif done < len(deltas):
                what = f"a feature, a ratio or a TD error of its first weights beyond {auto_state.FAR:g}"
                raise DivergedError(f"{self!r} met {what}. What came before is learnt.")

    def _read(self) -> None:
        """Solve for v, and note when to do so next."""
        _, (A, C, D, Q), (b, h, v, _), numbers, _ = self._state
        t, weights, squares = numbers[AGE], numbers[WEIGHTS], numbers[SQUARES]
        worth = t if self.quadratic else 0.75 * t  # steps of weight 1 that have as little noise
        events = squares**2 / numbers[FOURTHS] if numbers[FOURTHS] > 0 else 0.0
        A, b, C, D, h = (one / weights for one in (A, b, C, D, h))
        means = EquationMeans(A, b, C, D, h, squares / weights, worth, events * worth / weights)
        v[:], numbers[KEPT], numbers[RESIDUAL], Q[:] = shrunk_solution(means)
        numbers[NEXT] = t + max(1, int(auto_state.GROWTH * t), len(b) // auto_state.APART)

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything it knows to one file (.npz, no pickle); an older file is replaced only when done."""
        header = {"n_features": self.n_features, "alpha": self.alpha, "quadratic": self.quadratic}
        write_file(path, AUTO_FILE, header, self._state._asdict())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the learner that a file holds; it learns on as if it had never been saved."""
        with open_saved(path, AUTO_FILE) as (header, arrays):
            if len(arrays["memory"]) != header["n_features"]:  # before one of that size is made
                raise DamagedFileError("another number of features")
            agent = cls(header["n_features"], header["alpha"], quadratic=header["quadratic"])
            wanted = {name: array.shape for name, array in agent._state._asdict().items()}
            if {name: array.shape for name, array in arrays.items()} != wanted:
                raise DamagedFileError("other arrays")
            if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values()):
                raise DamagedFileError("arrays that are not finite numbers")
            for name, array in arrays.items():
                getattr(agent._state, name)[...] = array
            return agent
