"""Stability in mean square: the step sizes for which the variance of a learner's weights stays bounded.

With e = z − z*, a step is e ← M_o e + noise for outcome o (`dynamics`). The second moments by group,
S_s = E[e eᵀ 1{s}], obey a linear recursion whose homogeneous part is

    (T S)_s' = Σ_{o: s→s'} q_o M_o S_s M_oᵀ

Below a spectral radius of 1 the second moments converge; above, they grow without bound. By Jensen's inequality the
radius is at least the square of the mean's, so stability in mean square implies stability in the mean, but not
conversely. In between, the mean converges while runs grow in directions that cancel: Gradient-DD on the walk of 10
states has a stable mean up to α = 0.936 and a stable mean square up to 0.551, and all runs at 0.6 diverge.

T maps positive semidefinite matrices to such matrices, so its radius is below 1 exactly if the solution of S − T S = I
is positive definite. Only half of the symmetric S is stored: groups × size (size + 1) / 2 unknowns, with size up to
3 p. If the rule is linear in alpha, M_o = I' + αD_o, and the three parts of

    T − I = (I' ⊗ I' − I) + α (D ⊗ I' + I' ⊗ D) + α² D ⊗ D     summed over outcomes

are computed once. The limits do not tell which alpha is best: that depends on noise and on the length of a run, and
`advice` finds it with pilot runs.
"""

from collections.abc import Callable
from contextlib import suppress
from math import inf
from time import thread_time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from gradient_dd.engine.trajectories import SAMPLINGS
from gradient_dd.errors import BadRequestError, bad_request, one_of
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task
from gradient_dd.theory.arguments import checked
from gradient_dd.theory.dynamics import SampleMaps, groups
from gradient_dd.theory.stability import SMALL, in_row_space, largest_stable, rate_of_alpha

MOST_UNKNOWNS = 5_000  # of the second moments: one alpha takes up to a second there
MOST_ENTRIES = 8_000_000  # of T: a scan of step sizes takes about a minute there
LEAST, MOST = 1e-6, 1e6  # where the search for a limit ends, in units of one over the largest drift
COARSE, PRECISION = 1.5, 0.01  # of that search


class SquareOperator:
    """T as a sparse matrix on the halves of the symmetric blocks S_s, one group after the other.

    still, linear, square  the three parts of T − I; alpha = 1 is the step size of the setting
    """

    def __init__(self, task: Task, setting: Setting, sampling: str = "trajectory") -> None:
        one_of("'sampling'", sampling, SAMPLINGS)
        self.maps = SampleMaps(task, setting)
        group, _, self._after = groups(task, sampling)
        outcome = np.arange(len(group))
        self._drawn = sp.csr_matrix((np.ones(len(group)), (outcome, group)), shape=self._after.shape[::-1])
        size = self.maps.size
        one, two = self.maps.coefficients(1.0), self.maps.coefficients(2.0)
        is_linear = all(np.allclose(b, 2 * a, rtol=1e-12, atol=0.0) for a, b in zip(one, two, strict=True))
        if not is_linear or self._entries() > MOST_ENTRIES:
            raise bad_request("The operator of the second moments", "be small, and its rule linear in alpha", setting)
        row, column = np.triu_indices(size)
        half = np.empty((size, size), dtype=int)
        half[row, column] = half[column, row] = np.arange(len(row))
        self._take = sp.identity(size**2, format="csr")[row * size + column]
        self._give = sp.csr_matrix((np.ones(size**2), (np.arange(size**2), half.ravel())))
        carried, moves = self.maps.carried, self.maps.changes()  # I' and D = M_o − I' of every outcome
        still = sp.kron(self._after @ self._drawn, self._halved(sp.kron(carried, carried)))
        self.still = sp.csc_matrix(still - sp.identity(self.unknowns))
        self.linear = self._sum([sp.kron(D, carried) + sp.kron(carried, D) for D in moves])
        self.square = self._sum([sp.kron(D, D) for D in moves])

    @property
    def unknowns(self) -> int:
        """Number of entries of the halves of S."""
        return self._after.shape[0] * self.maps.size * (self.maps.size + 1) // 2

    def generator(self, factor: float = 1.0) -> sp.csc_matrix:
        """Return T − I, with alpha multiplied by `factor`."""
        return sp.csc_matrix(self.still + factor * self.linear + factor**2 * self.square)

    def is_stable(self, factor: float = 1.0) -> bool:
        """Return whether the radius is below 1, with alpha multiplied by `factor`."""
        identity = np.tile(self._take @ np.eye(self.maps.size).ravel(), self._after.shape[0])
        try:
            halves = splu(sp.csc_matrix(-self.generator(factor))).solve(identity)
        except RuntimeError:  # singular: 1 is an eigenvalue
            return False
        blocks = (self._give @ halves.reshape(self._after.shape[0], -1).T).T
        blocks = blocks.reshape(-1, self.maps.size, self.maps.size)
        return bool(np.isfinite(blocks).all() and np.linalg.eigvalsh(blocks).min() > 0)

    def _sum(self, blocks: list[sp.spmatrix]) -> sp.csc_matrix:
        """Return Σ_o q_o block_o from the group of each outcome to the groups that follow."""
        moves = sp.block_diag([self._halved(block) for block in blocks], "csr")
        each = sp.identity(self._take.shape[0])
        return sp.csc_matrix(sp.kron(self._after, each) @ moves @ sp.kron(self._drawn, each))

    def _halved(self, block: sp.spmatrix) -> sp.csr_matrix:
        return sp.csr_matrix(self._take @ block @ self._give)

    def _entries(self) -> float:
        """Return the approximate number of entries of T."""
        if self.unknowns > MOST_ENTRIES:
            return float(self.unknowns)
        each = np.array([(D.nnz + self.maps.size) ** 2 / 2 for D in self.maps.changes(1.0)])
        return min(float(self._after.getnnz(axis=0) @ each), float(self.unknowns) ** 2)


class Limits(NamedTuple):
    """Limits of alpha for a learner with its other parameters; None if they cannot be computed quickly.

    stable  the largest alpha at which the mean converges (`stability`)
    safe    the largest alpha at which the mean square converges too
    rate    the rate of the slowest mode of the mean, at the alpha of the setting
    """

    stable: float | None
    safe: float | None
    rate: float | None


@checked
def exact_limits(task: Task, setting: Setting, sampling: str = "trajectory", deadline: float = inf) -> Limits:
    """Return the limits for the learner of a setting and its other parameters, to a relative 1 %.

    Limits that would take minutes are None. `deadline` is a time of `thread_time` at which the search ends.
    """
    rule, alpha = setting.rule, setting.values["alpha"]
    others: dict[str, Any] = {**setting.values, "rho_mode": setting.rho_mode}
    del others["alpha"]
    reduced = in_row_space(task)
    parts = 1 + rule.has_eta + ("x_change" in rule.arguments)
    blocks = 1 if sampling == "iid" else task.n_states
    if blocks * parts * reduced.n_features > SMALL or thread_time() > deadline:
        return Limits(None, None, None)
    try:
        rate_at, scale = rate_of_alpha(task, rule, sampling, others)
    except BadRequestError:  # the steps of the rule are not affine
        return Limits(None, None, None)
    stable = limit(lambda alpha: rate_at(alpha) > 0, alpha, scale, deadline)
    safe, size = None, parts * reduced.n_features
    if blocks * size * (size + 1) // 2 <= MOST_UNKNOWNS and thread_time() <= deadline:
        with suppress(BadRequestError):  # the operator would be too large
            operator = SquareOperator(reduced, rule.setting(**others, alpha=1.0), sampling)
            safe = limit(operator.is_stable, alpha, scale, deadline)
    return Limits(stable, safe, rate_at(alpha))


def limit(is_stable: Callable[[float], bool], alpha: float, scale: float, deadline: float = inf) -> float | None:
    """Return the largest stable step size to a relative 1 %, searched upwards from alpha or a smaller step size.

    0 if none is stable, inf if all are, None after the deadline.
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
        return largest_stable(in_time, alpha, MOST * scale, COARSE, PRECISION)
    except TimeoutError:
        return None
