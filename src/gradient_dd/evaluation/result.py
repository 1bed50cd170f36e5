"""What an evaluation gives back: values, their interval, and how far to trust them."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from gradient_dd.arrays import Array
from gradient_dd.errors import must
from gradient_dd.online.features import Features, Rows


class Interval(NamedTuple):
    """The bounds of an interval, each of the shape of what it is for."""

    low: Any
    high: Any


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Values of the target policy, learnt from a stream of transitions.

    w          (p,) the weights
    chosen     the learner and its parameters, in words
    features   the map from observations to features; None where the stream gave features
    """

    w: Array
    chosen: str
    features: Features | None = None

    def predict(self, observations: Any) -> Array:
        """Return the value of each observation, (n,); of feature rows where the stream gave features."""
        return values_of(self._rows(observations), self.w)

    def _rows(self, observations: Any) -> Rows:
        if self.features is not None:
            return self.features.rows(observations)
        from gradient_dd.evaluation.transitions import as_rows

        return as_rows("X", observations)


def values_of(rows: Rows, w: Array) -> Array:
    """Return x·w of each row."""
    if rows.indices is None:
        if rows.values.shape[1] != len(w):
            raise must("The shape of 'X'", f"be (n, {len(w)})", rows.values.shape)
        return rows.values @ w
    return (rows.values * w[rows.indices]).sum(axis=1)
