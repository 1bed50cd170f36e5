"""Learner: any rule, step by step, on transitions from anywhere.

Features may be dense or sparse, (indices, values). A sparse update costs O(non-zeros) for every learner that is
linear in time, whatever n_features: the shrinking of η (GTD, TDRC) is one scale for all of it, and Gradient-DD's
w − w_prev is kept as a vector of which only the last step's non-zeros are ever touched. With a trace it costs
O(non-zeros of the trace); with momentum O(n_features).
"""

from os import PathLike
from typing import Any, Self

import numpy as np

from gradient_dd.arrays import Array, Integers, check_memory
from gradient_dd.engine.reference import KNOWN_MOVES, KNOWN_SIGNALS, Before, Metric
from gradient_dd.engine.schedules import Constant, Schedule, check_schedule, constant
from gradient_dd.engine.stream import NO_INDICES, FlatTransitions, QuickStep, StreamState, advance, blank_memory
from gradient_dd.errors import DivergedError, boolean, number, show, whole_number
from gradient_dd.learners import Rule, find
from gradient_dd.stream.features import Features, checked_map
from gradient_dd.stream.learner_file import SavedLearner, read_learner
from gradient_dd.stream.trace_state import no_traces, product, saved_traces
from gradient_dd.stream.transitions import (
    NONE,
    FeatureVector,
    checked_features,
    checked_probabilities,
    checked_probability_columns,
    coming_factors,
    flat_transitions,
    predicted,
    start_weights,
)

LIMIT = 1e150  # a weight that would move further in one step has diverged: its square is still finite
SCALE_RANGE = (1e-150, 1e150)  # of the common scale of η, before it is multiplied out
PRODUCTS = ("x_x", "x_next", "next_next", "x_z", "z_z")
ALL = slice(None)  # every feature
PLAIN_UPDATES = 100  # before `update` is compiled, which takes seconds once per machine and gives the same bits
REMEMBERED = 64  # updates after which a vanishing η is cleared as a whole, not where it was touched


class Learner:
    """A learner to feed one transition at a time.

    learner     a name in `LEARNERS`, or a Rule of your own
    n_features  length of the feature vectors
    initial_w   (n_features,) or a number; default 0
    schedule    factor on alpha; an update with discount 0 ends an episode
    rho_mode    "R" or "T": where the importance ratio stands in the GTD2 family
    features    the map that makes the feature vectors, to be saved with the learner; `agent.features` gives it back
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
        features: Features | None = None,
        **parameters: Any,
    ) -> None:
        self.setting = find(learner).setting(rho_mode=rho_mode, **parameters)
        self.n_features = p = whole_number("'n_features'", n_features)
        size = 16 * p * p if self.rule.natural else 40 * p
        check_memory(f"A {self.rule.name} learner of {show(p)} features", size, "Use fewer features.")
        self.rule.check_known("`Learner`", KNOWN_SIGNALS, KNOWN_MOVES)
        self.schedule = check_schedule(schedule)
        self.features = checked_map(features, p)
        self._quick: QuickStep | None = None
        self._compiles = self.rule.is_plain and not self.rule.natural  # asked in every update, and slow to find out
        self._uses_change = "x_change" in self.rule.arguments
        self._initial_w = start_weights(initial_w, p)
        self.reset()

    def __repr__(self) -> str:
        return f"<Learner {self.setting}, {self.n_features} features, {self.updates} updates>"

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy needs: not the compiled step, and the memory once."""
        return self.__dict__ | {"_quick": None, "_w": None, "_eta": None, "_change": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._memory = blank_memory(self.n_features)
        self._memory[:] = state["_memory"]
        self._w, self._eta, self._change = self._memory.T[:3]

    def reset(self) -> None:
        """Forget everything learnt."""
        p = self.n_features
        memory = blank_memory(p)  # what one feature needs stands together
        self._memory, self._w, self._eta, self._change = memory, *memory.T[:3]
        self._w[:] = self._initial_w
        self._scale = 1.0  # η is this times self._eta; self._change is w − w_prev
        self._touched: list[Any] = []  # where η moved since it last was zero; REMEMBERED + 1 entries mean anywhere
        self._changed: tuple[Any, ...] = ()  # where self._change is not zero
        self._metric = Metric(p, self.setting.values["ridge"]) if self.rule.natural else None
        self._traces = no_traces(self.rule)
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
        """Return x·w: a number for one feature vector, (n,) for n rows, in any form that `update_many` takes."""
        return predicted(x, self.n_features, self._w.__getitem__)

    def update(
        self,
        x: Any,
        reward: float,
        discount: float,
        x_next: Any,
        rho: float = 1.0,
        pi: float | None = None,
        mu: float | None = None,
        *,
        ended: bool | None = None,
    ) -> float:
        """Learn from one transition, and return its TD error.

        `discount` is the continuation discount into the next state, 0 where the episode ended; x_next is then
        not used and may be None. `rho` is π(a|s) / μ(a|s) of the action taken; `pi` and `mu` are the two
        probabilities, for learners that need them (tree_backup, abtd). `ended` says whether an episode
        ended, for schedules that count them; default: where discount is 0. Nothing changes if an argument is
        refused, or if the step would diverge (DivergedError).
        """
        reward = number("'reward'", "be a finite number", reward)
        discount = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
        rho = number("'rho'", "be a number that is zero or more", rho, low=0.0)
        ends = discount == 0 if ended is None else boolean("'ended'", ended)
        given = pi is not None or mu is not None or self.rule.traces
        probabilities = checked_probabilities(self.rule, rho, pi, mu) if given else (0.0, 0.0)
        delta = self._quick_update(x, reward, discount, x_next, rho)
        if delta is None:
            delta = self._plain_update(x, reward, x_next, Before(discount, rho, *probabilities))
        self.updates += 1
        self.episodes += ends
        return delta

    def _plain_update(self, x: Any, reward: float, x_next: Any, now: Before) -> float:
        """Make a step with NumPy and return its TD error; whatever is wrong with its features is found here."""
        discount, rho, *_ = now
        here = checked_features("x", x, self.n_features)
        there = NONE if discount == 0 else checked_features("x_next", x_next, self.n_features)
        signals = self.setting.signals(self._factor(), rho)
        with np.errstate(all="ignore"):
            signals["discount"] = discount
            bootstrap = discount * total(there.values * self._w[there.where]) if discount else 0.0
            delta = reward + bootstrap - total(here.values * self._w[here.where])
            signals["delta"] = delta
            signals["x_eta"] = self._scale * total(here.values * self._eta[here.where])
            signals["x_change"] = total(here.values * self._change[here.where])
            traces = self._traces.advanced(self.rule, signals, here, now)
            z, b = (traces.vectors.get(name, NONE) for name in ("z", "b"))
            if traces.vectors:
                for name, along in (("z_eta", z), ("b_eta", b)):
                    signals[name] = self._scale * total(along.values * self._eta[along.where])
                pairs = (here, here), (here, there), (there, there), (here, z), (z, z)
                signals |= {name: product(*pair) for name, pair in zip(PRODUCTS, pairs, strict=True)}
            move = self.rule.coefficients(signals)
            metric, along, along_next = self._metric, here, there
            if metric:
                x, x_next = self._dense(here), self._dense(there)
                metric = metric.observed(x)
                along, along_next = (FeatureVector(ALL, metric.direction(one)) for one in (x, x_next))
            reach = {"w_x": along, "w_next": along_next, "w_z": z, "eta_x": here, "eta_next": there, "eta_z": z}
            if move["w_change"]:
                reach["w_change"] = FeatureVector(ALL, self._change.copy())
            self._check_finite(reach, move)
        # Nothing is refused from here on.
        self._metric, self._traces = metric, traces
        self._move_w([(reach[name], move[name]) for name in reach if name.startswith("w_")])
        self._move_eta([(reach[name], move[name]) for name in reach if name.startswith("eta_")], move["eta_eta"])
        return delta

    def _quick_update(self, x: Any, reward: float, discount: float, x_next: Any, rho: float) -> float | None:
        """Make a compiled step and return its TD error; or None, changing nothing, where that cannot be done."""
        if self.updates < PLAIN_UPDATES or not self._compiles:
            return None
        quick = self._quick = self._quick or QuickStep(self.setting, self.n_features)
        here = quick.row(x)
        there = here if discount == 0 else quick.row(x_next)
        if here is None or there is None or (discount != 0 and isinstance(x, tuple) != isinstance(x_next, tuple)):
            return None
        numbers = self._scale, reward, discount, rho, self._factor()
        made = quick.step(self._memory, self._previous(), here, there, numbers)
        if made is None:
            return None
        delta, self._scale = made
        self._touched = [ALL]
        self._changed = (ALL,) if here[2] is NO_INDICES else (here[2].copy(), there[2].copy())
        return delta

    def update_many(
        self, x: Any, reward: Any, discount: Any, x_next: Any, rho: Any = None, pi: Any = None, mu: Any = None
    ) -> Array:
        """Learn from n transitions, one after the other, and return their TD errors (n,); compiled.

        The result is that of `update` for each of them in the same form, to the bit. x and x_next are dense (n, p),
        pairs (indices, values) of shape (n, k) each, or the rows of a SciPy sparse matrix; values of equal indices are
        added up first. reward, discount, rho, pi and mu are numbers or (n,), rho 1 by default. Learners with a trace or
        with momentum are not compiled here. Nothing changes if an argument is refused. Where a step would diverge, the
        transitions before it have been learnt, and DivergedError says which one it was.
        """
        data = flat_transitions(x, reward, discount, x_next, 1.0 if rho is None else rho, self.n_features)
        n = len(data.reward)
        probabilities = checked_probability_columns(self.rule, data.rho, pi, mu)
        factor, deltas, done = self._factors(data.discount), np.empty(n), 0
        while done < n:
            if self._compiles:
                done = self._advance(data, factor, deltas, done)
            if done < n:  # a rule that is not compiled, a step out of bounds, or η to forget: one step the plain way
                pair = (None if column is None else column[done] for column in probabilities)
                deltas[done] = self.update(*self._row(data, done), *pair)
                done += 1
        return deltas

    def _previous(self) -> Integers:
        """Return the features at which w changed in the last step; some may stand twice."""
        if not self._changed or not self._uses_change:
            return NO_INDICES
        if any(isinstance(where, slice) and where == ALL for where in self._changed):
            return np.arange(self.n_features)
        return np.concatenate([NO_INDICES if isinstance(where, slice) else where for where in self._changed])

    def _factor(self) -> float:
        """Return the factor of the schedule for the coming update."""
        return self.schedule.factor(1 + (self.updates if self.schedule.per == "step" else self.episodes))

    def _factors(self, discount: Array) -> Array:
        """Return the factor of the schedule for each coming update, or one for all of them."""
        if isinstance(self.schedule.function, Constant):
            return np.ones(1)
        return coming_factors(self.schedule, self.updates, self.episodes, discount == 0)

    def _advance(self, data: FlatTransitions, factor: Array, deltas: Array, first: int) -> int:
        """Make compiled steps from a row on, and return the row at which they stopped."""
        scale = np.array([self._scale])
        state = StreamState(self._memory, scale, self._previous(), deltas)
        done = advance(self.setting, state, data, factor, first)
        if done > first:
            self._scale, self._touched = float(scale[0]), [ALL]
            x, _, _, x_next, _ = self._row(data, done - 1)
            pairs = [row for row in (x, x_next) if row is not None]
            self._changed = (ALL,) if data.layout == "dense" else tuple(where for where, _ in pairs)
            self.updates += done - first
            self.episodes += int(np.count_nonzero(data.discount[first:done] == 0))
        return done

    def _row(self, data: FlatTransitions, t: int) -> tuple[Any, ...]:
        """Return one transition as `update` takes it."""
        x_next = data.x_next.row(t) if data.discount[t] != 0 else None
        return data.x.row(t), data.reward[t], data.discount[t], x_next, data.rho[t]

    def _check_finite(self, reach: dict[str, FeatureVector], move: dict[str, float]) -> None:
        """Raise if a step would move a weight by more than LIMIT, or scale η beyond it; moves go along `reach`."""
        steps = {name: abs(move[name]) * np.abs(along.values).max(initial=0.0) for name, along in reach.items()}
        if self._metric:
            steps["the metric"] = abs(self._dense(reach["eta_x"]) @ reach["w_x"].values)  # xᵀM⁻¹x: inf on overflow
        scale = abs(self._scale * (1.0 + move["eta_eta"]))
        if not scale < SCALE_RANGE[1]:
            steps["eta_eta"] = scale * np.abs(self._eta).max()
        for name, step in steps.items():
            if not step <= LIMIT:
                raise DivergedError(
                    f"{self.setting} diverged at update {self.updates + 1}: {name} moves by {show(float(step))}. "
                    "The last finite weights are kept. Try a smaller alpha."
                )

    def _move_w(self, moves: list[tuple[FeatureVector, float]]) -> None:
        for where in self._changed:
            self._change[where] = 0.0
        for (where, values), coefficient in moves:
            if coefficient:
                self._w[where] += coefficient * values
                self._change[where] += coefficient * values
        self._changed = tuple(where for (where, _), _ in moves)

    def _move_eta(self, moves: list[tuple[FeatureVector, float]], eta_eta: float) -> None:
        shrink = 1.0 + eta_eta
        self._scale *= shrink
        if shrink == 0:
            self._clear_eta()
        elif not SCALE_RANGE[0] < abs(self._scale) < SCALE_RANGE[1]:
            self._eta *= self._scale
            self._scale = 1.0
        for (where, values), coefficient in moves:
            if coefficient:
                self._eta[where] += (coefficient / self._scale) * values
                self._touched.append(where)
                del self._touched[REMEMBERED + 1 :]

    def _clear_eta(self) -> None:
        """Set η to zero; where few updates touched it since it last was, those places alone."""
        for where in self._touched if len(self._touched) <= REMEMBERED else [ALL]:
            self._eta[where] = 0.0
        self._touched.clear()
        self._scale = 1.0

    def _dense(self, features: FeatureVector) -> Array:
        x = np.zeros(self.n_features)
        x[features.where] = features.values
        return x

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything it knows to one file (.npz, no pickle); an older file is replaced only when done."""
        arrays = {"w": self._w, "initial_w": self._initial_w, "eta": self._eta, "change": self._change}
        arrays |= self._traces.arrays(self.n_features) | ({"metric": self._metric.inverse} if self._metric else {})
        counts = self.updates, self.episodes, self._scale
        SavedLearner(self.setting, self.n_features, self.schedule, self.features, counts, arrays).write(path)

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        learner: Rule | None = None,
        schedule: Schedule | None = None,
        features: Features | None = None,
    ) -> Self:
        """Return the learner that a file holds; it learns on as if it had never been saved.

        A rule, a schedule function or a feature function of your own is not in the file: give it again.
        """
        saved = read_learner(path, learner, schedule, features)
        agent = cls(
            saved.setting.rule,
            saved.n_features,
            initial_w=saved.arrays["initial_w"],
            schedule=saved.schedule,
            rho_mode=saved.setting.rho_mode,
            features=saved.features,
            **saved.setting.values,
        )
        for part, name in ((agent._w, "w"), (agent._eta, "eta"), (agent._change, "change")):
            part[:] = saved.arrays[name]
        agent._changed = (np.flatnonzero(agent._change),)
        agent.updates, agent.episodes, agent._scale = saved.counts
        agent._touched = [ALL]
        if agent.rule.traces:
            agent._traces = saved_traces(agent.rule, saved.arrays)
        if agent._metric:
            agent._metric.inverse, agent._metric.count = saved.arrays["metric"], agent.updates
        return agent


def total(products: Array) -> float:
    """Return a sum made from left to right, as the compiled loops make it; NumPy's own sums go in pairs."""
    return float(np.add.accumulate(products)[-1]) if products.size else 0.0
