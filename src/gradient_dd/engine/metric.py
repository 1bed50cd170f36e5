"""The metric of the natural learners: M, a running mean of x xᵀ, and its inverse by Sherman-Morrison."""

from copy import copy

import numpy as np

from gradient_dd.arrays import Array


class Metric:
    """M = (ε I + Σ x xᵀ) / (n + 1) after n observations; `inverse` holds (ε I + Σ x xᵀ)⁻¹."""

    def __init__(self, n_features: int, ridge: float) -> None:
        self.inverse = np.eye(n_features) / ridge
        self.count = 0

    def observed(self, x: Array) -> "Metric":
        """Return the metric with one more x in the mean; this one stays as it is."""
        v = self.inverse @ x
        taken = np.outer(v, v / (1 + x @ v))
        after = copy(self)
        after.inverse, after.count = np.subtract(self.inverse, taken, out=taken), self.count + 1
        return after

    def observe(self, x: Array) -> None:
        """Take one more x into the mean."""
        after = self.observed(x)
        self.inverse, self.count = after.inverse, after.count

    def direction(self, x: Array) -> Array:
        """Return M⁻¹ x."""
        return (self.count + 1) * (self.inverse @ x)
