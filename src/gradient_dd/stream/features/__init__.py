"""Feature maps: observations in, rows of features out. `FEATURES` lists the kinds that can be named and saved."""

from typing import Any

import numpy as np

from gradient_dd.errors import Unquoted, bad_request, unknown
from gradient_dd.stream.features.dense import Columns, Fourier, Layers, Own, Polynomial, Quadratic, RadialBasis
from gradient_dd.stream.features.kind import Features, Rows
from gradient_dd.stream.features.sparse import Categories, OneHot, Table, TileCoder
from gradient_dd.stream.features.structured import Structured, bounds_of, layout_of

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

FEATURES: dict[str, type[Features]] = {
    kind.kind: kind
    for kind in (
        *(TileCoder, Fourier, RadialBasis, Polynomial, OneHot),
        *(Columns, Quadratic, Structured, Table, Categories, Layers),
    )
}


def from_data(data: dict[str, Any]) -> Features:
    """Return the map that `as_data` described."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise bad_request("The description of features", "be a dictionary by name", data)
    rest = dict(data)
    kind = rest.pop("kind", None)
    if not isinstance(kind, str) or kind not in FEATURES:
        raise unknown("type of features", kind, FEATURES)
    try:
        return FEATURES[kind](**rest)
    except TypeError:
        raise bad_request(f"Features of kind {kind!r}", "be described by their own parameters", sorted(rest)) from None


def features_of_space(space: Any, kind: str = "tiles", **parameters: Any) -> Features:
    """Return features for the observations of a Gymnasium space.

    A Discrete or MultiDiscrete space gets one-hot features. A Box gets the `kind` asked for over its bounds; those that
    are infinite must be given as `low` and `high`. The parts of Dict and Tuple spaces are put side by side first, whole
    numbers as 0s and a 1, as `gymnasium.spaces.flatten` does.
    """
    layout = layout_of(space)
    if layout[0] == "whole":
        return OneHot(*layout[1:])
    low, high = bounds_of(space)
    flat = from_data({"kind": kind, "low": low, "high": high, **parameters})
    return flat if layout[0] == "box" else Structured(layout, flat)


def checked_map(features: Any, p: int) -> Features | None:
    """Return a feature map that gives p features, or None, or raise; a map of the user's own may not know p yet."""
    if features is not None and not isinstance(features, Features):
        raise bad_request("'features'", "be a feature map, e.g. TileCoder(...) or Own(function)", features)
    if features is not None and features.n_features not in (0, p):
        raise bad_request("'n_features'", f"be {features.n_features}, as 'features' has", p)
    return features


def mapped(features: Features | None, name: str, observations: Any, observation: Any = None) -> Any:
    """Return n observations, or one, as features, or raise; `name` is the argument that has the n observations."""
    if features is None:
        hint = "Or give features=... when you create it."
        raise bad_request("'x'", "be given if there is no feature map", Unquoted("None"), hint)
    if observation is not None:
        return features(observation)
    if observations is None:
        raise bad_request("'x'", f"be given, or {name!r} for the feature map", Unquoted("None"))
    return tuple(features.rows(np.asarray(observations)))
