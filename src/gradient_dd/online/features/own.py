"""Features of your own: any function of one observation, or a fitted scikit-learn transformer."""

from typing import Any

import numpy as np

from gradient_dd.errors import must
from gradient_dd.online.features.kind import Features, Rows, matrix


class Own(Features):
    """A function of one observation that returns a vector, or an object with `transform` for many.

    `bound` is not known: it is taken from the first observations that are given, and grows with what is seen.
    """

    kind = "own"

    def __init__(self, function: Any, n_features: int | None = None) -> None:
        if not callable(function) and not hasattr(function, "transform"):
            raise must("A feature map of your own", "be a function, or have 'transform'", function)
        self.function, self.bound = function, 0.0
        self.n_features = self.nonzeros = n_features or 0

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, dense."""
        if hasattr(self.function, "transform"):
            found = self.function.transform(observations)
        else:
            found = [self.function(observation) for observation in observations]
        dense = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=float)
        values = matrix(dense, self.n_features or (dense.shape[1] if dense.ndim == 2 else 1))
        self.n_features = self.nonzeros = values.shape[1]
        self.bound = max(self.bound, float((values**2).sum(axis=1).max(initial=0.0)))
        return Rows(None, values)

    def as_data(self) -> dict[str, Any]:
        """Refuse: a function is not plain data."""
        raise must("A feature map that is saved", "be one of this package", self.function, "Give your own again.")
