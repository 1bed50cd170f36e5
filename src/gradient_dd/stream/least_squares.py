"""Least squares: LSTD from sums of moments and from sparse rows, with a ridge where it is asked for.

    A = Σ ρ z (x − γx')ᵀ      b = Σ ρ r z      C = Σ z zᵀ          z = x, or test features
    plain      A w = b
    ridge ε    (A + ε D) (w − w₀) = b − A w₀                       D = diag(C), 1 where a feature was never seen
    tiny ridge (A + ε p D) w = b, ε = 1e-6: the trace of A's units, for many right sides and many samples at once

Every form takes O(p²) numbers, p being the number of features.

Bradtke & Barto (1996), Linear least-squares algorithms for temporal difference learning. Boyan (2002), Technical
update: least-squares temporal difference learning.
"""

from typing import Any

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array, Integers
from gradient_dd.tasks.exact import Moments

UNUSED = 1e-9  # eigenvalues of C below this share of their mean belong to directions that the features do not span
SINGULAR = 1e-10  # singular values below this share of the largest count as zero
TINY_RIDGE = 1e-6  # of the trace of C where its diagonal is 1, for action values
SMALLEST_RIDGE = 1e-7  # where rows are solved: features that were never seen keep their initial weight


def moment_sums(z: Array, ahead: Array, reward: Array, rho: Array) -> Moments:
    """Return Σ ρ z aᵀ, Σ ρ r z and Σ z zᵀ over n rows; z (n, m), ahead a = x − γx' (n, p)."""
    return Moments(z.T @ (rho[:, None] * ahead), z.T @ (rho * reward), z.T @ z)


def root_of_inverse(C: Array) -> Array:
    """Return R (p, p) with C⁺ = R Rᵀ; its columns are 0 for directions that the features do not span."""
    values, vectors = np.linalg.eigh(C)
    floor = UNUSED * max(values.mean(), 1e-300)
    return np.asarray(vectors / np.sqrt(np.where(values > floor, values, np.inf)))


def solution(moments: Moments, ridge: float, initial: Array) -> Array:
    """Return the w that minimises (b − A w)ᵀ C⁻¹ (b − A w) + ridge (w − w₀)ᵀ C (w − w₀), (p,); ridge 0 is A w = b."""
    A, b, C = moments
    root = root_of_inverse(C)
    root = root[:, root.any(axis=0)]  # in these coordinates C is the identity
    M, right = root.T @ A @ root, root.T @ (b - A @ initial)
    if ridge:
        M = np.vstack([M, np.sqrt(ridge) * np.eye(M.shape[1])])
        right = np.concatenate([right, np.zeros(M.shape[1])])
    return np.asarray(initial + root @ np.linalg.lstsq(M, right, rcond=SINGULAR)[0])


def scaled_solution(A: Array, b: Array, scale: Array, ridge: float) -> Array:
    """Return the solutions w (…, p, k) of (A + ridge D) w = b, for A (…, p, p) and b (…, p, k); D = diag(scale)."""
    unit = 1 / np.sqrt(scale)  # in these units the diagonal of C is 1
    M, right = unit[:, None] * A * unit, unit[:, None] * b
    places = np.arange(len(unit))
    M[..., places, places] += ridge
    try:
        found = np.linalg.solve(M, right)
    except np.linalg.LinAlgError:
        found = np.linalg.pinv(M, rcond=SINGULAR) @ right
    return np.asarray(unit[:, None] * found)


class SparseRows:
    """Rows that are kept, sparse or dense, for LSTD with more features than sums for each group have room for.

    x, ahead     (n, p), both sparse or both dense: the features, and those of the next state times the discount
    reward, rho  (n,)
    group        (n,) the group that each row belongs to
    """

    ridges = (0.0, 1e-3, 1e-2)

    def __init__(self, x: Any, ahead: Any, reward: Array, rho: Array, group: Integers) -> None:
        self.x, self.group = x, group
        self.weighted, self.paid = times(rho, x - ahead), rho * reward
        squares = x.multiply(x) if sparse.issparse(x) else x**2
        seen = np.asarray(squares.sum(axis=0)).ravel() / x.shape[0]
        self.scale = np.where(seen > 0, seen, 1.0)

    def solutions(self, weights: Array, ridge: float, initial: Array) -> Array:
        """Return LSTD weights (p, k) for weights of the groups (groups, k): one solution for each column."""
        ridge = max(ridge, SMALLEST_RIDGE)
        return np.column_stack([self._solution(weight[self.group], ridge, initial) for weight in weights.T])

    def _solution(self, each: Array, ridge: float, initial: Array) -> Array:
        """Return the solution in which row i counts each[i] times; A is dense while it is solved."""
        rows = max(1e-300, float(each.sum()))
        left = times(each, self.x)
        product = left.T @ self.weighted
        A = np.asarray(product.todense() if sparse.issparse(product) else product) / rows
        b = left.T @ self.paid / rows
        return np.asarray(initial + scaled_solution(A, (b - A @ initial)[:, None], self.scale, ridge)[:, 0])


def times(each: Array, rows: Any) -> Any:
    """Return rows (n, p), sparse or dense, each times its number (n,)."""
    return sparse.diags_array(each) @ rows if sparse.issparse(rows) else each[:, None] * rows
