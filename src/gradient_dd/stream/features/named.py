"""Features by a word: what `features="tiles"` means for observations that have been seen, of a log or an environment.

raw        the observations as they are            table      one weight for each distinct state
standard   scaled, and a constant                  quadratic  the same, with squares and products
tiles, fourier, radial, polynomial   over the range of what was seen
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import bad_request, unknown
from gradient_dd.stream.features import FEATURES, Columns, Features, Own, Quadratic, Table, from_data

PLAIN = ("raw", "standard", "quadratic", "table")
NOT_BY_WORD = ("one_hot", "columns", "quadratic", "structured", "table", "categories", "layers")
OVER_A_RANGE = tuple(name for name in FEATURES if name not in NOT_BY_WORD)


class Named(NamedTuple):
    """What a word is about: the first observations (n, d), and a function that returns all distinct ones."""

    first: Any
    states: Callable[[], Array]


def map_of(features: Any, seen: Named) -> tuple[Features, str]:
    """Return the feature map that a user asks for, and a sentence about it."""
    first = seen.first
    if isinstance(features, Features):
        return features, f"Features: {features!r}."
    if callable(features) or hasattr(features, "transform"):
        own = Own(features)
        own.rows(first[:2])
        return own, f"Features are your own: {own.n_features} of them."
    words = [*PLAIN, *OVER_A_RANGE]
    if not isinstance(features, str):
        raise bad_request("'features'", f"be a feature map, a function, or one of {', '.join(words)}", features)
    if features not in words:
        raise unknown("features", features, words)
    d = first.shape[1]
    if features == "raw":
        raw = Columns(np.zeros(d), np.ones(d), intercept=False)
        return raw, f"Features are the {d} observations as they are."
    if features == "standard":
        sentence = f"Features are the {d} observations, scaled by the first {len(first):,} rows, and a constant."
        return Columns.fitted(first), sentence
    if features == "quadratic":
        scaled = f"Features are the {d} observations, scaled by the first {len(first):,} rows, and a constant"
        return Quadratic.fitted(first), f"{scaled}, with squares and products."
    if features == "table":
        table = Table(seen.states())
        return table, f"Features: one for each of the {table.n_features:,} distinct states."
    low, high = first.min(axis=0), first.max(axis=0)
    high = np.where(high > low, high, low + 1.0)
    mapping = from_data({"kind": features, "low": low, "high": high, "outside": "clip"})
    return mapping, f"Features: {mapping!r}, over the range of the first {len(first):,} rows."
