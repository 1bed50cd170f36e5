"""The interface of feature maps, which turn observations into rows of features and state the sizes of these rows.

Every map has

    n_features   p, the number of features
    nonzeros     k, the largest number of nonzero features of an observation
    bound        the largest possible |x|²; a step size of up to 1 / bound never moves a value past its target
    rows(X)      the features of n observations, as `Rows`
    as_data()    the map as plain data, from which `from_data` rebuilds it

A call with one observation returns the features of a single step, as `Learner.update` takes them.
"""

from abc import ABC, abstractmethod
from inspect import signature
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gradient_dd.arrays import LARGEST, Array, Integers, as_floats
from gradient_dd.errors import Unquoted, bad_request, one_of, unknown


class Rows(NamedTuple):
    """Feature rows of n observations: (n, k) indices and values, or dense (n, p) values with indices None."""

    indices: Integers | None
    values: Array

    def one(self, n: int) -> Any:
        """Return the n-th row as `Learner.update` takes it."""
        if self.indices is None:
            return self.values[n]
        used = self.values[n] != 0
        return self.indices[n][used], self.values[n][used]

    def dense(self, n_features: int) -> Array:
        """Return all rows as (n, p)."""
        if self.indices is None:
            return self.values
        rows = np.zeros((len(self.values), n_features))
        np.add.at(rows, (np.arange(len(rows))[:, None], self.indices), self.values)
        return rows


class Features(ABC):
    """A feature map."""

    kind: ClassVar[str]
    n_features: int
    nonzeros: int
    bound: float

    @abstractmethod
    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, (n, dimensions) or (n,)."""

    def as_data(self) -> dict[str, Any]:
        """Return the map as plain data: its kind and its parameters."""
        data: dict[str, Any] = {"kind": self.kind}
        for name in signature(type(self)).parameters:
            value = getattr(vars(self).get("box", self) if name in Box._fields else self, name)
            data[name] = value.as_data() if isinstance(value, Features) else value
            if isinstance(value, np.ndarray):
                data[name] = value.tolist()
        return data

    def __call__(self, observation: Any) -> Any:
        """Return the features of one observation: (indices, values), or a dense vector."""
        return self.rows(as_floats("An observation", observation)[None]).one(0)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_features} features, at most {self.nonzeros} nonzero>"


FEATURES: dict[str, type[Features]] = {}  # the types that can be saved, by kind


def from_data(data: dict[str, Any]) -> Features:
    """Return the map that `as_data` described."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise bad_request("The description of features", "be a dictionary whose keys are text", data)
    rest = dict(data)
    kind = rest.pop("kind", None)
    if not isinstance(kind, str) or kind not in FEATURES:
        raise unknown("type of features", kind, FEATURES)
    try:
        return FEATURES[kind](**rest)
    except TypeError:
        raise bad_request(f"Features of kind {kind!r}", "be described by their own parameters", sorted(rest)) from None


class Wrapped(Features):
    """A map that first turns observations into numbers, and then into the features of another map."""

    def __init__(self, features: Any) -> None:
        self.features: Features = from_data(features) if isinstance(features, dict) else features
        if not isinstance(self.features, Features):
            raise bad_request(f"'features' of a map of kind {self.kind!r}", "be a feature map", features)
        inner = self.features
        self.n_features, self.nonzeros, self.bound = inner.n_features, inner.nonzeros, inner.bound

    def __call__(self, observation: Any) -> Any:
        """Return the features of one observation, which need not be numbers."""
        return self.rows([observation]).one(0)


class Box(NamedTuple):
    """The bounds of observations, (dimensions,) each, and whether to "refuse" or "clip" observations outside them."""

    low: Array
    high: Array
    outside: str

    @classmethod
    def checked(cls, low: Any, high: Any, outside: str) -> "Box":
        """Return checked bounds."""
        low, high = (np.atleast_1d(as_floats(f"{name!r}", one)) for name, one in (("low", low), ("high", high)))
        if low.ndim != 1 or low.shape != high.shape or not low.size:
            got = Unquoted(f"{low.shape} and {high.shape}")
            raise bad_request("'low' and 'high'", "have one number for each dimension", got)
        if not (np.abs([low, high]) <= LARGEST).all() or not (low < high).all():
            hint = "Give bounds if a space has none."
            raise bad_request("'low' and 'high'", "be finite, and low below high", Unquoted(f"{low} and {high}"), hint)
        return cls(low, high, one_of("'outside'", outside, ("refuse", "clip")))

    def unit(self, observations: Any) -> Array:
        """Return observations scaled to [0, 1], (n, dimensions); raise for NaN and, unless clipped, values outside."""
        X = matrix(observations, len(self.low))
        if self.outside == "clip":
            X = np.clip(X, self.low, self.high)
        beyond = (self.low > X) | (self.high < X)
        if beyond.any():
            row, column = np.argwhere(beyond)[0]
            rule = f"be from {self.low[column]:g} to {self.high[column]:g}"
            hint = "Use outside='clip' to take the nearest bound."
            raise bad_request(f"Dimension {column} of observation {row}", rule, float(X[row, column]), hint)
        return (X - self.low) / (self.high - self.low)


def for_each(what: str, value: Any, dimensions: int) -> list[Any]:
    """Return a list with a value for each dimension, from one value or from one value per dimension."""
    try:
        return list(np.broadcast_to(np.asarray(value), dimensions).tolist())
    except (TypeError, ValueError):
        raise bad_request(what, f"be one value, or one for each of {dimensions} dimensions", value) from None


def matrix(observations: Any, dimensions: int) -> Array:
    """Return observations as finite numbers (n, dimensions), or raise an error that names the first nonfinite value."""
    X = as_floats("Observations", observations)
    X = X[:, None] if X.ndim == 1 and dimensions == 1 else X
    if X.ndim != 2 or X.shape[1] != dimensions:
        raise bad_request("The shape of observations", f"be (n, {dimensions})", X.shape)
    finite = np.isfinite(X)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise bad_request(f"Dimension {column} of observation {row}", "be a finite number", float(X[row, column]))
    return X
