"""Checks of many transitions at once, as `Learner.update_many` takes them."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array, Booleans, Integers, is_masked, numbers, sparse_numbers
from gradient_dd.engine.stream import FeatureRows, Transitions
from gradient_dd.errors import Words, must

NO_INDICES = np.empty(0, np.int64)


def checked_transitions(x: Any, reward: Any, discount: Any, x_next: Any, rho: Any, p: int) -> Transitions:
    """Return transitions that are all in order, or raise with the first that is not."""
    here, dense = checked_rows("x", x, p)
    n = len(here.begin) - 1
    columns = [column(name, value, n) for name, value in (("reward", reward), ("discount", discount), ("rho", rho))]
    reward, discount, rho = columns
    check_each("discount", (discount < 0) | (discount > 1), discount, "be in [0, 1]")
    check_each("rho", rho < 0, rho, "be a number that is zero or more")
    goes_on = discount != 0
    if x_next is None:
        check_each("discount", goes_on, discount, "be 0 where 'x_next' is None")
        there = FeatureRows(np.zeros(n + 1, np.int64), NO_INDICES, np.empty(0))
    else:
        there, dense_next = checked_rows("x_next", x_next, p)
        if len(there.begin) != n + 1 or dense_next != dense:
            raise must("'x_next'", f"have the form of 'x', with {n} rows", Words(f"{len(there.begin) - 1} rows"))
        there = without_ends(there, goes_on)
    return Transitions(here, there, reward, discount, rho, dense)


def checked_rows(name: str, x: Any, p: int) -> tuple[FeatureRows, bool]:
    """Return rows of features, and whether they are dense: (n, p), (indices, values) of (n, k), or SciPy rows."""
    if isinstance(x, tuple):
        return pair_rows(name, x, p), False
    if sp.issparse(x):
        rows = sparse_numbers(f"{name!r}", x)
        if rows.shape[1] != p:
            raise must(f"The shape of {name!r}", f"be (n, {p})", rows.shape)
        return summed_rows(name, rows if rows.has_canonical_format else rows.copy()), False
    values = numbers(f"{name!r}", x)
    if values.ndim != 2 or values.shape[1] != p:
        raise must(f"The shape of {name!r}", f"be (n, {p})", values.shape)
    return FeatureRows(np.arange(len(values) + 1) * p, NO_INDICES, np.ascontiguousarray(values).ravel()), True


def pair_rows(name: str, x: tuple[Any, ...], p: int) -> FeatureRows:
    """Return the rows of a pair (indices, values), (n, k) each; no index may stand twice in a row."""
    if len(x) != 2:
        raise must(f"Sparse {name!r}", "be a pair (indices, values)", x)
    values = numbers(f"The values of {name!r}", x[1])
    try:
        indices = np.asarray(x[0])
    except (OverflowError, TypeError, ValueError):  # ragged
        indices = np.empty(0, object)
    if indices.dtype.kind not in "iu" or indices.ndim != 2 or indices.shape != values.shape or is_masked(x[0]):
        got = Words(f"{indices.shape} of {indices.dtype} and {values.shape}")
        raise must(f"Sparse {name!r}", "be whole indices and values of the same shape (n, k)", got)
    if indices.size and not (indices.min() >= 0 and indices.max() < p):
        row = int(np.argmax(((indices < 0) | (indices >= p)).any(axis=1)))
        raise must(f"The indices in row {row} of {name!r}", f"be from 0 to {p - 1}", indices[row])
    ordered = np.sort(indices, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (indices.shape[1] > 1)).any(axis=1)
    if twice.any():
        return merged_rows(name, indices, values, p)
    n, k = indices.shape
    return FeatureRows(np.arange(n + 1) * k, indices.astype(np.int64).ravel(), np.ascontiguousarray(values).ravel())


def merged_rows(name: str, indices: Any, values: Array, p: int) -> FeatureRows:
    """Return rows in which the values of equal indices are added up."""
    n, k = indices.shape
    rows = sp.csr_matrix((values.ravel(), (np.repeat(np.arange(n), k), indices.ravel())), shape=(n, p))
    return summed_rows(name, rows)


def summed_rows(name: str, rows: sp.csr_matrix) -> FeatureRows:
    """Return rows with every index once, in order; `rows` itself is changed to that."""
    rows.sum_duplicates()
    values = numbers(f"The sums of equal indices of {name!r}", rows.data)
    return FeatureRows(rows.indptr.astype(np.int64), rows.indices.astype(np.int64), values)


def without_ends(rows: FeatureRows, goes_on: Booleans) -> FeatureRows:
    """Return rows that are empty where the episode ended."""
    if goes_on.all():
        return rows
    lengths = np.diff(rows.begin)
    kept = np.repeat(goes_on, lengths)
    begin = np.concatenate([[0], np.cumsum(np.where(goes_on, lengths, 0))])
    indices = rows.indices[kept] if rows.indices.size else rows.indices
    return FeatureRows(begin, indices, rows.values[kept])


def column(name: str, value: Any, n: int) -> Array:
    """Return one finite number for each of n transitions."""
    array = numbers(f"{name!r}", value)
    if array.shape not in ((), (n,)):
        raise must(f"The shape of {name!r}", f"be ({n},): one number for each transition", array.shape)
    return np.ascontiguousarray(np.broadcast_to(array, n))


def check_each(name: str, wrong: Booleans, values: Array, rule: str) -> None:
    """Raise with the first value that is wrong, and its row."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise must(f"{name!r} in row {row}", rule, float(values[row]))


def places(where: Any, p: int) -> Integers:
    """Return an index array for what may be a slice."""
    return np.arange(p)[where] if isinstance(where, slice) else np.asarray(where, np.int64)
