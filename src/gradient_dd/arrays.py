"""Array types shared by all packages, and checks of arrays that users pass."""

import os
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gradient_dd.errors import Unquoted, bad_request

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

MEMORY = "GRADIENT_DD_MEMORY"  # environment variable: largest size of one table or matrix in bytes
LARGEST = 1e50  # largest number in a task or a log; the product of four such numbers is finite


def numbers(what: str, value: Any, largest: float = np.inf) -> Array:
    """Return `value` as an array of finite floats with absolute values up to `largest`, or raise.

    Booleans count as 0 and 1. Text, complex numbers, dates and masked arrays raise an error, because a conversion to
    float would lose information. The result may share memory with `value`.
    """
    array = as_floats(what, value)
    finite = np.isfinite(array)
    if not finite.all():
        raise bad_request(what, "be finite", array[~finite][0])
    if largest < np.inf and array.size and np.abs(array).max() > largest:
        raise bad_request(what, f"be numbers from {-largest:g} to {largest:g}", array.flat[np.abs(array).argmax()])
    return array


def dimensions(value: Any) -> int:
    """Return the number of dimensions of a value as an array; 0 for a ragged value, which is rejected later."""
    try:
        return np.ndim(value)
    except ValueError:
        return 0


def as_floats(what: str, value: Any) -> Array:
    """Return `value` as a float array, or raise; NaN and infinity are allowed."""
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value  # the common case
    if is_masked(value):
        raise bad_request(what, "be plain numbers", Unquoted("a masked array"), "Fill it first, e.g. x.filled(0).")
    try:
        array = np.asarray(value)
        plain = array.dtype.kind in "biuf" or (
            array.dtype.kind == "O" and all(isinstance(one, Real) for one in array.flat)
        )
        with np.errstate(over="ignore"):
            floats = array.astype(float) if plain else None
    except (OverflowError, TypeError, ValueError):  # ragged, or an integer too large for a float
        floats = None
    if floats is None:
        raise bad_request(what, "be numbers", value)
    return floats


def sparse_numbers(what: str, matrix: Any, largest: float = np.inf) -> sp.csr_matrix:
    """Return a SciPy sparse matrix in CSR format with finite floats up to `largest`, or raise."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise bad_request(what, "be a matrix of numbers", Unquoted(f"{matrix.ndim} dimensions of {matrix.dtype}"))
    try:
        rows = sp.csr_matrix(matrix)
        rows.check_format(full_check=True)  # a product with indices out of range would read invalid memory
    except ValueError as error:
        raise bad_request(what, "be a valid sparse matrix", Unquoted(error)) from None
    numbers(what, rows.data, largest)
    return rows.astype(float, copy=False)


def is_masked(value: Any) -> bool:
    """Return whether a value is a masked array, or a list that contains one."""
    rows = value if isinstance(value, list | tuple) else ()
    return any(isinstance(one, np.ma.MaskedArray) for one in (value, *rows))


def check_memory(what: str, size: float, hint: str) -> None:
    """Raise if a table or matrix of `size` bytes is too large; call this before the allocation.

    The limit is GRADIENT_DD_MEMORY, or half of the memory of this machine.
    """
    reason, given = "half of the memory of this machine", os.environ.get(MEMORY)
    try:
        if given is not None:
            limit, reason = float(given), f"the limit in {MEMORY}"
        else:
            limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2
    except (AttributeError, OSError, ValueError):
        if given is not None:
            raise bad_request(MEMORY, "be a number of bytes, e.g. 4e9", given) from None
        limit = 2.0**32  # the system does not report the size of its memory
    if size > limit:
        rule = f"take at most {in_words(limit)}, {reason}"
        raise bad_request(what, rule, Unquoted(in_words(float(min(size, 10**300)))), hint)


def in_words(size: float) -> str:
    """Return a number of bytes as text, e.g. 7.2 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
