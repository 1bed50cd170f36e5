"""The weight rows that each outcome of a task reads and writes, as the lane kernels want them.

An outcome lists the *union* of the non-zeros of x and x', x's first, with both values. So every row is read once and
written once, as (w + w_x x) + w_next x', which is right whether x and x' overlap or not.
"""

from collections import namedtuple
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.kernels.errors import padded
from gradient_dd.tasks import Task

Rows = NDArray[np.uint64]
WIDEST = 8  # rows of a step up to which the loop over lanes is written out


class OutcomeRows(NamedTuple):
    """For each outcome `width` rows; those beyond the ones needed are spare rows past the p features, with value 0.

    Spare rows of the weights stay 0 as long as a lane is finite, because everything added to them is a product with 0.

    rows, x, x_next  (outcomes, width) flat: distinct rows, and the values of x and x' there
    u                (outcomes, width) flat: discount x' − x, so that δ = reward + u·w
    narrow           (outcomes,) whether the first k rows are all there is
    reward, rho, rho_x, discount  (outcomes,)
    state, entered   (outcomes,) the state that it leaves and the one that it enters
    with_x, with_next  (outcomes,) products of the x of the state that it enters with its x and x'; with more than
                     `WIDEST` rows there are none, and `entered` is no state
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
    """Numbers that all outcomes of a kind share, which a kernel then holds as constants; None where they differ."""

    rho: float | None
    rho_x: float | None
    discount: float | None


class Shape(NamedTuple):
    """What a kernel is compiled for: k rows of x, `width` rows in all, one-hot or not, narrow outcomes, wide ones."""

    k: int
    width: int
    one_hot: bool
    narrow: Known | None
    wide: Known | None


Step = namedtuple("Step", "outcome first coming width B")
"""One step inside a kernel: its outcome, where its rows and the coming ones begin, how many there are; lanes B."""


@lru_cache(maxsize=16)
def outcome_rows(task: Task, rho_mode: str, use_one_hot: bool = True) -> tuple[OutcomeRows, Shape]:
    """Return the table of a task and its shape; without `use_one_hot`, one-hot features count as any sparse ones."""
    columns, values = padded(task.row_features)
    row, next_row, reward, discount, rho, _ = task.transitions
    rows, x, x_next, used = unite(columns[row], values[row], columns[next_row], values[next_row])
    k, width = values.shape[1], max(int(used.max()), 1)
    one_hot = use_one_hot and k == 1 and bool(np.all(values[:-1] == 1))
    width = max(width, 2) if one_hot else width
    rows, x, x_next = (widened(array, width) for array in (rows, x, x_next))
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
    """Return the products of x and x' of each outcome with the x of its `coming` one, summed as the kernels do it."""
    with_x, with_next = np.zeros((2, len(x)))
    coming = np.minimum(coming, len(x) - 1)  # nothing comes after a terminal, and nobody asks
    for i, j in product(range(k), range(x.shape[1] if x.shape[1] <= WIDEST else 0)):
        shared = np.where(rows[coming, i] == rows[:, j], x[coming, i], 0.0)
        with_x += shared * x[:, j]
        with_next += shared * x_next[:, j]
    return with_x, with_next


def widened(array: Any, width: int) -> Any:
    """Return `width` columns: the first ones, or zeros after those there are."""
    return np.pad(array, ((0, 0), (0, max(0, width - array.shape[1]))))[:, :width]


def known(table: OutcomeRows, chosen: NDArray[np.bool_]) -> Known | None:
    """Return the numbers that the chosen outcomes share; None if none is chosen."""
    if not chosen.any():
        return None
    rho, rho_x, discount = (shared(column[chosen]) for column in (table.rho, table.rho_x, table.discount))
    return Known(rho, rho_x if rho is not None else None, discount)  # off-policy, both placements of ρ share a kernel


def shared(values: Array) -> float | None:
    """Return the number that all values are, if there is one."""
    return float(values[0]) if np.all(values == values[0]) else None


def unite(x_rows: Rows, x: Array, next_rows: Rows, x_next: Array) -> tuple[Rows, Array, Array, NDArray[np.int64]]:
    """Return rows, x and x' over the union of two supports, each (outcomes, 2k), and how many rows are used."""
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
