"""Features of your own: any function of one observation, or a fitted scikit-learn transformer."""

from typing import Any

from gradient_dd.arrays import as_floats
from gradient_dd.errors import GradientDDError, Words, must, whole_number
from gradient_dd.stream.features.kind import Features, Rows, matrix


class Own(Features):
    """A function of one observation that returns a vector, or an object with `transform` for many.

    `bound` is not known: it is taken from the first observations that are given, and grows with what is seen.
    """

    kind = "own"

    def __init__(self, function: Any, n_features: int | None = None) -> None:
        if not callable(function) and not hasattr(function, "transform"):
            raise must("A feature map of your own", "be a function, or have 'transform'", function)
        self.function, self.bound = function, 0.0
        self.n_features = self.nonzeros = 0 if n_features is None else whole_number("'n_features'", n_features)

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, dense."""
        try:
            if hasattr(self.function, "transform"):
                found = self.function.transform(observations)
            else:
                found = [self.function(observation) for observation in observations]
        except GradientDDError:
            raise
        except Exception as error:  # the function is the user's, and may raise anything
            got = Words(f"{type(error).__name__}: {error}")
            raise must("A feature map of your own", "run on the observations", got) from error
        dense = as_floats("Features of your own", found.toarray() if hasattr(found, "toarray") else found)
        values = matrix(dense, self.n_features or (dense.shape[1] if dense.ndim == 2 else 1))
        self.n_features = self.nonzeros = values.shape[1]
        self.bound = max(self.bound, float((values**2).sum(axis=1).max(initial=0.0)))
        return Rows(None, values)

    def __call__(self, observation: Any) -> Any:
        """Return the features of one observation, which may be anything that the function takes."""
        return self.rows([observation]).one(0)

    def as_data(self) -> dict[str, Any]:
        """Refuse: a function is not plain data."""
        raise must("A feature map that is saved", "be one of this package", self.function, "Give your own again.")
