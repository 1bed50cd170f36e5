"""The rule's step as every kernel calls it: its own parameters read from where the kernel keeps them."""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler_options import INLINE
from gradient_dd.engine.kernels.lane_state import lane_parameters
from gradient_dd.learners import PLAIN_MOVES, PLAIN_SIGNALS, Rule

STEP_SIZES = ("alpha", "beta")
SIGNALS = [name for name in PLAIN_SIGNALS if name not in STEP_SIZES]


class Kept(NamedTuple):
    """How a kernel keeps the parameters of a rule.

    given  the arguments of `coefficients` before the signals: what the parameters are read from
    place  where the i-th of a rule's own parameters is, as source
    """

    given: str
    place: str


IN_FIELDS = Kept("fields, stride, lane", "fields[stride * np.uintp({}) + lane]")  # step sizes stand there too
IN_A_ROW = Kept("own, alpha, beta", "own[{}]")
IN_LANES = Kept("own, lane, alpha, beta", "own[{}, lane]")


def coefficients_source(rule: Rule, kept: Kept) -> str:
    """Return the source of `coefficients`: all of PLAIN_MOVES, in that order."""
    held = lane_parameters(rule) if kept is IN_FIELDS else lane_parameters(rule)[len(STEP_SIZES) :]
    arguments = [kept.place.format(held.index(name)) if name in held else name for name in rule.arguments]
    lines = [
        f"def coefficients({kept.given}, {', '.join(SIGNALS)}):",
        f"    {' = '.join(PLAIN_MOVES)} = 0.0",
        f"    {', '.join(rule.moves)}, = step({', '.join(arguments)})",
        f"    return {', '.join(PLAIN_MOVES)}",
    ]
    return "\n".join(lines)


@cache
def make_coefficients(rule: Rule, kept: Kept) -> Any:
    """Compile `coefficients_source`."""
    names: dict[str, Any] = {"step": numba.njit(rule.step, **INLINE), "np": np}
    exec(coefficients_source(rule, kept), names)
    return numba.njit(names["coefficients"], **INLINE)
