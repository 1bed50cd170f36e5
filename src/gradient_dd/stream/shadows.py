"""ShadowLearner: a learner that measures, while it learns, which learner it should be.

It runs a few learners side by side on the same transitions, TD, GTD2 and some between them, at several step sizes, and
averages of some of them: the rungs of a ladder (`engine/ladder.py`). Each rung k has beside its own weights w_k

    bias shadows    copies that get no reward and start from a random vector d. Such a copy *is* the error of the rung
                    without its noise: it shrinks as the rung forgets where it began, and grows where the rung diverges
    a noise shadow  a copy that starts at 0 and gets ±δ for a reward, with random signs, δ being the TD error of the
                    present choice (without an alpha: less what x foretells of it): how far it moves is what noise does
    a growth shadow a bias shadow that is left alone: what it grows by in the last part of the run is where a rung leads

Every BLOCK steps the squared values of the shadows at the states visited are averaged, and

    predicted error² of rung k = (caution B² (bias level of k) + noise level of k) · max(1, growth of k)²

B² being a mean square of x·(w − w₀) and δ in a block: the size of the initial error. The rung with the smallest one is
the choice. What is read out is the mean of all rungs, weighted by one over the square of that prediction: it consists
mostly of the rungs that are nearly as good as the choice. A rung whose predicted error is more than WORSE times the
smallest starts again from the best: weights, bias shadows and noise shadow. So a rung that diverges is brought back,
and a slow rung with little noise goes on from where a quick one has come. Some rungs are averages of others. Without
an alpha most rungs have a wrong step size. Then one stands still, and a rung that was brought back must wait before it
can be chosen, twice as long each time.

All is O(non-zeros) a step; a choice is O(p) every BLOCK steps.
"""

from os import PathLike
from typing import Any, Self

import numpy as np

from gradient_dd.arrays import Array, numbers
from gradient_dd.engine import ladder
from gradient_dd.engine.ladder import STARTS, Rung
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.errors import DivergedError, boolean, must, number, whole_number
from gradient_dd.files import DamagedFileError, FileKind, open_saved, write_file
from gradient_dd.stream.learner import LIMIT
from gradient_dd.stream.learner_file import described_schedule, saved_schedule
from gradient_dd.stream.shadow_copies import ShadowCopies
from gradient_dd.stream.transitions import checked_features, start_weights

SHADOW_FILE = FileKind("shadow learner", "a ShadowLearner saved by gradient-dd", 3)


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
        start = start_weights(initial_w, p)
        self._random = np.random.default_rng(whole_number("'seed'", seed, at_least=0))
        self._signs = np.random.PCG64DXSM(seed)
        self.updates = self.episodes = 0
        kept = ladder.WIDE if alpha is None else ladder.NARROW
        self._copies = ShadowCopies(kept, start, self._random_vectors())

    def __repr__(self) -> str:
        alpha = "" if self.alpha is None else f"alpha={self.alpha:g}, "
        return f"<ShadowLearner {alpha}{self.n_features} features, {self.updates} updates, now {self.choice}>"

    def _random_vectors(self) -> Array:
        return self._random.standard_normal((self.n_features, STARTS))

    def restart_shadows(self) -> None:
        """Start all shadows but the noise's again: for a stream that is known to have changed. The weights stay."""
        self._copies.restart(self._random_vectors())

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """The learners it chooses from."""
        return self._copies.ladder.rungs

    @property
    def choice(self) -> Rung:
        """The rung whose predicted error is smallest now."""
        return self.rungs[self._copies.chosen]

    @property
    def w(self) -> Array:
        """(p,) the weights that are read out: those of all rungs, each with its share; a copy."""
        return self._copies.read_out()

    @property
    def shares(self) -> Array:
        """(rungs,) the share of every rung in the weights that are read out; a copy."""
        return self._copies.shares.copy()

    @property
    def eta(self) -> Array:
        """(p,) the secondary weights of the present choice; a copy."""
        return self._copies.eta[:, self._copies.own()].copy()

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
        sign = 1.0 if self._signs.random_raw() & 1 else -1.0
        with np.errstate(over="ignore", invalid="ignore"):
            delta = self._copies.step(
                here, x_values, there, next_values, reward, discount, rho, self.alpha, factor, sign, self.updates + 1
            )
        if not abs(delta) <= LIMIT:
            raise DivergedError(f"{self!r} diverged: all its rungs did. Try a smaller alpha.")
        self.updates += 1
        self.episodes += ends
        return delta

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything it knows to one file (.npz, no pickle); an older file is replaced only when done."""
        arrays, numbers = self._copies.kept()
        header = {
            "n_features": self.n_features,
            "alpha": self.alpha,
            "schedule": described_schedule(self.schedule),
            "updates": self.updates,
            "episodes": self.episodes,
            "random": self._random.bit_generator.state,
            "signs": self._signs.state,
            "numbers": numbers,
        }
        write_file(path, SHADOW_FILE, header, arrays)

    @classmethod
    def load(cls, path: str | PathLike[str], *, schedule: Schedule | None = None) -> Self:
        """Return the learner that a file holds; it learns on as if it had never been saved.

        A schedule function of your own is not in the file: give it again.
        """
        with open_saved(path, SHADOW_FILE) as (header, arrays):
            if arrays["foretold"].shape != (header["n_features"],):  # before a learner of that size is made
                raise DamagedFileError("another number of features")
            kept = saved_schedule(path, header["schedule"], schedule)
            agent = cls(header["n_features"], header["alpha"], schedule=kept)
            agent.updates = whole_number("'updates'", header["updates"], at_least=0)
            agent.episodes = whole_number("'episodes'", header["episodes"], at_least=0)
            agent._random.bit_generator.state, agent._signs.state = header["random"], header["signs"]
            agent._copies.take(arrays, header["numbers"])
            return agent


def nonzeros(name: str, x: Any, p: int) -> tuple[Any, Array]:
    """Return where a checked feature vector is not zero, in order, and its values there."""
    where, values = checked_features(name, x, p)
    order = np.flatnonzero(values) if isinstance(where, slice) else np.argsort(where)
    return (order if isinstance(where, slice) else where[order]), values[order]
