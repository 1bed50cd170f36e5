"""AutoLearner: a learner with nothing to tune.

Up to 250 features it solves the TD equations by LSTD, and adds as much of the solution as the data support. With more
it runs TD and GTD2 side by side at several step sizes, and solves the same equations for the best mix of their
averages. `engine/auto.py` has the sums, `stream/shrinkage.py` the solution, docs/evidence/auto-learner.md a trial.
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

FEW_FEATURES = 250  # up to so many it keeps 2p² numbers, unless it is asked not to
GROWTH, APART = 0.05, 2  # sums are read when the age has grown by this share, and 1/APART steps for each number of v
WINDOW, FEW = 500, 8  # steps of a window in which a change may be seen; not in the first few windows
JUMP, DOUBT = 1.3, 6.0  # Σ (ρδ)² of a window has jumped where it is above JUMP times its mean, and DOUBT deviations


class Rung(NamedTuple):
    """What takes part in the weights: "still", "lstd", "td" or "gtd2", and its multiple of the unit of step sizes."""

    learner: str
    multiple: float


class AutoLearner(Saved):
    """A learner to feed one transition at a time, whose rule and step size need no choice.

    n_features  length of the feature vectors
    alpha       a step size to begin with. Least squares: 1 over the ridge of a feature of mean size, in place of a
                tenth of a transition. Rungs: the unit of their step sizes, in place of 0.3 over the mean of
                max(1, ρ) ‖x‖²
    quadratic   whether to keep 2p² numbers and solve for all weights, or to mix rungs; left out, the first up to 250
                features
    initial_w   (n_features,) or a number; default 0
    features    the map that makes the feature vectors, to be saved with the learner

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
        """How many transitions it has learnt from."""
        return int(self._state.numbers[AT.steps])

    @property
    def resets(self) -> int:
        """How often it found that the stream had changed, and forgot what it had measured."""
        return int(self._state.numbers[AT.resets])

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """What takes part in the weights: the initial weights, which stand still, and least squares or the rungs."""
        if self.quadratic:
            return Rung("still", 0.0), Rung("lstd", 1.0)
        moving = (Rung("td" if k < FIRST_GTD2 else "gtd2", float(m)) for k, m in enumerate(self._state.rungs[0]))
        return Rung("still", 0.0), *moving

    @property
    def shares(self) -> Array:
        """(rungs,) the share of each of `rungs` in the weights that are read out, of sum 1; some may be negative."""
        share, v = self._state.numbers[[AT.share]], self._state.vectors[2]
        moving = share if self.quadratic else share * v
        return np.concatenate([[1.0 - moving.sum()], moving])

    @property
    def choice(self) -> Rung:
        """The one of `rungs` with the largest share."""
        return self.rungs[int(np.argmax(self.shares))]

    @property
    def residual(self) -> float:
        """The projected TD error of what is read out, with its noise, at the last reading: 0 before it."""
        return float(self._state.numbers[AT.residual])

    @property
    def w(self) -> Array:
        """(p,) the weights that are read out; a copy."""
        return self._state.read_out()

    def predict(self, x: Any = None, *, observation: Any = None, observations: Any = None) -> Any:
        """Return x·w, as `Learner.predict` does."""
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
        """Learn from one transition; return the TD error of what was read out before. Arguments as in `Learner.update`.

        It keeps no trace, so that `truncated` makes no difference. Nothing changes if an argument is refused.
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

        The result is that of `update` for each of them, to the bit. Arguments as in `Learner.update_many`. Nothing
        changes if an argument is refused.
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
                raise DivergedError(f"{self!r} met {what}. What came before is learnt.")

    def _look(self) -> None:
        """See whether the stream has changed, and solve the equations, where the time has come for it."""
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
        """Return what the equations are made of. Weights s have the noise of 3/4 as many of weight 1."""
        _, A, S, (b, c, _, _, e), numbers, _ = self._state
        weights, t = numbers[AT.weights], float(0.75 * numbers[AT.age])
        events = numbers[AT.squares] ** 2 / numbers[AT.fourths] if numbers[AT.fourths] > 0 else 0.0
        A, b, c, S, e = (one / weights for one in (A, b, c, S, e))
        return EquationMeans(A, b, c, S, e, float(numbers[AT.first] / weights), t, float(events))

    def _changed(self) -> bool:
        """Return whether the stream has changed, by two signs in the window that ends here; begin the next window.

        Σ (ρδ)² is far above earlier windows, and Σ ρδz, which is 0 except for noise, is no smaller than that.
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
        """Return the learner that a file holds; it continues as if it had never been saved.

        A feature function of your own is not in the file: give it again.
        """
        with open_saved(path, cls.file) as (header, arrays):
            options = {"quadratic": header["quadratic"], "features": saved_map(path, header["features"], features)}
            agent = cls(saved_size(header, arrays["memory"]), header["alpha"], **options)
            put_back(agent._state._asdict(), arrays)
            counts = agent._state.numbers[[AT.age, AT.steps, AT.resets]]
            if ((counts < 0) | (counts % 1 > 0)).any():
                raise DamagedFileError("counts that are not whole")
            return agent
