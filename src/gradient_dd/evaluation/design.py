"""Features of states and actions, their sums over groups of episodes, and the solutions of LSTD-Q.

    φ = φ(s, a)      ψ' = Σ_a π(a|s') φ(s', a), 0 at an end      A = Σ ρ φ (φ − γψ')ᵀ      b = Σ ρ φ r
    (A + ridge) w = b        the same without the rows of a group g: w₋g

Forms of φ, for features x(s) of a state:

    blocks   u(a) ⊗ x(s), a block of state features for each action; u(a) = 1, a, a² where actions are measured
    table    the same, with one more block that all actions share: x(s) is one-hot with a constant, and the shared
             block and the constants give values to states and actions without a row. Sparse
    sum      x(s) beside u(a): for more actions than the rows can tell apart in every state

ρ is 1, except where there is one action: state values, whose rows are weighted by ratios. Lagoudakis & Parr (2003).
"""

import itertools
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, lu_factor, lu_solve
from scipy.sparse.linalg import splu

from gradient_dd.arrays import Array, Integers
from gradient_dd.stream.features import Rows

BLOCKS, TABLE, SUM = "blocks", "table", "sum"
PIECE_NUMBERS = 4_000_000  # entries of the matrix of a piece


class Design(NamedTuple):
    """A form of φ for p state features and so many features of an action."""

    form: str
    p: int
    actions: int

    @property
    def q(self) -> int:
        """How many features a state and an action have."""
        if self.form == SUM:
            return self.p + self.actions
        return self.p * (self.actions + self.shared)

    @property
    def shared(self) -> bool:
        """Whether there is a block that all actions share."""
        return self.form == TABLE and self.actions > 1

    @property
    def rows(self) -> int:
        """How many rows are worked on at a time."""
        return max(2048, PIECE_NUMBERS // self.q)

    def mean(self, U: Array, X: Any) -> Any:
        """Return Σ_a u_a φ(s, a) for probabilities or features of actions U (n, actions): (n, q), sparse for tables."""
        if self.form == SUM:
            return np.column_stack([X * U.sum(axis=1, keepdims=True), U])
        if not sparse.issparse(X):
            return (U[:, :, None] * X[:, None, :]).reshape(len(X), -1)
        U = np.column_stack([U, U.sum(axis=1)]) if self.shared else U
        k = X.indices.reshape(len(U), -1)
        indices = (self.p * np.arange(U.shape[1])[None, :, None] + k[:, None, :]).reshape(len(U), -1)
        values = (U[:, :, None] * X.data.reshape(len(U), 1, -1)).reshape(len(U), -1)
        pointer = np.arange(len(U) + 1) * indices.shape[1]
        found = sparse.csr_matrix((values.ravel(), indices.ravel(), pointer), shape=(len(U), self.q))
        found.eliminate_zeros()
        return found


def sparse_rows(rows: Rows, p: int, constant: bool) -> Any:
    """Return feature rows as a sparse matrix (n, p) with as many stored entries in every row, a constant last."""
    assert rows.indices is not None
    n, more = len(rows.values), int(constant)
    indices = np.column_stack([rows.indices, np.full((n, more), p - 1)])
    values = np.column_stack([rows.values, np.ones((n, more))])
    pointer = np.arange(n + 1) * indices.shape[1]
    return sparse.csr_matrix((values.ravel(), indices.ravel(), pointer), shape=(n, p))


class Taken:
    """The features φ of the actions taken in some rows.

    X  (n, p) of the states;  U  (n, actions) of the actions;  action  (n,) their numbers, None where they are measured
    """

    def __init__(self, design: Design, X: Any, U: Array, action: Integers | None) -> None:
        self.design, self.X, self.action = design, X, action
        by_action = design.form == BLOCKS and action is not None and not sparse.issparse(X)
        self.phi = None if by_action else design.mean(U, X)

    def dense(self) -> Any:
        """Return φ as a matrix (n, q)."""
        if self.phi is not None:
            return self.phi
        assert self.action is not None
        found = np.zeros((len(self.action), self.design.actions, self.design.p))
        found[np.arange(len(found)), self.action] = self.X
        return found.reshape(len(found), -1)

    def minus(self, ahead: Any) -> Any:
        """Return φ − γψ' for γψ' (n, q)."""
        if self.phi is not None:
            return self.phi - ahead
        assert self.action is not None
        found = -ahead
        wide = found.reshape(len(found), self.design.actions, self.design.p)
        wide[np.arange(len(found)), self.action] += self.X
        return found

    def times(self, W: Array) -> Array:
        """Return φ·W, (n, k), for weights (q, k)."""
        if self.phi is not None:
            return np.asarray(self.phi @ W)
        assert self.action is not None
        wide = W.reshape(self.design.actions, self.design.p, -1)
        if self.design.actions == 1:
            return np.asarray(self.X @ wide[0])
        found = np.empty((len(self.action), W.shape[1]))
        for a in np.unique(self.action):
            part = self.action == a
            found[part] = self.X[part] @ wide[a]
        return found

    def squares(self, weight: Array) -> Array:
        """Return Σ weight φ², (q,)."""
        if self.phi is not None:
            squared = self.phi.multiply(self.phi) if sparse.issparse(self.phi) else self.phi**2
            return np.asarray(weight @ squared).ravel()
        assert self.action is not None
        found = np.zeros((self.design.actions, self.design.p))
        for a in np.unique(self.action):
            part = self.action == a
            found[a] = weight[part] @ self.X[part] ** 2
        return found.ravel()

    def sums(self, M: Any, right: Array, group: Integers, groups: int) -> tuple[Any, Array]:
        """Return Σ φ Mᵀ and Σ φ rightᵀ of each group: (groups, q, q), a list where M is sparse, and (groups, q, k)."""
        design, b = self.design, np.zeros((groups, self.design.q, right.shape[1]))
        if sparse.issparse(M):
            found = []
            for g in range(groups):
                part = np.flatnonzero(group == g)
                turned = self.phi[part].T  # type: ignore[index]
                found.append((turned @ M[part]).tocsr())
                b[g] = turned @ right[part]
            return found, b
        A = np.zeros((groups, design.q, design.q))
        by_action = self.phi is None and self.action is not None and design.actions > 1
        key: Any = group * design.actions + self.action if by_action else group  # type: ignore[operator]
        order = np.argsort(key, kind="stable")
        edges = np.flatnonzero(np.diff(key[order], prepend=-1, append=key.max(initial=0) + 1))
        for begin, end in itertools.pairwise(edges):
            part = order[begin:end]
            turned = (self.X if self.phi is None else self.phi)[part].T
            rows = slice(None)
            if by_action:
                a = int(key[part[0]]) % design.actions
                rows = slice(a * design.p, (a + 1) * design.p)
            g = int(group[part[0]])
            A[g, rows] += turned @ M[part]
            b[g, rows] += turned @ right[part]
        return A, b


class GroupMoments:
    """Sums over groups that make the equations of one policy; they can be added up piece by piece.

    A  (groups, q, q), a list where features are sparse;  b  (groups, q, signals);  start  (groups, q) Σ of the mean
    features of first states;  starts  (groups,) how many episodes begin;  squares  (q,) Σ φ²
    """

    def __init__(self, groups: int, q: int, signals: int) -> None:
        self.A: Any = None
        self.b = np.zeros((groups, q, signals))
        self.start, self.starts, self.squares = np.zeros((groups, q)), np.zeros(groups), np.zeros(q)

    def add(self, A: Any, b: Array, squares: Array) -> None:
        """Add the sums of a piece."""
        if self.A is None:
            self.A = A
        elif isinstance(A, list):
            self.A = [mine + one for mine, one in zip(self.A, A, strict=True)]
        else:
            self.A += A
        self.b += b
        self.squares += squares

    def add_starts(self, features: Any, group: Integers) -> None:
        """Add the mean features (n, q) of first states."""
        if not len(group):
            return
        if sparse.issparse(features):
            deal = sparse.csr_matrix(
                (np.ones(len(group)), (group, np.arange(len(group)))), (len(self.starts), len(group))
            )
            self.start += np.asarray((deal @ features).todense())
        else:
            np.add.at(self.start, group, features)
        self.starts += np.bincount(group, minlength=len(self.starts))


class Solution(NamedTuple):
    """w (q, signals), w₋g (groups, q, signals), and a function that solves Aᵀ u = v for (q, k)."""

    w: Array
    without: Array
    dual: Any


def ridge_of(design: Design, squares: Array, share: float) -> Array:
    """Return what is added to the diagonal of A, (q,): a share of Σ φ², averaged over actions or over all."""
    if design.form == TABLE:
        return np.full(len(squares), share * float(squares[squares > 0].mean()))
    found = squares.copy()
    if design.form == BLOCKS:
        found = np.tile(squares.reshape(design.actions, design.p).mean(axis=0), design.actions)
    return share * np.where(found > 0, found, 1.0)


def solved(moments: GroupMoments, ridge: Array) -> Solution:
    """Return the solution of all groups, and those without each group."""
    b = moments.b.sum(axis=0)
    if isinstance(moments.A, list):
        total = sum(moments.A[1:], moments.A[0]) + sparse.diags(ridge)
        factor = splu(total.tocsc())
        left = [
            splu((total - A).tocsc()).solve(b - own) if A.nnz else factor.solve(b)
            for A, own in zip(moments.A, moments.b, strict=True)
        ]
        return Solution(factor.solve(b), np.array(left), lambda v: factor.solve(np.asarray(v, float), trans="T"))
    total = moments.A.sum(axis=0)
    total[np.diag_indices_from(total)] += ridge
    factor = lu_factor(total, check_finite=False)
    without = np.array([dense_solution(total - A, b - own) for A, own in zip(moments.A, moments.b, strict=True)])
    return Solution(
        lu_solve(factor, b, check_finite=False), without, lambda v: lu_solve(factor, v, trans=1, check_finite=False)
    )


def dense_solution(A: Array, b: Array) -> Array:
    """Return the solution of dense equations; of least squares where they are singular."""
    try:
        return np.asarray(np.linalg.solve(A, b), float)
    except LinAlgError:
        return np.asarray(np.linalg.lstsq(A, b, rcond=1e-12)[0], float)


def by_group(M: Any, W: Array, group: Integers) -> Array:
    """Return the product of each row of M (n, q) with the weights W (groups, q, k) of its group, (n, k)."""
    found = np.empty((len(group), W.shape[2]))
    for g in np.unique(group):
        part = np.flatnonzero(group == g)
        found[part] = M[part] @ W[g]
    return found
