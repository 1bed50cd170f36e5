"""AutoLearner: an online learner without parameters to tune.

With up to 250 features it solves the TD equations by LSTD and uses as much of the solution as the data support. With
more it runs TD and GTD2 at several step sizes in parallel ("rungs"), and solves the same equations for the best mixture
of the rungs' averages. Sums: `engine/auto.py`; solution: `stream/shrinkage.py`; trial: docs/evidence/auto-learner.md.
"""

from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np

from gradient_dd.arrays import Array, check_memory
from gradient_dd.engine.auto import AT, COLUMNS, FAR, FIRST, FIRST_GTD2, AutoState
from gradient_dd.errors import DivergedError, boolean, number, show, whole_number
from gradient_dd.files import DamagedFileError, FileKind, open_saved
from gradient_dd.stream.features import Features, checked_map, mapped
from gradient_dd.stream.learner_file import Saved, described_map, put_back, saved_map, saved_size
from gradient_dd.stream.shrinkage import EquationMeans, shrunk_solution
from gradient_dd.stream.transitions import checked_numbers, flat_transitions, predicted, rows_of_step, start_weights

FEW_FEATURES = 250  # default limit for `quadratic`, which stores 2p² numbers
GROWTH, APART = 0.05, 2  # solve again when the age has grown by this share, and by len(v) / APART steps
WINDOW, FEW = 500, 8  # steps per window of change detection; windows before the first detection
JUMP, DOUBT = 1.3, 6.0  # Σ (ρδ)² of a window has jumped if above JUMP × mean + DOUBT × standard deviation


class Rung(NamedTuple):
    """A component of the weights: "still", "lstd", "td" or "gtd2", and its step size in multiples of the unit."""

    learner: str
    multiple: float


class AutoLearner(Saved):
    """Online learner that needs no choice of a rule or a step size.

    n_features  length of the feature vectors
    alpha       initial step size. For least squares, the ridge is 1/alpha for a feature of mean size; default: a ridge
                of 0.1 transitions. For rungs, alpha is the unit of step sizes; default: 0.3 over the mean of
                max(1, ρ) ‖x‖²
    quadratic   True: store 2p² numbers and solve for all weights. False: mix rungs. Default: True up to 250 features
    initial_w   (n_features,) or a number; default 0
    features    the map that computes the feature vectors; it is saved with the learner

    >>> agent = AutoLearner(n_features=2)
    >>> agent.update([1, 0], reward=1.0, discount=0.9, x_next=[0, 1])
    1.0
    """

    file = FileKind("auto learner", "an AutoLearner saved by gradient-dd", 4)

    def __init__(
        self,
        n_features: int,
        alpha: float | None = None,
        *,
        quadratic: bool | None = None,
        initial_w: Any = 0.0,
        features: Features | None = None,
    ) -> None:
        p = self.n_features = whole_number("'n_features'", n_features)
        rule = "be a positive number"
        self.alpha = None if alpha is None else number("'alpha'", rule, alpha, low=0.0, positive=True)
        self.quadratic = p <= FEW_FEATURES if quadratic is None else boolean("'quadratic'", quadratic)
        size = 8 * p * (2 * p + 6 if self.quadratic else COLUMNS)
        check_memory(f"An AutoLearner of {show(p)} features", size, "Use fewer features.")
        self.features = checked_map(features, p)
        self._state = AutoState.begin(start_weights(initial_w, p), self.quadratic)

    def forget(self) -> None:
        """Forget everything learnt."""
        self._state = AutoState.begin(self._state.memory[:, FIRST], self.quadratic)

    def __repr__(self) -> str:
        alpha = "" if self.alpha is None else f"alpha={self.alpha:g}, "
        return f"<AutoLearner {alpha}{self.n_features} features, {self.updates} updates, mostly {self.choice}>"

    def _facts(self) -> dict[str, Any]:
        facts = {"alpha": self.alpha, "features": self.n_features, "updates": self.updates, "resets": self.resets}
        return {**facts, "mostly": f"{self.choice.learner}, share {self.shares.max():.3g}", "residual": self.residual}

    @property
    def updates(self) -> int:
        """Number of transitions learnt from."""
        return int(self._state.numbers[AT.steps])

    @property
    def resets(self) -> int:
        """Number of detected changes of the stream; each resets the equations and averages."""
        return int(self._state.numbers[AT.resets])

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """The components of the weights: the fixed initial weights, and either least squares or the rungs."""
        if self.quadratic:
            return Rung("still", 0.0), Rung("lstd", 1.0)
        moving = (Rung("td" if k < FIRST_GTD2 else "gtd2", float(m)) for k, m in enumerate(self._state.rungs[0]))
        return Rung("still", 0.0), *moving

    @property
    def shares(self) -> Array:
        """(rungs,) the share of each of `rungs` in `w`; shares sum to 1, and some may be negative."""
        share, v = self._state.numbers[[AT.share]], self._state.vectors[2]
        moving = share if self.quadratic else share * v
        return np.concatenate([[1.0 - moving.sum()], moving])

    @property
    def choice(self) -> Rung:
        """The component with the largest share."""
        return self.rungs[int(np.argmax(self.shares))]

    @property
    def residual(self) -> float:
        """The projected TD error of `w`, including noise, at the last solution of the equations; 0 before the first."""
        return float(self._state.numbers[AT.residual])

    @property
    def w(self) -> Array:
        """(p,) a copy of the weights."""
        return self._state.read_out()

    def predict(self, x: Any = None, *, observation: Any = None, observations: Any = None) -> Any:
        """Return x·w; arguments as in `Learner.predict`."""
        x = mapped(self.features, "observations", observations, observation) if x is None else x
        return predicted(x, self.n_features, self._state.read_out)

    def update(
        self,
        x: Any,
        reward: float,
        discount: float,
        x_next: Any,
        rho: float = 1.0,
        *,
        terminated: bool = False,
        truncated: bool = False,
    ) -> float:
        """Learn from one transition, and return its TD error before the update. Arguments as in `Learner.update`.

        There is no trace, so `truncated` has no effect. An invalid argument changes nothing.
        """
        reward, discount, rho, _ = checked_numbers(reward, discount, rho, terminated, truncated)
        here, there = rows_of_step(x, x_next, discount, self.n_features)
        deltas = np.empty(1)
        columns = np.array([reward]), np.array([discount]), np.array([rho])
        self._advance(here, there, columns, deltas)
        return float(deltas[0])

    def update_many(
        self,
        x: Any,
        reward: Any,
        discount: Any,
        x_next: Any,
        rho: Any = None,
        *,
        terminated: Any = False,
        truncated: Any = False,
    ) -> Array:
        """Learn from n transitions, one after the other, and return their TD errors (n,).

        The result is bit-identical to `update` for each transition. Arguments as in `Learner.update_many`. An invalid
        argument changes nothing.
        """
        ratio = 1.0 if rho is None else rho
        data, _ = flat_transitions(x, reward, discount, x_next, ratio, self.n_features, terminated, truncated)
        deltas = np.empty(len(data.reward))
        for where, piece in data.pieces():
            self._advance(piece.x, piece.x_next, (piece.reward, piece.discount, piece.rho), deltas[where])
        return deltas

    def _advance(self, x: Any, x_next: Any, columns: tuple[Array, ...], deltas: Array) -> None:
        done, numbers = 0, self._state.numbers
        while done < len(deltas):
            done += self._state.advance(self.alpha or 0.0, x, x_next, columns, deltas, done)
            if numbers[AT.age] >= numbers[AT.stop]:
                self._look()
            elif done < len(deltas):
                what = f"a feature, a ratio or a TD error of its initial weights beyond {FAR:g}"
                raise DivergedError(f"{self!r} received {what}. It has learnt all earlier transitions.")

    def _look(self) -> None:
        """Check for a change of the stream and solve the equations, each only when it is due."""
        numbers, age = self._state.numbers, self._state.numbers[AT.age]
        if age >= numbers[AT.window_begin] + WINDOW and self._changed():
            self._state.forget()
            return
        if age >= numbers[AT.next]:
            v = self._state.vectors[2]
            solution = shrunk_solution(self._means(), self.alpha if self.quadratic else None)
            v[:], numbers[AT.share], numbers[AT.residual] = solution
            numbers[AT.next] = age + max(1, int(GROWTH * age), len(v) // APART)
        numbers[AT.stop] = min(numbers[AT.next], numbers[AT.window_begin] + WINDOW)

    def _means(self) -> EquationMeans:
        """Return the terms of the equations. A mean with weights 1, …, n is as noisy as an equal mean of 3n/4 terms."""
        _, A, S, (b, c, _, _, e), numbers, _ = self._state
        weights, t = numbers[AT.weights], float(0.75 * numbers[AT.age])
        events = numbers[AT.squares] ** 2 / numbers[AT.fourths] if numbers[AT.fourths] > 0 else 0.0
        A, b, c, S, e = (one / weights for one in (A, b, c, S, e))
        return EquationMeans(A, b, c, S, e, float(numbers[AT.first] / weights), t, float(events))

    def _changed(self) -> bool:
        """Return whether the stream changed in the window that ends here, and begin the next window.

        Two signs are required: Σ (ρδ)² is far above earlier windows, and Σ ρδz is larger than noise alone explains.
        """
        numbers, pull = self._state.numbers, self._state.vectors[3]
        square, count = numbers[AT.window_squares], max(1.0, numbers[AT.windows])
        usual = numbers[AT.windows_sum] / count
        spread = np.sqrt(max(0.0, numbers[AT.windows_squares] / count - usual**2))
        jumped = count >= FEW and square > JUMP * usual + (1 + FEW / count) * DOUBT * spread
        pulled = jumped and self._means().length(pull) > np.count_nonzero(pull) * square
        numbers[[AT.window_begin, AT.window_squares]] = numbers[AT.age], 0.0
        numbers[[AT.windows, AT.windows_sum, AT.windows_squares]] += 1.0, square, square * square
        pull[:] = 0.0
        return bool(pulled)

    def _contents(self) -> tuple[dict[str, Any], dict[str, Array]]:
        header = {"n_features": self.n_features, "alpha": self.alpha, "quadratic": self.quadratic}
        return header | {"features": described_map(self.features)}, self._state._asdict()

    @classmethod
    def load(cls, path: str | PathLike[str], *, features: Features | None = None) -> Self:
        """Return a saved learner; it continues as if it had never been saved.

        The file does not contain a feature function of your own: pass it again as `features`.
        """
        with open_saved(path, cls.file) as (header, arrays):
            options = {"quadratic": header["quadratic"], "features": saved_map(path, header["features"], features)}
            agent = cls(saved_size(header, arrays["memory"]), header["alpha"], **options)
            put_back(agent._state._asdict(), arrays)
            counts = agent._state.numbers[[AT.age, AT.steps, AT.resets]]
            if ((counts < 0) | (counts % 1 > 0)).any():
                raise DamagedFileError("counts that are not whole")
            return agent
