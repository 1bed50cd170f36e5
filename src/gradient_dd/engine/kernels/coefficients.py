"""The rule's step for one lane, with its parameters read from the lane's fields."""

from functools import cache
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler_options import INLINE
from gradient_dd.engine.kernels.lane_state import lane_parameters
from gradient_dd.learners import PLAIN_MOVES, Rule


def coefficients_source(rule: Rule) -> str:
    """Return the source of `coefficients`: all of PLAIN_MOVES, in that order. Rows of the fields are `stride` apart."""
    names = lane_parameters(rule)
    arguments = [f"fields[stride * np.uintp({names.index(a)}) + lane]" if a in names else a for a in rule.arguments]
    lines = [
        "def coefficients(fields, stride, lane, rho, rho_x, discount, delta, x_eta, x_change):",
        f"    {' = '.join(PLAIN_MOVES)} = 0.0",
        f"    {', '.join(rule.moves)}, = step({', '.join(arguments)})",
        f"    return {', '.join(PLAIN_MOVES)}",
    ]
    return "\n".join(lines)


@cache
def make_coefficients(rule: Rule) -> Any:
    """Compile `coefficients_source`."""
    names: dict[str, Any] = {"step": numba.njit(rule.step, **INLINE), "np": np}
    exec(coefficients_source(rule), names)
    return numba.njit(names["coefficients"], **INLINE)
