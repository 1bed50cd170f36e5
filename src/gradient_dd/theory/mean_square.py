"""Stability in mean square: for which step sizes the variance of a learner's weights stays bounded.

With e = z − z*, one step is e ← M_o e + noise, o being the outcome (`sample_maps`). The second moments by group,
S_s = E[e eᵀ 1{s}], obey a linear recursion as the means do (`dynamics`). Its homogeneous part is

    (T S)_s' = Σ_{o: s→s'} q_o M_o S_s M_oᵀ

Below a spectral radius of 1 the second moments converge, to the noise there is; above, they grow without bound. By
Jensen's inequality the radius is at least the square of the mean's: what is stable in mean square is stable in the
mean, and the converse does not hold. In between, the mean converges while runs grow, in directions that cancel:
Gradient-DD on the walk of 10 states has a stable mean up to α = 0.936, a stable mean square up to 0.551, and all runs
at 0.6 diverge.

T keeps positive semidefinite matrices positive semidefinite. Two things follow, which everything here rests on:

  - the radius is itself an eigenvalue, so for any σ above it, it is the eigenvalue of T nearest to σ;
  - the radius is below σ exactly where the solution of σ S − T S = I is positive definite.

Only one half of the symmetric S is kept: groups × size (size + 1) / 2 unknowns, size being up to 3 p.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, SuperLU, eigs, splu

from gradient_dd.arrays import Array
from gradient_dd.engine.trajectories import SAMPLINGS
from gradient_dd.errors import Unquoted, bad_request, one_of
from gradient_dd.learners import Rule, Setting, find
from gradient_dd.tasks import Task
from gradient_dd.theory.dynamics import groups
from gradient_dd.theory.sample_maps import SampleMaps
from gradient_dd.theory.stability import SPAN, contraction, in_row_space, largest_stable, rate_of_alpha

MOST_ENTRIES = 8_000_000  # of T: a radius takes 4 s there, a scan about a minute
COARSE = 2.0  # between the step sizes of a scan
PRECISION = 0.01  # relative, of the step size found
TINY = 20  # unknowns up to which all eigenvalues are computed
NEAR = 0.01  # the first σ − 1 tried beyond 1


class SquareOperator:
    """T as a sparse matrix on the halves of the symmetric blocks S_s, one group after the other."""

    def __init__(self, task: Task, setting: Setting, sampling: str = "trajectory") -> None:
        one_of("'sampling'", sampling, SAMPLINGS)
        self.maps = SampleMaps(task, setting)
        group, _, self._after = groups(task, sampling)
        outcome = np.arange(len(group))
        self._drawn = sp.csr_matrix((np.ones(len(group)), (outcome, group)), shape=self._after.shape[::-1])
        size = self.maps.size
        self._check_size()
        row, column = np.triu_indices(size)
        half = np.empty((size, size), dtype=int)
        half[row, column] = half[column, row] = np.arange(len(row))
        self._take = sp.identity(size**2, format="csr")[row * size + column]
        self._give = sp.csr_matrix((np.ones(size**2), (np.arange(size**2), half.ravel())))

    @property
    def unknowns(self) -> int:
        """How many entries the halves of S have in all."""
        return self._after.shape[0] * self.maps.size * (self.maps.size + 1) // 2

    def generator(self, factor: float = 1.0) -> sp.csc_matrix:
        """Return T − I, alpha being multiplied by `factor`; what alpha multiplies is never added to 1."""
        carried = self._halved(sp.kron(self.maps.carried, self.maps.carried))
        still = sp.kron(self._after @ self._drawn, carried) - sp.identity(self.unknowns)
        moves = sp.block_diag([self._halved(block) for block in self._moves(factor)], "csr")
        each = sp.identity(self._take.shape[0])
        return sp.csc_matrix(still + sp.kron(self._after, each) @ moves @ sp.kron(self._drawn, each))

    def is_stable(self, factor: float = 1.0) -> bool:
        """Return whether the radius is below 1."""
        return self._solver(self.generator(factor), 0.0) is not None

    def rate(self, factor: float = 1.0) -> float:
        """Return 1 − the radius; negative where the second moments grow."""
        generator, beyond = self.generator(factor), 0.0
        if self.unknowns <= TINY:
            return float(contraction(np.linalg.eigvals(generator.toarray()).astype(complex)).min())
        while (solver := self._solver(generator, beyond)) is None:
            beyond = max(2 * beyond, NEAR)
        inverse = LinearOperator(generator.shape, solver.solve, dtype=float)
        largest = eigs(inverse, 1, which="LM", v0=self._identity, ncv=min(self.unknowns, 40), return_eigenvectors=False)
        return float(1 / largest[0].real) - beyond

    @property
    def _identity(self) -> Array:
        """The halves of S_s = I for every group."""
        return np.tile(self._take @ np.eye(self.maps.size).ravel(), self._after.shape[0])

    def _solver(self, generator: sp.csc_matrix, beyond: float) -> SuperLU | None:
        """Return the factors of σ − T, σ = 1 + beyond, where the radius is below σ; else None."""
        try:
            solver = splu(sp.csc_matrix(beyond * sp.identity(self.unknowns) - generator))
        except RuntimeError:  # singular: σ is an eigenvalue
            return None
        halves = solver.solve(self._identity).reshape(self._after.shape[0], -1)
        blocks = (self._give @ halves.T).T.reshape(-1, self.maps.size, self.maps.size)
        return solver if np.isfinite(blocks).all() and np.linalg.eigvalsh(blocks).min() > 0 else None

    def _halved(self, block: sp.spmatrix) -> sp.csr_matrix:
        return sp.csr_matrix(self._take @ block @ self._give)

    def _moves(self, factor: float) -> list[sp.csr_matrix]:
        """Return M_o ⊗ M_o − I' ⊗ I' of every outcome: D ⊗ I' + I' ⊗ D + D ⊗ D, D being M_o − I'."""
        carried = self.maps.carried
        return [sp.kron(D, carried) + sp.kron(carried, D) + sp.kron(D, D) for D in self.maps.changes(factor)]

    def _check_size(self) -> None:
        """Raise where T is so large that a scan of step sizes would take more than about a minute."""
        entries = float(self.unknowns)
        if entries <= MOST_ENTRIES:
            each = np.array([(D.nnz + self.maps.size) ** 2 / 2 for D in self.maps.changes(1.0)])
            entries = min(float(self._after.getnnz(axis=0) @ each), entries**2)
        if entries > MOST_ENTRIES:
            got = Unquoted(f"about {entries:.1e} for {self.maps.setting.rule.name} on {self.maps.task}")
            rule = f"have at most {MOST_ENTRIES:.0e} entries"
            raise bad_request("The operator of the second moments", rule, got, "Take fewer states or features.")


def powers_of_alpha(
    still: sp.csc_matrix, once: sp.csc_matrix, twice: sp.csc_matrix
) -> tuple[sp.csc_matrix, sp.csc_matrix]:
    """Return what alpha and alpha² multiply in a quadratic T − I, given at alpha 0, 1 and 2."""
    square = (twice - 2 * once + still) / 2
    return once - still - square, square


def mean_square_radius(task: Task, setting: Setting, sampling: str = "trajectory") -> float:
    """Return the spectral radius of T in the row space of X; above 1 the variance of the weights grows."""
    return 1 - SquareOperator(in_row_space(task), setting, sampling).rate()


def largest_safe_alpha(task: Task, learner: str | Rule, sampling: str = "trajectory", **parameters: Any) -> float:
    """Return the step size at which the mean square first becomes unstable, to a relative 1 %.

    0 where it is unstable however small the step size, inf where it is stable however large. Step sizes are scanned
    upwards by factors of 2, then bisected, so an unstable window narrower than that can be missed.
    """
    _, scale = rate_of_alpha(task, learner, sampling, parameters)
    operator = SquareOperator(in_row_space(task), find(learner).setting(**parameters, alpha=1.0), sampling)
    low, high = (scale * end for end in SPAN)
    return largest_stable(operator.is_stable, low, high, COARSE, PRECISION)
