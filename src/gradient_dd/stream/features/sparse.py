"""Sparse and structured features: one-hot, tile coding, tables of states, text columns, dictionaries and tuples.

Tile coding lays several grids over the observations, each shifted a little; one tile of each grid is active.

    >>> coder = TileCoder(low=[-1.2, -0.07], high=[0.6, 0.07], tiles=8, tilings=8)
    >>> coder.n_features, coder.nonzeros, coder.bound
    (648, 8, 8.0)

Tiling t is shifted by t/tilings of a tile in the first dimension, by 3t/tilings in the second, by 5t/tilings in the
third, and so on (Parks & Militzer's displacement), so that the grids are offset evenly. A dimension that wraps around,
such as an angle, has no seam. With `size` the tiles are hashed into that many features; two active tiles with the same
feature count once.
"""

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.errors import Unquoted, bad_request, boolean, foreign, whole_number
from gradient_dd.stream.features.kind import Box, Features, Rows, Wrapped, for_each, matrix

MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, from the golden ratio: neighbouring tiles get distant features
MOST_STATES = 100_000
MOST_WORDS = 10_000  # maximum number of texts of one column
Layout = list[Any]


class OneHot(Features):
    """A feature for every combination of values.

    sizes  number of values of each dimension
    first  the smallest value: one whole number, or one for each dimension; default 0

    >>> OneHot(4)(2)
    (array([2]), array([1.]))
    """

    kind = "one_hot"

    def __init__(self, sizes: Any, first: Any = 0) -> None:
        several = sizes if isinstance(sizes, list | tuple) else np.ravel(np.asarray(sizes)).tolist()
        counts = [whole_number("'sizes'", one, at_most=2**31) for one in several]
        if not counts:
            raise bad_request("'sizes'", "have at least one dimension", sizes)
        self.sizes: Integers = np.array(counts, dtype=np.int64)
        self.n_features = int(np.prod(self.sizes, dtype=object))
        if self.n_features > 2**31:
            raise bad_request("The number of one-hot features", "be at most 2³¹", self.n_features)
        starts = [whole_number("'first'", one, -(2**31), 2**31) for one in for_each("'first'", first, len(counts))]
        self.first: Integers = np.array(starts, dtype=np.int64)
        self.nonzeros, self.bound = 1, 1.0

    def rows(self, observations: Any) -> Rows:
        """Return the one active feature of n observations."""
        X = matrix(observations, len(self.sizes)) - self.first
        wrong = (np.floor(X) != X) | (X < 0) | (self.sizes <= X)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            first = self.first[column]
            rule = f"be a whole number from {first} to {first + self.sizes[column] - 1}"
            raise bad_request(f"Dimension {column} of observation {row}", rule, float(X[row, column] + first))
        flat = np.ravel_multi_index(tuple(X.astype(np.int64).T), tuple(self.sizes))
        return Rows(np.asarray(flat)[:, None], np.ones((len(X), 1)))


class TileCoder(Features):
    """Tile coding of observations in a box.

    low, high  (dimensions,) the bounds
    tiles      number of tiles along each dimension: one number, or one for each
    tilings    number of grids, which equals the number of active features
    wrap       (dimensions,) whether each dimension wraps around; default none does
    size       hash the tiles into this many features; default a feature for every tile
    outside    "refuse" an observation outside the bounds, or "clip" it to them
    """

    kind = "tiles"

    def __init__(
        self,
        low: Any,
        high: Any,
        tiles: Any = 8,
        tilings: int = 8,
        wrap: Any = False,
        size: int | None = None,
        outside: str = "refuse",
    ) -> None:
        self.box = Box.checked(low, high, outside)
        dimensions = len(self.box.low)
        self.tilings = whole_number("'tilings'", tilings, at_most=2**12)
        counts = [whole_number("'tiles'", one, at_most=2**31) for one in for_each("'tiles'", tiles, dimensions)]
        self.tiles: Integers = np.array(counts, dtype=np.int64)
        self.wrap = np.array([boolean("'wrap'", one) for one in for_each("'wrap'", wrap, dimensions)])
        self.columns = self.tiles + ~self.wrap  # a shifted grid needs one more tile, unless it wraps around
        whole = self.tilings * int(np.prod(self.columns, dtype=object))
        self.size = None if size is None else whole_number("'size'", size, at_least=self.tilings, at_most=2**62)
        if self.size is None and whole > 2**31:
            hint = "Use fewer tiles, or hash them with size=."
            raise bad_request("The number of tiles", "be at most 2³¹", whole, hint)
        self.n_features = whole if self.size is None else self.size
        self.nonzeros, self.bound = self.tilings, float(self.tilings)

    def rows(self, observations: Any) -> Rows:
        """Return the active tiles of n observations."""
        place = self.box.unit(observations) * self.tiles
        indices = np.empty((len(place), self.tilings), dtype=np.int64)
        for tiling in range(self.tilings):
            shift = (tiling * (2 * np.arange(place.shape[1]) + 1) % self.tilings) / self.tilings
            tile = np.floor(place + shift).astype(np.int64)
            tile = np.where(self.wrap, tile % self.tiles, np.minimum(tile, self.columns - 1))
            if self.size is None:
                flat = np.ravel_multi_index(tuple(tile.T), tuple(self.columns))
                indices[:, tiling] = flat + tiling * int(np.prod(self.columns))
                continue
            code = np.full(len(tile), tiling + 1, dtype=np.uint64)
            for column in tile.T.astype(np.uint64):
                code = (code ^ column) * MIX
                code ^= code >> np.uint64(29)
            indices[:, tiling] = code % np.uint64(self.size)
        values = np.ones(indices.shape)
        if self.size is not None:  # a feature that occurs twice in a row has the value 1 once, then 0
            indices.sort(axis=1)
            values[:, 1:][indices[:, 1:] == indices[:, :-1]] = 0.0
        return Rows(indices, values)


class Table(Features):
    """One feature for each state; states are rows of numbers, (n, dimensions).

    A state that is not in the table has no feature: its row is 0.

    >>> Table([[1.0], [4.0]]).rows([[4.0], [2.0]])
    Rows(indices=array([[1],
           [0]]), values=array([[1.],
           [0.]]))
    """

    kind = "table"

    def __init__(self, states: Any) -> None:
        found = np.asarray(states, float)
        self.states = matrix(found, found.shape[1] if found.ndim == 2 else 1)
        if not 0 < len(self.states) <= MOST_STATES:
            hint = "Use 'tiles' or 'standard'." if len(self.states) else ""
            rule = f"have from 1 to {MOST_STATES:,} different states"
            raise bad_request("A table", rule, Unquoted(f"{len(self.states):,}"), hint)
        self._place = {tuple(state): i for i, state in enumerate(self.states.tolist())}
        self.n_features, self.nonzeros, self.bound = len(self.states), 1, 1.0

    def rows(self, observations: Any) -> Rows:
        """Return the one active feature of each of n observations; an unknown state has none."""
        states, each = np.unique(matrix(observations, self.states.shape[1]), axis=0, return_inverse=True)
        place = np.array([self._place.get(tuple(state), -1) for state in states.tolist()], np.int64)
        place = place[each.ravel()][:, None]
        return Rows(np.maximum(place, 0), (place >= 0).astype(float))


class Categories(Wrapped):
    """A map for text columns: each text becomes its place in `words`, and another map computes the features.

    words     the texts of each column, in order; None for a column of numbers
    features  the other map; its input has one number per column or, with `spread`, text columns one-hot encoded
    """

    kind = "categories"

    def __init__(self, words: Any, features: Any, spread: bool = False) -> None:
        super().__init__(features)
        self.words = [None if one is None else list(map(str, one)) for one in words]
        self.spread = boolean("'spread'", spread)
        self._place = [{word: i for i, word in enumerate(one or ())} for one in self.words]

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, rows of texts and numbers; an unknown text counts as −1."""
        cells, width = np.asarray(observations, dtype=object), len(self.words)
        cells = cells[:, None] if cells.ndim == 1 and width == 1 else cells
        if cells.ndim != 2 or cells.shape[1] != width:
            raise bad_request("The shape of observations", f"be (n, {width})", cells.shape)
        X = np.empty(cells.shape)
        for i, (column, words, place) in enumerate(zip(cells.T, self.words, self._place, strict=True)):
            X[:, i] = matrix(column, 1)[:, 0] if words is None else [place.get(str(one).strip(), -1) for one in column]
        return self.of_numbers(X)

    def of_numbers(self, X: Array) -> Rows:
        """Return the features of observations whose texts are numbers already, as a `LogReader` returns them."""
        return self.features.rows(spread_out(X, self.words) if self.spread else X)


def spread_out(X: Array, words: list[list[str] | None]) -> Array:
    """Return text columns one-hot encoded and columns of numbers unchanged, (n, more columns)."""
    parts = [
        X[:, [i]] if one is None else (X[:, [i]] == np.arange(len(one))).astype(float) for i, one in enumerate(words)
    ]
    return np.hstack(parts)


class Structured(Wrapped):
    """A map for dictionaries or tuples: their parts form one vector, and another map gives the features.

    layout  the description of the parts as plain data:
            ["box", 3]                         3 numbers
            ["whole", [5, 2], [0, 0]]          whole numbers with 5 and 2 values from 0 on, each one-hot
            ["dict", [["a", ...], ["b", ...]]] the parts of a dictionary, in the order of a Dict space
            ["tuple", [..., ...]]              the parts of a tuple
    """

    kind = "structured"

    def __init__(self, layout: Layout, features: Any) -> None:
        super().__init__(features)
        self.layout = layout

    def rows(self, observations: Any) -> Rows:
        """Return the features of a list of observations, or of one observation whose parts have n rows each."""
        columns = []
        with foreign("Observations", "have the parts of their space"):
            several = observations if isinstance(observations, list) else [observations]
            for same in zip(*(leaves(self.layout, one) for one in several), strict=True):
                layout, part = same[0]
                rows = np.asarray([one for _, one in same] if several is observations else part)
                rows = rows.reshape(len(rows) if rows.ndim else 1, prod(rows.shape[1:]))
                if layout[0] == "box":
                    columns.append(matrix(rows, layout[1]))
                    continue
                rows = matrix(rows, len(layout[1]))
                for size, first, column in zip(*layout[1:], rows.T, strict=True):
                    columns.append(OneHot(size, first).rows(column).dense(size))
            flat = np.hstack(columns)
        return self.features.rows(flat)


def leaves(layout: Layout, observation: Any, what: str = "observations") -> Iterator[tuple[Layout, Any]]:
    """Yield the boxes and whole numbers of a layout, each with its part of an observation."""
    kind, parts = layout[:2]
    if kind == "dict":
        keys = [key for key, _ in parts]
        if not isinstance(observation, dict) or set(observation) != set(keys):
            got = sorted(map(str, observation)) if isinstance(observation, dict) else observation
            raise bad_request(f"The {what}", f"be a dictionary with {keys}", got)
        for key, part in parts:
            yield from leaves(part, observation[key], f"{key!r} of {what}")
    elif kind == "tuple":
        if not isinstance(observation, tuple | list) or len(observation) != len(parts):
            raise bad_request(f"The {what}", f"be a tuple of {len(parts)} parts", observation)
        for i, part in enumerate(parts):
            yield from leaves(part, observation[i], f"part {i} of {what}")
    else:
        yield layout, observation


def layout_of(space: Any) -> tuple[Layout, Array, Array]:
    """Return the layout of a Gymnasium space, and the bounds of its flattened observations, (dimensions,) each."""
    name = type(space).__name__
    if name == "Box":
        return ["box", prod(space.shape)], np.ravel(space.low).astype(float), np.ravel(space.high).astype(float)
    if name in ("Discrete", "MultiDiscrete"):
        sizes = np.ravel(space.n if name == "Discrete" else space.nvec).astype(int).tolist()
        first = np.ravel(space.start).astype(int).tolist()
        return ["whole", sizes, first], np.zeros(sum(sizes)), np.ones(sum(sizes))
    if name not in ("Dict", "Tuple"):
        rule = "be Discrete, MultiDiscrete, Box, Dict or Tuple"
        raise bad_request("The observation space", rule, Unquoted(name), "Use a function of your own: Own(function).")
    spaces = space.spaces.values() if name == "Dict" else space.spaces
    if not spaces:
        raise bad_request("An observation space", "have at least one part", Unquoted(f"{name}()"))
    layouts, low, high = zip(*map(layout_of, spaces), strict=True)
    parts = [[key, layout] for key, layout in zip(space.spaces, layouts, strict=True)] if name == "Dict" else layouts
    return [name.lower(), list(parts)], np.concatenate(low), np.concatenate(high)
