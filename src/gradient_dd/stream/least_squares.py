"""Least squares: LSTD from sums of moments, from sparse rows, and step by step; with a ridge where it is asked for.

    A = Σ ρ z (x − γx')ᵀ      b = Σ ρ r z      C = Σ z zᵀ          z = x, test features, or a trace
    plain      A w = b
    ridge ε    (A + ε D) (w − w₀) = b − A w₀                       D = diag(C), 1 where a feature was never seen
    tiny ridge (A + ε p D) w = b, ε = 1e-6: the trace of A's units, for many right sides and many samples at once
    recursive  k = P z / (1 + uᵀP z) with u = x − γx';  w ← w + k (r − u·w),  P ← P − k uᵀP,  P at first I / ridge

With a trace, z ← ρ (γ λ z + x) or the emphatic trace of ETD(λ) stands for ρ z. Every form takes O(p²) numbers, p being
the number of features.

Bradtke & Barto (1996), Linear least-squares algorithms for temporal difference learning. Boyan (2002), Technical
update: least-squares temporal difference learning. Emphatic: Yu (2015), On convergence of emphatic TD learning.
"""

from typing import Any

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array, Integers, check_memory
from gradient_dd.engine.reference import START, Before, memory_at_first, trace_numbers
from gradient_dd.errors import boolean, number, whole_number
from gradient_dd.learners import LEARNERS
from gradient_dd.stream.transitions import NONE, checked_features
from gradient_dd.tasks.exact import Moments, fixed_point

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


class TraceOfData:
    """Checks transitions and keeps the trace of them; LSTD and RecursiveLSTD add what they make of it."""

    def __init__(self, n_features: int, lam: float = 0.0, emphatic: bool = False) -> None:
        p = self.n_features = whole_number("'n_features'", n_features)
        check_memory(f"A matrix of {p} × {p} numbers", 24 * p * p, "Use fewer features, or a learner of linear time.")
        learner = LEARNERS["etd"] if boolean("'emphatic'", emphatic) else LEARNERS["td"]
        self._setting = learner.traced.setting(lam=lam)
        self._memory, self._before, self.z = memory_at_first(self._setting.rule), START, np.zeros(p)
        self.updates = 0

    def _next(self, x: Any, reward: float, discount: float, x_next: Any, rho: float) -> tuple[Array, Array, float]:
        """Take a transition into the trace, and return z, x − γ x' and the reward."""
        reward = number("'reward'", "be a finite number", reward)
        discount = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
        rho = number("'rho'", "be a number that is zero or more", rho, low=0.0)
        here = checked_features("x", x, self.n_features)
        there = NONE if discount == 0 else checked_features("x_next", x_next, self.n_features)
        now, change = np.zeros((2, self.n_features))
        now[here.where] = here.values
        change[there.where] = discount * there.values
        (trace,) = self._setting.rule.traces
        signals = self._setting.signals(1.0, rho)
        decay, gain, self._memory[trace.name] = trace_numbers(
            trace, signals, self._before, self._memory[trace.name], 0.0
        )
        self.z = decay * self.z + gain * now
        self._before = Before(discount, rho, 0.0, 0.0) if discount else START
        self.updates += 1
        return self.z, now - change, reward


class LSTD(TraceOfData):
    """LSTD(λ), or LSETD(λ) with `emphatic`: sums of A and b over the data, solved when `w` is asked for.

    >>> agent = LSTD(n_features=2, lam=0.9)
    >>> agent.update([1, 0], reward=1.0, discount=0.0, x_next=None)
    >>> agent.w
    array([1., 0.])
    """

    def __init__(self, n_features: int, lam: float = 0.0, emphatic: bool = False) -> None:
        super().__init__(n_features, lam, emphatic)
        self.A, self.b = np.zeros((self.n_features, self.n_features)), np.zeros(self.n_features)

    def update(self, x: Any, reward: float, discount: float, x_next: Any, rho: float = 1.0) -> None:
        """Take one transition; arguments as in `Learner.update`."""
        z, u, paid = self._next(x, reward, discount, x_next, rho)
        self.A += np.outer(z, u)
        self.b += paid * z

    @property
    def w(self) -> Array:
        """(p,) the solution of A w = b, of least norm where it is not unique."""
        return fixed_point(self.A, self.b)


class RecursiveLSTD(TraceOfData):
    """LSTD(λ) that keeps the inverse of ridge × I + A, and w, by Sherman-Morrison; O(p²) a step."""

    def __init__(self, n_features: int, lam: float = 0.0, emphatic: bool = False, ridge: float = 1.0) -> None:
        super().__init__(n_features, lam, emphatic)
        ridge = number("'ridge'", "be a positive number", ridge, low=0.0, positive=True)
        self.inverse, self.w = np.eye(self.n_features) / ridge, np.zeros(self.n_features)

    def update(self, x: Any, reward: float, discount: float, x_next: Any, rho: float = 1.0) -> float:
        """Take one transition, and return its TD error before the step; arguments as in `Learner.update`."""
        z, u, paid = self._next(x, reward, discount, x_next, rho)
        along = self.inverse @ z
        gain = along / (1.0 + u @ along)
        delta = paid - float(u @ self.w)
        self.w = self.w + gain * delta
        self.inverse = self.inverse - np.outer(gain, u @ self.inverse)
        return delta
