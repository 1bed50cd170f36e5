"""A task as arrays for the lane kernels: the weight rows of each outcome, its error, and the compiled sums of errors.

An outcome lists the *union* of the non-zeros of x and x', the non-zeros of x first, with both values. So a step reads
and writes every row once, as (w + w_x x) + w_next x', whether x and x' overlap or not.

    RMSVE(w)² = Σ_s d_s (x_s·w − V_s)²  =  rest + Σ_m (row_m·w − target_m)²

The rows of the error are √d_s x_s, one per state, or the rows of the triangular factor R of C = RᵀR if R has fewer
non-zeros:

    ‖Xw − V‖²_D  =  ‖R (w − w̃)‖² + ‖Xw̃ − V‖²_D,    where w̃ is the D-projection of V.

Both forms are exact identities and sums of squares. The second form is used only if C is so well conditioned that
it is accurate in floating point. The 396 states of the Boyan chain with p = 100 become 100 rows of two non-zeros.
"""

from collections import namedtuple
from functools import cache, lru_cache
from itertools import product
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

Rows = NDArray[np.uint64]
WIDEST = 8  # maximum number of rows of a step for which the loop over rows is unrolled
WORST_CONDITION = 1e2  # largest ratio of diagonal entries of R; beyond it the error loses digits
AT_ONCE = 4  # number of terms of the error in one pass over the lanes


class OutcomeRows(NamedTuple):
    """The weight rows of every outcome, `width` each; unused entries are spare rows after the p features, with value 0.

    Spare rows of the weights stay 0 while a lane is finite, because everything added to them is a product with 0.

    rows, x, x_next  (outcomes, width) flat: distinct rows, and the values of x and x' there
    u                (outcomes, width) flat: discount x' − x, so that δ = reward + u·w
    narrow           (outcomes,) whether the outcome uses only the first k rows
    reward, rho, rho_x, discount  (outcomes,)
    state, entered   (outcomes,) the state that the outcome leaves, and the state that it enters
    with_x, with_next  (outcomes,) products of the entered state's x with the outcome's x and x'; with more than
                     `WIDEST` rows 0, and `entered` is -1
    """

    rows: Rows
    x: Array
    x_next: Array
    u: Array
    narrow: NDArray[np.bool_]
    reward: Array
    rho: Array
    rho_x: Array
    discount: Array
    state: NDArray[np.int64]
    entered: NDArray[np.int64]
    with_x: Array
    with_next: Array


class Known(NamedTuple):
    """The numbers that all outcomes of a type share, which become constants of a kernel; None if they differ."""

    rho: float | None
    rho_x: float | None
    discount: float | None


class Shape(NamedTuple):
    """The shape of a kernel: k rows of x, `width` rows in all, one-hot or not, known numbers of both outcome types."""

    k: int
    width: int
    one_hot: bool
    narrow: Known | None
    wide: Known | None


Step = namedtuple("Step", "outcome first coming width B")
"""One step in a kernel: its outcome, where its rows and the next step's rows begin, their number, and B lanes."""


@lru_cache(maxsize=16)
def outcome_rows(task: Task, rho_mode: str, use_one_hot: bool = True) -> tuple[OutcomeRows, Shape]:
    """Return the table of a task and its shape; without `use_one_hot`, one-hot features are treated as sparse ones."""
    columns, values = padded(task.row_features)
    row, next_row, reward, discount, rho, _ = task.transitions
    rows, x, x_next, used = unite(columns[row], values[row], columns[next_row], values[next_row])
    k, width = values.shape[1], max(int(used.max()), 1)
    one_hot = use_one_hot and k == 1 and bool(np.all(values[:-1] == 1))
    width = max(width, 2) if one_hot else width
    wider = (0, 0), (0, max(0, width - rows.shape[1]))
    as_wide: list[Any] = [np.pad(array, wider)[:, :width] for array in (rows, x, x_next)]
    rows, x, x_next = as_wide
    spare = task.n_features + np.arange(width)
    rows = np.where(np.arange(width) < used[:, None], rows, spare).astype(np.uint64)
    entered = next_row if width <= WIDEST else np.full_like(next_row, -1)
    with_x, with_next = tabled_products(rows, x, x_next, np.searchsorted(row, entered), k)
    table = OutcomeRows(
        rows=rows.ravel(),
        x=x.ravel(),
        x_next=x_next.ravel(),
        u=(discount[:, None] * x_next - x).ravel(),
        narrow=used <= k,
        reward=reward,
        rho=rho,
        rho_x=rho if rho_mode == "R" else np.ones_like(rho),
        discount=discount,
        state=row,
        entered=entered,
        with_x=with_x,
        with_next=with_next,
    )
    return table, Shape(k, width, one_hot, known(table, table.narrow), known(table, ~table.narrow))


def tabled_products(rows: Rows, x: Array, x_next: Array, coming: NDArray[np.int64], k: int) -> tuple[Array, Array]:
    """Return the products of each outcome's x and x' with the x of its `coming` outcome, summed in kernel order."""
    with_x, with_next = np.zeros((2, len(x)))
    coming = np.minimum(coming, len(x) - 1)  # no step leaves a terminal state, so its products are not read
    for i, j in product(range(k), range(x.shape[1] if x.shape[1] <= WIDEST else 0)):
        shared = np.where(rows[coming, i] == rows[:, j], x[coming, i], 0.0)
        with_x += shared * x[:, j]
        with_next += shared * x_next[:, j]
    return with_x, with_next


def known(table: OutcomeRows, chosen: NDArray[np.bool_]) -> Known | None:
    """Return the numbers that the chosen outcomes share; None if none is chosen."""
    if not chosen.any():
        return None
    columns = [column[chosen] for column in (table.rho, table.rho_x, table.discount)]
    rho, rho_x, discount = (float(one[0]) if np.all(one == one[0]) else None for one in columns)
    return Known(rho, rho_x if rho is not None else None, discount)  # off-policy, both placements of ρ share a kernel


def unite(x_rows: Rows, x: Array, next_rows: Rows, x_next: Array) -> tuple[Rows, Array, Array, NDArray[np.int64]]:
    """Return rows, x and x' over the union of two supports, each (outcomes, 2k), and the number of used rows."""
    outcomes, k = x.shape
    if np.array_equal(x_rows, next_rows) and (x != 0).all():  # dense features: one support for all
        return x_rows, x, x_next, np.full(outcomes, k)
    rows = np.zeros((outcomes, 2 * k), np.uint64)
    left, right = (np.zeros((outcomes, 2 * k)) for _ in range(2))
    rows[:, :k], left[:, :k] = x_rows, x
    used = (x != 0).sum(axis=1)
    every = np.arange(outcomes)
    for j in range(k):
        missing = x_next[:, j] != 0
        for i in range(k):
            same = (next_rows[:, j] == x_rows[:, i]) & (x[:, i] != 0) & (x_next[:, j] != 0)
            right[same, i] = x_next[same, j]
            missing &= ~same
        place = every[missing], used[missing]
        rows[place], left[place], right[place] = next_rows[missing, j], 0.0, x_next[missing, j]
        used = used + missing
    return rows, left, right, used


# The error --------------------------------------------------------------------------------------------------------


class Measure(NamedTuple):
    """The error of a task: columns and values of the non-zeros of each row, (terms, k); targets (terms,); the rest."""

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
    """Return the form with the triangular factor of C, or None if it is not cheaper or C is ill-conditioned."""
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
    """Return the columns and the values of each row's non-zeros, (rows, k) each, padded with value 0 at the end."""
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
    """Sums of the errors of a block of lanes; every array is flat, with contiguous lanes.

    now       (lanes,) the latest error
    total     (lanes,) over all points;  last (lanes,) over the last 100;  curve (bins, lanes) over each bin
    diverged  (2, lanes) the step and the episode after which the error exceeded the bound; 0 if it never did
    """

    now: Array
    total: Array
    last: Array
    curve: Array
    diverged: NDArray[np.int64]


def no_errors(lanes: int, bins: int) -> Errors:
    """Return the sums before the first point."""
    now, total, last = (aligned((lanes,)) for _ in range(3))
    return Errors(now, total, last, aligned((bins * lanes,)), np.zeros(2 * lanes, np.int64))


def make_add_terms(k: int, count: int) -> Any:
    """Compile `add_terms`: now += (row_m·w − target_m)² for all lanes and for `count` terms of k numbers from m on."""
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
    """Return the number of lanes, a multiple of STRIP."""
    return np.uintp(errors.now.size) & WHOLE_STRIPS


@numba.njit(**INLINE)
def fold(errors, segments, s):
    """Turn the sums of squares of all lanes into errors, and add them to the sums that segment s belongs to."""
    use_widest_vectors()
    B, now, diverged, lost = lanes_of(errors), errors.now, errors.diverged, 0
    for lane in range(B):
        error = np.sqrt(now[lane])
        now[lane] = error if diverged[lane] == 0 else np.inf
        lost += 0 if now[lane] <= DIVERGED else 1  # so that NaN counts as divergence
    if lost:  # a separate loop, because the first loop would otherwise not be vectorised
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
    """Compute the errors of all lanes at the end of segment s, for rows of any length; `gap` (B,) is scratch."""
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
    """Compile `take_errors`, which replaces `take_any_errors` for rows of k non-zeros."""
    add_some, add_one = make_add_terms(k, AT_ONCE), make_add_terms(k, 1)
    step = np.uintp(AT_ONCE)

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

    return numba.njit(**INLINE)(named(take_errors, f"measures of {k}"))
