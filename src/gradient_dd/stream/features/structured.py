"""Observations that are dictionaries or tuples: their parts side by side as one vector, then any other features.

A `layout` says what the parts are, as plain data, so that it can be saved:

    ["box", 3]                         3 numbers
    ["whole", [5, 2], [0, 0]]          whole numbers with 5 and 2 values, counted from 0; each becomes 0s and a 1
    ["dict", [["a", ...], ["b", ...]]] the parts of a dictionary, in the order of a Dict space
    ["tuple", [..., ...]]              the parts of a tuple
"""

from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import Unquoted, bad_request, foreign
from gradient_dd.stream.features.kind import Rows, Wrapped, matrix
from gradient_dd.stream.features.sparse import OneHot

Layout = list[Any]


def layout_of(space: Any) -> Layout:
    """Return the layout of a Gymnasium space."""
    name = type(space).__name__
    if name == "Box":
        return ["box", int(np.prod(space.shape, dtype=int))]
    if name in ("Discrete", "MultiDiscrete"):
        return ["whole", *whole_of(space)]
    if name == "Dict":
        return ["dict", [[key, layout_of(part)] for key, part in space.spaces.items()]]
    if name == "Tuple":
        return ["tuple", [layout_of(part) for part in space.spaces]]
    rule = "be Discrete, MultiDiscrete, Box, Dict or Tuple"
    raise bad_request("The observation space", rule, Unquoted(name), "Use a function of your own: Own(function).")


def whole_of(space: Any) -> tuple[list[int], list[int]]:
    """Return how many values each dimension of a space of whole numbers has, and the first of them."""
    sizes = space.n if type(space).__name__ == "Discrete" else space.nvec
    return np.ravel(sizes).astype(int).tolist(), np.ravel(space.start).astype(int).tolist()


def bounds_of(space: Any) -> tuple[Array, Array]:
    """Return the lower and upper bounds of a flattened space."""
    name = type(space).__name__
    if name == "Box":
        return np.ravel(space.low).astype(float), np.ravel(space.high).astype(float)
    if name in ("Discrete", "MultiDiscrete"):
        values = sum(whole_of(space)[0])
        return np.zeros(values), np.ones(values)
    parts = space.spaces.values() if name == "Dict" else space.spaces
    if not parts:
        raise bad_request("An observation space", "have at least one part", Unquoted(f"{name}()"))
    low, high = zip(*(bounds_of(part) for part in parts), strict=True)
    return np.concatenate(low), np.concatenate(high)


def flattened(layout: Layout, observations: Any, n: int, what: str = "observations") -> Array:
    """Return a batch as (n, dimensions): an array, or a dictionary or tuple of arrays, with n rows each."""
    kind, parts = layout[0], layout[1]
    if kind == "dict":
        if not isinstance(observations, dict) or set(observations) != {key for key, _ in parts}:
            got = sorted(map(str, observations)) if isinstance(observations, dict) else observations
            raise bad_request(f"The {what}", f"be a dictionary with {[key for key, _ in parts]}", got)
        columns = [flattened(part, observations[key], n, f"{key!r} of {what}") for key, part in parts]
        return np.concatenate(columns, axis=1)
    if kind == "tuple":
        if not isinstance(observations, tuple | list) or len(observations) != len(parts):
            raise bad_request(f"The {what}", f"be a tuple of {len(parts)} parts", observations)
        columns = [
            flattened(part, one, n, f"part {i} of {what}")
            for i, (part, one) in enumerate(zip(parts, observations, strict=True))
        ]
        return np.concatenate(columns, axis=1)
    rows = np.asarray(observations)
    rows = rows.reshape(n, -1) if rows.size else rows.reshape(n, 0)
    if kind == "box":
        return matrix(rows, parts)
    sizes, first = layout[1:]
    rows = matrix(rows, len(sizes))
    each = [
        OneHot(size, begin).rows(rows[:, i]).dense(size)
        for i, (size, begin) in enumerate(zip(sizes, first, strict=True))
    ]
    return np.concatenate(each, axis=1)


def batched(layout: Layout, observations: list[Any]) -> Any:
    """Return a list of single observations as a batch."""
    if layout[0] == "dict":
        return {key: batched(part, [one[key] for one in observations]) for key, part in layout[1]}
    if layout[0] == "tuple":
        return tuple(batched(part, [one[i] for one in observations]) for i, part in enumerate(layout[1]))
    return np.asarray(observations)


class Structured(Wrapped):
    """Dictionaries or tuples, flattened by a layout, and then the features of the vector that results."""

    kind = "structured"

    def __init__(self, layout: Any, features: Any) -> None:
        super().__init__(features)
        self.layout: Layout = layout

    def rows(self, observations: Any) -> Rows:
        """Return the features of a batch: a list of observations, or one observation whose parts have n rows."""
        if isinstance(observations, list):
            with foreign("Observations", "have the parts of their space"):
                observations, n = batched(self.layout, observations), len(observations)
        else:
            n = count(observations)
        return self.features.rows(flattened(self.layout, observations, n))


def count(observations: Any) -> int:
    """Return how many rows the first array of a batch has."""
    while isinstance(observations, dict | tuple):
        parts = list(observations.values()) if isinstance(observations, dict) else observations
        if not parts:
            raise bad_request("Observations", "have at least one part", observations)
        observations = parts[0]
    return len(observations) if np.ndim(observations) else 1
