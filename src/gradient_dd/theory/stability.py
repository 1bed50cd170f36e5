"""Stability: the step sizes at which a learner converges in the mean and in mean square, and its rate.

The mean obeys m' = T m + …, where T is the operator of independent draws or of trajectories (`dynamics`). With q the
eigenvalues of T,

    spectral radius  max |q|          the mean converges if it is below 1
    rate             1 − max |q|      the decay of the slowest mode per step; negative if the mean diverges

If T is defective (tabular TD with alpha = 1), no solver gives more than two or three digits. If the features are
linearly dependent (Baird: p = N + 1 weights for N states), w moves only in the row space of X. The rest of w is
constant, does not affect the values, and is omitted, so its eigenvalues of 1 do not count.

A rate may be 1e-8 or less, so it is never computed as 1 minus a number: g = q − 1 are the eigenvalues of T − I, and
1 − |q| = −(2 Re g + |g|²)/(1 + |q|).

In mean square: with e = z − z*, a step is e ← M_o e + noise for outcome o. The second moments by group,
S_s = E[e eᵀ 1{s}], obey a linear recursion whose homogeneous part is

    (T S)_s' = Σ_{o: s→s'} q_o M_o S_s M_oᵀ

If its spectral radius is below 1, the second moments converge; above 1, they grow without bound. By Jensen's inequality
the radius is at least the squared radius of the mean, so stability in mean square implies stability in the mean, but
not conversely. In between, the mean converges while runs grow in directions that cancel: Gradient-DD on the walk of 10
states has a stable mean up to α = 0.936 and a stable mean square up to 0.551, and all runs at 0.6 diverge.

T preserves positive semidefiniteness, so its radius is below 1 exactly if the solution of S − T S = I is positive
definite. Only half of the symmetric S is stored: groups × size (size + 1) / 2 unknowns, with size up to 3 p. If the
rule is linear in alpha, M_o = I' + αD_o, and the three parts of

    T − I = (I' ⊗ I' − I) + α (D ⊗ I' + I' ⊗ D) + α² D ⊗ D     summed over outcomes

are computed once. The limits do not determine the best alpha, which depends on the noise and on the length of a run;
`advice` finds it with pilot runs.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf, sqrt
from time import thread_time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigs, splu

from gradient_dd.arrays import Array
from gradient_dd.errors import BadRequestError, bad_request
from gradient_dd.learners import LEARNERS, Rule, Setting, find
from gradient_dd.tasks import Task
from gradient_dd.theory.dynamics import MeanOperator, SampleMaps, checked, groups

Complex = NDArray[np.complex128]

SMALL = 400  # unknowns up to which all eigenvalues are computed
COUNT = 8  # eigenvalues computed for larger operators, near 1 and of largest modulus
SPAN = (1e-5, 1e4)  # bounds of the scan for the largest stable alpha, in units of one over the largest drift
PER_DECADE = 8  # step sizes of the scan
PRECISION = 5e-7  # relative precision of the largest stable alpha
EDGE_PRECISION = 1e-3  # relative precision of an edge of a `RatePlane`
MOST_UNKNOWNS = 5_000  # maximum number of second moments; each alpha then takes up to a second
MOST_ENTRIES = 8_000_000  # maximum number of entries of T; a scan of step sizes then takes about a minute
LEAST, MOST = 1e-6, 1e6  # bounds of the search for `Limits`, in units of one over the largest drift
LIMIT_STEP, LIMIT_PRECISION = 1.5, 0.01  # step and relative precision of that search


@checked
def rate(task: Task, setting: Setting, sampling: str = "trajectory") -> float:
    """Return the rate 1 − |q| of the slowest mode; negative if the mean diverges."""
    return operator_rate(MeanOperator(in_row_space(task), setting, sampling))


@checked
def largest_stable_alpha(task: Task, learner: str | Rule, sampling: str = "trajectory", **parameters: Any) -> float:
    """Return the step size at which the mean first becomes unstable, to a relative 1e-6.

    The result is 0 if the smallest scanned step size is unstable, and inf if all scanned step sizes are stable. The
    scan has eight step sizes per decade and is followed by bisection, so a narrower unstable window can be missed.
    """
    rate_at, scale = rate_of_alpha(task, learner, sampling, parameters)
    low, high = (scale * end for end in SPAN)
    return largest_stable(lambda alpha: rate_at(alpha) > 0, low, high, 10 ** (1 / PER_DECADE), PRECISION)


def rate_of_alpha(
    task: Task, learner: str | Rule, sampling: str, parameters: dict[str, Any]
) -> tuple[Callable[[float], float], float]:
    """Return the rate as a function of alpha, and one over the largest drift: the scale of alpha."""
    if "alpha" in parameters:
        raise bad_request("'alpha'", "be omitted, because it is searched", parameters["alpha"])
    reduced, setting = in_row_space(task), find(learner).setting(**parameters, alpha=1.0)
    drift = MeanOperator(reduced, setting, "iid").moves().toarray()
    operator = MeanOperator(reduced, setting, sampling)
    return lambda alpha: operator_rate(operator, alpha), 1 / float(np.abs(np.linalg.eigvals(drift)).max())


def largest_stable(is_stable: Callable[[float], bool], low: float, high: float, step: float, precision: float) -> float:
    """Return the largest stable number between `low` and `high`, scanned by factors of `step`.

    The result is 0 if `low` is unstable, inf if `high` is stable. Unstable windows narrower than a step can be missed.
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
    """Return the largest number found stable by bisection between a stable and an unstable number."""
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
        return slowest(generator.toarray())
    # Slow modes cluster near q = 1, and only a solver with a shift near 1 separates them. The largest modes elsewhere
    # are approximated first, and each approximation is then a shift of the solver.
    modes = [eigenvalues_near(generator, 0.0, COUNT), *(eigenvalues_near(generator, place, 1) for place in places)]
    return float(contraction(np.concatenate(modes)).min())


def slowest(generator: Array) -> float:
    """Return 1 − max |q| of a dense T − I."""
    return float(contraction(np.linalg.eigvals(generator).astype(complex)).min())


def contraction(g: Complex) -> Array:
    """Return 1 − |q| for g = q − 1, without cancellation."""
    return -(2 * g.real + np.abs(g) ** 2) / (1 + np.abs(1 + g))


def eigenvalues_near(generator: sp.csr_matrix, place: complex, count: int) -> Complex:
    """Return at most `count` converged eigenvalues nearest to `place`, by shift and invert."""
    size = generator.shape[0]
    shift = place + 1e-13  # `place` may be an eigenvalue
    solve = splu(sp.csc_matrix(generator - shift * sp.identity(size))).solve
    return shift + 1 / eigenvalues(LinearOperator(generator.shape, solve, dtype=type(shift)), count, tolerance=0)[0]


def largest_in_modulus(matrix: sp.csr_matrix) -> Complex:
    """Return approximate eigenvalues of largest modulus, one of each conjugate pair; none if none converge.

    A power of the matrix spreads the moduli: T³¹, then T²⁵⁵, then T itself until the solver converges. A power loses
    the phases, so they are computed from T on the space of its eigenvectors.
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
    first = np.random.default_rng(0).standard_normal(size)  # deterministic
    try:
        return eigs(operator, count, which="LM", v0=first, ncv=min(size, 60), tol=tolerance, maxiter=20)
    except ArpackNoConvergence as stopped:
        return stopped.eigenvalues, stopped.eigenvectors


class RatePlane:
    """The rate of the slowest mode of Gradient-DD as a function of alpha and v, which is κ or ζ, for many points.

    T − I = S + α (K₀ + v K₁), so the matrices are computed once, and each point costs only its eigenvalues. `parameter`
    is "kappa" or "zeta"; the other parameter has its default.
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
        found = [slowest(self._still + a * (self._base + v * self._slope)) for a, v in pairs]
        return np.array(found).reshape(alpha.shape)

    def edge(self, alphas: Array, rates: Array, value: float) -> float:
        """Return the alpha at which the mean first becomes unstable, to a relative 1e-3, from the `rates` at `alphas`.

        The result is 0 if the mean is unstable at the first alpha, and inf if it is stable at all of them.
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


class SquareOperator:
    """The operator T as a sparse matrix on the halves of the symmetric blocks S_s, group by group.

    still, linear, square  the three parts of T − I; alpha = 1 is the step size of the setting
    unknowns               the number of entries of the halves of S
    """

    def __init__(self, task: Task, setting: Setting, sampling: str = "trajectory") -> None:
        self.maps = maps = SampleMaps(task, setting)
        group, _, self._after = groups(task, sampling)
        size, (count, outcomes) = maps.size, self._after.shape
        self.unknowns = count * size * (size + 1) // 2
        one, two = maps.coefficients(1.0), maps.coefficients(2.0)
        is_linear = all(np.allclose(b, 2 * a, rtol=1e-12, atol=0.0) for a, b in zip(one, two, strict=True))
        moves = maps.changes() if self.unknowns <= MOST_ENTRIES else []  # D = M_o − I' of every outcome
        each = np.array([(D.nnz + size) ** 2 / 2 for D in moves])  # approximate entries of each outcome
        entries = min(self._after.getnnz(axis=0) @ each, float(self.unknowns) ** 2) if moves else inf
        if not is_linear or entries > MOST_ENTRIES:
            raise bad_request("The operator of the second moments", "be small, and its rule linear in alpha", setting)
        drawn = sp.csr_matrix((np.ones(outcomes), (np.arange(outcomes), group)), shape=(outcomes, count))
        row, column = np.triu_indices(size)
        half = np.empty((size, size), dtype=int)
        half[row, column] = half[column, row] = np.arange(len(row))
        self._take = sp.identity(size**2, format="csr")[row * size + column]
        self._give = sp.csr_matrix((np.ones(size**2), (np.arange(size**2), half.ravel())))

        def halved(block: sp.spmatrix) -> sp.csr_matrix:
            return sp.csr_matrix(self._take @ block @ self._give)

        def total(blocks: list[sp.spmatrix]) -> sp.csc_matrix:
            """Return Σ_o q_o block_o from the group of each outcome to the groups that follow."""
            lifted = sp.identity(len(row))
            between = sp.block_diag([halved(block) for block in blocks], "csr")
            return sp.csc_matrix(sp.kron(self._after, lifted) @ between @ sp.kron(drawn, lifted))

        carried = maps.carried
        still = sp.kron(self._after @ drawn, halved(sp.kron(carried, carried)))
        self.still = sp.csc_matrix(still - sp.identity(self.unknowns))
        self.linear = total([sp.kron(D, carried) + sp.kron(carried, D) for D in moves])
        self.square = total([sp.kron(D, D) for D in moves])

    def generator(self, factor: float = 1.0) -> sp.csc_matrix:
        """Return T − I, with alpha multiplied by `factor`."""
        return sp.csc_matrix(self.still + factor * self.linear + factor**2 * self.square)

    def is_stable(self, factor: float = 1.0) -> bool:
        """Return whether the spectral radius is below 1, with alpha multiplied by `factor`."""
        size, count = self.maps.size, self._after.shape[0]
        identity = np.tile(self._take @ np.eye(size).ravel(), count)
        try:
            halves = splu(sp.csc_matrix(-self.generator(factor))).solve(identity)
        except RuntimeError:  # singular: 1 is an eigenvalue
            return False
        blocks = (self._give @ halves.reshape(count, -1).T).T.reshape(-1, size, size)
        return bool(np.isfinite(blocks).all() and np.linalg.eigvalsh(blocks).min() > 0)


class Limits(NamedTuple):
    """Limits of alpha for a learner at given other parameters; None if they cannot be computed quickly.

    stable  the largest alpha at which the mean converges
    safe    the largest alpha at which the mean square converges too
    rate    the rate of the slowest mode of the mean, at the alpha of the setting
    """

    stable: float | None
    safe: float | None
    rate: float | None


@checked
def exact_limits(task: Task, setting: Setting, sampling: str = "trajectory", deadline: float = inf) -> Limits:
    """Return the limits of alpha for the learner and the other parameters of a setting, to a relative 1 %.

    Limits are None if they take too long or the rule is not affine. The search ends at `deadline`, a `thread_time`.
    """
    rule, alpha = setting.rule, setting.values["alpha"]
    others: dict[str, Any] = {**setting.values, "rho_mode": setting.rho_mode}
    del others["alpha"]
    reduced = in_row_space(task)
    size = (1 + rule.has_eta + ("x_change" in rule.arguments)) * reduced.n_features
    blocks = 1 if sampling == "iid" else task.n_states
    if blocks * size > SMALL or thread_time() > deadline:
        return Limits(None, None, None)
    try:
        rate_at, scale = rate_of_alpha(task, rule, sampling, others)
    except BadRequestError:  # the steps of the rule are not affine
        return Limits(None, None, None)
    stable, safe = limit(lambda alpha: rate_at(alpha) > 0, alpha, scale, deadline), None
    if blocks * size * (size + 1) // 2 <= MOST_UNKNOWNS and thread_time() <= deadline:
        with suppress(BadRequestError):  # the operator would be too large
            operator = SquareOperator(reduced, rule.setting(**others, alpha=1.0), sampling)
            safe = limit(operator.is_stable, alpha, scale, deadline)
    return Limits(stable, safe, rate_at(alpha))


def limit(is_stable: Callable[[float], bool], alpha: float, scale: float, deadline: float = inf) -> float | None:
    """Return the largest stable step size to a relative 1 %, searched upwards from alpha or a smaller step size.

    The result is 0 if no step size is stable, inf if all are, None after the deadline.
    """

    def in_time(alpha: float) -> bool:
        if thread_time() > deadline:
            raise TimeoutError
        return is_stable(alpha)

    try:
        while not in_time(alpha):
            alpha /= 10
            if alpha < LEAST * scale:
                return 0.0
        return largest_stable(in_time, alpha, MOST * scale, LIMIT_STEP, LIMIT_PRECISION)
    except TimeoutError:
        return None
