"""One-hot features: a feature for every value of whole-number observations."""

from typing import Any

import numpy as np

from gradient_dd.arrays import Integers
from gradient_dd.errors import must, whole_number
from gradient_dd.stream.features.kind import Features, Rows, for_each, matrix


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
            raise must("'sizes'", "have at least one dimension", sizes)
        self.sizes: Integers = np.array(counts, dtype=np.int64)
        self.n_features = int(np.prod(self.sizes, dtype=object))
        if self.n_features > 2**31:
            raise must("The number of one-hot features", "be at most 2³¹", self.n_features)
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
            raise must(f"Dimension {column} of observation {row}", rule, float(X[row, column] + first))
        flat = np.ravel_multi_index(tuple(X.astype(np.int64).T), tuple(self.sizes))
        return Rows(np.asarray(flat)[:, None], np.ones((len(X), 1)))

    def as_data(self) -> dict[str, Any]:
        """Return the map as plain data."""
        return {"kind": self.kind, "sizes": self.sizes.tolist(), "first": self.first.tolist()}
