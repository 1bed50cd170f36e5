"""What an evaluation gives back: values, their interval, and how far to trust them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import bad_request
from gradient_dd.evaluation.action_rows import PolicyFeatures
from gradient_dd.evaluation.choice import Candidate, Spread
from gradient_dd.evaluation.findings import NOT_JUDGED, Verdict
from gradient_dd.evaluation.moments import lane_values
from gradient_dd.evaluation.portfolio import TdStability
from gradient_dd.evaluation.returns import ReturnCheck
from gradient_dd.evaluation.support import Support
from gradient_dd.evaluation.transitions import as_rows
from gradient_dd.stream.features import Features, Rows
from gradient_dd.studies.intervals import Bounds, Interval


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Values of the target policy, learnt from a stream of transitions.

    w           (p,) the weights
    chosen      the learner and its parameters, in words
    support     where there are data, and what values can be at all
    points      feature rows of first states of episodes: `values` and `interval` are for them
    start       (p,) the mean of the features where episodes begin
    candidates  all that was tried, the smallest held-out error first
    stability   what the shadows say of TD on this stream
    verdict     "trust", "with care" or "not", and why
    features    the map from observations to features; None where the stream gave features
    switches    (rows, words) of what was ahead from these rows on, looked at whenever a long stream had doubled
    checks      the returns of the log beside the values: from the starts of episodes, and from all rows
    worth       the interval of `start_value` where action values have their own: the union of theirs and that of
    robust      the doubly robust estimate;  logging  the value of the policy that made the log;  difference  how much
                more the target is worth: each with an interval, and None unless there are action values
    at          the observations of `points`, where they were asked for; else None
    stated      what was taken for what in a log;  seconds  how long reading it took, and all
    """

    w: Array
    chosen: str
    spread: Spread
    support: Support
    points: Rows
    start: Array
    candidates: tuple[Candidate, ...]
    stability: TdStability
    rows: int
    passes: int
    features: Features | None = None
    switches: tuple[tuple[int, str], ...] = ()
    checks: tuple[ReturnCheck, ...] = ()
    worth: Bounds | None = None
    robust: Interval | None = None
    logging: Interval | None = None
    difference: Interval | None = None
    verdict: Verdict = NOT_JUDGED
    at: Any = None
    stated: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def values(self) -> Array:
        """(n,) the values of `points`."""
        return self._values(self.points)

    @property
    def interval(self) -> Bounds:
        """The interval of `values`, (n,) each."""
        return self._interval(self.points)

    @property
    def start_value(self) -> float:
        """The mean value of the states where episodes begin: what the target policy is worth."""
        return float(self.start @ self.w)

    @property
    def start_interval(self) -> Bounds:
        """The interval of `start_value`; it allows for the first states being a sample."""
        return self.worth or Bounds(*self.spread.of_mean(self.start, self.w, self.spread.starts))

    @property
    def scale(self) -> float:
        """The largest of the values, by size, where episodes begin."""
        return max(abs(self.start_value), float(np.nan_to_num(np.abs(self.values)).max(initial=0.0)))

    def predict(self, observations: Any) -> Array:
        """Return the value of each observation, (n,); of feature rows where the stream gave features.

        NaN where nothing in the data is like the observation.
        """
        return self._values(self._rows(observations))

    def predict_interval(self, observations: Any) -> Bounds:
        """Return the interval of the value of each observation, (n,) each.

        It is as wide as the rewards allow where there are no data nearby.
        """
        return self._interval(self._rows(observations))

    def q(self, observations: Any, actions: Any) -> Array:
        """Return Q of each observation and action, (n,); one action stands for all observations.

        One observation (d,) and one action give one number.
        """
        if not isinstance(self.features, PolicyFeatures):
            raise bad_request(
                "An evaluation", "be of a target policy and a log with actions, to have action values", self.chosen
            )
        one = np.ndim(observations) == 1 and len(np.atleast_1d(observations)) == self.features.dimensions
        rows = self.features.action_rows(np.atleast_2d(observations) if one else observations, actions)
        values = self._values(rows)
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
        low, high = self.start_interval
        stability = {"TD": self.stability.verdict, "copies that died out": self.stability.dead}
        return {
            "verdict": self.verdict.word,
            "why": [
                {"level": one.level, "about": one.about, "sentence": one.sentence} for one in self.verdict.findings
            ],
            "value": self.start_value,
            "interval": [low, high],
            "confidence": self.spread.confidence,
            "doubly robust": as_data(self.robust),
            "logging policy": as_data(self.logging),
            "difference": as_data(self.difference),
            "returns": [check._asdict() for check in self.checks],
            "values": self.asked(),
            "chosen": self.chosen,
            "switches": [{"rows": rows, "to": words} for rows, words in self.switches],
            "stated": list(self.stated),
            "seconds": dict(self.seconds),
            "rows": self.rows,
            "passes": self.passes,
            **stability,
            "candidates": [
                {"words": one.words, "held-out error": one.error, "diverged at": one.diverged or None}
                for one in self.candidates
            ],
        }

    def _rows(self, observations: Any) -> Rows:
        return as_rows("X", observations) if self.features is None else self.features.rows(observations)

    def _values(self, rows: Rows) -> Array:
        values = lane_values(self._checked(rows), self.w[:, None])[:, 0]
        return np.where(self.support.known(rows), values, np.nan)

    def _interval(self, rows: Rows) -> Bounds:
        spread = self.spread
        value, anchor, drift = lane_values(
            self._checked(rows), np.column_stack([self.w, spread.anchor, spread.drift])
        ).T
        return self.support.widened(rows, spread.around(value, anchor, lane_values(rows, spread.copies.T), drift))

    def _checked(self, rows: Rows) -> Rows:
        if rows.indices is None and rows.values.shape[1] != len(self.w):
            raise bad_request("The shape of 'X'", f"be (n, {len(self.w)})", rows.values.shape)
        return rows


def as_data(found: Interval | None) -> dict[str, float] | None:
    """Return an estimate as plain data."""
    return None if found is None else {"value": found.estimate, "low": found.low, "high": found.high}
