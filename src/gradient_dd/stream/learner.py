"""Learner: any rule on a stream of transitions.

Features are dense or sparse, (indices, values). A sparse update of any linear-time learner costs O(nonzeros) for any
n_features: the decay of η (GTD, TDRC) changes one scale for all of η, and Gradient-DD changes w − w_prev only at the
nonzeros of the last step. With a trace an update costs O(nonzeros of the trace); with momentum O(n_features).
"""

from math import nan
from os import PathLike
from typing import Any, Self

import numpy as np

from gradient_dd.arrays import Array, check_memory
from gradient_dd.engine.reference import KNOWN_MOVES, KNOWN_SIGNALS, PRODUCTS, Before, Metric
from gradient_dd.engine.schedules import Constant, Schedule, Taper, check_schedule, constant, tapered
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
from gradient_dd.errors import BadRequestError, DivergedError, number, show, whole_number
from gradient_dd.files import FileKind, open_saved
from gradient_dd.learners import Rule, find
from gradient_dd.stream.features import Features, checked_map, mapped
from gradient_dd.stream.learner_file import Saved, described_map, described_setting, put_back, saved_arguments
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
PLAIN_UPDATES = 100  # updates before `update` is compiled, which takes seconds once per machine; results do not change


class Learner(Saved):
    """A learner that learns from a stream, one transition at a time.

    learner     a name in `LEARNERS`, or a Rule of your own
    n_features  length of the feature vectors
    initial_w   (n_features,) or a number; default 0
    schedule    factor on alpha; an update with discount 0 or with `truncated` ends an episode
    rho_mode    "R" or "T": the place of the importance ratio in the GTD2 family
    features    the feature map; `save` stores it with the learner, and `agent.features` returns it
    parameters  parameters of the rule: alpha, zeta, kappa, reg, ...

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
        return {**facts, "episodes": self.episodes, "schedule": self.schedule, "largest |w|": abs(self.w).max()}

    def forget(self) -> None:
        """Forget everything learnt. The end of an episode needs no call: pass discount 0, or `truncated`."""
        self._memory = SingleMemory(self.setting, self.n_features)
        self._memory.parts[:, W] = self._initial_w
        self._metric = Metric(self.n_features, self.setting.values["ridge"]) if self.rule.natural else None
        self.updates = 0
        self.episodes = 0

    @property
    def rule(self) -> Rule:
        """The rule of the learner."""
        return self.setting.rule

    @property
    def w(self) -> Array:
        """A read-only view of the primary weights (p,); copy it to keep it."""
        view = self._memory.parts[:, W]
        view.setflags(write=False)
        return view

    @property
    def eta(self) -> Array:
        """A copy of the secondary weights (p,); zeros for a learner without η."""
        return self._memory.scale[0] * self._memory.parts[:, ETA]

    def predict(self, x: Any = None, *, observation: Any = None, observations: Any = None) -> Any:
        """Return the predictions x·w: a number for one feature vector, (n,) for n rows as `update_many` takes them.

        A learner with a feature map also accepts one observation or n observations instead of x.
        """
        x = mapped(self.features, "observations", observations, observation) if x is None else x
        return predicted(x, self.n_features, self._memory.parts[:, W].__getitem__)

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
        """Learn from one transition and return its TD error.

        `discount` is the continuation discount into the next state, 0 at the end of an episode; x_next is then
        ignored and may be None. `rho` is π(a|s) / μ(a|s) of the action taken; `pi` and `mu` are the two
        probabilities, for learners that need them (tree_backup, abtd). `terminated` sets the discount to 0.
        `truncated` means that the episode was cut after this transition, for example by a time limit: the update
        bootstraps from x_next, and the next update begins with an empty trace. An invalid argument, or a step that
        would diverge (DivergedError), changes nothing.
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
        """Make a step and return its TD error; after the first updates, use compiled code if possible."""
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
        w, eta, change = (self._memory.parts[:, part] for part in (W, ETA, CHANGE))
        signals = self.setting.signals(self._factor(), rho)
        with np.errstate(all="ignore"):
            signals["discount"] = discount
            bootstrap = discount * total(there.values * w[there.where]) if discount else 0.0
            delta = reward + bootstrap - total(here.values * w[here.where])
            signals["delta"] = delta
            signals["x_eta"] = scale * total(here.values * eta[here.where])
            signals["x_change"] = total(here.values * change[here.where])
            traces = traces_of(self._memory).advanced(self.rule, signals, here, now, self.n_features)
            z, b = (traces.vectors.get(name, NONE) for name in ("z", "b"))
            if traces.vectors:
                for name, along in (("z_eta", z), ("b_eta", b)):
                    signals[name] = scale * total(along.values * eta[along.where])
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
                reach["w_change"] = FeatureVector(ALL, change.copy())
            self._check_finite(reach, move)
        # No error from here on.
        self._metric = metric
        self._move(reach, move)
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
        """Learn from n transitions, one after the other, in compiled code, and return their TD errors (n,).

        The result is bitwise equal to `update` with each transition in the same form. x and x_next are dense (n, p),
        pairs (indices, values) of shape (n, k) each, or the rows of a SciPy sparse matrix; values of equal indices are
        added up first. reward, discount, rho, pi and mu are numbers or (n,), rho 1 by default; terminated and
        truncated are booleans or (n,). An invalid argument changes nothing. If a step would diverge, the transitions
        before it have been learnt, and DivergedError names the step.
        """
        ratio = 1.0 if rho is None else rho
        data, cut = flat_transitions(x, reward, discount, x_next, ratio, self.n_features, terminated, truncated)
        given = checked_probability_columns(self.rule, data.rho, pi, mu)
        probabilities = [np.empty(0) if one is None else one for one in given]
        factor, deltas, n = np.ones(1), np.empty(len(data)), len(data)
        if not isinstance(self.schedule.function, Constant):
            ends = (data.discount == 0) | cut
            before = self.episodes + np.cumsum(ends) - ends
            factor = self.schedule.factors(1 + (self.updates + np.arange(n) if self.schedule.per == "step" else before))
        for where, piece in data.pieces():
            columns = [one[where] if len(one) > 1 else one for one in (*probabilities, factor)]
            self._learn(piece, (*columns, cut[where], deltas[where]))
        return deltas

    def _learn(self, data: FlatTransitions, columns: tuple[Any, ...]) -> None:
        """Learn from rows in order; columns are pi, mu, factors, cuts, and an array for the TD errors."""
        pi, mu, _, cut, deltas = columns
        done = 0
        while done < len(deltas):
            if not self.rule.natural:
                first, done = done, self._memory.advance(data, columns, done)
                self.updates += done - first
                self.episodes += int(np.count_nonzero((data.discount[first:done] == 0) | cut[first:done]))
            if done < len(deltas):  # a natural rule, a step out of bounds, or η to reset: one plain step
                pair = (float(one[done]) if one.size else None for one in (pi, mu))
                x_next = data.x_next.row(done) if data.discount[done] != 0 else None
                numbers = data.reward[done], data.discount[done], x_next, data.rho[done]
                deltas[done] = self.update(data.x.row(done), *numbers, *pair, truncated=bool(cut[done]))
                done += 1

    def _factor(self) -> float:
        """Return the factor of the schedule for the next update."""
        return self.schedule.factor(1 + (self.updates if self.schedule.per == "step" else self.episodes))

    def _check_finite(self, reach: dict[str, FeatureVector], move: dict[str, float]) -> None:
        """Raise if moves along `reach` would change a weight by more than LIMIT, or scale η beyond LIMIT."""
        steps = {name: abs(move[name]) * np.abs(along.values).max(initial=0.0) for name, along in reach.items()}
        if self._metric:
            x = dense_vector(reach["eta_x"], self.n_features).values
            steps["the metric"] = abs(x @ reach["w_x"].values)  # xᵀM⁻¹x: inf on overflow
        scale = abs(float(self._memory.scale[0]) * (1.0 + move["eta_eta"]))
        if not scale < SCALE_RANGE[1]:
            steps["eta_eta"] = scale * np.abs(self._memory.parts[:, ETA]).max()
        for name, step in steps.items():
            if not step <= LIMIT:
                raise DivergedError(
                    f"{self.setting} diverged at update {self.updates + 1}: {name} moves by {show(float(step))}. "
                    "The last finite weights are kept. Try a smaller alpha."
                )

    def _move(self, reach: dict[str, FeatureVector], move: dict[str, float]) -> None:
        """Move w and η along `reach`, and scale η."""
        memory, scale, shrink = self._memory, self._memory.scale, 1.0 + move["eta_eta"]
        w, eta, change = (memory.parts[:, part] for part in (W, ETA, CHANGE))
        if memory.uses_change:
            memory.forget_change()
            memory.note_change(*(along.where for name, along in reach.items() if name.startswith("w_")))
        scale[0] *= shrink
        if not SCALE_RANGE[0] < abs(scale[0]) < SCALE_RANGE[1]:
            eta[:] = eta * scale[0] if shrink else 0.0
            scale[0] = 1.0
        for name, (where, values) in reach.items():
            if not move[name]:
                continue
            if name.startswith("eta_"):
                eta[where] += (move[name] / float(scale[0])) * values
                continue
            w[where] += move[name] * values
            if memory.uses_change:
                change[where] += move[name] * values

    def _arrays(self) -> dict[str, Array]:
        """Return the arrays of the file; traces are copies."""
        parts = self._memory.parts
        arrays = {"w": parts[:, W], "initial_w": self._initial_w, "eta": parts[:, ETA], "change": parts[:, CHANGE]}
        arrays |= traces_of(self._memory).arrays(self.n_features)
        return arrays | ({"metric": self._metric.inverse} if self._metric else {})

    def _contents(self) -> tuple[dict[str, Any], dict[str, Array]]:
        counts = {"updates": self.updates, "episodes": self.episodes, "scale": float(self._memory.scale[0])}
        header = described_setting(self.setting) | {"n_features": self.n_features, "counts": counts, "schedule": None}
        function = self.schedule.function
        if isinstance(function, Constant | Taper):  # a user's own function is not saved
            header["schedule"] = {"n0": getattr(function, "n0", None), "per": self.schedule.per}
        return header | {"features": described_map(self.features)}, self._arrays()

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        learner: Rule | None = None,
        schedule: Schedule | str | None = None,
        features: Features | None = None,
    ) -> Self:
        """Return the learner saved in a file; it continues as if it had never been saved.

        A rule, a schedule function or a feature function of your own is not saved: pass it again.
        """
        with open_saved(path, cls.file) as (header, arrays):
            arguments, saved = saved_arguments(path, header, arrays["w"], learner, features), header["schedule"]
            if schedule is None and saved is None:
                what = f"{str(path)!r} was saved with a schedule of your own"
                raise BadRequestError(f"{what}. Pass it again as schedule=...")
            if schedule is None:
                schedule = constant if saved["n0"] is None else tapered(saved["n0"], saved["per"])
            agent = cls(**arguments, schedule=schedule)
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
