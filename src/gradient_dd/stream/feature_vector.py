"""The feature vectors of a transition, dense or sparse, checked."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array, is_masked, numbers
from gradient_dd.errors import Words, must


class Features(NamedTuple):
    """Where a feature vector is not zero (an index array, or a slice for all of it), and its values there."""

    where: Any
    values: Array


NONE = Features(slice(0), np.empty(0))


def checked_features(name: str, x: Any, p: int) -> Features:
    """Return `x`, a vector of length p or a pair (indices, values), or raise; `name` is what the caller calls it."""
    if x is None or sp.issparse(x):
        got = Words("None" if x is None else "a SciPy matrix")
        raise must(f"{name!r}", "be a vector, or a pair (indices, values)", got)
    if isinstance(x, tuple):
        return checked_pair(name, x, p)
    values = numbers(f"{name!r}", x)
    if values.shape != (p,):
        raise must(f"The shape of {name!r}", f"be ({p},)", values.shape)
    return Features(slice(None), values)


def checked_pair(name: str, x: tuple[Any, ...], p: int) -> Features:
    """Return sparse features whose indices are whole numbers below p, each once, or raise."""
    if len(x) != 2:
        raise must(f"Sparse {name!r}", "be a pair (indices, values)", x)
    values = numbers(f"The values of {name!r}", x[1])
    try:
        where = np.array(x[0])  # a copy: the next update looks at it
    except (OverflowError, TypeError, ValueError):
        where = np.empty(0, object)
    if where.shape == (0,):
        where = where.astype(int)
    if where.dtype.kind not in "iu" or where.ndim != 1 or where.shape != values.shape or is_masked(x[0]):
        raise must(f"Sparse {name!r}", "have as many whole indices as values", x)
    if where.size and not (where.min() >= 0 and where.max() < p):
        raise must(f"The indices of {name!r}", f"be from 0 to {p - 1}", where)
    ordered = np.sort(where)
    if (ordered[1:] == ordered[:-1]).any():
        raise must(f"The indices of {name!r}", "differ", where, "Add up the values of equal indices.")
    return Features(where, values)
