"""Exact quantities of a finite task, computed from arrays without sampling.

Throughout, n is the number of non-terminal states and p is the number of features:

    P         (n, n)  transition probabilities between these states under the target policy, dense or SciPy sparse;
                      if a row sums to less than 1, the remaining probability ends the episode
    r         (n,)    expected reward on leaving each state
    discount  (n,)    continuation discount γ *into* each state; Γ = diag(discount) multiplies P from the right
    X         (n, p)  features;  d (n,) visit distribution, D = diag(d);  V (n,) values;  w (p,) weights
    A, b, C           E[ρ x (x − γx')ᵀ], E[ρ r x], E[x xᵀ]

A and C are singular in Baird's counterexample (p = n + 1 > n). All inverses are Moore-Penrose inverses:
the ordinary inverse if it exists, otherwise the minimum-norm solution. V_w of this solution is unique,
because the part of w outside the row space of X does not affect the values.
"""

from typing import Any, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import MatrixRankWarning, spsolve

from gradient_dd.arrays import Array

Matrix = Any  # a dense array or a SciPy sparse matrix


class Moments(NamedTuple):
    """A (p, p), b (p,) and C (p, p) of a task, which determine the expected updates."""

    A: Array
    b: Array
    C: Array


def inverse(matrix: Array) -> Array:
    """Return the Moore-Penrose inverse; singular values below 1e-13 times the largest count as zero."""
    return np.asarray(np.linalg.pinv(matrix, rcond=1e-13))


def _solve(matrix: Matrix, right: Array) -> Array:
    with catch_warnings():
        simplefilter("ignore", MatrixRankWarning)  # a singular matrix gives NaN, which callers detect
        solution = spsolve(sp.csc_matrix(matrix), right)
    return np.atleast_1d(np.asarray(solution, dtype=float)) + 0.0  # no negative zeros


def true_values(P: Matrix, r: Array, discount: Array) -> Array:
    """Return V = (I − P Γ)⁻¹ r, shape (n,)."""
    return _solve(sp.identity(len(r)) - sp.csr_matrix(P) @ sp.diags(discount), r)


def expected_steps(P: Matrix, discount: Array | float = 1.0) -> Array:
    """Return (I − P Γ)⁻¹ 1, shape (n,): the expected discounted number of steps from each state to the end.

    Twice the largest entry is an upper bound on the condition number of the equations for V.
    """
    n = P.shape[0]
    return true_values(P, np.ones(n), np.broadcast_to(discount, n))


def expected_visits(P: Matrix, start: Array) -> Array:
    """Return (I − Pᵀ)⁻¹ start, (n,): the expected visits to each state per episode; P is for the behaviour policy.

    Their sum is the expected length of an episode.
    """
    return _solve(sp.identity(len(start)) - sp.csr_matrix(P).T, start)


def stationary_distribution(P: Matrix) -> Array:
    """Return the stationary distribution of P in a continuing task, (n,); it is unique if P is irreducible."""
    n = P.shape[0]
    if n == 1:
        return np.ones(1)
    # One equation of d(I − P) = 0 is redundant: set d of the last state to 1, solve for the others, normalise.
    rest = (sp.identity(n) - sp.csr_matrix(P).T).tocsc()
    d = np.append(_solve(rest[:-1, :-1], -rest[:-1, -1].toarray().ravel()), 1.0)
    return d / d.sum()


def moments(X: Matrix, d: Array, P: Matrix, r: Array, discount: Array, ratio: Array | float = 1.0) -> Moments:
    """Return A = XᵀD(diag(ratio) − PΓ)X,  b = XᵀD r  and  C = XᵀDX.

    `ratio` (n,) is E[ρ|s]. It differs from 1 only if the ratios are not target / behaviour; P and r are then
    E[ρ 1(s')|s] and E[ρ r|s].
    """
    X, D = sp.csr_matrix(X), sp.diags(d)
    loss = sp.diags(np.broadcast_to(ratio, d.shape)) - sp.csr_matrix(P) @ sp.diags(discount)
    return Moments((X.T @ D @ loss @ X).toarray(), X.T @ (d * r), (X.T @ D @ X).toarray())


def trace_moments(
    X: Array, d: Array, P: Matrix, r: Array, discount: Array, lam: float, emphasis: Array | None = None
) -> tuple[Array, Array]:
    """Return A = XᵀD K (I − PΓ) X and b = XᵀD K r with K = (I − λ PΓ)⁻¹.

    These are E[z (x − γx')ᵀ] and E[r z] for z ← ρ (γ λ z + x). If the trace adds M x, `emphasis` (n,) replaces d.
    """
    ahead = sp.csr_matrix(P) @ sp.diags(discount)
    identity, weight = sp.identity(len(d)), d if emphasis is None else emphasis
    reach = np.linalg.solve((identity - lam * ahead).T.toarray(), np.asarray(X) * weight[:, None])  # (XᵀD K)ᵀ
    return reach.T @ ((identity - ahead) @ X), reach.T @ r


def emphatic_weights(d: Array, P: Matrix, discount: Array, lam: float) -> Array:
    """Return λ d + (1 − λ) f with f = (I − Γ Pᵀ)⁻¹ d, (n,): the state weights of ETD(λ), which need not sum to 1."""
    ahead = sp.csr_matrix(P) @ sp.diags(discount)
    return lam * d + (1 - lam) * _solve((sp.identity(len(d)) - ahead).T, d)


def projection(X: Array, d: Array) -> Array:
    """Return Π = X (XᵀDX)⁺ XᵀD, shape (n, n), the projection on representable values in the norm of D."""
    return X @ inverse((X.T * d) @ X) @ (X.T * d)


def bellman(V: Array, P: Matrix, r: Array, discount: Array) -> Array:
    """Return BV = r + P Γ V, shape (n,)."""
    return r + P @ (discount * V)


def fixed_point(A: Array, b: Array) -> Array:
    """Return w* = A⁺ b, shape (p,): the fixed point of TD, GTD2, TDC, TDRC and Gradient-DD."""
    return inverse(A) @ b


def rmsve(w: Array, X: Matrix, V: Array, d: Array) -> float:
    """Return √Σ_s d_s (V_w(s) − V(s))², the error in every figure of the paper."""
    return float(np.sqrt(d @ (X @ w - V) ** 2))


def msbe(w: Array, X: Matrix, P: Matrix, r: Array, discount: Array, d: Array) -> float:
    """Return ‖V_w − B V_w‖²_D. [MSBE]"""
    V = X @ w
    return float(d @ (V - bellman(V, P, r, discount)) ** 2)


def mspbe(w: Array, A: Array, b: Array, C: Array) -> float:
    """Return ‖V_w − Π B V_w‖²_D = (b − A w)ᵀ C⁺ (b − A w). [Q]"""
    residual = b - A @ w
    return float(residual @ inverse(C) @ residual)


def mspbe_gradient(w: Array, A: Array, b: Array, C: Array) -> Array:
    """Return −2 Aᵀ C⁺ (b − A w), shape (p,). The paper's [ng] is −½ times this gradient."""
    return -2 * A.T @ inverse(C) @ (b - A @ w)


def neu(w: Array, A: Array, b: Array) -> float:
    """Return ‖b − A w‖², the squared norm of the expected TD update, which GTD minimises."""
    residual = b - A @ w
    return float(residual @ residual)


def j_gdd(w: Array, w_prev: Array, kappa: float, A: Array, b: Array, C: Array) -> float:
    """Return MSPBE(w) + κ ‖V_w − V_w_prev‖²_D. [Q-TDD]"""
    change = w - w_prev
    return mspbe(w, A, b, C) + kappa * float(change @ C @ change)


def j_gdd_gradient(w: Array, w_prev: Array, kappa: float, A: Array, b: Array, C: Array) -> Array:
    """Return the gradient of J_GDD in w, shape (p,). The paper's [ng-TDD] is −½ times this gradient."""
    return mspbe_gradient(w, A, b, C) + 2 * kappa * C @ (w - w_prev)
