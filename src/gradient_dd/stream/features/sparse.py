"""Sparse features: one-hot features, tile coding, states by name, and columns of text as categories.

Tile coding lays several grids over the observations, each shifted a little; one tile of each grid is active.

    >>> coder = TileCoder(low=[-1.2, -0.07], high=[0.6, 0.07], tiles=8, tilings=8)
    >>> coder.n_features, coder.nonzeros, coder.bound
    (648, 8, 8.0)

Tiling t is shifted by t/tilings of a tile in the first dimension, by 3t/tilings in the second, by 5t/tilings in the
third, and so on (Parks & Militzer's displacement), so that the grids cut each other evenly. A dimension that wraps
around, such as an angle, has no seam. With `size` the tiles are hashed into so many features; two tiles that fall on
the same feature count as one.
"""

from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.errors import Unquoted, bad_request, boolean, whole_number
from gradient_dd.stream.features.kind import Features, Rows, Wrapped, box, for_each, matrix

MOST_TILINGS = 2**12
MIX = np.uint64(0x9E3779B97F4A7C15)  # odd, from the golden ratio: neighbouring tiles fall far apart
MOST_STATES = 100_000
MOST_WORDS = 10_000  # of one column


class OneHot(Features):
    """A feature for every combination of values.

    sizes  how many values each dimension has
    first  the smallest of them: one whole number, or one for each dimension; default 0

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
    tiles      how many tiles along each dimension: one number, or one for each
    tilings    how many grids; as many features are 1 at a time
    wrap       (dimensions,) which dimensions wrap around; default none
    size       hash the tiles into so many features; default a feature for every tile
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
        self.box = box(low, high, outside)
        dimensions = len(self.box.low)
        self.tilings = whole_number("'tilings'", tilings, at_most=MOST_TILINGS)
        counts = [whole_number("'tiles'", one, at_most=2**31) for one in for_each("'tiles'", tiles, dimensions)]
        self.tiles: Integers = np.array(counts, dtype=np.int64)
        self.wrap = np.array([boolean("'wrap'", one) for one in for_each("'wrap'", wrap, dimensions)])
        self.columns = self.tiles + ~self.wrap  # a shifted grid needs one tile more, unless it wraps around
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
            indices[:, tiling] = self._feature(tiling, self._tile(tiling, place))
        return Rows(indices, np.ones(indices.shape)) if self.size is None else counted_once(indices)

    def _tile(self, tiling: int, place: Array) -> Integers:
        """Return the coordinates of the active tile of a tiling, (n, dimensions)."""
        shift = (tiling * (2 * np.arange(place.shape[1]) + 1) % self.tilings) / self.tilings
        tile = np.floor(place + shift).astype(np.int64)
        return np.where(self.wrap, tile % self.tiles, np.minimum(tile, self.columns - 1))

    def _feature(self, tiling: int, tile: Integers) -> Integers:
        """Return the feature of each tile, (n,)."""
        if self.size is None:
            flat = np.ravel_multi_index(tuple(tile.T), tuple(self.columns))
            return flat + tiling * int(np.prod(self.columns))
        code = np.full(len(tile), tiling + 1, dtype=np.uint64)
        for column in tile.T.astype(np.uint64):
            code = (code ^ column) * MIX
            code ^= code >> np.uint64(29)
        return (code % np.uint64(self.size)).astype(np.int64)


def counted_once(indices: Integers) -> Rows:
    """Return rows in which a feature that stands twice has the value 1 the first time, and 0 after that."""
    ordered = np.sort(indices, axis=1)
    values = np.ones(ordered.shape)
    values[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = 0.0
    return Rows(ordered, values)


class Table(Features):
    """One feature for each of the states, which are rows of numbers, (n, dimensions).

    A state that is not among them has no feature: its row is 0, for nothing is known of it.

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
        """Return the one active feature of n observations; none where the state is not known."""
        X = matrix(observations, self.states.shape[1])
        states, each = np.unique(X, axis=0, return_inverse=True)
        place = np.array([self._place.get(tuple(state), -1) for state in states.tolist()], np.int64)
        place = place[each.ravel()][:, None]
        return Rows(np.maximum(place, 0), (place >= 0).astype(float))


class Categories(Wrapped):
    """Columns of text before another map: a text becomes the number of its place in `words`.

    words     for each column the texts that it has, in order; None for a column of numbers
    features  the map of what results: one number a column or, with `spread`, 0s and a 1 for each column of text
    """

    kind = "categories"

    def __init__(self, words: Any, features: Any, spread: bool = False) -> None:
        super().__init__(features)
        self.words = [None if one is None else list(map(str, one)) for one in words]
        self.spread = boolean("'spread'", spread)
        self._place = [{word: i for i, word in enumerate(one or ())} for one in self.words]

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, rows of texts and numbers."""
        cells = np.asarray(observations, dtype=object)
        cells = cells[:, None] if cells.ndim == 1 and len(self.words) == 1 else cells
        if cells.ndim != 2 or cells.shape[1] != len(self.words):
            raise bad_request("The shape of observations", f"be (n, {len(self.words)})", cells.shape)
        numbers = [self._numbers(column, i) for i, column in enumerate(cells.T)]
        return self.of_numbers(np.array(numbers, float).reshape(len(self.words), len(cells)).T)

    def _numbers(self, column: Any, i: int) -> list[float]:
        """Return a column as numbers; -1 for a text that is not known."""
        if self.words[i] is None:
            return [float(one) for one in matrix(column, 1)[:, 0]]
        return [float(self._place[i].get(str(one).strip(), -1)) for one in column]

    def of_numbers(self, X: Array) -> Rows:
        """Return the features of observations whose texts are numbers already, as the reader of a log has them."""
        return self.features.rows(spread_out(X, self.words) if self.spread else X)


def spread_out(X: Array, words: list[list[str] | None]) -> Array:
    """Return columns of places among words as 0s and a 1 each, (n, more columns); columns of numbers as they are."""
    parts = [
        X[:, [i]] if one is None else (X[:, [i]] == np.arange(len(one))).astype(float) for i, one in enumerate(words)
    ]
    return np.hstack(parts)
