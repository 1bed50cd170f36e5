"""What the evaluation of one policy gives back: values, their intervals, and how far to trust them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, as_floats
from gradient_dd.errors import bad_request
from gradient_dd.evaluation.findings import NOT_JUDGED, Verdict
from gradient_dd.evaluation.policies import TargetPolicy
from gradient_dd.evaluation.support import Support
from gradient_dd.evaluation.value import PolicyValue
from gradient_dd.studies.intervals import Bounds, Interval, student_factor


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
    def start_value(self) -> float:
        """The mean value of the states where episodes begin: what the policy is worth."""
        return self.found.value

    @property
    def start_interval(self) -> Bounds:
        """The interval of `start_value`."""
        return Bounds(self.found.low, self.found.high)

    @property
    def robust(self) -> Interval | None:
        """The doubly robust estimate with its interval; None where ratios allow no step."""
        if not self.found.steps:
            return None
        half = student_factor(self.confidence, len(self.found.psi) - 1) * self.found.d.error
        return Interval(self.found.d.value, self.found.d.value - half, self.found.d.value + half)

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
            "LSTD-Q": found.q.value,
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
