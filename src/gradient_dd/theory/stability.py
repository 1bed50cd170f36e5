"""Stability: for which step sizes the mean of a learner converges, and how fast.

The mean obeys m' = T m + …, where T is the operator of i.i.d. draws or of trajectories (`dynamics`). With q the
eigenvalues of T,

    spectral radius  max |q|          the mean converges if it is below 1
    rate             1 − max |q|      the decay of the slowest mode per step; negative if the mean diverges

A learner whose mean is stable can still have runs whose variance grows (`mean_square`). If modes coincide without
eigenvectors of their own (tabular TD with alpha = 1) no solver gives more than two or three digits.

If features are dependent (Baird: p = N + 1 weights for N states) w moves only in the row space of X. The part outside
is constant, does not affect the values, and is left out, so that its eigenvalues 1 do not count.

A rate may be 1e-8 or less, so it is never computed as 1 minus a number: the eigenvalues g = q − 1 are those of T − I,
and 1 − |q| = −(2 Re g + |g|²)/(1 + |q|).
"""

from collections.abc import Callable
from dataclasses import replace
from math import inf, sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs, splu

from gradient_dd.arrays import Array
from gradient_dd.errors import bad_request
from gradient_dd.learners import LEARNERS, Rule, Setting, find
from gradient_dd.tasks import Task
from gradient_dd.theory.arguments import checked
from gradient_dd.theory.dynamics import MeanOperator

Complex = NDArray[np.complex128]

SMALL = 400  # unknowns up to which all eigenvalues are computed
COUNT = 8  # eigenvalues computed for larger operators, near 1 and of largest modulus
SPAN = (1e-5, 1e4)  # bounds of the scan for the largest stable alpha, in units of one over the largest drift
PER_DECADE = 8  # step sizes of the scan
PRECISION = 5e-7  # relative, of the largest stable alpha
EDGE_PRECISION = 1e-3  # relative, of an edge of a `RatePlane`


@checked
def rate(task: Task, setting: Setting, sampling: str = "trajectory") -> float:
    """Return 1 − |q| of the slowest mode; negative if the mean diverges."""
    return operator_rate(MeanOperator(in_row_space(task), setting, sampling))


@checked
def largest_stable_alpha(task: Task, learner: str | Rule, sampling: str = "trajectory", **parameters: Any) -> float:
    """Return the step size at which the mean first becomes unstable, to a relative 1e-6.

    0 if it is unstable at any step size, inf if it is stable at all. Step sizes are scanned on a grid of eight per
    decade, then bisected, so a narrower unstable window can be missed.
    """
    rate_at, scale = rate_of_alpha(task, learner, sampling, parameters)
    low, high = (scale * end for end in SPAN)
    return largest_stable(lambda alpha: rate_at(alpha) > 0, low, high, 10 ** (1 / PER_DECADE), PRECISION)


def rate_of_alpha(
    task: Task, learner: str | Rule, sampling: str, parameters: dict[str, Any]
) -> tuple[Callable[[float], float], float]:
    """Return the rate as a function of alpha, and one over the largest drift: the scale of alpha."""
    if "alpha" in parameters:
        raise bad_request("'alpha'", "be left out, because it is searched", parameters["alpha"])
    reduced, setting = in_row_space(task), find(learner).setting(**parameters, alpha=1.0)
    drift = MeanOperator(reduced, setting, "iid").moves().toarray()
    operator = MeanOperator(reduced, setting, sampling)
    return lambda alpha: operator_rate(operator, alpha), 1 / float(np.abs(np.linalg.eigvals(drift)).max())


def largest_stable(is_stable: Callable[[float], bool], low: float, high: float, step: float, precision: float) -> float:
    """Return the largest stable number between `low` and `high`, scanned by factors of `step`.

    0 if `low` is unstable, inf if `high` is stable. An unstable window narrower than a step can be missed.
    """
    if not is_stable(low):
        return 0.0
    stable = low
    while is_stable(stable * step):
        stable *= step
        if stable > high:
            return inf
    return bisected(is_stable, stable, stable * step, precision)


def bisected(is_stable: Callable[[float], bool], stable: float, unstable: float, precision: float) -> float:
    """Return the largest number found stable between a stable and an unstable one."""
    while unstable / stable > 1 + precision:
        middle = sqrt(stable * unstable)
        stable, unstable = (middle, unstable) if is_stable(middle) else (stable, middle)
    return float(stable)


def in_row_space(task: Task) -> Task:
    """Return the task in coordinates of the row space of X; the task itself if X has full column rank.

    Features become Bᵀx and weights Bᵀw with an orthonormal basis B, so products x·w, and all steps, stay the same.
    """
    rank = np.linalg.matrix_rank(task.features)
    if rank == task.n_features:
        return task
    basis = np.linalg.svd(task.features, full_matrices=False)[2][:rank].T
    features = task.feature_rows.toarray() @ basis
    return replace(task, feature_rows=sp.csr_matrix(features), initial_weights=task.initial_weights @ basis)


def operator_rate(operator: MeanOperator, factor: float = 1.0) -> float:
    """Return 1 − max |q| of a mean operator, with alpha multiplied by `factor`."""
    generator = operator.generator(factor)
    places = largest_in_modulus(operator.matrix(factor)) - 1 if generator.shape[0] > SMALL else ()
    if not len(places):
        return float(contraction(np.linalg.eigvals(generator.toarray()).astype(complex)).min())
    # Slow modes crowd near q = 1, where only a solver with a shift there separates them. The largest modes elsewhere
    # are approximated first, and each is then a shift of the solver.
    modes = [eigenvalues_near(generator, 0.0, COUNT), *(eigenvalues_near(generator, place, 1) for place in places)]
    return float(contraction(np.concatenate(modes)).min())


def contraction(g: Complex) -> Array:
    """Return 1 − |q| for g = q − 1, without cancellation."""
    return -(2 * g.real + np.abs(g) ** 2) / (1 + np.abs(1 + g))


def eigenvalues_near(generator: sp.csr_matrix, place: complex, count: int) -> Complex:
    """Return the eigenvalues nearest to a place, by shift and invert: at most `count`, if they converge."""
    size = generator.shape[0]
    shift = place + 1e-13  # an eigenvalue may be the place itself
    solve = splu(sp.csc_matrix(generator - shift * sp.identity(size))).solve
    return shift + 1 / eigenvalues(LinearOperator(generator.shape, solve, dtype=type(shift)), count, tolerance=0)[0]


def largest_in_modulus(matrix: sp.csr_matrix) -> Complex:
    """Return approximate eigenvalues of largest modulus, one of each conjugate pair; none if none converge.

    A power of the matrix spreads the moduli: T³¹, or T²⁵⁵ if that does not converge. A power loses the phases, so they
    are computed from T on the space of its eigenvectors.
    """
    bound = float(abs(matrix).sum(axis=0).max())
    for power in (31, 255, 1):
        if power * np.log10(bound) > 150:
            continue

        def repeated(vector: Array, power: int = power) -> Array:
            for _ in range(power):
                vector = matrix @ vector
            return vector

        vectors = eigenvalues(LinearOperator(matrix.shape, repeated, dtype=float), COUNT, tolerance=1e-4)[1]
        if vectors.shape[1]:
            space = np.linalg.qr(vectors)[0]
            values = np.linalg.eigvals(space.conj().T @ (matrix @ space)).astype(complex)
            return values[values.imag >= 0]
    return np.empty(0, dtype=complex)


def eigenvalues(operator: LinearOperator, count: int, tolerance: float) -> tuple[Complex, Complex]:
    """Return the eigenvalues of largest modulus that converge, at most `count`, and their vectors."""
    size = operator.shape[0]
    first = np.random.default_rng(0).standard_normal(size)  # the same every time
    try:
        return eigs(operator, count, which="LM", v0=first, ncv=min(size, 60), tol=tolerance, maxiter=20)
    except ArpackNoConvergence as stopped:
        return stopped.eigenvalues, stopped.eigenvectors


class RatePlane:
    """The rate of the slowest mode of Gradient-DD as a function of alpha and v, which is κ or ζ, for many points.

    T − I = S + α (K₀ + v K₁), so the matrices are made once and a point costs only its eigenvalues. `parameter` is
    "kappa" or "zeta"; the other one has its default.
    """

    def __init__(self, task: Task, parameter: str, sampling: str = "trajectory") -> None:
        reduced = in_row_space(task)
        one, two = (MeanOperator(reduced, gradient_dd(parameter, v), sampling) for v in (1.0, 2.0))
        first, second = one.moves().toarray(), two.moves().toarray()
        self._still, self._slope = one.generator().toarray() - first, second - first
        self._base = first - self._slope

    def rates(self, alphas: ArrayLike, values: ArrayLike) -> Array:
        """Return 1 − |q| of the slowest mode at every pair, broadcast; negative if the mean diverges."""
        alpha, value = np.broadcast_arrays(np.asarray(alphas, float), np.asarray(values, float))
        pairs = zip(alpha.ravel(), value.ravel(), strict=True)
        generators = (self._still + a * (self._base + v * self._slope) for a, v in pairs)
        found = [contraction(np.linalg.eigvals(one).astype(complex)).min() for one in generators]
        return np.array(found).reshape(alpha.shape)

    def edge(self, alphas: Array, rates: Array, value: float) -> float:
        """Return the alpha at which the mean first becomes unstable, to a relative 1e-3, from the `rates` at `alphas`.

        0 if it is unstable at the first alpha, inf if it is stable at all.
        """
        unstable = np.flatnonzero(rates <= 0)
        if not len(unstable) or unstable[0] == 0:
            return 0.0 if len(unstable) else inf
        stable, first = alphas[unstable[0] - 1], alphas[unstable[0]]
        return bisected(lambda alpha: bool(self.rates(alpha, value) > 0), stable, first, EDGE_PRECISION)


def gradient_dd(parameter: str, value: float) -> Setting:
    """Return Gradient-DD with alpha = 1 and one parameter, "kappa" or "zeta", at a value."""
    chosen: dict[str, Any] = {"alpha": 1.0, parameter: value}
    return LEARNERS["gradient_dd"].setting(**chosen)
