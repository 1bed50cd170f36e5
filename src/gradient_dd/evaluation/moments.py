"""Sums over the groups of a stream, from which LSTD, held-out errors and most diagnoses follow.

    A_g = Σ ρ z (x − γx')ᵀ      b_g = Σ ρ r z      C_g = Σ z zᵀ          over the rows of group g

z are the test features: x itself, or a signed hash of x where p is too large for a p × p matrix. E[ρ δ z] vanishes at
the fixed point for any z, so the projected Bellman error can be taken in the space of z. With hashed features A_g is
not summed: residuals are taken from the first rows of the stream.
"""

from typing import Any

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.evaluation.episodes import GROUPS
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.stream.features import Rows
from gradient_dd.stream.least_squares import SparseRows, moment_sums, root_of_inverse, solution, times
from gradient_dd.tasks.exact import Moments

MOST_FEATURES = 200  # of a matrix A
MOST_GROUPED = 2000  # of LSTD from kept rows, and of the mean of first features for each group
SKETCH = 128  # test features where there are more
SAMPLE = 20_000  # first rows from which errors are taken where A is not summed


class GroupSums:
    """Sums for each group, added to batch after batch."""

    ridges = (0.0, 1e-4, 1e-2, 0.1)  # of the LSTD solutions
    saved = ("A", "b", "C", "rows", "starts", "start", "ratio", "ratio_square", "ratio_z", "squares")

    def __init__(self, n_features: int) -> None:
        self.p = n_features
        self.small = n_features <= MOST_FEATURES
        m = self.m = n_features if self.small else SKETCH
        self.A = np.zeros((GROUPS, m, n_features)) if self.small else np.zeros((0, m, n_features))
        self.b, self.C = np.zeros((GROUPS, m)), np.zeros((GROUPS, m, m))
        self.rows, self.starts = np.zeros(GROUPS), np.zeros(GROUPS)
        self.squares = np.zeros(n_features)  # Σ x² of each feature
        self.grouped = n_features <= MOST_GROUPED
        self.start = np.zeros((GROUPS if self.grouped else 1, n_features))
        self.ratio, self.ratio_square, self.ratio_z = np.zeros(GROUPS), np.zeros(GROUPS), np.zeros((GROUPS, m))
        if not self.small:
            rng = np.random.default_rng(0)
            self.bucket, self.sign = rng.integers(m, size=n_features), rng.choice([-1.0, 1.0], size=n_features)

    def test_features(self, rows: Rows) -> Array:
        """Return z of feature rows, (n, m)."""
        if self.small:
            return rows.dense(self.p)
        if rows.indices is None:
            signed, hashed = rows.values * self.sign, np.zeros((len(rows.values), self.m))
            for bucket in range(self.m):
                hashed[:, bucket] = signed[:, self.bucket == bucket].sum(axis=1)
            return hashed
        hashed = np.zeros((len(rows.values), self.m))
        at = np.arange(len(hashed))[:, None]
        np.add.at(hashed, (at, self.bucket[rows.indices]), rows.values * self.sign[rows.indices])
        return hashed

    def add(self, batch: Transitions, group: Integers, begins: Booleans) -> None:
        """Add a batch; `begins` (n,) says which rows begin an episode."""
        z = self.test_features(batch.x)
        self.squares += total_of(Rows(batch.x.indices, batch.x.values**2), np.ones(len(batch)), self.p)
        if self.small:
            following = np.where(batch.ended[:, None], 0.0, batch.x_next.dense(self.p))
            ahead = z - batch.discount[:, None] * following
        else:
            ahead = z[:, :0]  # A is not summed
        for part in np.split(np.arange(len(batch)), np.flatnonzero(np.diff(group)) + 1):
            g, rows = int(group[part[0]]), slice(part[0], part[-1] + 1)
            here, rho = z[rows], batch.rho[rows]
            A, b, C = moment_sums(here, ahead[rows], batch.reward[rows], rho)
            if self.small:
                self.A[g] += A
            self.b[g] += b
            self.C[g] += C
            self.rows[g] += len(part)
            self.ratio[g] += rho.sum()
            self.ratio_square[g] += (rho**2).sum()
            self.ratio_z[g] += here.T @ (rho - 1.0)
            first = part[begins[rows]]
            self.starts[g] += len(first)
            self._add_starts(batch.starts, first, g if self.grouped else 0)

    def _add_starts(self, x: Rows, first: Integers, g: int) -> None:
        if x.indices is None:
            self.start[g] += x.values[first].sum(axis=0)
        else:
            np.add.at(self.start[g], x.indices[first], x.values[first])

    def mean_start(self) -> Array:
        """Return the mean of the features where episodes begin, (p,)."""
        return np.asarray(self.start.sum(axis=0) / max(1.0, self.starts.sum()))

    def mean_starts(self, weights: Array) -> Array:
        """Return those means in bootstrap samples, (copies, p), with weights of the groups (groups, copies)."""
        if not self.grouped:
            return np.tile(self.mean_start(), (weights.shape[1], 1))
        return np.asarray(weights.T @ self.start / np.maximum(1e-9, weights.T @ self.starts)[:, None])

    def residuals(self, W: Array, first: tuple[Transitions, Integers]) -> tuple[Array, Array]:
        """Return Σ ρ δ z of every group for weights (p, lanes): (groups, m, lanes), and the rows of each group.

        Where A is not summed they are those of the first rows of the stream, which are given with their groups.
        """
        if self.small:
            return self.b[:, :, None] - np.einsum("gij,jl->gil", self.A, W, optimize=True), self.rows
        batch, group = first[0].part(slice(SAMPLE)), first[1][:SAMPLE]
        value, ahead = (lane_values(rows, W) for rows in (batch.x, batch.x_next))
        delta = batch.reward[:, None] + batch.discount[:, None] * ahead - value
        z, found = self.test_features(batch.x), np.zeros((GROUPS, self.m, W.shape[1]))
        for g in np.unique(group):
            rows = group == g
            found[g] = z[rows].T @ (batch.rho[rows, None] * delta[rows])
        return found, np.bincount(group, minlength=GROUPS).astype(float)

    def metric(self) -> Array:
        """Return R with (mean C)⁺ = R Rᵀ, (m, m)."""
        return root_of_inverse(self.C.sum(axis=0) / max(1.0, self.rows.sum()))

    def solutions(self, weights: Array, ridge: float, initial: Array) -> Array:
        """Return LSTD weights (p, k) for weights of the groups (groups, k): one solution for each column."""
        found = np.empty((self.p, weights.shape[1]))
        for k, weight in enumerate(weights.T):
            total = max(1e-300, weight @ self.rows)
            moments = Moments(*(np.tensordot(weight, one, axes=1) / total for one in (self.A, self.b, self.C)))
            found[:, k] = solution(moments, ridge, initial)
        return found


def sparse_rows(batch: Transitions, group: Integers, p: int) -> SparseRows:
    """Return a batch as sparse rows of p features, from which LSTD is solved; `group` (n,) are their groups."""
    x, x_next = (rows.values if rows.indices is None else sparse_matrix(rows, p) for rows in (batch.x, batch.x_next))
    return SparseRows(x, times(batch.discount, x_next), batch.reward, batch.rho, group)


def sparse_matrix(rows: Rows, p: int) -> Any:
    """Return feature rows as a sparse matrix (n, p)."""
    if rows.indices is None:
        return sparse.csr_array(rows.values)
    n, k = rows.values.shape
    return sparse.csr_array((rows.values.ravel(), rows.indices.ravel(), np.arange(0, n * k + 1, k)), shape=(n, p))


def total_of(rows: Rows, weight: Array, p: int) -> Array:
    """Return the weighted sum of feature rows, (p,)."""
    if rows.indices is None:
        return np.asarray(weight @ rows.values)
    return np.bincount(rows.indices.ravel(), (weight[:, None] * rows.values).ravel(), minlength=p).astype(float)


def lane_values(rows: Rows, W: Array) -> Array:
    """Return x·w of every row and lane, (n, lanes), for weights (p, lanes)."""
    if rows.indices is None:
        return rows.values @ W
    total = np.zeros((len(rows.values), W.shape[1]))
    for k in range(rows.values.shape[1]):
        total += rows.values[:, k, None] * W[rows.indices[:, k]]
    return total
