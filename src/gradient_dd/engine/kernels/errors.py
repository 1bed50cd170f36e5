"""Errors of lanes: the RMSVE of a task as few short rows, and its compiled sums.

    RMSVE(w)² = Σ_s d_s (x_s·w − V_s)²  =  rest + Σ_m (row_m·w − target_m)²

The rows are the states' own, √d_s x_s, or those of the triangular factor R of C = RᵀR if it has fewer non-zeros:

    ‖Xw − V‖²_D  =  ‖R (w − w̃)‖² + ‖Xw̃ − V‖²_D,    w̃ being the D-projection of V.

Both are exact identities, and sums of squares. The second is taken only where C is conditioned well enough for it to be
exact in floating point too. The 396 states of the Boyan chain with p = 100 become 100 rows of two non-zeros.

Where an error is taken, it is added to the sums of last100, mean_error and curve.
"""

from functools import cache, lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve_banded, cholesky_banded

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import DIVERGED
from gradient_dd.engine.kernels.compiler import (
    INLINE,
    WHOLE_STRIPS,
    compile_source,
    disjoint_accesses,
    named,
    use_widest_vectors,
)
from gradient_dd.engine.single import aligned
from gradient_dd.tasks import Task

WORST_CONDITION = 1e2  # of the diagonal of R; beyond it digits of the error are lost
AT_ONCE = 4  # terms of the error that are added in one pass over the lanes


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


class Errors(NamedTuple):
    """Sums of the errors of a block of lanes; every array flat, lanes contiguous.

    now       (lanes,) the error just taken
    total     (lanes,) over all points;  last (lanes,) over the last 100;  curve (bins, lanes) over each bin
    diverged  (2, lanes) the step and the episode after which the error left the bound; 0 if it did not
    """

    now: Array
    total: Array
    last: Array
    curve: Array
    diverged: NDArray[np.int64]


def no_errors(lanes: int, bins: int) -> Errors:
    """Return sums of nothing."""
    now, total, last = (aligned((lanes,)) for _ in range(3))
    return Errors(now, total, last, aligned((bins * lanes,)), np.zeros(2 * lanes, np.int64))


def make_add_terms(k: int, count: int) -> Any:
    """Compile `add_terms`: now += (row_m·w − target_m)² for all lanes, for `count` terms of k numbers from m on."""
    terms = [(i, j) for i in range(count) for j in range(k)]
    lines = [
        "def add_terms(w, now, measure, m, B):",
        "    use_widest_vectors()",
        f"    first = m * np.uintp({k})",
        *(f"    r{i}{j} = measure.rows[first + np.uintp({i * k + j})] * B" for i, j in terms),
        *(f"    v{i}{j} = measure.values[first + np.uintp({i * k + j})]" for i, j in terms),
        *(f"    t{i} = measure.targets[m + np.uintp({i})]" for i in range(count)),
        "    for lane in range(B):",
        "        error = load_now(now, lane)",
    ]
    for i in range(count):
        lines.append(f"        gap = {' + '.join(f'load_w(w, r{i}{j} + lane) * v{i}{j}' for j in range(k))} - t{i}")
        lines.append("        error += gap * gap")
    source = "\n".join([*lines, "        store_now(now, lane, error)"])
    names = {"use_widest_vectors": use_widest_vectors, "np": np} | disjoint_accesses(["w", "now"])
    return numba.njit(compile_source(source, names), **INLINE)


@numba.njit(**INLINE)
def lanes_of(errors):
    """Return how many lanes there are, a multiple of STRIP."""
    return np.uintp(errors.now.size) & WHOLE_STRIPS


@numba.njit(**INLINE)
def fold(errors, segments, s):
    """Turn the sums of squares of all lanes into errors, and add them to what they belong to in segment s."""
    use_widest_vectors()
    B, now, diverged, lost = lanes_of(errors), errors.now, errors.diverged, 0
    for lane in range(B):
        error = np.sqrt(now[lane])
        now[lane] = error if diverged[lane] == 0 else np.inf
        lost += 0 if now[lane] <= DIVERGED else 1  # written so that NaN counts as divergence
    if lost:  # apart, because a loop with it would not become vector code
        for lane in range(B):
            if not now[lane] <= DIVERGED:
                if diverged[lane] == 0:
                    diverged[lane] = segments.step[s]
                    diverged[B + lane] = segments.episode[s]
                now[lane] = np.inf
    if segments.point[s] >= 0:
        first = np.uintp(segments.point[s]) * B
        for lane in range(B):
            errors.total[lane] += now[lane]
            errors.curve[first + lane] += now[lane]
    if segments.last[s]:
        for lane in range(B):
            errors.last[lane] += now[lane]


@numba.njit(**INLINE)
def take_any_errors(w, measure, errors, gap, segments, s):
    """Take the errors of all lanes at the end of segment s, for rows with any number of non-zeros.

    `gap` (B,) is scratch.
    """
    use_widest_vectors()
    B, now, terms = lanes_of(errors), errors.now, np.uintp(measure.targets.size)
    K = np.uintp(measure.rows.size) // terms
    for lane in range(B):
        now[lane] = measure.rest
    for m in range(terms):
        for lane in range(B):
            gap[lane] = 0.0
        for j in range(m * K, (m + np.uintp(1)) * K):
            begin, value = measure.rows[j] * B, measure.values[j]
            for lane in range(B):
                gap[lane] += w[begin + lane] * value
        for lane in range(B):
            off = gap[lane] - measure.targets[m]
            now[lane] += off * off
    fold(errors, segments, s)


@cache
def make_take_errors(k: int) -> Any:
    """Compile `take_errors`, which takes the errors of all lanes at the end of segment s, for rows of k non-zeros."""
    add_some, add_one = make_add_terms(k, AT_ONCE), make_add_terms(k, 1)
    step = np.uintp(AT_ONCE)

    @numba.njit(**INLINE)
    @named(f"measures of {k}")
    def take_errors(w, measure, errors, segments, s):
        use_widest_vectors()
        B, now = lanes_of(errors), errors.now
        for lane in range(B):
            now[lane] = measure.rest
        terms = np.uintp(measure.targets.size)
        whole = terms - terms % step
        for m in range(np.uintp(0), whole, step):
            add_some(w, now, measure, m, B)
        for m in range(whole, terms):
            add_one(w, now, measure, m, B)
        fold(errors, segments, s)

    return take_errors
