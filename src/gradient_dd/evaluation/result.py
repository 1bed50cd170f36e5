"""The result of evaluating one policy: values, their intervals, and the verdict.

    leverage of x:  xᵀ (Σ x xᵀ)⁻¹ x          the inverse of the number of rows similar to x

A state with a component in a direction without data has no value. If the leverage of a state and an action is above
1/2, fewer than two rows are similar: the interval is as wide as the rewards allow.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradient_dd.arrays import Array, Booleans, as_floats, dimensions
from gradient_dd.cards import card
from gradient_dd.errors import bad_request
from gradient_dd.evaluation.behaviour import cells
from gradient_dd.evaluation.design import BLOCKS, TABLE, squared
from gradient_dd.evaluation.findings import Found, Verdict, finding, findings_of, verdict_of
from gradient_dd.evaluation.log_data import LogData
from gradient_dd.evaluation.maps import actions_of, named_actions
from gradient_dd.evaluation.value import PolicyValue
from gradient_dd.stream.features import Features
from gradient_dd.studies.intervals import Bounds, Interval, student_factor

if TYPE_CHECKING:
    from gradient_dd.evaluation.comparison import PolicyQuestion

OUTSIDE = 1e-6  # tolerated share of |x|² in directions without data
ALONE = 0.5  # leverage above which a point has no similar data
MOST_ASKED = 10_000  # most distinct states whose values are returned
MOST = 1000  # state-action features, above which only features of states are examined


class Seen:
    """The directions of feature rows with data, from Σ x xᵀ (p, p)."""

    def __init__(self, C: Array) -> None:
        sizes, directions = np.linalg.eigh(C)
        kept = sizes > 1e-9 * max(float(sizes[-1]), 1e-300)  # smaller directions have no data
        self.sizes, self.directions = sizes[kept], directions[:, kept]

    def leverage(self, X: Array) -> Array:
        """Return the leverage of each row, (n,); infinite for a row outside the data, or a row of zeros."""
        square, along = (X**2).sum(axis=1), X @ self.directions
        found = (along**2 / self.sizes).sum(axis=1)
        outside = square - (along**2).sum(axis=1)
        return np.where((square == 0) | (outside > OUTSIDE * square), np.inf, found)


class Support:
    """The states and actions in the sample of a log, and the range of possible values.

    counts   (p, actions) rows per cell of a table;  bounds  the smallest and the largest possible value
    """

    def __init__(self, data: LogData, value: PolicyValue, bounds: Bounds) -> None:
        self.design, self.bounds = value.design, bounds
        design, actions = value.design, None if value.policy.by_ratio else data.actions
        self.table, self.wide = design.form == TABLE, design.p > MOST
        self.counts, self.used = np.zeros((design.p, design.actions)), np.zeros(design.p, bool)
        sums: dict[int, Any] = {}  # Σ x xᵀ: of all rows, and of each action, or Σ φφᵀ
        self.by_action = False  # whether each action has its own directions with data
        for piece in data.sampled:
            X, U, action = value.map.matrix(piece.seen), actions_of(actions, piece), named_actions(actions, piece)
            if self.table:
                place: Any = cells(X), action if design.actions > 1 else np.zeros(len(U), np.int64)
                np.add.at(self.counts, place, 1.0)
            elif self.wide:  # each feature is treated separately
                self.used |= np.asarray(squared(X).sum(axis=0)).ravel() > 0
            else:
                sums[-1] = sums.get(-1, 0.0) + X.T @ X
                if design.form == BLOCKS and action is not None:
                    self.by_action = design.actions > 1
                    for a in range(design.actions):
                        own = X[action == a]
                        sums[a] = sums.get(a, 0.0) + own.T @ own
                elif design.q <= MOST:
                    phi = design.matrix(X, U)
                    sums[0] = sums.get(0, 0.0) + phi.T @ phi
        if sums:
            self.states, self.actions = Seen(sums.pop(-1)), [Seen(one) for one in sums.values()]

    def known(self, X: Any) -> Booleans:
        """Return whether each state has a value, (n,)."""
        if self.table:
            state = cells(X)
            return np.asarray((self.counts.sum(axis=1)[state] > 0) & (state < self.design.p - 1))
        if self.wide:
            squares = squared(X)
            return np.asarray(squares @ ~self.used).ravel() <= OUTSIDE * np.asarray(squares.sum(axis=1)).ravel()
        return np.isfinite(self.states.leverage(X))

    def leverage(self, U: Array, X: Any) -> Array:
        """Return the leverage of states X (n, p) with probabilities or features of actions U (n, actions), (n,)."""
        if self.table or self.by_action:
            with np.errstate(divide="ignore", invalid="ignore"):
                if self.table:
                    found = U**2 / self.counts[cells(X)]
                else:
                    found = U**2 * np.column_stack([one.leverage(X) for one in self.actions])
                return np.asarray(np.where(U != 0, found, 0.0).sum(axis=1))
        if self.wide:
            return np.where(self.known(X), 0.0, np.inf)
        return self.actions[0].leverage(self.design.matrix(X, U)) if self.actions else self.states.leverage(X)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The value of a policy, with state and action values.

    found        the value of the policy and its solution
    support      the states and actions in the data, and the range of possible values
    points       (features, actions) of initial states, to which `values` and `interval` refer
    logging      the value of the logging policy;  difference  target minus logging policy
    verdict      "trust", "with care" or "not", and the reasons
    chosen       the method, in words;  at  the observations of `points`, if they were requested
    stated       the columns used;  seconds  time for reading, and total time;  log  name of the log
    """

    found: PolicyValue
    support: Support
    points: tuple[Any, Array]
    verdict: Verdict
    confidence: float
    rows: int
    dimensions: int
    chosen: str
    logging: Interval | None
    difference: Interval | None
    stated: tuple[str, ...]
    log: str
    at: Any = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        low, high = self.start_interval
        return f"<Evaluation {self.start_value:.4g} [{low:.4g}, {high:.4g}], {self.verdict.word!r}, {self.rows:,} rows>"

    def _repr_html_(self) -> str:
        low, high = self.start_interval
        facts = {"value": f"{self.start_value:.4g}", f"{self.confidence:.0%} interval": f"{low:.4g} to {high:.4g}"}
        facts |= {"verdict": self.verdict.word, "why": "\n".join(self.verdict.reasons)}
        facts |= {"method": self.chosen, "rows": f"{self.rows:,}"}
        return card("Value of the policy", {name: fact for name, fact in facts.items() if fact})

    @property
    def w(self) -> Array:
        """(q,) the weights."""
        return self.found.w

    @property
    def features(self) -> Features:
        """The map from observations to features of states."""
        return self.found.map.features

    @property
    def start_value(self) -> float:
        """The value of the policy: the mean value of the initial states."""
        return self.found.value

    @property
    def start_interval(self) -> Bounds:
        """The interval of `start_value`."""
        return Bounds(self.found.low, self.found.high)

    @property
    def parts(self) -> dict[str, Interval]:
        """The known intervals, by name: "LSTD-Q", "doubly robust" if the ratios cover a step, "logging policy"."""
        factor = student_factor(self.confidence, len(self.found.psi) - 1)
        estimates = {"LSTD-Q": self.found.q} | ({"doubly robust": self.found.d} if self.found.steps else {})
        parts = {name: Interval(one.value, *one.interval(factor)) for name, one in estimates.items()}
        return parts if self.logging is None else parts | {"logging policy": self.logging}

    @property
    def gain(self) -> str:
        """A sentence that compares the target policy with the logging policy; empty if the difference is unknown."""
        if self.difference is None:
            return ""
        gain, low, high = self.difference
        numbers = f"{gain:+.4g} (interval: {low:.4g} to {high:.4g})"
        if low <= 0 <= high:
            return f"The returns alone do not show whether the target policy beats the logging policy: {numbers}."
        word = "better" if low > 0 else "worse"
        return f"The target policy is significantly {word} than the logging policy: {numbers}."

    @property
    def values(self) -> Array:
        """(n,) the values of `points`."""
        return self._values(*self.points)

    @property
    def interval(self) -> Bounds:
        """The interval of `values`, (n,) each."""
        return self._interval(*self.points)

    def predict(self, observations: Any) -> Array:
        """Return the value of each observation, (n,); NaN for observations outside the data."""
        return self._values(*self.point(observations))

    def predict_interval(self, observations: Any) -> Bounds:
        """Return the interval of the value of each observation, (n,) each.

        For observations without similar data, the interval is as wide as the rewards allow.
        """
        return self._interval(*self.point(observations))

    def q(self, observations: Any, actions: Any) -> Array:
        """Return Q of each observation and action, (n,); one action applies to all observations.

        One observation (d,) and one action give one number.
        """
        known = self.found.policy.actions
        if self.found.policy.by_ratio or known is None:
            rule = "have a target policy with known probabilities of all actions for action values"
            raise bad_request("An evaluation", rule, self.chosen)
        one = dimensions(observations) == 1 and len(np.atleast_1d(observations)) == self.dimensions
        seen = as_observations(np.atleast_2d(observations) if one else observations)
        taken = as_array("'action'", rule := "be one action, or one for each observation", actions)
        if taken.shape not in ((), (len(seen),)):
            raise bad_request("'action'", rule, actions)
        numbers = known.numbers("'action'", np.broadcast_to(taken, len(seen)))
        if np.isnan(numbers).any():
            raise bad_request("'action'", f"be one of {list(known.names)}", actions)
        values = self._values(self._features(seen), known.features(numbers))
        return values[0] if one else values

    def asked(self) -> list[dict[str, Any]]:
        """Return the requested observations with value and interval, None if there is no value."""
        if self.at is None:
            return []
        found = []
        columns = (np.asarray(self.at), self.values, *self.interval)
        for seen, *numbers in zip(*(one.tolist() for one in columns), strict=True):
            value, low, high = (one if np.isfinite(one) else None for one in numbers)
            found.append({"observation": seen, "value": value, "low": low, "high": high})
        return found

    def facts(self) -> dict[str, Any]:
        """Return everything except the weights as plain data."""
        known = self.parts | ({} if self.difference is None else {"difference": self.difference})
        estimates = {name: dict(zip(("value", "low", "high"), one, strict=True)) for name, one in known.items()}
        return {
            "verdict": self.verdict.word,
            "why": [one._asdict() for one in self.verdict.findings],
            "value": self.start_value,
            "interval": list(self.start_interval),
            "confidence": self.confidence,
            **{name: estimates.get(name) for name in ("LSTD-Q", "doubly robust", "logging policy", "difference")},
            "values": self.asked(),
            "chosen": self.chosen,
            "features": self.found.map.words,
            "stated": list(self.stated),
            "seconds": dict(self.seconds),
            "rows": self.rows,
        }

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the HTML report of the evaluation, and return its path."""
        return Path(import_module("gradient_dd.report.evaluation_pages").write_page(self, path))

    def plot(self, ax: Any = None) -> Any:
        """Draw the value, its estimates and the logging policy; return the matplotlib axes, `ax` if given."""
        return import_module("gradient_dd.report.plots").plot_evaluation(self, ax)

    def _features(self, seen: Any) -> Any:
        return self.found.map.of_rows(self.features.rows(seen))

    def point(self, observations: Any) -> tuple[Any, Array]:
        """Return features of observations, and the choices of the policy there."""
        seen = as_observations(observations)
        return self._features(seen), self.found.policy.at(seen)

    def _values(self, X: Any, U: Array) -> Array:
        values = self.found.design.times(X, U, self.w[:, None])[:, 0]
        return np.where(self.support.known(X), np.clip(values, *self.support.bounds), np.nan)

    def _interval(self, X: Any, U: Array) -> Bounds:
        """Return jackknife intervals, computed from the changes in value when one group of episodes is omitted."""
        each = self.found.design.times(X, U, np.column_stack([self.w, self.found.without.T]))
        groups = each.shape[1] - 1
        away = each[:, 1:] - each[:, 1:].mean(axis=1, keepdims=True)
        half = student_factor(self.confidence, groups - 1) * np.sqrt((groups - 1) / groups * (away**2).sum(axis=1))
        unsure = (self.support.leverage(U, X) > ALONE) | ~self.support.known(X)
        least, most = self.support.bounds
        low, high = (np.clip(one, least, most) for one in (each[:, 0] - half, each[:, 0] + half))
        return Bounds(np.where(unsure, least, low), np.where(unsure, most, high))


def as_array(what: str, rule: str, value: Any, kind: Any = None) -> Any:
    """Return a value as an array; raise an error for lists of different lengths or nested too deeply."""
    try:
        return np.asarray(value, dtype=kind)
    except ValueError:
        raise bad_request(what, rule, value) from None


def as_observations(observations: Any) -> Any:
    """Return observations as an array (n, d), of numbers unless some are text."""
    seen = as_array("Observations", rule := "be numbers or text, one row each", observations)
    if seen.ndim not in (1, 2):
        raise bad_request("Observations", rule, observations)
    seen = seen if seen.dtype.kind in "OU" else as_floats("Observations", observations)
    return seen[:, None] if seen.ndim == 1 else seen


def evaluation_of(question: "PolicyQuestion", data: LogData, words: str, at: Any = None) -> Evaluation:
    """Return the evaluation of the last policy of a question, with the requested states."""
    one, base = question.judged[-1], question.baseline.found
    policy, logging, difference = one.found.policy, None, None
    if len(question.judged) > 1:
        gap = question.gap(one, question.baseline)
        logging, difference = Interval(base.value, base.low, base.high), Interval(gap.apart, gap.low, gap.high)
    first = next(piece.part(piece.starts) for piece in data.rows.sample if len(piece.starts))
    first = first.part(np.sort(np.unique(first.seen, axis=0, return_index=True)[1])[:100])  # initial states to report
    here = np.ones((len(first), 1)) if policy.by_ratio else policy.choices(first, data.propensities(first)).here
    found = Evaluation(
        one.found,
        one.support,
        (one.found.map.matrix(first.seen), here),
        one.verdict,
        question.confidence,
        data.rows.n,
        first.seen.shape[1],
        words,
        logging,
        difference,
        data.stated,
        data.reader.source.name,
    )
    if at is None:
        return found
    asked = asked_for(at, data)
    X, U = found.point(asked)
    alone = int((one.support.leverage(U, X) > ALONE).sum())
    verdict = verdict_of([*one.verdict.findings, *findings_of("states", (len(asked), alone))])
    return replace(found, at=asked, points=(X, U), verdict=verdict)


@finding("states", "requested states", "with care", "Collect data from there.")
def unseen_states(counts: tuple[int, int]) -> Found:
    """A requested state has no similar data. If the data have nothing in common with it, there is no value."""
    asked, unseen = counts
    if unseen:
        yield (
            f"{unseen:,} of the {asked:,} requested states have no similar data, so their intervals are as wide as the "
            "rewards allow."
        )


def asked_for(at: Any, data: LogData) -> Any:
    """Return the observations whose values are requested, one per row."""
    reader = data.reader
    if isinstance(at, str):
        if at != "all":
            raise bad_request("'at'", "be observations, one per row, or 'all'", at)
        states = reader.states()
        if len(states) > MOST_ASKED:
            rule = f"be observations, because the log has more than {MOST_ASKED:,} distinct ones"
            raise bad_request("'at'", rule, at, "Pass some observations: at=[...], or --at.")
        return reader.decoded(states)
    rows = as_array("'at'", "be observations, one per row", at, object if reader.words else None)
    single = rows.ndim < 2 and len(reader.columns.observation) == 1
    return as_observations(rows.reshape(-1, 1) if single else np.atleast_2d(rows))
