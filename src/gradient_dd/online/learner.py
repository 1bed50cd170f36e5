"""Learner: any rule, step by step, on transitions from anywhere.

Features may be dense or sparse, (indices, values). A sparse update costs O(non-zeros) for every learner that is
linear in time, whatever n_features: the shrinking of η (GTD, TDRC) is one scale for all of it, and Gradient-DD's
w − w_prev is kept as a vector of which only the last step's non-zeros are ever touched.
"""

from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array
from gradient_dd.engine.metric import Metric
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.errors import DivergedError, Words, must, number, show, whole_number
from gradient_dd.learners import Rule, find
from gradient_dd.online.learner_file import read_learner, write_learner

LIMIT = 1e150  # a weight that would move further in one step has diverged: its square is still finite
SCALE_RANGE = (1e-150, 1e150)  # of the common scale of η, before it is multiplied out
KNOWN_SIGNALS = ("alpha", "beta", "rho", "rho_x", "discount", "delta", "x_eta", "x_change")
KNOWN_MOVES = ("w_x", "w_next", "eta_x", "eta_eta")
REMEMBERED = 64  # updates after which a vanishing η is cleared as a whole, not where it was touched


class Features(NamedTuple):
    """Where a feature vector is not zero (an index array, or a slice for all of it), and its values there."""

    where: Any
    values: Array


class Learner:
    """A learner to feed one transition at a time.

    learner     a name in `LEARNERS`, or a Rule of your own
    n_features  length of the feature vectors
    initial_w   (n_features,) or a number; default 0
    schedule    factor on alpha; an update with discount 0 ends an episode
    rho_mode    "R" or "T": where the importance ratio stands in the GTD2 family
    parameters  the learner's own: alpha, zeta, kappa, reg, ...

    >>> agent = Learner("gradient_dd", n_features=2, alpha=0.5)
    >>> agent.update([1, 0], reward=1.0, discount=0.9, x_next=[0, 1])
    1.0
    >>> agent.eta
    array([0.5, 0. ])
    """

    def __init__(
        self,
        learner: str | Rule,
        n_features: int,
        *,
        initial_w: Any = 0.0,
        schedule: Schedule = constant,
        rho_mode: str = "R",
        **parameters: Any,
    ) -> None:
        self.setting = find(learner).setting(rho_mode=rho_mode, **parameters)
        self.rule.check_known("`Learner`", KNOWN_SIGNALS, KNOWN_MOVES)
        self.n_features = whole_number("'n_features'", n_features)
        self.schedule = check_schedule(schedule)
        self._initial_w = self._start_weights(initial_w)
        self.reset()

    def __repr__(self) -> str:
        return f"<Learner {self.setting}, {self.n_features} features, {self.updates} updates>"

    def reset(self) -> None:
        """Forget everything learnt."""
        p = self.n_features
        self._w = self._initial_w.copy()
        self._eta, self._scale = np.zeros(p), 1.0  # η is their product
        self._touched: list[Any] = []  # where η moved since it last was zero; REMEMBERED + 1 entries mean anywhere
        self._change = np.zeros(p)  # w − w_prev
        self._changed: tuple[Any, ...] = ()  # where that is not zero
        self._metric = Metric(p, self.setting.values["ridge"]) if self.rule.natural else None
        self.updates = 0
        self.episodes = 0

    @property
    def rule(self) -> Rule:
        """The rule it follows."""
        return self.setting.rule

    @property
    def w(self) -> Array:
        """(p,) the primary weights; read only, and a view: copy it to keep it."""
        view = self._w.view()
        view.setflags(write=False)
        return view

    @property
    def eta(self) -> Array:
        """(p,) the secondary weights, a copy; zeros for a learner that has none."""
        return self._scale * self._eta

    def predict(self, x: Any) -> Any:
        """Return x·w: a number for one feature vector, (n,) for the n rows of a dense or SciPy sparse matrix."""
        if isinstance(x, tuple):
            features = self._features("x", x)
            return float(features.values @ self._w[features.where])
        matrix = x if sp.issparse(x) else numbers("X", x)
        if matrix.ndim not in (1, 2) or matrix.shape[-1] != self.n_features:
            rule = f"be ({self.n_features},) or (n, {self.n_features})"
            raise must("The shape of 'X'", rule, matrix.shape)
        values = matrix @ self._w
        return float(values) if matrix.ndim == 1 else values

    def update(
        self, x: Any, reward: float, discount: float, x_next: Any, rho: float = 1.0, *, ended: bool | None = None
    ) -> float:
        """Learn from one transition, and return its TD error.

        `discount` is the continuation discount into the next state, 0 where the episode ended; x_next is then
        not used and may be None. `rho` is π(a|s) / μ(a|s) of the action taken. `ended` says whether an episode
        ended, for schedules that count them; default: where discount is 0. Nothing changes if an argument is
        refused, or if the step would diverge (DivergedError).
        """
        reward = number("'reward'", "be a finite number", reward)
        discount = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
        rho = number("'rho'", "be a number that is zero or more", rho, low=0.0)
        here = self._features("x", x)
        nowhere = x_next is None and discount == 0
        there = Features(slice(0), np.empty(0)) if nowhere else self._features("x_next", x_next)

        n = self.updates if self.schedule.per == "step" else self.episodes
        signals = self.setting.signals(self.schedule.factor(n + 1), rho)
        with np.errstate(over="ignore", invalid="ignore"):
            signals["discount"] = discount
            bootstrap = discount * (there.values @ self._w[there.where]) if discount else 0.0
            delta = float(reward + bootstrap - here.values @ self._w[here.where])
            signals["delta"] = delta
            signals["x_eta"] = float(self._scale * (here.values @ self._eta[here.where]))
            signals["x_change"] = float(here.values @ self._change[here.where])
            move = self.rule.coefficients(signals)
            self._check_finite(here, there, move)
        self._move_w(here, there, move["w_x"], move["w_next"])
        self._move_eta(here, move["eta_x"], move["eta_eta"])
        self.updates += 1
        self.episodes += bool(discount == 0 if ended is None else ended)
        return delta

    def _check_finite(self, here: Features, there: Features, move: dict[str, float]) -> None:
        """Raise if a step would move a weight by more than LIMIT, or scale η beyond it."""
        reach = {"w_x": here, "w_next": there, "eta_x": here}
        steps = {name: abs(move[name]) * np.abs(along.values).max(initial=0.0) for name, along in reach.items()}
        scale = abs(self._scale * (1.0 + move["eta_eta"]))
        if scale >= SCALE_RANGE[1]:
            steps["eta_eta"] = scale * np.abs(self._eta).max()
        for name, step in steps.items():
            if not step <= LIMIT:
                raise DivergedError(
                    f"{self.setting} diverged at update {self.updates + 1}: {name} moves by {show(float(step))}. "
                    "The last finite weights are kept. Try a smaller alpha."
                )

    def _move_w(self, here: Features, there: Features, w_x: float, w_next: float) -> None:
        if self._metric:
            x, x_next = self._dense(here), self._dense(there)
            self._metric.observe(x)
            here = Features(slice(None), self._metric.direction(x))
            there = Features(slice(None), self._metric.direction(x_next))
        for where in self._changed:
            self._change[where] = 0.0
        for (where, values), coefficient in ((here, w_x), (there, w_next)):
            if coefficient:
                self._w[where] += coefficient * values
                self._change[where] += coefficient * values
        self._changed = (here.where, there.where)

    def _move_eta(self, here: Features, eta_x: float, eta_eta: float) -> None:
        shrink = 1.0 + eta_eta
        self._scale *= shrink
        if shrink == 0:
            self._clear_eta()
        elif not SCALE_RANGE[0] < abs(self._scale) < SCALE_RANGE[1]:
            self._eta *= self._scale
            self._scale = 1.0
        if eta_x:
            self._eta[here.where] += (eta_x / self._scale) * here.values
            self._touched.append(here.where)
            del self._touched[REMEMBERED + 1 :]

    def _clear_eta(self) -> None:
        """Set η to zero; where few updates touched it since it last was, those places alone."""
        for where in self._touched if len(self._touched) <= REMEMBERED else [slice(None)]:
            self._eta[where] = 0.0
        self._touched.clear()
        self._scale = 1.0

    def _dense(self, features: Features) -> Array:
        x = np.zeros(self.n_features)
        x[features.where] = features.values
        return x

    def _features(self, name: str, x: Any) -> Features:
        """Return checked features, dense or sparse."""
        p = self.n_features
        if not isinstance(x, tuple):
            values = numbers(name, x)
            if values.shape != (p,):
                raise must(f"The shape of {name!r}", f"be ({p},)", values.shape)
            return Features(slice(None), values)
        if len(x) != 2:
            raise must(f"Sparse {name!r}", "be a pair (indices, values)", x)
        where, values = np.array(x[0]), numbers(f"values of {name}", x[1])  # a copy: the next update looks at it
        if where.size == 0:
            where = where.astype(int)
        if where.dtype.kind not in "iu" or where.ndim != 1 or where.shape != values.shape:
            raise must(f"Sparse {name!r}", "have as many whole indices as values", x)
        if where.size and not (where.min() >= 0 and where.max() < p):
            raise must(f"The indices of {name!r}", f"be from 0 to {p - 1}", where)
        ordered = np.sort(where)
        if (ordered[1:] == ordered[:-1]).any():
            raise must(f"The indices of {name!r}", "differ", where, "Add up the values of equal indices.")
        return Features(where, values)

    def _start_weights(self, initial_w: Any) -> Array:
        weights = numbers("initial_w", initial_w)
        if weights.shape not in ((), (self.n_features,)):
            raise must("The shape of 'initial_w'", f"be () or ({self.n_features},)", weights.shape)
        return np.array(np.broadcast_to(weights, self.n_features))

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything it knows to one file (.npz, no pickle); an older file is replaced only when done."""
        state = {"w": self._w, "initial_w": self._initial_w, "eta": self._eta, "change": self._change}
        if self._metric:
            state["metric"] = self._metric.inverse
        counts = {"updates": self.updates, "episodes": self.episodes, "scale": self._scale}
        write_learner(path, self.setting, self.n_features, self.schedule, counts, state)

    @classmethod
    def load(cls, path: str | PathLike[str], *, learner: Rule | None = None, schedule: Schedule | None = None) -> Self:
        """Read a saved learner; it goes on as if it had never stopped.

        A rule or a schedule function of your own is not in the file: give it again.
        """
        saved = read_learner(path, learner, schedule)
        agent = cls(
            saved.rule,
            saved.n_features,
            initial_w=saved.state["initial_w"],
            schedule=saved.schedule,
            rho_mode=saved.rho_mode,
            **saved.values,
        )
        agent._w, agent._eta, agent._change = (saved.state[name].copy() for name in ("w", "eta", "change"))
        agent._changed = (np.flatnonzero(agent._change),)
        agent.updates, agent.episodes = saved.counts["updates"], saved.counts["episodes"]
        agent._scale, agent._touched = saved.counts["scale"], [slice(None)]
        if agent._metric:
            agent._metric.inverse, agent._metric.count = saved.state["metric"], agent.updates
        return agent


def numbers(name: str, value: Any) -> Array:
    """Return a finite float array, or raise."""
    if value is None or sp.issparse(value):
        got = Words("None" if value is None else "a SciPy matrix")
        raise must(f"{name!r}", "be a vector, or a pair (indices, values)", got)
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise must(f"{name!r}", "be numbers", value) from None
    if not np.isfinite(array).all():
        raise must(f"{name!r}", "be finite", array[~np.isfinite(array)][0])
    return array
