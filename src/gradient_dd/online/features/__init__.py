"""Feature maps: observations in, rows of features out. `FEATURES` lists the kinds that can be named and saved."""

from typing import Any

import numpy as np

from gradient_dd.errors import Words, must, unknown
from gradient_dd.online.features.bases import Columns, Fourier, Polynomial, RadialBasis
from gradient_dd.online.features.kind import Features, Rows
from gradient_dd.online.features.one_hot import OneHot
from gradient_dd.online.features.own import Own
from gradient_dd.online.features.tiles import TileCoder

__all__ = [
    "FEATURES",
    "Columns",
    "Features",
    "Fourier",
    "OneHot",
    "Own",
    "Polynomial",
    "RadialBasis",
    "Rows",
    "TileCoder",
    "features_of_space",
    "from_data",
]

FEATURES: dict[str, type[Features]] = {
    kind.kind: kind for kind in (TileCoder, Fourier, RadialBasis, Polynomial, OneHot, Columns)
}


def from_data(data: dict[str, Any]) -> Features:
    """Return the map that `as_data` described."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise must("The description of features", "be a dictionary by name", data)
    rest = dict(data)
    kind = rest.pop("kind", None)
    if not isinstance(kind, str) or kind not in FEATURES:
        raise unknown("kind of features", kind, FEATURES)
    try:
        return FEATURES[kind](**rest)
    except TypeError:
        raise must(f"Features of kind {kind!r}", "be described by their own parameters", sorted(rest)) from None


def features_of_space(space: Any, kind: str = "tiles", **parameters: Any) -> Features:
    """Return features for the observations of a Gymnasium space.

    A Discrete or MultiDiscrete space gets one-hot features. A Box gets the `kind` asked for over its bounds; those that
    are infinite must be given as `low` and `high`. Dict and Tuple spaces are flattened first, by
    `gymnasium.spaces.flatten`.
    """
    name = type(space).__name__
    if name == "Discrete":
        return OneHot(int(space.n))
    if name == "MultiDiscrete":
        return OneHot(np.ravel(space.nvec))
    if name in ("Dict", "Tuple"):
        from gymnasium.spaces import flatten_space

        return features_of_space(flatten_space(space), kind, **parameters)
    if name != "Box":
        rule = "be Discrete, MultiDiscrete, Box, Dict or Tuple"
        raise must("The space of observations", rule, Words(name), "Use a function of your own: Own(function).")
    bounds = {"low": np.ravel(space.low), "high": np.ravel(space.high)}
    return from_data({"kind": kind, **bounds, **parameters})
