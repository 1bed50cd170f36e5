"""The stream kernel: one learner on many transitions from anywhere, given as rows of features.

The parts of a learner's memory stand beside each other, feature by feature: memory[i, part], the parts being w, η and
w − w_prev. So a feature touches one stretch of memory, and the features of rows that come soon are fetched ahead. Sums
run from left to right, as `Learner.update` makes them, so both give the same bits.
"""

from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types

from gradient_dd.engine.kernels.compiler_options import COMPILE, INLINE
from gradient_dd.engine.kernels.intrinsics import typed_as_any
from gradient_dd.learners import PLAIN_MOVES as MOVES
from gradient_dd.learners import Rule

AHEAD = 6  # rows by which features are fetched ahead
LIMIT = 1e150  # of a move: `Learner` decides what to do with a larger one
SMALLEST_SCALE, LARGEST_SCALE = 1e-150, 1e150  # of η: likewise
W, ETA, CHANGE = range(3)  # the parts of the memory


@typed_as_any
def fetch(typing: Any, array: Any, i: Any) -> Any:
    """Ask for the cache line of an element, for reading and writing; costs one instruction."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        builder.call(function, [place, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, i), emit


def coefficients_source(rule: Rule) -> str:
    """Return the source of `coefficients`: the rule's step, all moves in the order of MOVES."""
    own = [p.name for p in rule.parameters if p.name not in ("alpha", "zeta") and not p.shared]
    arguments = [f"own[{own.index(name)}]" if name in own else name for name in rule.arguments]
    lines = [
        "def coefficients(own, alpha, beta, rho, rho_x, discount, delta, x_eta, x_change):",
        f"    {' = '.join(MOVES)} = 0.0",
        f"    {', '.join(rule.moves)}, = step({', '.join(arguments)})",
        f"    return {', '.join(MOVES)}",
    ]
    return "\n".join(lines)


@cache
def stream_kernel(rule: Rule, dense: bool) -> Any:
    """Compile `run` for a rule, and for dense or sparse rows."""
    names: dict[str, Any] = {"step": numba.njit(rule.step, **INLINE)}
    exec(coefficients_source(rule), names)
    coefficients = numba.njit(names["coefficients"], **INLINE)
    has_eta, has_change, shrinks = rule.has_eta, "x_change" in rule.arguments, "eta_eta" in rule.moves

    @numba.njit(**INLINE)
    def place(rows, begin, j):
        return np.uintp(j - begin) if dense else np.uintp(rows.indices[j])

    @numba.njit(**INLINE)
    def product(memory, part, rows, t):
        """Return a row of features times a part of the memory, summed from left to right."""
        begin, end = rows.begin[t], rows.begin[t + 1]
        if begin == end:
            return 0.0
        total = rows.values[begin] * memory[place(rows, begin, begin), part]
        for j in range(begin + 1, end):
            total += rows.values[j] * memory[place(rows, begin, j), part]
        return total

    @numba.njit(**INLINE)
    def reach(rows, t):
        """Return the largest feature of a row, without its sign."""
        most = 0.0
        for j in range(rows.begin[t], rows.begin[t + 1]):
            most = max(most, abs(rows.values[j]))
        return most

    @numba.njit(**INLINE)
    def move(memory, part, rows, t, coefficient):
        begin, end = rows.begin[t], rows.begin[t + 1]
        for j in range(begin, end):
            memory[place(rows, begin, j), part] += coefficient * rows.values[j]

    @numba.njit(**INLINE)
    def clear(memory, part, rows, t):
        begin, end = rows.begin[t], rows.begin[t + 1]
        for j in range(begin, end):
            memory[place(rows, begin, j), part] = 0.0

    @numba.njit(**INLINE)
    def fetch_row(flat, width, rows, t):
        for j in range(rows.begin[t], rows.begin[t + 1]):
            fetch(flat, np.uintp(rows.indices[j]) * width)

    @numba.njit(nogil=True, **COMPILE)
    def run(memory, scale, start, own, only_next, x, x_next, reward, discount, rho, factor, previous, deltas, t):
        """Make a step for every row from t on; return the first row that was not made, or how many rows there are.

        A row is not made where a move or the scale of η leaves its bounds, or η is forgotten. `previous` are the
        features at which w changed in the step before the first. With `only_next` the ratio of the x half is 1.
        """
        flat, width, first = memory.reshape(memory.size), np.uintp(memory.shape[1]), t
        while t < reward.size:
            if not dense and t + AHEAD < reward.size:
                fetch_row(flat, width, x, t + AHEAD)
                fetch_row(flat, width, x_next, t + AHEAD)
            goes_on = discount[t] != 0.0
            alpha = start[0] * factor[t]
            bootstrap = discount[t] * product(memory, W, x_next, t) if goes_on else 0.0
            delta = reward[t] + bootstrap - product(memory, W, x, t)
            x_eta = scale[0] * product(memory, ETA, x, t) if has_eta else 0.0
            x_change = product(memory, CHANGE, x, t) if has_change else 0.0
            rho_x = 1.0 if only_next else rho[t]
            w_x, w_next, eta_x, eta_eta = coefficients(
                own, alpha, start[1] * alpha, rho[t], rho_x, discount[t], delta, x_eta, x_change
            )
            w_next = w_next if goes_on else 0.0
            on_x, on_next = reach(x, t), reach(x_next, t)
            if not (abs(w_x) * on_x <= LIMIT and abs(eta_x) * on_x <= LIMIT and abs(w_next) * on_next <= LIMIT):
                return t
            if shrinks:
                shrunk = scale[0] * (1.0 + eta_eta)
                if not SMALLEST_SCALE < abs(shrunk) < LARGEST_SCALE:
                    return t
                scale[0] = shrunk
            if has_change:
                if t == first:
                    for i in previous:
                        memory[i, CHANGE] = 0.0
                else:
                    clear(memory, CHANGE, x, t - 1)
                    clear(memory, CHANGE, x_next, t - 1)
            if w_x != 0.0:
                move(memory, W, x, t, w_x)
                if has_change:
                    move(memory, CHANGE, x, t, w_x)
            if w_next != 0.0:
                move(memory, W, x_next, t, w_next)
                if has_change:
                    move(memory, CHANGE, x_next, t, w_next)
            if has_eta and eta_x != 0.0:
                move(memory, ETA, x, t, eta_x / scale[0])
            deltas[t] = delta
            t += 1
        return t

    return run
