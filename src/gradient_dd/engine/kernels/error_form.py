"""The error of a task as few short rows, for the lane engine.

    RMSVE(w)² = Σ_s d_s (x_s·w − V_s)²  =  rest + Σ_m (row_m·w − target_m)²

The rows are the states' own, √d_s x_s, or those of the triangular factor R of C = RᵀR if it has fewer non-zeros:

    ‖Xw − V‖²_D  =  ‖R (w − w̃)‖² + ‖Xw̃ − V‖²_D,    w̃ being the D-projection of V.

Both are exact identities, and sums of squares. The second is taken only where C is conditioned well enough for it to be
exact in floating point too. The 396 states of the Boyan chain with
p = 100 become 100 rows of two non-zeros.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded

from gradient_dd.arrays import Array
from gradient_dd.tasks import Task

WORST_CONDITION = 1e2  # of the diagonal of R; beyond it digits of the error are lost


class Measure(NamedTuple):
    """Where each row is not zero and its values there, both (terms, k) padded with zeros; targets; the rest."""

    rows: NDArray[np.uint64]
    values: Array
    targets: Array
    rest: float


@lru_cache(maxsize=16)
def measure(task: Task) -> Measure:
    """Return the cheapest exact form of a task's error."""
    root = np.sqrt(task.visits)
    states = sp.csr_matrix(sp.diags(root) @ task.sparse_features)
    return triangular(task, states) or Measure(*padded(states), root * task.true_values, 0.0)


def triangular(task: Task, states: sp.csr_matrix) -> Measure | None:
    """Return the form with the triangular factor of C, or None where it is no cheaper or C is singular."""
    C = sp.coo_matrix(states.T @ states)
    width = int(np.abs(C.row - C.col).max(initial=0))
    p = task.n_features
    if p * (width + 1) >= states.nnz:
        return None
    band = np.zeros((width + 1, p))
    upper = C.col >= C.row
    band[width + C.row[upper] - C.col[upper], C.col[upper]] = C.data[upper]
    try:
        factor = cholesky_banded(band)
    except LinAlgError:
        return None
    if factor[-1].max() > WORST_CONDITION * factor[-1].min():
        return None
    best = cho_solve_banded((factor, False), states.T @ (np.sqrt(task.visits) * task.true_values))
    R = sp.csr_matrix(sp.dia_matrix((factor, np.arange(width, -1, -1)), shape=(p, p)))
    return Measure(*padded(R), R @ best, task.rmsve(best) ** 2)


def padded(matrix: sp.csr_matrix) -> tuple[NDArray[np.uint64], Array]:
    """Return the columns and the values of each row's non-zeros, (rows, k); spare places stand last, with value 0."""
    matrix = matrix.copy()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    counts = np.diff(matrix.indptr)
    place = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], counts)
    line = np.repeat(np.arange(matrix.shape[0]), counts)
    columns = np.zeros((matrix.shape[0], max(1, counts.max(initial=1))), np.uint64)
    values = np.zeros(columns.shape)
    columns[line, place], values[line, place] = matrix.indices, matrix.data
    return columns, values
