"""LSTD that shrinks by itself: the TD equations, solved, and as much of the solution as the data support.

The equations are A v = b with means over t transitions, A = E[ρ z (z − γz')ᵀ] and b = E[ρ δ₀ z]. v is what is to be
added to the first weights, whose TD error is δ₀. LSTD solves them with a ridge: as if there had been one more
transition of the mean square of each feature, alone, that ends at once and brings nothing. What LSTD finds is noisy, so
that only a share k of it is added.

At the TD fixed point v* the mean b − A v* = E[ρ δ z] is noise: of variance c_i E[ρ² δ²] / t for feature i, with c_i =
E[z_i²]. What the solution leaves unexplained, b − A v, is noise too. If the signal in b has s times the variance of the
noise, the best guess of the signal is b times k = s/(1 + s), and s is the one that makes the b that was seen most
likely (empirical Bayes; with a known level of noise this is the estimator of James and Stein). With n features and |b|²
= Σ b_i² / c_i it is the s with the largest

    − n log(noise (1 + s)) − |b|² / (noise (1 + s))

The noise depends on k, because δ = δ₀ − k (z − γz')·v does. It is measured on transitions that v was not made from:

    E[ρ² δ²] = E[ρ² δ₀²] − 2 k E[ρ² δ₀ (z − γz')·v] + k² E[ρ² ((z − γz')·v)²]

Noise that is made of few large events is not alike for all features; it counts as larger than it is. With few data, or
where A is zero, k is 0 and the first weights stay. With many data the solution is LSTD's.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.stream.least_squares import scaled_solution

SIGNALS = np.append(0.0, np.logspace(-3, 16, 77))  # s; all are tried, as the noise depends on k
SHARES = SIGNALS / (1 + SIGNALS)
OTHERS = 0.01  # of the mean square of all features is added to that of each: one that was hardly seen may yet be large
EVENTS = 3  # noise that is made of fewer events than this for each feature counts as so many times larger
SMALLEST = 1e-200  # noise


class EquationMeans(NamedTuple):
    """What the equations are made of: means over t transitions, and how noisy these were.

    A  (k, k) E[ρ z (z − γz')ᵀ]    b  (k,) E[ρ δ₀ z]    c  (k,) E[z²]
    t       number of transitions;  events  how many of them make up Σ (ρδ₀)²: t if all are alike
    errors  (3,) E[ρ² δ₀²], E[ρ² δ₀ u] and E[ρ² u²] with u = (z − γz')·v, of later transitions than v is made from
    """

    A: Array
    b: Array
    c: Array
    t: float
    events: float
    errors: Array

    def scale(self) -> Array:
        """Return the mean square of every feature, (k,), as the ridge has it; 1 for one that was never seen."""
        return np.where(self.c > 0, self.c + OTHERS * self.c.sum() / max(1, np.count_nonzero(self.c)), 1.0)

    def length(self, g: Array) -> float:
        """Return Σ g_i² / c_i: the squared length of a mean of ρδz, (k,), in units in which features vary by 1."""
        return float(np.sum(g * g / self.scale()))


class Shrunk(NamedTuple):
    """What equations were solved to: v (k,) of LSTD, the share of it to add, and the projected TD error of that."""

    v: Array
    share: float
    residual: float


def shrunk_solution(means: EquationMeans, alpha: float | None = None) -> Shrunk:
    """Return the solution of A v = b, and how much of it the data support.

    alpha  the ridge is 1/alpha for a feature of mean size, in place of one transition: from one transition alone, v is
           then TD's step of size alpha, up to terms of alpha², where all features are of one size
    """
    A, b, c, t, events, (first, mixed, solved) = means
    n, scale = np.count_nonzero(c), means.scale()
    if n == 0:
        return Shrunk(np.zeros(len(b)), 0.0, 0.0)
    transitions = 1.0 if alpha is None else n / (alpha * scale[c > 0].sum())
    v = scaled_solution(A, b[:, None], scale, transitions / t)[:, 0]
    level = np.maximum(first - 2 * SHARES * mixed + SHARES**2 * solved, 0.0) * max(1.0, EVENTS * n / max(events, 1.0))
    noise = np.maximum(level / t + means.length(b - A @ v) / n, SMALLEST)
    likely = -n * np.log(noise * (1 + SIGNALS)) - means.length(b) / (noise * (1 + SIGNALS))
    best = int(np.argmax(likely))
    share = float(SHARES[best])
    return Shrunk(v, share, float(np.sqrt(means.length(b - share * (A @ v)) + n * level[best] / t)))
