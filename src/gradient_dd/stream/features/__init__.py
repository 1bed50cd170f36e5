"""Feature maps, which turn observations into rows of features. `FEATURES` lists the types that can be saved."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import Unquoted, bad_request, unknown
from gradient_dd.stream.features.dense import Columns, Fourier, Layers, Own, Polynomial, Quadratic, RadialBasis
from gradient_dd.stream.features.kind import FEATURES, Features, Rows, from_data
from gradient_dd.stream.features.sparse import Categories, OneHot, Structured, Table, TileCoder, layout_of

__all__ = [
    "FEATURES",
    "Categories",
    "Columns",
    "Features",
    "Fourier",
    "Layers",
    "OneHot",
    "Own",
    "Polynomial",
    "Quadratic",
    "RadialBasis",
    "Rows",
    "Structured",
    "Table",
    "TileCoder",
    "features_of_space",
    "from_data",
]

WORDS = ("raw", "standard", "quadratic", "table", "tiles", "fourier", "radial", "polynomial")  # see `map_of`
FEATURES |= {
    kind.kind: kind
    for kind in (
        *(TileCoder, Fourier, RadialBasis, Polynomial, OneHot),
        *(Columns, Quadratic, Structured, Table, Categories, Layers),
    )
}


def features_of_space(space: Any, kind: str = "tiles", **parameters: Any) -> Features:
    """Return features for the observations of a Gymnasium space.

    A Discrete or MultiDiscrete space gets one-hot features. A Box gets features of this `kind` over its bounds; pass
    `low` and `high` to replace infinite bounds. Dict and Tuple spaces are flattened first by
    `gymnasium.spaces.flatten`, which makes whole numbers one-hot.
    """
    layout, low, high = layout_of(space)
    if layout[0] == "whole":
        return OneHot(*layout[1:])
    flat = from_data({"kind": kind, "low": low, "high": high, **parameters})
    return flat if layout[0] == "box" else Structured(layout, flat)


def checked_map(features: Any, p: int) -> Features | None:
    """Return a feature map of p features, or None, or raise; a user-defined map may not know p yet."""
    if features is not None and not isinstance(features, Features):
        raise bad_request("'features'", "be a feature map, e.g. TileCoder(...) or Own(function)", features)
    if features is not None and features.n_features not in (0, p):
        raise bad_request("'n_features'", f"be {features.n_features}, as 'features' has", p)
    return features


def mapped(features: Features | None, name: str, observations: Any, observation: Any = None) -> Any:
    """Return the features of `observations` or of one `observation`; an error calls the observations `name`."""
    if features is None:
        hint = "Or pass features=... when you create the learner."
        raise bad_request("'x'", "be given if there is no feature map", Unquoted("None"), hint)
    if observation is not None:
        return features(observation)
    if observations is None:
        raise bad_request("'x'", f"be given, unless {name!r} is given for the feature map", Unquoted("None"))
    return tuple(features.rows(np.asarray(observations)))


def map_of(features: Any, first: Any, states: Callable[[], Array]) -> tuple[Features, str]:
    """Return the feature map that a user names or passes, and a sentence about it.

    raw        the observations as they are            table      one weight for each distinct state
    standard   scaled observations and a constant      quadratic  the same, with squares and products
    tiles, fourier, radial, polynomial   over the range of the first observations

    `first` has the first observations (n, d); `states` returns all distinct observations.
    """
    if isinstance(features, Features):
        return features, f"Features: {features!r}."
    if callable(features) or hasattr(features, "transform"):
        own = Own(features)
        own.rows(first[:2])
        return own, f"Features: {own.n_features} from your own map."
    if not isinstance(features, str):
        raise bad_request("'features'", f"be a feature map, a function, or one of {', '.join(WORDS)}", features)
    if features not in WORDS:
        raise unknown("features", features, WORDS)
    d = first.shape[1]
    if features == "raw":
        raw = Columns(np.zeros(d), np.ones(d), intercept=False)
        return raw, f"Features are the {d} observations as they are."
    scaled = f"Features are the {d} observations, scaled by the first {len(first):,} rows, and a constant"
    if features == "standard":
        return Columns.fitted(first), f"{scaled}."
    if features == "quadratic":
        return Quadratic.fitted(first), f"{scaled}, with squares and products."
    if features == "table":
        table = Table(states())
        return table, f"Features: one for each of the {table.n_features:,} distinct states."
    low, high = first.min(axis=0), first.max(axis=0)
    high = np.where(high > low, high, low + 1.0)
    mapping = from_data({"kind": features, "low": low, "high": high, "outside": "clip"})
    return mapping, f"Features: {mapping!r}, over the range of the first {len(first):,} rows."
