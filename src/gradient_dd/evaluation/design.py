"""Features of states and actions, their sums over groups of episodes, and the solutions of LSTD-Q.

    φ = u ⊗ x(s)      γψ' = v ⊗ x(s')      A = Σ ρ φ (φ − γψ')ᵀ      b = Σ ρ φ r
    (A + ridge) w = b        w₋g solves the same equations without the rows of group g

u marks the action taken, or is 1, a, a² for continuous actions; v = γ π(·|s'), 0 at an end. Forms of φ:

    blocks   u ⊗ x(s), a block of state features per action
    table    the same, and a block shared by all actions: x(s) is one-hot with a constant; the shared
             block and the constants give values to states and actions without data. Sparse
    sum      x(s) followed by u: used if there are more actions than the rows can distinguish in every state

ρ is 1, except for state values, which have a single action and weight each row by its ratio. Products u ⊗ x are formed
for a few rows at a time, because memory bounds the speed. Lagoudakis & Parr (2003).
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, lu_factor, lu_solve
from scipy.sparse.linalg import splu

from gradient_dd.arrays import Array, Integers

BLOCKS, TABLE, SUM = "blocks", "table", "sum"
PIECE_NUMBERS = 4_000_000  # entries of the largest matrix of a piece


class Design(NamedTuple):
    """A form of φ for p state features and a number of action features."""

    form: str
    p: int
    actions: int

    @property
    def q(self) -> int:
        """Number of features of a state and an action."""
        return self.p + self.actions if self.form == SUM else self.p * (self.actions + self.shared)

    @property
    def shared(self) -> bool:
        """Whether all actions share a block."""
        return self.form == TABLE and self.actions > 1

    @property
    def rows(self) -> int:
        """Number of rows processed at a time."""
        return max(2048, PIECE_NUMBERS // (8 * (self.actions + 2) if self.form == TABLE else self.q))

    def with_shared(self, U: Array) -> Array:
        """Return features of actions, with an extra column if there is a shared block."""
        return np.column_stack([U, U.sum(axis=1)]) if self.shared else U

    def times(self, X: Any, U: Array, W: Array) -> Array:
        """Return (u ⊗ x)·W, (n, k), for features of states X (n, p) and actions U (n, actions), and weights (q, k)."""
        if self.form == SUM:
            return np.asarray((X @ W[: self.p]) * U.sum(axis=1, keepdims=True) + U @ W[self.p :])
        wide = W.reshape(-1, self.p, W.shape[1])
        if len(wide) == 1:
            return np.asarray((X @ wide[0]) * U)
        each = (X @ wide.transpose(1, 0, 2).reshape(self.p, -1)).reshape(len(U), len(wide), -1)
        return np.asarray((self.with_shared(U)[:, None, :] @ each)[:, 0])

    def total(self, X: Any, U: Array, share: Array) -> Array:
        """Return Σ share u ⊗ x, (q,)."""
        U = self.with_shared(U) * share[:, None]
        if self.form == SUM:
            return np.concatenate([X.T @ U.sum(axis=1), U.sum(axis=0)])
        return np.asarray((X.T @ U).T).ravel()

    def matrix(self, X: Any, U: Array) -> Any:
        """Return u ⊗ x of all rows, (n, q), sparse for tables."""
        if self.form == SUM:
            return np.column_stack([X * U.sum(axis=1, keepdims=True), U])
        if not sparse.issparse(X):
            return (U[:, :, None] * X[:, None, :]).reshape(len(X), -1)
        U = self.with_shared(U)
        k = X.indices.reshape(len(U), -1)
        indices = (self.p * np.arange(U.shape[1])[None, :, None] + k[:, None, :]).reshape(len(U), -1)
        values = (U[:, :, None] * X.data.reshape(len(U), 1, -1)).reshape(len(U), -1)
        found = sparse_matrix(indices, values, self.q)
        found.eliminate_zeros()
        return found


def squared(X: Any) -> Any:
    """Return the squares of all entries."""
    return X.multiply(X) if sparse.issparse(X) else X**2


def sparse_matrix(indices: Any, values: Array, width: int) -> Any:
    """Return a sparse matrix (n, width) whose rows have equally many stored entries, (n, k) each."""
    pointer = np.arange(len(values) + 1) * values.shape[1]
    return sparse.csr_matrix((values.ravel(), indices.ravel(), pointer), shape=(len(values), width))


class SortedFeatures:
    """The features of some rows, sorted by group and by the action taken.

    order   (n,) the rows in this order;  X, X2  (n, p) features of both states in this order
    U       (n, actions) features of the actions taken
    groups  (group, begin, end) of its rows;  cells  (group, action, begin, end), by group alone without `action`
    fixed   Σ φφᵀ, Σ φ r and Σ φ² by design, if they were computed
    """

    def __init__(self, X: Any, X2: Any, group: Integers, U: Array, action: Integers | None = None) -> None:
        key: Any = group * (1 << 32) + (0 if action is None else action)
        self.order = np.argsort(key, kind="stable")
        self.X, self.X2, self.U, key = X[self.order], X2[self.order], U[self.order], key[self.order]
        self.by_action = action is not None
        self.fixed: dict[Design, Any] = {}
        edges = np.flatnonzero(np.diff(key, prepend=-1, append=-1)).tolist() if len(key) else []
        cells = [(divmod(int(key[begin]), 1 << 32), begin, end) for begin, end in itertools.pairwise(edges)]
        self.cells = [(*cell, begin, end) for cell, begin, end in cells]
        by_group = itertools.groupby(self.cells, key=lambda one: one[0])
        self.groups = [(g, some[0][2], some[-1][3]) for g, some in ((g, list(each)) for g, each in by_group)]

    def __len__(self) -> int:
        return len(self.order)

    def outer(self, A: Any, design: Design, U: Array, V: Array | None, weight: Array) -> Any:
        """Return A plus Σ weight φφᵀ by group or, with V, minus Σ weight φγψ'ᵀ; dense A is changed in place."""
        X2 = self.X if V is None else self.X2
        V, weight = (U, weight) if V is None else (V, -weight)
        by_block = design.form == BLOCKS and (self.by_action or design.actions == 1)
        if not by_block:
            phi, M = design.matrix(self.X, U), design.matrix(X2, V)
            if sparse.issparse(phi):
                group = np.repeat([g for g, _, _ in self.groups], [end - begin for _, begin, end in self.groups])
                moved = phi.indices + np.repeat(group * design.q, np.diff(phi.indptr))
                tall = sparse.csr_matrix((phi.data, moved, phi.indptr), shape=(len(self), A.shape[0]))
                return A + tall.T.tocsr() @ (sparse.diags(weight) @ M).tocsr()
            M = M * weight[:, None]
            for g, begin, end in self.groups:
                A[g] += phi[begin:end].T @ M[begin:end]
            return A
        for g, a, begin, end in self.cells:
            part = slice(begin, end)
            place = slice(a * design.p, (a + 1) * design.p) if design.actions > 1 else slice(None)
            turned = (self.X[part] * weight[part, None]).T
            if X2 is self.X:
                A[g, place, place] += turned @ X2[part]
            else:
                A[g, place] += turned @ (V[part, :, None] * X2[part, None, :]).reshape(end - begin, -1)
        return A

    def totals(self, design: Design, U: Array, right: Array, groups: int) -> Array:
        """Return Σ φ rightᵀ by group, (groups, q, k), for right (n, k)."""
        found = np.zeros((groups, design.q, right.shape[1]))
        for g, begin, end in self.groups:
            part = slice(begin, end)
            for k in range(right.shape[1]):
                found[g, :, k] = design.total(self.X[part], U[part], right[part, k])
        return found

    def by_group(self, design: Design, X: Any, U: Array, W: Array) -> Array:
        """Return (u ⊗ x)·W of each row, (n, k), with the weights of the row's group in W (groups, q, k)."""
        found = np.empty((len(self), W.shape[2]))
        for g, begin, end in self.groups:
            found[begin:end] = design.times(X[begin:end], U[begin:end], W[g])
        return found

    def unsorted(self, values: Array) -> Array:
        """Return values of sorted rows in the order of the piece."""
        found = np.empty_like(values)
        found[self.order] = values
        return found


class Solution(NamedTuple):
    """w (q, signals), w₋g (groups, q, signals), and a function that solves Aᵀ u = v for (q, k)."""

    w: Array
    without: Array
    dual: Callable[[Array], Array]


def no_equations(design: Design, groups: int) -> Any:
    """Return the matrix A of all groups before any row is added."""
    q = design.q
    return sparse.csr_matrix((groups * q, q)) if design.form == TABLE else np.zeros((groups, q, q))


def ridge_of(design: Design, squares: Array, share: float) -> Array:
    """Return the ridge added to the diagonal of A, (q,): a share of Σ φ², averaged over actions or over all."""
    if design.form == TABLE:
        return np.full(len(squares), share * float(squares[squares > 0].mean()))
    found = squares.copy()
    if design.form == BLOCKS:
        found = np.tile(squares.reshape(design.actions, design.p).mean(axis=0), design.actions)
    return share * np.where(found > 0, found, 1.0)


def solved(A: Any, b: Array, ridge: Array) -> Solution:
    """Return the solution with all groups and the solutions without each group, for b (groups, q, k)."""
    right = b.sum(axis=0)
    if sparse.issparse(A):
        q = len(ridge)
        parts = [A[g * q : (g + 1) * q] for g in range(len(b))]
        total = (sum(parts[1:], parts[0]) + sparse.diags(ridge)).tocsc()
        factor = splu(total)
        left = [
            splu((total - part).tocsc()).solve(right - own) if part.nnz else factor.solve(right)
            for part, own in zip(parts, b, strict=True)
        ]
        return Solution(factor.solve(right), np.array(left), lambda v: factor.solve(np.asarray(v, float), trans="T"))
    total = A.sum(axis=0)
    total[np.diag_indices_from(total)] += ridge
    lu = lu_factor(total, check_finite=False)
    without = np.array([dense_solution(total - part, right - own) for part, own in zip(A, b, strict=True)])
    w = lu_solve(lu, right, check_finite=False)
    return Solution(w, without, lambda v: lu_solve(lu, v, trans=1, check_finite=False))


def dense_solution(A: Array, b: Array) -> Array:
    """Return the solution of dense equations; the least-squares solution if they are singular."""
    try:
        return np.asarray(np.linalg.solve(A, b), float)
    except LinAlgError:
        return np.asarray(np.linalg.lstsq(A, b, rcond=1e-12)[0], float)
