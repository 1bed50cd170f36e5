"""`engine/auto.py`, compiled: the same functions, with the same bits."""

from types import FunctionType
from typing import Any

import numba
import numpy as np

from gradient_dd.engine import auto
from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, INNER, keep
from gradient_dd.engine.kernels.stream import fetch

RARE = ("restart", "restart_far", "look_for_bursts")
OFTEN = (
    *("span", "is_near", "fetch_row", "plain_features", "product", "learn"),
    *("squared_length", "products", "add_row", "rung_features", "rung_steps"),
)


@numba.njit(**INLINE)
def fetch_feature(memory, i):
    """Ask for the memory of a feature: its cache line."""
    fetch(memory, i * auto.COLUMNS)


@numba.njit(**INLINE)
def unsigned(i):
    """Return a place as an unsigned number."""
    return np.uintp(i)


def compiled() -> Any:
    """Return `auto.steps`, compiled with all functions that it calls; each is named before the ones that call it."""
    names = vars(auto) | {"fetch": fetch_feature, "unsigned": unsigned}
    for name in (*RARE, *OFTEN):
        names[name] = numba.njit(**(INNER if name in RARE else INLINE))(FunctionType(names[name].__code__, names, name))
    return keep(FunctionType(auto.steps.__code__, names, "steps"), "auto", nogil=True, **COMPILE)


steps = compiled()
