"""What the evaluation of one policy gives back: values, their intervals, and how far to trust them.

    leverage of x:  xᵀ (Σ x xᵀ)⁻¹ x          one over the number of rows that say something about x

A state with a part that no row of the data has says nothing at all: it has no value. Where the leverage of a state and
an action is above 1/2, fewer than two rows say something: the interval is as wide as the rewards allow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array, Booleans, as_floats
from gradient_dd.errors import bad_request
from gradient_dd.evaluation.behaviour import cells
from gradient_dd.evaluation.design import BLOCKS, TABLE, Design, Taken
from gradient_dd.evaluation.findings import NOT_JUDGED, Verdict
from gradient_dd.evaluation.log_data import TargetPolicy
from gradient_dd.evaluation.policy_value import PolicyEstimate, PolicyValue
from gradient_dd.stream.features import Features
from gradient_dd.studies.intervals import Bounds, Interval, student_factor

UNUSED = 1e-9  # of the largest eigenvalue: directions below it were never seen
OUTSIDE = 1e-6  # share of |x|² that may be in such directions
ALONE = 0.5  # leverage above which a point has no data nearby
MOST = 1000  # features of states and actions, beyond which the features of states alone are looked at


class Seen:
    """The directions of feature rows that were seen, from Σ x xᵀ (p, p)."""

    def __init__(self, C: Array) -> None:
        sizes, directions = np.linalg.eigh(C)
        kept = sizes > UNUSED * max(float(sizes[-1]), 1e-300)
        self.sizes, self.directions = sizes[kept], directions[:, kept]

    def leverage(self, X: Array) -> Array:
        """Return the leverage of each row, (n,); infinite where a part of the row was never seen, or the row is 0."""
        square, along = (X**2).sum(axis=1), X @ self.directions
        found = (along**2 / self.sizes).sum(axis=1)
        outside = square - (along**2).sum(axis=1)
        return np.where((square == 0) | (outside > OUTSIDE * square), np.inf, found)


class Support:
    """What was seen of states and actions, and what a value can be at all.

    counts   (p, actions) rows of each cell, of a table;  bounds  the smallest and the largest possible value
    """

    def __init__(self, design: Design, taken: Sequence[Taken], bounds: Bounds) -> None:
        self.design, self.bounds = design, bounds
        self.table, self.wide = design.form == TABLE, design.p > MOST
        if self.table:
            self.counts = np.zeros((design.p, design.actions))
            for one in taken:
                assert one.action is not None
                np.add.at(self.counts, (cells(one.X), one.action), 1.0)
            return
        self.actions: list[Seen] = []
        if self.wide:  # every feature counts alone
            self.squares = np.sum([one.squares(np.ones(one.X.shape[0])) for one in taken], axis=0)
            return
        self.states = Seen(np.sum([one.X.T @ one.X for one in taken], axis=0))
        if design.form == BLOCKS and taken[0].action is not None:
            for a in range(design.actions):
                own = [one.X[one.action == a] for one in taken]
                self.actions.append(Seen(np.sum([X.T @ X for X in own], axis=0)))
        elif design.q <= MOST:
            dense = [one.dense() for one in taken]
            self.actions.append(Seen(np.sum([phi.T @ phi for phi in dense], axis=0)))

    def known(self, X: Any) -> Booleans:
        """Return which states have a value at all, (n,)."""
        if self.table:
            state = cells(X)
            return np.asarray((self.counts.sum(axis=1)[state] > 0) & (state < self.design.p - 1))
        if self.wide:
            squared = X.multiply(X) if sparse.issparse(X) else X**2
            used = self.squares.reshape(-1, self.design.p).sum(axis=0) > 0
            return np.asarray(squared @ ~used).ravel() <= OUTSIDE * np.asarray(squared.sum(axis=1)).ravel()
        return np.isfinite(self.states.leverage(X))

    def leverage(self, U: Array, X: Any) -> Array:
        """Return the leverage of states X (n, p) with probabilities or features of actions U (n, actions), (n,)."""
        if self.table:
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.nansum(np.where(U != 0, U**2 / self.counts[cells(X)], 0.0), axis=1)
        if self.wide:
            return np.where(self.known(X), 0.0, np.inf)
        if len(self.actions) == U.shape[1]:
            each = np.column_stack([one.leverage(X) for one in self.actions])
            with np.errstate(invalid="ignore"):
                return np.where(U != 0, U**2 * each, 0.0).sum(axis=1)
        if self.actions:
            return self.actions[0].leverage(self.design.mean(U, X))
        return self.states.leverage(X)

    def widened(self, U: Array, X: Any, bounds: Bounds) -> Bounds:
        """Return intervals, (n,) each, as wide as the rewards allow where a point has no data nearby."""
        alone, known = self.leverage(U, X) > ALONE, self.known(X)
        low, high = np.minimum(bounds.low, self.bounds.low), np.maximum(bounds.high, self.bounds.high)
        low, high = np.where(alone, low, bounds.low), np.where(alone, high, bounds.high)
        return Bounds(np.where(known, low, self.bounds.low), np.where(known, high, self.bounds.high))


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The value of a policy, and values of states and actions.

    found        what the policy is worth, and what the value was made of
    policy       the policy, asked about other observations
    support      where there are data, and what values can be at all
    points       (features, actions) of first states of episodes: `values` and `interval` are for them
    logging      the value of the policy that made the log;  difference  how much more the target is worth
    verdict      "trust", "with care" or "not", and why
    chosen       the method, in words;  at  the observations of `points`, where they were asked for
    stated       what each column is used for;  seconds  how long reading took, and all
    """

    found: PolicyValue
    policy: TargetPolicy
    support: Support
    points: tuple[Any, Array]
    confidence: float
    rows: int
    dimensions: int
    chosen: str = "LSTD-Q"
    logging: Interval | None = None
    difference: Interval | None = None
    verdict: Verdict = NOT_JUDGED
    at: Any = None
    stated: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

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
        """The mean value of the states where episodes begin: what the policy is worth."""
        return self.found.value

    @property
    def start_interval(self) -> Bounds:
        """The interval of `start_value`."""
        return Bounds(self.found.low, self.found.high)

    @property
    def exact(self) -> Interval:
        """LSTD-Q with its interval."""
        return self._estimate(self.found.q)

    @property
    def robust(self) -> Interval | None:
        """The doubly robust estimate with its interval; None where ratios allow no step."""
        return self._estimate(self.found.d) if self.found.steps else None

    def _estimate(self, one: PolicyEstimate) -> Interval:
        half = student_factor(self.confidence, len(self.found.psi) - 1) * one.error
        return Interval(one.value, one.value - half, one.value + half)

    @property
    def values(self) -> Array:
        """(n,) the values of `points`."""
        return self._values(*self.points)

    @property
    def interval(self) -> Bounds:
        """The interval of `values`, (n,) each."""
        return self._interval(*self.points)

    def predict(self, observations: Any) -> Array:
        """Return the value of each observation, (n,); NaN where nothing in the data is like the observation."""
        return self._values(*self._asked(observations))

    def predict_interval(self, observations: Any) -> Bounds:
        """Return the interval of the value of each observation, (n,) each.

        It is as wide as the rewards allow where there are no data nearby.
        """
        return self._interval(*self._asked(observations))

    def q(self, observations: Any, actions: Any) -> Array:
        """Return Q of each observation and action, (n,); one action stands for all observations.

        One observation (d,) and one action give one number.
        """
        known = self.policy.actions
        if self.policy.by_ratio or known is None:
            raise bad_request(
                "An evaluation", "be of a target policy and a log with actions, to have action values", self.chosen
            )
        one = np.ndim(observations) == 1 and len(np.atleast_1d(observations)) == self.dimensions
        seen = as_observations(np.atleast_2d(observations) if one else observations)
        numbers = known.numbers("'action'", np.broadcast_to(np.asarray(actions), len(seen)))
        if np.isnan(numbers).any():
            raise bad_request("'action'", f"be one of {list(known.names)}", actions)
        values = self._values(self._features(seen), known.features(numbers))
        return values[0] if one else values

    def asked(self) -> list[dict[str, Any]]:
        """Return what was asked for: each observation, its value and its interval, None where there is none."""
        if self.at is None:
            return []
        columns = zip(np.asarray(self.at).tolist(), self.values, *self.interval, strict=True)
        names = ("observation", "value", "low", "high")
        return [
            dict(zip(names, (seen, *(float(one) if np.isfinite(one) else None for one in rest)), strict=True))
            for seen, *rest in columns
        ]

    def facts(self) -> dict[str, Any]:
        """Return all but the weights as plain data."""
        found = self.found
        return {
            "verdict": self.verdict.word,
            "why": [
                {"level": one.level, "about": one.about, "sentence": one.sentence} for one in self.verdict.findings
            ],
            "value": self.start_value,
            "interval": [found.low, found.high],
            "confidence": self.confidence,
            "LSTD-Q": as_data(self.exact),
            "doubly robust": as_data(self.robust),
            "logging policy": as_data(self.logging),
            "difference": as_data(self.difference),
            "values": self.asked(),
            "chosen": self.chosen,
            "features": found.map.words,
            "stated": list(self.stated),
            "seconds": dict(self.seconds),
            "rows": self.rows,
        }

    def _features(self, seen: Any) -> Any:
        return self.found.map.of_rows(self.found.map.features.rows(seen))

    def _asked(self, observations: Any) -> tuple[Any, Array]:
        seen = as_observations(observations)
        return self._features(seen), self.policy.at(seen)

    def _values(self, X: Any, U: Array) -> Array:
        values = np.asarray(self.found.design.mean(U, X) @ self.w)
        return np.where(self.support.known(X), values, np.nan)

    def _interval(self, X: Any, U: Array) -> Bounds:
        """Return intervals by the jackknife: how values differ where one group of episodes is left out."""
        each = np.asarray(self.found.design.mean(U, X) @ np.column_stack([self.w, self.found.without.T]))
        groups = each.shape[1] - 1
        away = each[:, 1:] - each[:, 1:].mean(axis=1, keepdims=True)
        half = student_factor(self.confidence, groups - 1) * np.sqrt((groups - 1) / groups * (away**2).sum(axis=1))
        return self.support.widened(U, X, Bounds(each[:, 0] - half, each[:, 0] + half))


def as_observations(observations: Any) -> Any:
    """Return observations as an array (n, d), of numbers unless some are text."""
    seen = np.asarray(observations)
    seen = seen if seen.dtype.kind in "OU" else as_floats("Observations", observations)
    return seen[:, None] if seen.ndim == 1 else seen


def as_data(found: Interval | None) -> dict[str, float] | None:
    """Return an estimate as plain data."""
    return None if found is None else {"value": found.estimate, "low": found.low, "high": found.high}
