"""LSTD that shrinks by itself: the TD equations, solved, and as much of the solution as the data support.

The equations are A v = b with means over t transitions, A = E[ρ z (z − γz')ᵀ] and b = E[ρ δ₀ z]. v is what is to be
added to the initial weights, whose TD error is δ₀. LSTD solves them with a small ridge, in units in which the
mean square c_i of every feature is 1. Its solution is noisy, so only a share k_i of direction i is added.

At the TD fixed point v* the mean b − A v* = E[ρ δ z] is noise: of variance E[ρ² δ²] / t in these units. What the
solution leaves unexplained, b − A v, is noise too. Let A = Σ σ_i u_i w_iᵀ be the singular values and directions, so
that g_i = u_i·b has to do with w_i alone. If the signal in g_i has s_i times the variance of the noise, the best guess
of it is g_i times k_i = s_i/(1 + s_i). Signals are expected to be the larger, the more A passes on: s_i = s (σ_i / mean
σ)^0.35, and s is the one that makes the b that was seen most likely (empirical Bayes; with all σ_i alike and a known
level of noise this is the estimator of James and Stein):

    maximise   − Σ log(noise (1 + s_i)) − Σ g_i² / (noise (1 + s_i))

The noise depends on what is added. With d = z − γz', S = E[ρ² d dᵀ] and e = E[ρ² δ₀ d] it is

    E[ρ² δ²] = E[ρ² δ₀²] − 2 e·v + vᵀ S v

where v includes the shares. A solution that diverges because A is nearly singular is judged by the noise it causes.

Where A is nearly singular, the noise in one direction may exceed the length of the whole solution. The component
y_i = g_i / σ_i has the standard error ε_i = √noise / σ_i. Let ℓ_i² be the sum of k_j² (y_j² − ε_j²), where positive,
over the directions j of smaller standard error. Where ℓ_i > 0, k_i is at most

    max(1.5 ℓ_i / ε_i, 1 − (3 ε_i / y_i)²)

so that a direction with a large standard error is added only as far as it is significant.

Noise that is made of few large events is not alike for all features; it counts as larger than it is. With few data, or
where A is zero, nothing is added and the initial weights stay. With many data the solution is LSTD's.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array

RIDGE = 0.1  # transitions of every feature, alone, that end at once and bring nothing
SIGNALS = np.append(0.0, np.logspace(-6, 16, 89))  # s; all are tried, as the noise depends on the shares
OTHERS = 0.01  # of the mean square of all features is added to that of each: one that was hardly seen may yet be large
EVENTS = 3  # noise that is made of fewer events than this for each feature counts as so many times larger
SMALLEST = 1e-200  # noise
POWER = 0.35  # of singular values, by which signals grow: chosen on tasks for design
FREE, CLEAR = 1.5, 3.0  # noise of up to FREE lengths is added freely; more needs a y of CLEAR standard errors
FLAT = 1e-12  # singular values are at least this share of the largest


class EquationMeans(NamedTuple):
    """What the equations are made of: means over t transitions, and how noisy these were.

    A  (k, k) E[ρ z (z − γz')ᵀ]    b  (k,) E[ρ δ₀ z]     c  (k,) E[z²]
    S  (k, k) E[ρ² d dᵀ]           e  (k,) E[ρ² δ₀ d]    first  E[ρ² δ₀²]    with d = z − γz'
    t  number of transitions;  events  how many of them make up Σ (ρδ₀)²: t if all are alike
    """

    A: Array
    b: Array
    c: Array
    S: Array
    e: Array
    first: float
    t: float
    events: float

    def scale(self) -> Array:
        """Return the mean square of every feature, (k,), as the units have it; 1 for one that was never seen."""
        return np.where(self.c > 0, self.c + OTHERS * self.c.sum() / max(1, np.count_nonzero(self.c)), 1.0)

    def length(self, g: Array) -> float:
        """Return Σ g_i² / c_i: the squared length of a mean of ρδz, (k,), in units in which features vary by 1."""
        return float(np.sum(g * g / self.scale()))


class Shrunk(NamedTuple):
    """What equations were solved to: `share` times v is to be added to the initial weights.

    share     the mean of the shares k_i, 0 to 1
    v         (k,) the sum of the directions of LSTD's solution, each times k_i over their mean; of the smallest s for 0
    residual  the projected TD error of what is added, with its noise
    """

    v: Array
    share: float
    residual: float


def shrunk_solution(means: EquationMeans, alpha: float | None = None) -> Shrunk:
    """Return the solution of A v = b, and the part of it that the data support.

    alpha  the ridge is 1/alpha for a feature of mean size: from one transition alone, LSTD is then TD with step size
           alpha, up to terms of alpha², where all features are of one size
    """
    A, b, c, S, e, first, t, events = means
    seen, scale = c > 0, means.scale()
    n = np.count_nonzero(seen)
    if n == 0:
        return Shrunk(np.zeros(len(b)), 0.0, 0.0)
    unit = np.where(seen, 1 / np.sqrt(scale), 0.0)
    transitions = RIDGE if alpha is None else n / (alpha * scale[seen].sum())
    U, sigma, W = np.linalg.svd(unit[:, None] * A * unit + transitions / t * np.eye(len(b)))
    sigma, g = np.maximum(sigma, FLAT * sigma[0]), U.T @ (unit * b)
    gap = b - A @ (unit * (g / sigma @ W))
    signals = SIGNALS[:, None] * (sigma / sigma.mean()) ** POWER
    parts = signals / (1 + signals)  # (signals, k)
    few = max(1.0, EVENTS * n / max(events, 1.0))
    y = g / sigma
    added, along = parts * y, W * unit  # (signals, k) in the directions W
    level = first - 2 * added @ (along @ e) + np.sum(added @ (along @ S @ along.T) * added, axis=1)
    noise = np.maximum(few * level / t + means.length(gap) / n, SMALLEST)
    spread = noise[:, None] * (1 + signals)
    best = int(np.argmax(-(np.log(spread) + g**2 / spread).sum(axis=1)))
    kept = parts[max(best, 1)]
    kept = np.minimum(kept, most(kept, y, np.sqrt(noise[best]) / sigma))
    v, share = unit * (kept / kept.mean() * y @ W), kept.mean() if best else 0.0
    level = max(0.0, first - share * (2 * e @ v - share * (v @ S @ v)))
    residual = np.sqrt(means.length(b - share * (A @ v)) + n * few * level / t)
    return Shrunk(v, float(share), float(residual))


def most(shares: Array, y: Array, errors: Array) -> Array:
    """Return the largest share that the standard error of each direction allows, (k,), as all arguments are."""
    order = np.argsort(errors)
    known = np.maximum(shares**2 * (y**2 - errors**2), 0.0)[order]
    length = np.empty(len(y))
    length[order] = np.sqrt(np.cumsum(known) - known)
    clear = 1 - np.minimum(CLEAR * errors, np.abs(y)) ** 2 / np.where(y == 0, 1.0, y) ** 2
    return np.where(length > 0, np.maximum(FREE * length / errors, clear), 1.0)
