"""Stability: for which step sizes the mean of a learner converges, and how fast.

The mean obeys m' = T m + …, T being the operator of i.i.d. draws or of trajectories (`dynamics`). With q the
eigenvalues of T,

    spectral radius  max |q|          the mean converges where it is below 1
    rate             1 − max |q|      what the slowest mode loses in one step; negative where the mean diverges

Everything is about the mean: a learner that is stable here can still have runs whose variance grows. Where modes
coincide without vectors of their own (tabular TD with alpha = 1, which forgets) no solver gives more than two or three
digits.

Where features are dependent (Baird: p = N + 1 weights for N states) w moves in the row space of X alone. The part
outside stands still, does not reach the values, and is left out, so that its eigenvalues 1 do not count.

A rate may be 1e-8 and less, so it is never 1 minus something: the eigenvalues g = q − 1 are those of T − I, and
1 − |q| = −(2 Re g + |g|²)/(1 + |q|).

`RatePlane` gives the rates of Gradient-DD over alpha and one parameter v, κ or ζ, where single calls would take too
long: T − I = S + α (K₀ + v K₁), so the matrices are made once and a point of the plane costs its eigenvalues alone.
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
COUNT = 8  # eigenvalues computed of larger operators, near 1 and of largest modulus
SPAN = (1e-5, 1e4)  # of the scan for a crossing, in units of one over the largest drift
PER_DECADE = 8  # step sizes of that scan
PRECISION = 5e-7  # relative, of a crossing
EDGE_PRECISION = 1e-3  # relative, of an edge of a `RatePlane`


@checked
def rate(task: Task, setting: Setting, sampling: str = "trajectory") -> float:
    """Return 1 − |q| of the slowest mode; negative where the mean diverges."""
    return operator_rate(MeanOperator(in_row_space(task), setting, sampling))


@checked
def largest_stable_alpha(task: Task, learner: str | Rule, sampling: str = "trajectory", **parameters: Any) -> float:
    """Return the step size at which the mean first becomes unstable, to a relative 1e-6.

    0 where it is unstable however small the step size, inf where it is stable however large. Step sizes are scanned on
    a grid of eight per decade, then bisected, so an unstable window narrower than that can be missed.
    """
    rate_at, scale = rate_of_alpha(task, learner, sampling, parameters)
    low, high = (scale * end for end in SPAN)
    return largest_stable(lambda alpha: rate_at(alpha) > 0, low, high, 10 ** (1 / PER_DECADE), PRECISION)


def rate_of_alpha(
    task: Task, learner: str | Rule, sampling: str, parameters: dict[str, Any]
) -> tuple[Callable[[float], float], float]:
    """Return the rate as a function of alpha, and one over the largest drift: the scale of alpha."""
    if "alpha" in parameters:
        raise bad_request("'alpha'", "be left out, for it is what is searched", parameters["alpha"])
    reduced, setting = in_row_space(task), find(learner).setting(**parameters, alpha=1.0)
    drift = MeanOperator(reduced, setting, "iid").moves().toarray()
    operator = MeanOperator(reduced, setting, sampling)
    return lambda alpha: operator_rate(operator, alpha), 1 / float(np.abs(np.linalg.eigvals(drift)).max())


def largest_stable(is_stable: Callable[[float], bool], low: float, high: float, step: float, precision: float) -> float:
    """Return the largest stable number between `low` and `high`, scanned by factors of `step`.

    0 where `low` is unstable, inf where `high` is still stable. A window of instability narrower than the scan's steps
    can be missed.
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
    """Return the task in coordinates of the row space of X; the task itself where X has full column rank.

    Features become Bᵀx and weights Bᵀw, B being an orthonormal basis: products x·w, and so all steps, stay the same.
    """
    rank = np.linalg.matrix_rank(task.features)
    if rank == task.n_features:
        return task
    basis = np.linalg.svd(task.features, full_matrices=False)[2][:rank].T
    features = task.feature_rows.toarray() @ basis
    return replace(task, feature_rows=sp.csr_matrix(features), initial_weights=task.initial_weights @ basis)


def operator_rate(operator: MeanOperator, factor: float = 1.0) -> float:
    """Return 1 − max |q| of a mean operator, alpha being multiplied by `factor`."""
    generator = operator.generator(factor)
    places = largest_in_modulus(operator.matrix(factor)) - 1 if generator.shape[0] > SMALL else ()
    if not len(places):
        return float(contraction(np.linalg.eigvals(generator.toarray()).astype(complex)).min())
    # Slow modes crowd near q = 1, where only a solver aimed at that place tells them apart. The largest modes elsewhere
    # are found roughly first, and then the solver is aimed at each of them.
    modes = [eigenvalues_near(generator, 0.0, COUNT), *(eigenvalues_near(generator, place, 1) for place in places)]
    return float(contraction(np.concatenate(modes)).min())


def contraction(g: Complex) -> Array:
    """Return 1 − |q| for g = q − 1, without cancellation."""
    return -(2 * g.real + np.abs(g) ** 2) / (1 + np.abs(1 + g))


def eigenvalues_near(generator: sp.csr_matrix, place: complex, count: int) -> Complex:
    """Return the eigenvalues nearest to a place, by shift and invert: as many of `count` as converge."""
    size = generator.shape[0]
    shift = place + 1e-13  # an eigenvalue may be the place itself
    solve = splu(sp.csc_matrix(generator - shift * sp.identity(size))).solve
    return shift + 1 / eigenvalues(LinearOperator(generator.shape, solve, dtype=type(shift)), count, tolerance=0)[0]


def largest_in_modulus(matrix: sp.csr_matrix) -> Complex:
    """Return rough eigenvalues of largest modulus, one of each conjugate pair; none where none converge.

    They are those of a power of the matrix, which spreads the moduli: T³¹, or T²⁵⁵ where that does not suffice.
    A power loses the phases, so these are computed from T on the space that was found.
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
    """The rate of the slowest mode of Gradient-DD as a function of alpha and κ, or of alpha and ζ.

    parameter  "kappa" or "zeta"; the other one has its default
    """

    def __init__(self, task: Task, parameter: str, sampling: str = "trajectory") -> None:
        reduced = in_row_space(task)
        one, two = (MeanOperator(reduced, gradient_dd(parameter, v), sampling) for v in (1.0, 2.0))
        first, second = one.moves().toarray(), two.moves().toarray()
        self._still, self._slope = one.generator().toarray() - first, second - first
        self._base = first - self._slope

    def rates(self, alphas: ArrayLike, values: ArrayLike) -> Array:
        """Return 1 − |q| of the slowest mode at every pair of the two, broadcast; negative where the mean diverges."""
        alpha, value = np.broadcast_arrays(np.asarray(alphas, float), np.asarray(values, float))
        pairs = zip(alpha.ravel(), value.ravel(), strict=True)
        found = [contraction(np.linalg.eigvals(self._at(*pair)).astype(complex)).min() for pair in pairs]
        return np.array(found).reshape(alpha.shape)

    def edge(self, alphas: Array, rates: Array, value: float) -> float:
        """Return where the mean first becomes unstable, to a relative 1e-3: `rates` at `alphas` say between which two.

        0 where it is unstable at the first of them, inf where it is stable at all.
        """
        unstable = np.flatnonzero(rates <= 0)
        if not len(unstable) or unstable[0] == 0:
            return 0.0 if len(unstable) else inf
        stable, first = alphas[unstable[0] - 1], alphas[unstable[0]]
        return bisected(lambda alpha: bool(self.rates(alpha, value) > 0), stable, first, EDGE_PRECISION)

    def _at(self, alpha: float, value: float) -> Array:
        return self._still + alpha * (self._base + value * self._slope)


def gradient_dd(parameter: str, value: float) -> Setting:
    """Return Gradient-DD with alpha = 1 and one parameter, "kappa" or "zeta", at a value."""
    chosen: dict[str, Any] = {"alpha": 1.0, parameter: value}
    return LEARNERS["gradient_dd"].setting(**chosen)
