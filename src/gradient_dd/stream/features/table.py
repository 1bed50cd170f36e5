"""States by name: one weight for each distinct state, and columns of text as categories."""

from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import Unquoted, bad_request, boolean
from gradient_dd.stream.features.kind import Features, Rows, matrix

MOST_STATES = 100_000
MOST_WORDS = 10_000  # of one column


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


class Categories(Features):
    """Columns of text before another map: a text becomes the number of its place in `words`.

    words     for each column the texts that it has, in order; None for a column of numbers
    features  the map of what results: one number a column or, with `spread`, 0s and a 1 for each column of text
    """

    kind = "categories"

    def __init__(self, words: Any, features: Any, spread: bool = False) -> None:
        from gradient_dd.stream.features import from_data

        self.words = [None if one is None else list(map(str, one)) for one in words]
        self.spread = boolean("'spread'", spread)
        self.inner: Features = from_data(features) if isinstance(features, dict) else features
        if not isinstance(self.inner, Features):
            raise bad_request("'features' of categories", "be a feature map", features)
        self._place = [{word: i for i, word in enumerate(one or ())} for one in self.words]
        self.n_features, self.nonzeros, self.bound = self.inner.n_features, self.inner.nonzeros, self.inner.bound

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
        return self.inner.rows(spread_out(X, self.words) if self.spread else X)

    def __call__(self, observation: Any) -> Any:
        """Return the features of one observation."""
        return self.rows([observation] if len(self.words) > 1 else np.array([[observation]], object)).one(0)

    def as_data(self) -> dict[str, Any]:
        """Return the map as plain data."""
        return {"kind": self.kind, "words": self.words, "features": self.inner.as_data(), "spread": self.spread}


def spread_out(X: Array, words: list[list[str] | None]) -> Array:
    """Return columns of places among words as 0s and a 1 each, (n, more columns); columns of numbers as they are."""
    parts = [
        X[:, [i]] if one is None else (X[:, [i]] == np.arange(len(one))).astype(float) for i, one in enumerate(words)
    ]
    return np.hstack(parts)
