"""The metric of the natural learners: M, a running mean of x xᵀ, and its inverse by Sherman-Morrison."""

import numpy as np

from gradient_dd.arrays import Array


class Metric:
    """M = (ε I + Σ x xᵀ) / (n + 1) after n observations; `inverse` holds (ε I + Σ x xᵀ)⁻¹."""

    def __init__(self, n_features: int, ridge: float) -> None:
        self.inverse = np.eye(n_features) / ridge
        self.count = 0

    def observe(self, x: Array) -> None:
        """Take one more x into the mean."""
        v = self.inverse @ x
        self.inverse -= np.outer(v, v / (1 + x @ v))
        self.count += 1

    def direction(self, x: Array) -> Array:
        """Return M⁻¹ x."""
        return (self.count + 1) * (self.inverse @ x)
