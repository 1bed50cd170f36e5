"""LSTD from kept rows, for more features than sums for each group have room for.

    (A + ε D) (w − w₀) = b − A w₀         D = diag(C), 1 where a feature was never seen

A is p × p and dense while it is solved; while it is summed, rows stay sparse. With ε tiny, a feature that was never
seen keeps its initial weight, and among weights that give the same values the one nearest to w₀ is found.
"""

from typing import Any

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.stream.features import Rows

MOST_FEATURES = 2000
TINY = 1e-7  # the least ε


class SampleLstd:
    """LSTD solutions of the rows of one batch, which belong to these groups."""

    ridges = (0.0, 1e-2)

    def __init__(self, batch: Transitions, group: Integers, n_features: int) -> None:
        self.x, self.group = matrix_of(batch.x, n_features), group
        goes_on = np.where(batch.ended, 0.0, batch.discount)
        ahead = sparse.diags_array(goes_on) @ matrix_of(batch.x_next, n_features)
        self.weighted, self.paid = sparse.diags_array(batch.rho) @ (self.x - ahead), batch.rho * batch.reward
        seen = np.asarray(self.x.multiply(self.x).sum(axis=0)).ravel() / len(batch)
        self.scale = np.where(seen > 0, seen, 1.0)

    def solutions(self, weights: Array, ridge: float, initial: Array) -> Array:
        """Return LSTD weights (p, k) for weights of the groups (groups, k): one solution for each column."""
        return np.column_stack([self._solution(weight[self.group], max(ridge, TINY), initial) for weight in weights.T])

    def _solution(self, each: Array, ridge: float, initial: Array) -> Array:
        """Return the solution in which each row counts so often."""
        rows = max(1e-300, float(each.sum()))
        left = sparse.diags_array(each) @ self.x
        A = np.asarray((left.T @ self.weighted).todense()) / rows
        b = left.T @ self.paid / rows
        unit = 1 / np.sqrt(self.scale)  # in these units the diagonal of C is 1
        M, right = unit[:, None] * A * unit, unit * (b - A @ initial)
        M[np.diag_indices_from(M)] += ridge
        try:
            found = np.linalg.solve(M, right)
        except np.linalg.LinAlgError:
            found = np.linalg.lstsq(M, right, rcond=1e-10)[0]
        return np.asarray(initial + unit * found)


def matrix_of(rows: Rows, p: int) -> Any:
    """Return feature rows as a sparse matrix (n, p)."""
    if rows.indices is None:
        return sparse.csr_array(rows.values)
    n, k = rows.values.shape
    return sparse.csr_array((rows.values.ravel(), rows.indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, p))
