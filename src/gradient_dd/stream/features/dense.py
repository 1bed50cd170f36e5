"""Dense features: bases over a box, scaled columns, hidden layers of networks, and user-defined functions."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from gradient_dd.arrays import LARGEST, Array, as_floats, numbers
from gradient_dd.errors import bad_request, boolean, foreign, number, whole_number
from gradient_dd.stream.features.kind import Box, Features, Rows, matrix

MOST = 2**20  # maximum number of features of a dense basis


class BoxFeatures(Features):
    """A dense map with a feature for every vector c of whole numbers from 0 to `order`; u is the observation in [0, 1].

    grid  (n_features, dimensions) all vectors c
    """

    def __init__(self, low: Any, high: Any, order: int, outside: str) -> None:
        self.box = Box.checked(low, high, outside)
        dimensions = len(self.box.low)
        self.n_features = self.nonzeros = (order + 1) ** dimensions
        if self.n_features > MOST:
            what = f"The number of {type(self).__name__} features"
            raise bad_request(what, f"be at most {MOST:,}", self.n_features, "Lower the order.")
        self.grid = np.array(list(product(range(order + 1), repeat=dimensions)), dtype=np.int64)
        self.bound = float(self.n_features)

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, dense."""
        return Rows(None, self.of_unit(self.box.unit(observations)))

    def of_unit(self, U: Array) -> Array:
        """Return the features of observations in the unit box, (n, p)."""
        raise NotImplementedError


class Fourier(BoxFeatures):
    """Cosines: x_c = cos(π c·u), for every c with all c_i up to `order`."""

    kind = "fourier"

    def __init__(self, low: Any, high: Any, order: int = 3, outside: str = "refuse") -> None:
        self.order = whole_number("'order'", order)
        super().__init__(low, high, self.order, outside)

    def of_unit(self, U: Array) -> Array:
        """Return the cosines."""
        return np.cos(np.pi * (U @ self.grid.T))


class Polynomial(BoxFeatures):
    """Products of powers: x_c = Π u_i^c_i, for every c with all c_i up to `degree`."""

    kind = "polynomial"

    def __init__(self, low: Any, high: Any, degree: int = 2, outside: str = "refuse") -> None:
        self.degree = whole_number("'degree'", degree)
        super().__init__(low, high, self.degree, outside)

    def of_unit(self, U: Array) -> Array:
        """Return the products."""
        return np.prod(U[:, None, :] ** self.grid[None], axis=2)


class RadialBasis(BoxFeatures):
    """Gaussian bumps on a grid: x_j = exp(−|u − centre_j|² / (2 width²)), `per_dimension` centres per dimension.

    `width` is in units of the distance between neighbouring centres. With `normalised` the features sum to 1.
    """

    kind = "radial"

    def __init__(
        self,
        low: Any,
        high: Any,
        per_dimension: int = 5,
        width: float = 1.0,
        normalised: bool = True,
        outside: str = "refuse",
    ) -> None:
        self.per_dimension = whole_number("'per_dimension'", per_dimension, at_least=2)
        self.width = number("'width'", "be a number from 1e-06 to 1e+06", width, low=1e-6, high=1e6)
        self.normalised = boolean("'normalised'", normalised)
        super().__init__(low, high, self.per_dimension - 1, outside)
        self.bound = 1.0 if self.normalised else self.bound

    def of_unit(self, U: Array) -> Array:
        """Return the bumps."""
        scale = self.width / (self.per_dimension - 1)
        distance = ((U[:, None, :] - self.grid / (self.per_dimension - 1)) ** 2).sum(axis=2)
        nearest = distance.min(axis=1, keepdims=True) if self.normalised else 0.0  # avoids 0 / 0 far from all centres
        bumps = np.exp(-(distance - nearest) / (2 * scale**2))
        return bumps / bumps.sum(axis=1, keepdims=True) if self.normalised else bumps


class Columns(Features):
    """The observations themselves as features, shifted and scaled, with a 1 at the end by default.

    `Columns.fitted(X)` takes the mean and the standard deviation from data.
    """

    kind = "columns"

    def __init__(self, shift: Any, scale: Any, intercept: bool = True, largest: float = float("inf")) -> None:
        self.shift, self.scale = (
            np.atleast_1d(numbers(f"{name!r}", one, LARGEST)) for name, one in (("shift", shift), ("scale", scale))
        )
        if self.shift.ndim != 1 or self.shift.shape != self.scale.shape or not (self.scale >= 1 / LARGEST).all():
            raise bad_request("'scale'", "be positive, with one number for each number in 'shift'", self.scale)
        self.intercept = boolean("'intercept'", intercept)
        self.n_features = self.nonzeros = len(self.shift) + self.intercept
        unknown = isinstance(largest, float) and largest == np.inf
        rule = "be a number that is zero or more, or infinite"
        self.bound = np.inf if unknown else number("'largest'", rule, largest, low=0.0)

    @property
    def largest(self) -> float:
        """The largest |x|² of the fitted observations, infinite if unknown."""
        return self.bound

    @classmethod
    def fitted(cls, observations: Any, intercept: bool = True) -> "Columns":
        """Return the map that gives these observations mean 0 and standard deviation 1; constant columns become 0."""
        X = numbers("Observations", observations, LARGEST)
        X = matrix(X, X.shape[1] if X.ndim == 2 else 1)
        if not X.size:
            raise bad_request("Observations", "have at least one row and one column", X.shape)
        spread = X.std(axis=0)
        scaled = cls(X.mean(axis=0), np.where(spread > 0, spread, 1.0), intercept)
        scaled.bound = float((scaled.rows(X).values ** 2).sum(axis=1).max())
        return scaled

    def rows(self, observations: Any) -> Rows:
        """Return the scaled observations."""
        with np.errstate(over="ignore"):
            X = numbers("Scaled observations", (matrix(observations, len(self.shift)) - self.shift) / self.scale)
        return Rows(None, np.column_stack([X, np.ones(len(X))]) if self.intercept else X)


class Quadratic(Columns):
    """A constant, the columns shifted and scaled, their squares and their products: 1, z_i and z_i z_j.

    `Quadratic.fitted(X)` takes the mean and the standard deviation from data.
    """

    kind = "quadratic"

    def __init__(self, shift: Any, scale: Any) -> None:
        super().__init__(shift, scale, intercept=False)
        d = len(self.shift)
        self.n_features = self.nonzeros = 1 + d + d * (d + 1) // 2
        if self.n_features > MOST:
            raise bad_request("The number of quadratic features", f"be at most {MOST:,}", self.n_features)

    @classmethod
    def fitted(cls, observations: Any) -> "Quadratic":  # type: ignore[override]
        """Return the map that gives the columns of these observations mean 0 and standard deviation 1."""
        columns = Columns.fitted(observations)
        return cls(columns.shift, columns.scale)

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, dense."""
        z = super().rows(observations).values
        first, second = np.triu_indices(z.shape[1])
        with np.errstate(over="ignore"):
            products = numbers("Products of scaled observations", z[:, first] * z[:, second])
        return Rows(None, np.column_stack([np.ones(len(z)), z, products]))


class Own(Features):
    """A map of your own: a function that returns one observation's features, or an object with `transform` for many.

    `bound` is the largest |x|² seen so far.
    """

    kind = "own"

    def __init__(self, function: Any, n_features: int | None = None) -> None:
        if not callable(function) and not hasattr(function, "transform"):
            raise bad_request("A feature map of your own", "be a function, or have 'transform'", function)
        self.function, self.bound = function, 0.0
        self.n_features = self.nonzeros = 0 if n_features is None else whole_number("'n_features'", n_features)

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, dense."""
        with foreign("A feature map of your own", "run on the observations"):
            several = getattr(self.function, "transform", None)
            found = several(observations) if several else [self.function(one) for one in observations]
        dense = as_floats("Features of your own", found.toarray() if hasattr(found, "toarray") else found)
        values = matrix(dense, self.n_features or (dense.shape[1] if dense.ndim == 2 else 1))
        self.n_features = self.nonzeros = values.shape[1]
        self.bound = max(self.bound, float((values**2).sum(axis=1).max(initial=0.0)))
        return Rows(None, values)

    def __call__(self, observation: Any) -> Any:
        """Return the features of one observation, of any type that the function takes."""
        return self.rows([observation]).one(0)

    def as_data(self) -> dict[str, Any]:
        """Raise an error, because a function is not plain data."""
        hint = "Pass your own map again."
        raise bad_request("A saved feature map", "be one of this package", self.function, hint)


class Layers(Features):
    """Features learnt by networks: a 1, followed by the last hidden layer of each network.

    Observations are scaled by `centre` and `scale`, then pass through the tanh layers of each network.

    members  the layers of each network, pairs (W, b) of shapes (inputs, units) and (units,)
    """

    kind = "layers"

    def __init__(self, centre: Any, scale: Any, members: Sequence[Sequence[tuple[Any, Any]]]) -> None:
        self.centre, self.scale = numbers("'centre'", centre), numbers("'scale'", scale)
        self._layers = [[(numbers("W", W), numbers("b", b)) for W, b in member] for member in members]
        width = len(self.centre)
        for member in self._layers:
            shapes = [(width, *[len(b) for _, b in member])[place : place + 2] for place in range(len(member))]
            if not member or [W.shape for W, _ in member] != shapes:
                raise bad_request("The layers of a member", "have matching shapes", [W.shape for W, _ in member])
        self.n_features = self.nonzeros = 1 + sum(len(member[-1][1]) for member in self._layers)
        self.bound = float(self.n_features)

    @property
    def members(self) -> list[list[tuple[Any, Any]]]:
        """The layers of each network as plain data."""
        return [[(W.tolist(), b.tolist()) for W, b in member] for member in self._layers]

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, dense."""
        scaled = (matrix(observations, len(self.centre)) - self.centre) / self.scale
        parts = [np.ones((len(scaled), 1))]
        for member in self._layers:
            s = scaled
            for W, b in member:
                s = np.tanh(s @ W + b)
            parts.append(s)
        return Rows(None, np.concatenate(parts, axis=1))
