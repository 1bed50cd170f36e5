"""The stream kernel: one learner on many transitions from anywhere, given as rows of features.

The parts of a learner's memory stand beside each other, feature by feature: memory[i, part], the parts being w, η and
w − w_prev. So a feature touches one stretch of memory, and the features of rows that come soon are fetched ahead. Sums
run from left to right, as `Learner.update` makes them, so both give the same bits.

`layout` says how rows of features lie in memory, and `run` is compiled for one of them:

    rows     row t is from begin[t] to begin[t + 1]
    pairs    every row has `width` features
    single   every row has one feature
    dense    every row has all features, and needs no indices
"""

from functools import cache
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types

from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, keep, typed_as_any
from gradient_dd.engine.kernels.rules import IN_A_ROW, describe_kernel, make_coefficients
from gradient_dd.engine.stream import FeatureRows
from gradient_dd.learners import Rule

FAR_AHEAD = {"rows": 6, "pairs": 6, "single": 24, "dense": 0}  # rows by which features are fetched ahead
LIMIT = 1e150  # of a move: `Learner` decides what to do with a larger one
SMALLEST_SCALE, LARGEST_SCALE = 1e-150, 1e150  # of η: likewise
W, ETA, CHANGE = range(3)  # the parts of the memory
NULL, ONE = np.uintp(0), np.uintp(1)  # unsigned places need no test for a negative one


@typed_as_any
def fetch(typing: Any, array: Any, i: Any) -> Any:
    """Ask for the cache line of an element, for reading and writing; costs one instruction, wherever i points."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", (pointer,), kind)
        place = builder.bitcast(builder.gep(data, [arguments[1]]), pointer)
        builder.call(function, [place, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, i), emit


@cache
def stream_kernel(rule: Rule, layout: str) -> Any:
    """Return `run`, compiled for a rule and a layout of rows."""
    coefficients: Any = make_coefficients(rule, IN_A_ROW)
    has_eta, has_change, shrinks = rule.has_eta, "x_change" in rule.arguments, "eta_eta" in rule.moves
    dense, ahead = layout == "dense", np.uintp(FAR_AHEAD[layout])

    @numba.njit(**INLINE)
    def span(rows, t):
        """Return where a row begins and ends."""
        if layout == "rows":
            return np.uintp(rows.begin[t]), np.uintp(rows.begin[t + ONE])
        if layout == "single":
            return t, t + ONE
        width = np.uintp(rows.width)
        return t * width, (t + ONE) * width

    @numba.njit(**INLINE)
    def place(rows, begin, j):
        return j - begin if dense else np.uintp(rows.indices[j])

    @numba.njit(**INLINE)
    def products(memory, rows, t, all_parts):
        """Return a row of features times w, and with `all_parts` times η and w − w_prev; from left to right."""
        begin, end = span(rows, t)
        if begin == end:
            return 0.0, 0.0, 0.0
        i, value = place(rows, begin, begin), rows.values[begin]
        x_w, x_eta, x_change = value * memory[i, W], value * memory[i, ETA], value * memory[i, CHANGE]
        for j in range(begin + ONE, end):
            i, value = place(rows, begin, j), rows.values[j]
            x_w += value * memory[i, W]
            if all_parts and has_eta:
                x_eta += value * memory[i, ETA]
            if all_parts and has_change:
                x_change += value * memory[i, CHANGE]
        return x_w, x_eta, x_change

    @numba.njit(**INLINE)
    def stays_within(rows, t, coefficient):
        """Return whether no weight moves by more than LIMIT along a row."""
        if abs(coefficient) * rows.largest <= LIMIT:
            return True
        most = 0.0
        for j in range(*span(rows, t)):
            most = max(most, abs(rows.values[j]))
        return abs(coefficient) * most <= LIMIT

    @numba.njit(**INLINE)
    def move_w(memory, rows, t, coefficient):
        begin, end = span(rows, t)
        for j in range(begin, end):
            i, by = place(rows, begin, j), coefficient * rows.values[j]
            memory[i, W] += by
            if has_change:
                memory[i, CHANGE] += by

    @numba.njit(**INLINE)
    def move_eta(memory, rows, t, coefficient):
        begin, end = span(rows, t)
        for j in range(begin, end):
            memory[place(rows, begin, j), ETA] += coefficient * rows.values[j]

    @numba.njit(**INLINE)
    def clear_change(memory, rows, t):
        begin, end = span(rows, t)
        for j in range(begin, end):
            memory[place(rows, begin, j), CHANGE] = 0.0

    @numba.njit(**INLINE)
    def fetch_row(flat, parts, rows, t):
        begin, end = span(rows, t)
        for j in range(begin, end):
            fetch(flat, np.uintp(rows.indices[j]) * parts)

    def run(state, constants, x, x_next, columns, begin):
        """Make a step for every row from `begin` on; return the first row not made, or how many rows there are.

        A row is not made where a move or the scale of η leaves its bounds, or η is forgotten. The row of x' is not
        looked at where its discount is 0.

        state      what is changed, in the order of `StreamState`
        constants  alpha and zeta, the rule's own parameters, and whether the ratio of the x half is 1
        x, x_next  in the order of `FeatureRows`
        columns    reward, discount and rho (n,), and the factor of the schedule, (n,) or (1,)
        """
        memory, scale, previous, deltas = state
        start, own, only_next = constants
        x = FeatureRows(x[0], x[1], x[2], x[3], x[4])
        x_next = FeatureRows(x_next[0], x_next[1], x_next[2], x_next[3], x_next[4])
        reward, discount, rho, factor = columns
        flat, parts = memory.reshape(memory.size), np.uintp(memory.shape[1])
        n, varies = np.uintp(reward.size), factor.size > 1
        first = np.uintp(begin)
        alpha_0, zeta, eta_scale = start[0], start[1], scale[0]
        for t in range(first, n):
            if ahead and t + ahead < n:
                fetch_row(flat, parts, x, t + ahead)
                fetch_row(flat, parts, x_next, t + ahead)
            goes_on = discount[t] != 0.0
            alpha = alpha_0 * factor[t if varies else NULL]
            bootstrap = discount[t] * products(memory, x_next, t, False)[0] if goes_on else 0.0
            x_w, x_eta, x_change = products(memory, x, t, True)
            delta = reward[t] + bootstrap - x_w
            x_eta = eta_scale * x_eta if has_eta else 0.0
            rho_x = 1.0 if only_next else rho[t]
            w_x, w_next, eta_x, eta_eta = coefficients(
                own, alpha, zeta * alpha, rho[t], rho_x, discount[t], delta, x_eta, x_change
            )
            if not (stays_within(x, t, w_x) and stays_within(x, t, eta_x)):
                return t
            if goes_on and not stays_within(x_next, t, w_next):
                return t
            if shrinks:
                shrunk = eta_scale * (1.0 + eta_eta)
                if not SMALLEST_SCALE < abs(shrunk) < LARGEST_SCALE:
                    return t
                scale[0] = eta_scale = shrunk
            if has_change:
                if t == first:
                    for i in previous:
                        memory[i, CHANGE] = 0.0
                else:
                    clear_change(memory, x, t - ONE)
                    if discount[t - ONE] != 0.0:
                        clear_change(memory, x_next, t - ONE)
            if w_x != 0.0:
                move_w(memory, x, t, w_x)
            if goes_on and w_next != 0.0:
                move_w(memory, x_next, t, w_next)
            if has_eta and eta_x != 0.0:
                move_eta(memory, x, t, eta_x / eta_scale)
            deltas[t] = delta
        return n

    return keep(run, describe_kernel("stream", rule, layout), nogil=True, **COMPILE)
