"""LSTD with empirical-Bayes shrinkage: the solution of the TD equations, as far as the data support it.

The equations are A v = b, with A = E[ρ z (z − γz')ᵀ] and b = E[ρ δ₀ z] as means over t transitions. v is the correction
to the initial weights, whose TD error is δ₀. LSTD solves the equations with a small ridge, in units in which every
feature has mean square c_i = 1. The solution is noisy, so only a share k_i of its part along direction i is added.

At the TD fixed point v*, the mean b − A v* = E[ρ δ z] is noise with variance E[ρ² δ²] / t in these units. The residual
of the solution, b − A v, also counts as noise. Let A = Σ σ_i u_i w_iᵀ be the singular value decomposition, so that
g_i = u_i·b depends on the solution along w_i only. If the variance of the signal in g_i is s_i times the variance of
the noise, the best estimate of the signal is k_i g_i with k_i = s_i/(1 + s_i). Signals are assumed to grow with the
singular values, s_i = s (σ_i / mean σ)^0.35, and s maximises the likelihood of b (empirical Bayes; with equal σ_i and a
known noise level this is the James-Stein estimator):

    maximise   − Σ log(noise (1 + s_i)) − Σ g_i² / (noise (1 + s_i))

The noise depends on v. With d = z − γz', S = E[ρ² d dᵀ] and e = E[ρ² δ₀ d] it follows from

    E[ρ² δ²] = E[ρ² δ₀²] − 2 e·v + vᵀ S v

where v includes the shares. A nearly singular A gives a large v, which increases this estimate of the noise.

If A is nearly singular, the noise in one direction may exceed the length of the whole solution. The component
y_i = g_i / σ_i has the standard error ε_i = √noise / σ_i. Let ℓ_i² be the sum of all positive k_j² (y_j² − ε_j²) over
the directions j with a smaller standard error. If ℓ_i > 0, k_i is at most

    max(1.5 ℓ_i / ε_i, 1 − (3 ε_i / y_i)²)

so that a direction with a large standard error is added only to the extent that it is significant.

Noise from few large events differs between features, so the noise estimate is multiplied by a factor. With few data, or
if A is zero, nothing is added and the weights keep their initial values. With many data the solution is LSTD's.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array

RIDGE = 0.1  # transitions added per feature: only this feature is nonzero, the TD error is 0, and the episode ends
SIGNALS = np.append(0.0, np.logspace(-6, 16, 89))  # values of s; all are tried, because the noise depends on the shares
OTHERS = 0.01  # share of the average c that is added to each c_i, because a rare feature may become large
EVENTS = 3  # events per feature; the noise estimate from fewer events is multiplied by the quotient
SMALLEST = 1e-200  # lower limit of the noise
POWER = 0.35  # exponent of the singular values in s_i, chosen on the design tasks
FREE, CLEAR = 1.5, 3.0  # ε up to FREE ℓ does not limit k; for a larger ε, |y| has to exceed CLEAR ε
FLAT = 1e-12  # lower limit of singular values, relative to the largest


class EquationMeans(NamedTuple):
    """The terms of the equations: means over t transitions, and statistics of their noise.

    A  (k, k) E[ρ z (z − γz')ᵀ]    b  (k,) E[ρ δ₀ z]     c  (k,) E[z²]
    S  (k, k) E[ρ² d dᵀ]           e  (k,) E[ρ² δ₀ d]    first  E[ρ² δ₀²]    with d = z − γz'
    t  number of transitions;  events  effective number of terms in Σ (ρδ₀)²: t if all are equal
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
        """Return the mean square of every feature plus a share of their average, (k,); 1 for unseen features."""
        return np.where(self.c > 0, self.c + OTHERS * self.c.sum() / max(1, np.count_nonzero(self.c)), 1.0)

    def length(self, g: Array) -> float:
        """Return the squared length of a mean of ρδz, (k,), for features scaled to mean square 1."""
        return float(np.sum(g * g / self.scale()))


class Shrunk(NamedTuple):
    """The shrunken solution: `share` times v is the correction to the initial weights.

    share     the mean of the shares k_i, 0 to 1
    v         (k,) LSTD's solution with direction i times k_i / share; if share is 0, k_i is for the smallest s > 0
    residual  the projected TD error of the corrected weights, including its noise
    """

    v: Array
    share: float
    residual: float


def shrunk_solution(means: EquationMeans, alpha: float | None = None) -> Shrunk:
    """Return the solution of A v = b, shrunk to the part that the data support.

    alpha  sets the ridge to 1/alpha for a feature of mean size. After one transition, LSTD then equals TD with step
           size alpha up to terms of alpha², if all features have the same size
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
    """Return the largest share that the standard error of each direction allows; all arrays are (k,)."""
    order = np.argsort(errors)
    known = np.maximum(shares**2 * (y**2 - errors**2), 0.0)[order]
    length = np.empty(len(y))
    length[order] = np.sqrt(np.cumsum(known) - known)
    clear = 1 - np.minimum(CLEAR * errors, np.abs(y)) ** 2 / np.where(y == 0, 1.0, y) ** 2
    return np.where(length > 0, np.maximum(FREE * length / errors, clear), 1.0)
