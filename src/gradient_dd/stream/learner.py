"""Learner: any rule, step by step, on transitions from anywhere.

Features may be dense or sparse, (indices, values). A sparse update costs O(non-zeros) for every learner that is
linear in time, whatever n_features: the shrinking of η (GTD, TDRC) is one scale for all of it, and Gradient-DD's
w − w_prev is kept as a vector of which only the last step's non-zeros are ever touched. With a trace it costs
O(non-zeros of the trace); with momentum O(n_features).
"""

from math import nan
from os import PathLike
from typing import Any, Self

import numpy as np

from gradient_dd.arrays import Array, Booleans, check_memory
from gradient_dd.engine.reference import KNOWN_MOVES, KNOWN_SIGNALS, PRODUCTS, Before, Metric
from gradient_dd.engine.schedules import Constant, Schedule, check_schedule, constant
from gradient_dd.engine.single import (
    CHANGE,
    CHANGED,
    ETA,
    EVERYWHERE,
    LIMIT,
    SCALE_RANGE,
    FlatTransitions,
    SingleMemory,
    W,
    plain_rows,
)
from gradient_dd.errors import DivergedError, number, show, whole_number
from gradient_dd.files import FileKind, open_saved
from gradient_dd.learners import Rule, find
from gradient_dd.stream.features import Features, checked_map, mapped
from gradient_dd.stream.learner_file import (
    Saved,
    described_map,
    described_schedule,
    described_setting,
    put_back,
    saved_map,
    saved_schedule,
    saved_setting,
    saved_size,
)
from gradient_dd.stream.trace_state import product, put_traces, saved_traces, total, traces_of
from gradient_dd.stream.transitions import (
    NONE,
    FeatureVector,
    arrays_of,
    checked_features,
    checked_numbers,
    checked_probabilities,
    checked_probability_columns,
    dense_vector,
    flat_transitions,
    predicted,
    start_weights,
)

ALL = slice(None)  # every feature
PLAIN_UPDATES = 100  # before `update` is compiled, which takes seconds once per machine and gives the same bits


class Learner(Saved):
    """A learner to feed one transition at a time.

    learner     a name in `LEARNERS`, or a Rule of your own
    n_features  length of the feature vectors
    initial_w   (n_features,) or a number; default 0
    schedule    factor on alpha; an update with discount 0, or one that is truncated, ends an episode
    rho_mode    "R" or "T": where the importance ratio stands in the GTD2 family
    features    the map that makes the feature vectors, to be saved with the learner; `agent.features` gives it back
    parameters  the learner's own: alpha, zeta, kappa, reg, ...

    >>> agent = Learner("gradient_dd", n_features=2, alpha=0.5)
    >>> agent.update([1, 0], reward=1.0, discount=0.9, x_next=[0, 1])
    1.0
    >>> agent.eta
    array([0.5, 0. ])
    """

    file = FileKind("learner", "a learner saved by gradient-dd", 4)

    def __init__(
        self,
        learner: str | Rule,
        n_features: int,
        *,
        initial_w: Any = 0.0,
        schedule: Schedule | str = constant,
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
        self._initial_w = start_weights(initial_w, p)
        self.forget()

    def __repr__(self) -> str:
        return f"<Learner {self.setting}, {self.n_features} features, {self.updates} updates>"

    def _facts(self) -> dict[str, Any]:
        facts = {"setting": self.setting, "features": self.n_features, "updates": self.updates}
        return {**facts, "episodes": self.episodes, "schedule": self.schedule, "largest |w|": abs(self._w).max()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._name_parts()

    def _name_parts(self) -> None:
        """Name the columns of the memory; η is its scale times self._eta, and self._change is w − w_prev."""
        self._w, self._eta, self._change = (self._memory.parts[:, part] for part in (W, ETA, CHANGE))

    def forget(self) -> None:
        """Forget everything learnt. Episodes need no call: `discount` and `truncated` end them."""
        self._memory = SingleMemory(self.setting, self.n_features)
        self._name_parts()
        self._w[:] = self._initial_w
        self._metric = Metric(self.n_features, self.setting.values["ridge"]) if self.rule.natural else None
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
        return self._memory.scale[0] * self._eta

    def predict(self, x: Any = None, *, observation: Any = None, observations: Any = None) -> Any:
        """Return x·w: a number for one feature vector, (n,) for n rows, in any form that `update_many` takes.

        With a feature map, one observation or n observations may be given instead.
        """
        x = mapped(self.features, "observations", observations, observation) if x is None else x
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
        terminated: bool = False,
        truncated: bool = False,
    ) -> float:
        """Learn from one transition, and return its TD error.

        `discount` is the continuation discount into the next state, 0 where the episode ended; x_next is then
        not used and may be None. `rho` is π(a|s) / μ(a|s) of the action taken; `pi` and `mu` are the two
        probabilities, for learners that need them (tree_backup, abtd). `terminated` sets the discount to 0.
        `truncated` says that the episode was cut after this transition, by a time limit for instance: the update
        bootstraps from x_next as usual, and the next one begins with an empty trace. Nothing changes if an argument
        is refused, or if the step would diverge (DivergedError).
        """
        reward, discount, rho, cut = checked_numbers(reward, discount, rho, terminated, truncated)
        given = pi is not None or mu is not None or self.rule.traces
        probabilities = checked_probabilities(self.rule, rho, pi, mu) if given else (0.0, 0.0)
        delta = self._step(x, x_next if discount else x, reward, Before(discount, rho, *probabilities))
        if cut:
            self._memory.forget_traces()
        self.updates += 1
        self.episodes += cut or discount == 0
        return delta

    def _step(self, x: Any, x_next: Any, reward: float, now: Before) -> float:
        """Make a step and return its TD error; compiled where that can be done, after the first few updates."""
        p, compiles = self.n_features, self.updates >= PLAIN_UPDATES and not self.rule.natural
        rows = plain_rows(x, x_next, p) if compiles else None
        delta = None if rows is None else self._memory.step(*rows, reward, *now, self._factor())
        if delta is None:
            here, there = checked_features("x", x, p), checked_features("x_next", x_next, p)
            if compiles and rows is None and isinstance(here.where, slice) == isinstance(there.where, slice):
                delta = self._memory.step(arrays_of(here), arrays_of(there), reward, *now, self._factor())
        return self._plain_step(here, there if now.discount else NONE, reward, now) if delta is None else delta

    def _plain_step(self, here: FeatureVector, there: FeatureVector, reward: float, now: Before) -> float:
        """Make a step with NumPy and return its TD error."""
        discount, rho, *_ = now
        scale = float(self._memory.scale[0])
        signals = self.setting.signals(self._factor(), rho)
        with np.errstate(all="ignore"):
            signals["discount"] = discount
            bootstrap = discount * total(there.values * self._w[there.where]) if discount else 0.0
            delta = reward + bootstrap - total(here.values * self._w[here.where])
            signals["delta"] = delta
            signals["x_eta"] = scale * total(here.values * self._eta[here.where])
            signals["x_change"] = total(here.values * self._change[here.where])
            traces = traces_of(self._memory).advanced(self.rule, signals, here, now, self.n_features)
            z, b = (traces.vectors.get(name, NONE) for name in ("z", "b"))
            if traces.vectors:
                for name, along in (("z_eta", z), ("b_eta", b)):
                    signals[name] = scale * total(along.values * self._eta[along.where])
            if set(PRODUCTS) & set(self.rule.arguments):
                pairs = (here, here), (here, there), (there, there), (here, z), (z, z)
                signals |= {name: product(*pair) for name, pair in zip(PRODUCTS, pairs, strict=True)}
            move = self.rule.coefficients(signals)
            metric, along, along_next = self._metric, here, there
            if metric:
                x, x_next = (dense_vector(one, self.n_features).values for one in (here, there))
                metric = metric.observed(x)
                along, along_next = (FeatureVector(ALL, metric.direction(one)) for one in (x, x_next))
            reach = {"w_x": along, "w_next": along_next, "w_z": z, "eta_x": here, "eta_next": there, "eta_z": z}
            if move["w_change"]:
                reach["w_change"] = FeatureVector(ALL, self._change.copy())
            self._check_finite(reach, move)
        # Nothing is refused from here on.
        self._metric = metric
        self._move_w([(reach[name], move[name]) for name in reach if name.startswith("w_")])
        self._move_eta([(reach[name], move[name]) for name in reach if name.startswith("eta_")], move["eta_eta"])
        put_traces(self._memory, traces)
        return delta

    def update_many(
        self,
        x: Any,
        reward: Any,
        discount: Any,
        x_next: Any,
        rho: Any = None,
        pi: Any = None,
        mu: Any = None,
        *,
        terminated: Any = False,
        truncated: Any = False,
    ) -> Array:
        """Learn from n transitions, one after the other, and return their TD errors (n,); compiled.

        The result is that of `update` for each of them in the same form, to the bit. x and x_next are dense (n, p),
        pairs (indices, values) of shape (n, k) each, or the rows of a SciPy sparse matrix; values of equal indices are
        added up first. reward, discount, rho, pi and mu are numbers or (n,), rho 1 by default; terminated and
        truncated are booleans or (n,). Nothing changes if an argument is refused. Where a step would diverge, the
        transitions before it have been learnt, and DivergedError says which one it was.
        """
        ratio = 1.0 if rho is None else rho
        data, cut = flat_transitions(x, reward, discount, x_next, ratio, self.n_features, terminated, truncated)
        given = checked_probability_columns(self.rule, data.rho, pi, mu)
        probabilities = [np.empty(0) if one is None else one for one in given]
        factor, deltas = self._coming_factors((data.discount == 0) | cut), np.empty(len(data))
        for where, piece in data.pieces():
            columns = [one[where] if len(one) > 1 else one for one in (*probabilities, factor)]
            self._learn(piece, (*columns, cut[where], deltas[where]))
        return deltas

    def _learn(self, data: FlatTransitions, columns: tuple[Any, ...]) -> None:
        """Learn from transitions whose rows are in order; columns are pi, mu, factors, cuts, and room for TD errors."""
        pi, mu, _, cut, deltas = columns
        done = 0
        while done < len(deltas):
            if not self.rule.natural:
                done = self._advance(data, columns, done)
            if done < len(deltas):  # a natural rule, a step out of bounds, or η to forget: one step the plain way
                pair = (float(one[done]) if one.size else None for one in (pi, mu))
                x_next = data.x_next.row(done) if data.discount[done] != 0 else None
                numbers = data.reward[done], data.discount[done], x_next, data.rho[done]
                deltas[done] = self.update(data.x.row(done), *numbers, *pair, truncated=bool(cut[done]))
                done += 1

    def _factor(self) -> float:
        """Return the factor of the schedule for the coming update."""
        return self.schedule.factor(1 + (self.updates if self.schedule.per == "step" else self.episodes))

    def _coming_factors(self, ends: Booleans) -> Array:
        """Return the factor of the schedule for each coming update, or one for all; `ends` of episodes, (n,)."""
        if isinstance(self.schedule.function, Constant):
            return np.ones(1)
        by_step = self.schedule.per == "step"
        before = self.updates + np.arange(len(ends)) if by_step else self.episodes + np.cumsum(ends) - ends
        return self.schedule.factors(before + 1)

    def _advance(self, data: FlatTransitions, columns: tuple[Any, ...], first: int) -> int:
        """Make compiled steps from a row on, and return the row at which they stopped."""
        done = self._memory.advance(data, columns, first)
        if done > first:
            self.updates += done - first
            self.episodes += int(np.count_nonzero((data.discount[first:done] == 0) | columns[3][first:done]))
        return done

    def _check_finite(self, reach: dict[str, FeatureVector], move: dict[str, float]) -> None:
        """Raise if a step would move a weight by more than LIMIT, or scale η beyond it; moves go along `reach`."""
        steps = {name: abs(move[name]) * np.abs(along.values).max(initial=0.0) for name, along in reach.items()}
        if self._metric:
            x = dense_vector(reach["eta_x"], self.n_features).values
            steps["the metric"] = abs(x @ reach["w_x"].values)  # xᵀM⁻¹x: inf on overflow
        scale = abs(float(self._memory.scale[0]) * (1.0 + move["eta_eta"]))
        if not scale < SCALE_RANGE[1]:
            steps["eta_eta"] = scale * np.abs(self._eta).max()
        for name, step in steps.items():
            if not step <= LIMIT:
                raise DivergedError(
                    f"{self.setting} diverged at update {self.updates + 1}: {name} moves by {show(float(step))}. "
                    "The last finite weights are kept. Try a smaller alpha."
                )

    def _move_w(self, moves: list[tuple[FeatureVector, float]]) -> None:
        uses_change = self._memory.uses_change
        if uses_change:
            self._memory.forget_change()
            self._memory.note_change(*(where for (where, _), _ in moves))
        for (where, values), coefficient in moves:
            if coefficient:
                self._w[where] += coefficient * values
                if uses_change:
                    self._change[where] += coefficient * values

    def _move_eta(self, moves: list[tuple[FeatureVector, float]], eta_eta: float) -> None:
        shrink, scale = 1.0 + eta_eta, self._memory.scale
        scale[0] *= shrink
        if not SCALE_RANGE[0] < abs(scale[0]) < SCALE_RANGE[1]:
            self._eta[:] = self._eta * scale[0] if shrink else 0.0
            scale[0] = 1.0
        for (where, values), coefficient in moves:
            if coefficient:
                self._eta[where] += (coefficient / float(scale[0])) * values

    def _arrays(self) -> dict[str, Array]:
        """Return the arrays of its file; those of traces are copies."""
        arrays = {"w": self._w, "initial_w": self._initial_w, "eta": self._eta, "change": self._change}
        arrays |= traces_of(self._memory).arrays(self.n_features)
        return arrays | ({"metric": self._metric.inverse} if self._metric else {})

    def _contents(self) -> tuple[dict[str, Any], dict[str, Array]]:
        counts = {"updates": self.updates, "episodes": self.episodes, "scale": float(self._memory.scale[0])}
        header = described_setting(self.setting) | {"n_features": self.n_features, "counts": counts}
        header |= {"schedule": described_schedule(self.schedule), "features": described_map(self.features)}
        return header, self._arrays()

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        learner: Rule | None = None,
        schedule: Schedule | str | None = None,
        features: Features | None = None,
    ) -> Self:
        """Return the learner that a file holds; it continues as if it had never been saved.

        A rule, a schedule function or a feature function of your own is not in the file: give it again.
        """
        with open_saved(path, cls.file) as (header, arrays):
            setting = saved_setting(path, header, learner)
            agent = cls(
                setting.rule,
                saved_size(header, arrays["w"]),
                schedule=saved_schedule(path, header["schedule"], schedule),
                rho_mode=setting.rho_mode,
                features=saved_map(path, header["features"], features),
                **setting.values,
            )
            counts, memory, own = header["counts"], agent._memory, agent._arrays()
            put_back(own, arrays)
            agent.updates = whole_number("'updates'", counts["updates"], at_least=0)
            agent.episodes = whole_number("'episodes'", counts["episodes"], at_least=0)
            memory.scale[0] = number("'scale'", "be a number that is not zero", counts["scale"] or nan)
        memory.counts[CHANGED] = EVERYWHERE
        if agent.rule.traces:
            put_traces(memory, saved_traces(agent.rule, own))
        if agent._metric:
            agent._metric.count = agent.updates
        return agent
