"""Checks of many transitions at once, as `Learner.update_many` takes them.

One compiled pass says whether all is in order, which is the common case. Only where it is not do slower checks look for
the first row that is wrong, and say what is wrong with it.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array, Booleans, Integers, as_floats, is_masked, numbers, sparse_numbers
from gradient_dd.engine.stream import FeatureRows, Transitions, columns_are_sound, largest_value
from gradient_dd.errors import BadRequestError, Words, must
from gradient_dd.learners import Rule
from gradient_dd.stream.trace_state import checked_probabilities

NO_INDICES = np.empty(0, np.int64)
NO_BEGINS = np.empty(0, np.int64)
INDEX_KINDS = (np.dtype(np.int64), np.dtype(np.int32))  # the compiled loops take these as they are


class GivenRows(NamedTuple):
    """n checked rows of features, and how they lie in memory."""

    n: int
    layout: str
    rows: FeatureRows

    def with_begins(self) -> FeatureRows:
        """Return the rows in the layout "rows"."""
        if self.layout == "rows":
            return self.rows
        return self.rows._replace(begin=np.arange(self.n + 1) * self.rows.width)


def checked_transitions(x: Any, reward: Any, discount: Any, x_next: Any, rho: Any, p: int) -> Transitions:
    """Return transitions that are all in order, or raise with the first that is not."""
    here = checked_rows("x", x, p)
    n = here.n
    reward, discount, rho = columns = [
        column(name, value, n) for name, value in (("reward", reward), ("discount", discount), ("rho", rho))
    ]
    if not columns_are_sound(*columns):
        check_columns(reward, discount, rho)
    if x_next is None:
        check_each("discount", discount != 0, discount, "be 0 where 'x_next' is None")
        return Transitions(here.rows, here.rows, reward, discount, rho, here.layout)
    there = checked_rows("x_next", x_next, p, discount)
    if there.n != n or (there.layout == "dense") != (here.layout == "dense"):
        raise must("'x_next'", f"have the form of 'x', with {n} rows", Words(f"{there.n} rows"))
    if there.layout != here.layout:
        return Transitions(here.with_begins(), there.with_begins(), reward, discount, rho, "rows")
    return Transitions(here.rows, there.rows, reward, discount, rho, here.layout)


def checked_probability_columns(rule: Rule, rho: Array, pi: Any, mu: Any) -> list[Array | None]:
    """Return π and μ of every action, (n,) each, None where not given; or raise with the first that is wrong."""
    columns = [None if one is None else column(name, one, len(rho)) for name, one in (("pi", pi), ("mu", mu))]
    for t in range(len(rho)) if any(one is not None for one in columns) else range(min(1, len(rho))):
        checked_probabilities(rule, float(rho[t]), *(None if one is None else one[t] for one in columns))
    return columns


def checked_rows(name: str, x: Any, p: int, used: Array | None = None) -> GivenRows:
    """Return rows of features: (n, p), (indices, values) of (n, k), or SciPy rows. Unused rows are not looked at.

    A pair whose indices are None is dense, as feature maps return it.
    """
    if isinstance(x, tuple) and len(x) == 2 and x[0] is None:
        x = x[1]
    if isinstance(x, tuple):
        return pair_rows(name, x, p, used)
    if sp.issparse(x):
        rows = sparse_numbers(f"{name!r}", x)
        if rows.shape[1] != p:
            raise must(f"The shape of {name!r}", f"be (n, {p})", rows.shape)
        return summed_rows(name, rows if rows.has_canonical_format else rows.copy())
    values = np.ascontiguousarray(as_floats(f"{name!r}", x))
    if values.ndim != 2 or values.shape[1] != p:
        raise must(f"The shape of {name!r}", f"be (n, {p})", np.shape(x))
    largest = largest_used(values, NO_INDICES, p, used)
    if np.isnan(largest):
        numbers(f"{name!r}", values if used is None else values[used != 0])
    return GivenRows(len(values), "dense", FeatureRows(NO_BEGINS, p, NO_INDICES, values.ravel(), largest))


def largest_used(values: Array, indices: Integers, p: int, used: Array | None) -> float:
    """Return the largest |value| of (n, k) rows that are used; NaN where one of them is not sound."""
    largest = largest_value(values.ravel(), indices.ravel(), p)
    if np.isnan(largest) and used is not None:
        rows = used != 0
        return largest_value(values[rows].ravel(), indices[rows].ravel() if indices.size else indices, p)
    return largest


def pair_rows(name: str, x: tuple[Any, ...], p: int, used: Array | None) -> GivenRows:
    """Return the rows of a pair (indices, values), (n, k) each; equal indices of a row mean the sum of their values."""
    if len(x) != 2:
        raise must(f"Sparse {name!r}", "be a pair (indices, values)", x)
    values = np.ascontiguousarray(as_floats(f"The values of {name!r}", x[1]))
    try:
        indices = np.asarray(x[0])
    except (OverflowError, TypeError, ValueError):  # ragged
        indices = np.empty(0, object)
    if indices.dtype.kind not in "iu" or indices.ndim != 2 or indices.shape != values.shape or is_masked(x[0]):
        got = Words(f"{indices.shape} of {indices.dtype} and {values.shape}")
        raise must(f"Sparse {name!r}", "be whole indices and values of the same shape (n, k)", got)
    n, k = indices.shape
    whole = np.ascontiguousarray(indices if indices.dtype in INDEX_KINDS else indices.astype(np.int64))
    largest = largest_used(values, whole, p, used)
    if np.isnan(largest):
        raise first_wrong(name, indices, values, p, used)
    if not largest * k < np.inf:
        raise must(f"The largest value of {name!r} times the length of a row", "be finite", largest)
    layout = "single" if k == 1 else "pairs"
    return GivenRows(n, layout, FeatureRows(NO_BEGINS, k, whole.ravel(), values.ravel(), largest))


def first_wrong(name: str, indices: Any, values: Array, p: int, used: Array | None) -> BadRequestError:
    """Return the error for the first row with an index out of range, or else the first value that is not finite."""
    looked_at = np.ones(len(values), bool) if used is None else used != 0
    outside = ((indices < 0) | (indices >= p)).any(axis=1) & looked_at
    if outside.any():
        row = int(np.argmax(outside))
        return must(f"The indices in row {row} of {name!r}", f"be from 0 to {p - 1}", indices[row])
    row = int(np.argmax(~np.isfinite(values).all(axis=1) & looked_at))
    return must(f"The values in row {row} of {name!r}", "be finite", values[row])


def summed_rows(name: str, rows: sp.csr_matrix) -> GivenRows:
    """Return rows with every index once, in order; `rows` itself is changed to that."""
    rows.sum_duplicates()
    values = numbers(f"The sums of equal indices of {name!r}", rows.data)
    indices, begin = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    largest = float(np.abs(values).max(initial=0.0))
    return GivenRows(rows.shape[0], "rows", FeatureRows(begin, 0, indices, values, largest))


def matrix_of(given: GivenRows, p: int) -> Any:
    """Return rows as a dense or a SciPy sparse matrix, (n, p)."""
    rows = given.rows
    if given.layout == "dense":
        return rows.values.reshape(-1, p)
    return sp.csr_matrix((rows.values, rows.indices, given.with_begins().begin), shape=(given.n, p))


def column(name: str, value: Any, n: int) -> Array:
    """Return one number for each of n transitions."""
    array = as_floats(f"{name!r}", value)
    if array.shape not in ((), (n,)):
        raise must(f"The shape of {name!r}", f"be ({n},): one number for each transition", array.shape)
    return np.ascontiguousarray(np.broadcast_to(array, n))


def check_columns(reward: Array, discount: Array, rho: Array) -> None:
    """Raise with the first number that is wrong."""
    for name, values in (("reward", reward), ("discount", discount), ("rho", rho)):
        numbers(f"{name!r}", values)
    check_each("discount", (discount < 0) | (discount > 1), discount, "be in [0, 1]")
    check_each("rho", rho < 0, rho, "be a number that is zero or more")


def check_each(name: str, wrong: Booleans, values: Array, rule: str) -> None:
    """Raise with the first value that is wrong, and its row."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise must(f"{name!r} in row {row}", rule, float(values[row]))


def places(where: Any, p: int) -> Integers:
    """Return an index array for what may be a slice."""
    return np.arange(p)[where] if isinstance(where, slice) else np.asarray(where, np.int64)
