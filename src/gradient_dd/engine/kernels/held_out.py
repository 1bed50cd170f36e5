"""`engine/held_out.py`, compiled: the same functions, with the same bits."""

from types import FunctionType
from typing import Any

import numba

from gradient_dd.engine import held_out
from gradient_dd.engine.kernels.compiler import COMPILE, INNER
from gradient_dd.engine.kernels.keep import keep

INNER_FUNCTIONS = ("row_of", "products", "restart", "forget", "watch", "measure", "share_out", "step", "read")


def compiled() -> Any:
    """Return `held_out.run`, compiled with all functions that it calls; each is named before the ones that call it."""
    names = dict(vars(held_out))
    for name in INNER_FUNCTIONS:
        names[name] = numba.njit(**INNER)(FunctionType(names[name].__code__, names, name))
    return keep(FunctionType(held_out.run.__code__, names, "run"), "held_out", nogil=True, **COMPILE)


run = compiled()
