"""Least squares that shrink by themselves: the TD equations, solved with as much ridge as the data ask for.

The equations are A v = b, with means over t transitions for A = E[ρ z (z − γz')ᵀ] and b = E[ρ δ₀ z]; v is what is to be
added to the first weights. At the TD fixed point v* the mean b − A v* = E[ρ δ z] is noise. In coordinates in which
C = E[z zᵀ] is the identity, the error of the values is the length |v − v*|, and the noise is about the same in all
directions: of variance E[ρ² δ²] / t. It depends on v, since δ = δ₀ − (z − γz')·v:

    E[ρ² δ²] = E[ρ² δ₀²] − 2 h·v + v·D v,    h = E[ρ² δ₀ (z − γz')],    D = E[ρ² (z − γz')(z − γz')ᵀ]

So b is an observation of A v* with known noise, and a ridge is the best guess of v*, if its size is known beforehand:

    v_i ~ N(0, τ² √(c_i / λ_i))    in the directions i in which AᵀA is diagonal, with λ_i there

c_i says how much features vary along i: directions along which they hardly do are expected to matter less. Those that A
makes small are expected to matter more, because values are sums of rewards over a long time. τ is the one that makes
the b that was seen most likely (empirical Bayes). With few data, or where A is nearly singular, v is nearly 0; with
many data it is the solution of LSTD.

A solution that has taken n numbers from t transitions has seen its own noise: what is measured counts t/(t − n) times,
and n is a quarter of t at most. Noise that comes from few events, such as single large rewards, is not the same in all
directions: with fewer events than directions it counts as that many times larger.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.stream.least_squares import root_of_inverse

SIZES = np.append(0.0, np.logspace(-6, 18, 97))  # of τ² over the noise, relative to 1 / mean λ; 0 stands still
SMALLEST = 1e-200  # level of noise
EXACT = 1e-14  # share of |b|² that is rounding
FLAT = 1e-12  # directions whose λ is below this share of the largest have the prior of one that is not


class EquationMeans(NamedTuple):
    """What the equations are made of: means over t transitions, (k, k), (k,) or numbers.

    A  E[ρ z (z − γz')ᵀ]    b  E[ρ δ₀ z]    C  E[z zᵀ]    D  E[ρ² (z − γz')(z − γz')ᵀ]    h  E[ρ² δ₀ (z − γz')]
    square  E[ρ² δ₀²]    t  number of transitions    events  how many of them make up (ρδ₀)²: t if all are alike
    """

    A: Array
    b: Array
    C: Array
    D: Array
    h: Array
    square: float
    t: float
    events: float

    def noise(self, v: Array, fitted: Array, directions: int) -> Array:
        """Return the variance of b in every direction, (n,), at solutions v (n, k) with `fitted` numbers each, (n,)."""
        level = self.square - 2 * v @ self.h + ((v @ self.D) * v).sum(axis=1)
        level = np.maximum(level * self.t / np.maximum(self.t - fitted, 1.0), self.square / self.t**2)
        return np.maximum(level * max(1.0, directions / max(self.events, 1.0)) / self.t, SMALLEST)


class Shrunk(NamedTuple):
    """What equations were solved to.

    v         (k,) the solution
    kept      share of the solution of LSTD that is kept, over the directions that z has: 0 none, 1 all
    residual  the projected TD error of v, with its noise
    inverse   (k, k) the inverse of the noise of ρδz in a single transition, where z has directions
    """

    v: Array
    kept: float
    residual: float
    inverse: Array


def shrunk_solution(means: EquationMeans) -> Shrunk:
    """Return the solution of A v = b that the data support."""
    nothing = Shrunk(np.zeros(len(means.b)), 0.0, 0.0, np.zeros(means.C.shape))
    c, root = directions_of(means.C)
    if not root.size or not means.b.any():
        return nothing
    inner = root * (c / c.mean()) ** 0.25
    M, b = root.T @ means.A @ inner, root.T @ means.b
    squares, axes = np.linalg.eigh(M.T @ M)
    squares, g, largest = np.maximum(squares, 0.0), axes.T @ (M.T @ b), squares.max()
    if not largest > 0:
        return nothing
    firm = np.maximum(squares, FLAT * largest)
    prior = SIZES[:, None] / squares.mean() * np.sqrt(squares.mean() / firm)  # (sizes, k) of v over the noise of b
    spread = 1 + prior * squares
    tried = (prior / spread * g) @ (inner @ axes).T  # (sizes, k) the solutions
    fitted = (1 - 1 / spread).sum(axis=1)
    noise = means.noise(tried, fitted, len(c))
    seen = g**2 / firm  # b², direction by direction, and what is in none of them
    outside = max(0.0, b @ b - seen.sum() - EXACT * (b @ b))
    evidence = -(len(c) * np.log(noise) + np.log(spread).sum(axis=1) + ((seen / spread).sum(axis=1) + outside) / noise)
    best = int(np.argmax(np.where(fitted <= means.t / 4, evidence, -np.inf)))
    gap = b - root.T @ means.A @ tried[best]
    residual = float(np.sqrt(gap @ gap + len(c) * noise[best]))
    return Shrunk(tried[best], float(fitted[best] / len(c)), residual, root @ root.T / (means.t * noise[best]))


def directions_of(C: Array) -> tuple[Array, Array]:
    """Return c (n,) and R (k, n) with Rᵀ C R = 1: the directions that features span, and how much they vary along each.

    c does not depend on the units of the features.
    """
    width = np.sqrt(C.diagonal())
    unit = np.where(width > 0, 1 / np.where(width > 0, width, 1.0), 0.0)[:, None]
    root = root_of_inverse(unit * C * unit.T)
    root = root[:, root.any(axis=0)]
    return 1 / (root**2).sum(axis=0), unit * root
