"""The stream kernel: one learner on a user's transitions, given as rows of features.

The memory of a learner is memory[i, part], where the parts are w, η and w − w_prev: the numbers of one feature are
adjacent, and the kernel prefetches the features of later rows. Sums run from left to right, as in the interpreted step
of `Learner`, so both give the same bits.

A kernel is compiled for one `layout` of rows:

    rows     row t runs from begin[t] to begin[t + 1]
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

from gradient_dd.engine.kernels import feature_rows
from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, keep, typed_as_any
from gradient_dd.engine.kernels.rules import IN_A_ROW, PLAIN, STEP_SIZES, describe_kernel, make_coefficients
from gradient_dd.engine.reference import KNOWN_MOVES, PRODUCTS
from gradient_dd.engine.single import (
    CHANGE,
    CHANGED,
    DENSE,
    ETA,
    EVERYWHERE,
    HALF,
    LIMIT,
    OLD,
    SCALE_RANGE,
    FeatureRows,
    TraceArrays,
    W,
)
from gradient_dd.learners import Rule

FAR_AHEAD = {"rows": 6, "pairs": 6, "single": 24, "dense": 0}  # number of rows by which features are prefetched
SMALLEST_SCALE, LARGEST_SCALE = SCALE_RANGE
NULL, ONE = np.uintp(0), np.uintp(1)  # unsigned indices need no check for negative values


@typed_as_any
def fetch(typing: Any, array: Any, i: Any) -> Any:
    """Prefetch the cache line of an element for writing. Adds one instruction; i may be out of range."""

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
def make_row_passes(layout: str, has_eta: bool, has_change: bool) -> tuple[Any, ...]:
    """Return the functions that loop over a row of features."""
    dense = layout == "dense"

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
        """Return the products of a row with w and, with `all_parts`, with η and w − w_prev."""
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
    def stays_within(rows, t, on_w, on_eta):
        """Return whether no weight moves by more than LIMIT along a row."""
        if abs(on_w) * rows.largest <= LIMIT and abs(on_eta) * rows.largest <= LIMIT:
            return True
        begin, end = span(rows, t)
        most = feature_rows.largest_of(rows.values, begin, end)
        return abs(on_w) * most <= LIMIT and abs(on_eta) * most <= LIMIT

    @numba.njit(**INLINE)
    def move(memory, part, rows, t, coefficient):
        """Move w (and with it w − w_prev) or η along a row."""
        begin, end = span(rows, t)
        for j in range(begin, end):
            i, by = place(rows, begin, j), coefficient * rows.values[j]
            memory[i, part] += by
            if part == W and has_change:
                memory[i, CHANGE] += by

    @numba.njit(**INLINE)
    def clear_change(memory, rows, t):
        begin, end = span(rows, t)
        for j in range(begin, end):
            memory[place(rows, begin, j), CHANGE] = 0.0

    @numba.njit(**INLINE)
    def list_places(changed, count, rows, t):
        """Add the features of a row to a list; return the length of the list, or EVERYWHERE."""
        begin, end = span(rows, t)
        for j in range(begin, begin if dense else end):
            if rows.values[j] != 0.0:
                changed[count] = rows.indices[j]
                count += 1
        return EVERYWHERE if dense else count

    @numba.njit(**INLINE)
    def fetch_row(flat, parts, rows, t):
        begin, end = span(rows, t)
        for j in range(begin, end):
            fetch(flat, np.uintp(rows.indices[j]) * parts)

    return span, products, stays_within, move, clear_change, list_places, fetch_row


@cache
def stream_kernel(rule: Rule, layout: str) -> Any:
    """Return `steps`, compiled for a rule and a layout of rows."""
    coefficients: Any = make_coefficients(
        rule, IN_A_ROW, (*STEP_SIZES, *PLAIN, "z_eta", "b_eta", *PRODUCTS), KNOWN_MOVES
    )
    has_eta, has_momentum, shrinks = rule.has_eta, "w_change" in rule.moves, "eta_eta" in rule.moves
    has_change = has_momentum or "x_change" in rule.arguments
    names = [trace.name for trace in rule.traces]
    has_traces, has_products = bool(names), bool(set(PRODUCTS) & set(rule.arguments))
    asks_z, asks_b = "z_eta" in rule.arguments, "b_eta" in rule.arguments
    at_z, at_b = (names.index(name) if name in names else 0 for name in ("z", "b"))
    dense, ahead = layout == "dense", np.uintp(FAR_AHEAD[layout])
    passes = make_row_passes(layout, has_eta, has_change)
    span, products, stays_within, move, clear_change, list_places, fetch_row = passes
    grow_traces: Any = feature_rows.make_grow_traces(rule)

    @numba.njit(**INLINE)
    def forget_change(memory, counts, changed):
        """Set w − w_prev to zero wherever the last step of the previous call moved w."""
        everywhere = counts[CHANGED] == EVERYWHERE
        for j in range(len(memory) if everywhere else counts[CHANGED]):
            memory[np.uintp(j if everywhere else changed[j]), CHANGE] = 0.0

    @numba.njit(**INLINE)
    def row_of(rows, t):
        """Return a row as `feature_rows` defines it."""
        begin, end = span(rows, t)
        return rows.indices, rows.values, begin, end, dense

    def steps(state, constants, x, x_next, columns, begin):
        """Make one step for each row from `begin` on; return the row at which they stopped, or the number of rows.

        Steps stop at a row where a trace, a move or the scale of η would leave its bounds, or which would reset η to 0.
        A row of x' is not read if its discount is 0.

        state      the arrays of `SingleMemory`, which change;  constants  its constants
        x, x_next  the fields of `FeatureRows`
        columns    reward, discount and rho (n,), then the columns of `SingleMemory.advance`
        """
        memory, scale, counts, changed = state[:4]
        traces, x, x_next = TraceArrays(*state[4:]), FeatureRows(*x), FeatureRows(*x_next)
        start, own, only_next = constants
        reward, discount, rho, pi, mu, factor, cut, deltas = columns
        flat, parts = memory.reshape(memory.size), np.uintp(memory.shape[1])
        n, first, varies = np.uintp(reward.size), np.uintp(begin), factor.size > 1
        alpha_0, zeta, eta_scale, half = start[0], start[1], scale[0], counts[HALF]
        z_eta = b_eta = x_x = x_to_next = next_next = x_z = z_z = 0.0
        t = first
        while t < n:
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
            if has_traces:
                if not grow_traces(traces, half, dense or counts[DENSE] > 0, own, row_of(x, t), alpha, rho[t]):
                    break
                if asks_z:
                    z_eta = eta_scale * feature_rows.eta_along(memory, feature_rows.trace_row(traces, 1 - half, at_z))
                if asks_b:
                    b_eta = eta_scale * feature_rows.eta_along(memory, feature_rows.trace_row(traces, 1 - half, at_b))
            if has_products:
                row, z = row_of(x, t), feature_rows.trace_row(traces, 1 - half, at_z)
                x_x, x_z, z_z = feature_rows.dot(row, row), feature_rows.dot(row, z), feature_rows.dot(z, z)
                x_to_next = feature_rows.dot(row, row_of(x_next, t)) if goes_on else 0.0
                next_next = feature_rows.dot(row_of(x_next, t), row_of(x_next, t)) if goes_on else 0.0
            given = alpha, zeta * alpha, rho[t], rho_x, discount[t], delta, x_eta, x_change
            traced = z_eta, b_eta, x_x, x_to_next, next_next, x_z, z_z
            w_x, w_next, w_z, w_change, eta_x, eta_next, eta_z, eta_eta = coefficients(own, NULL, given + traced)
            if not stays_within(x, t, w_x, eta_x) or (goes_on and not stays_within(x_next, t, w_next, eta_next)):
                break
            if has_traces:
                z = feature_rows.trace_row(traces, 1 - half, at_z)
                most = feature_rows.largest_of(z[1], z[2], z[3])
                if not (abs(w_z) * most <= LIMIT and abs(eta_z) * most <= LIMIT):
                    break
            if has_momentum and not abs(w_change) * np.abs(memory[:, CHANGE]).max() <= LIMIT:
                break
            if shrinks:
                shrunk = eta_scale * (1.0 + eta_eta)
                if not SMALLEST_SCALE < abs(shrunk) < LARGEST_SCALE:
                    break
                scale[0] = eta_scale = shrunk
            if has_momentum:
                memory[:, OLD] = memory[:, CHANGE]
                memory[:, CHANGE] = 0.0
            elif has_change:
                if t == first:
                    forget_change(memory, counts, changed)
                else:
                    clear_change(memory, x, t - ONE)
                    if discount[t - ONE] != 0.0:
                        clear_change(memory, x_next, t - ONE)
                if has_traces:
                    feature_rows.clear_along(memory, feature_rows.trace_row(traces, half, at_z))
            if w_x != 0.0:
                move(memory, W, x, t, w_x)
            if goes_on and w_next != 0.0:
                move(memory, W, x_next, t, w_next)
            if has_eta and eta_x != 0.0:
                move(memory, ETA, x, t, eta_x / eta_scale)
            if has_eta and goes_on and eta_next != 0.0:
                move(memory, ETA, x_next, t, eta_next / eta_scale)
            if has_traces:
                z = feature_rows.trace_row(traces, 1 - half, at_z)
                feature_rows.move_along(memory, W, z, w_z)
                if has_change:
                    feature_rows.move_along(memory, CHANGE, z, w_z)
                if has_eta:
                    feature_rows.move_along(memory, ETA, z, eta_z / eta_scale)
                feature_rows.remember(traces.before, 0.0 if cut.size and cut[t] else discount[t], rho[t], pi, mu, t)
                half = 1 - half
            if has_momentum:
                memory[:, W] += w_change * memory[:, OLD]
                memory[:, CHANGE] += w_change * memory[:, OLD]
            deltas[t] = delta
            t += ONE
        if t > first:
            counts[HALF], counts[DENSE] = half, counts[DENSE] | dense
            if has_change:
                last, count = t - ONE, list_places(changed, 0, x, t - ONE)
                if discount[last] != 0.0:
                    count = list_places(changed, count, x_next, last)
                counts[CHANGED] = EVERYWHERE if has_momentum else count
        return t

    return keep(steps, describe_kernel("stream", rule, layout), nogil=True, **COMPILE)


@cache
def step_kernel(rule: Rule, dense: bool) -> Any:
    """Return `step`, compiled for single transitions, whose rows are both dense or both sparse."""
    steps: Any = stream_kernel(rule, "dense" if dense else "pairs")

    def step(state, constants, indices, values, next_indices, next_values, row, reward, discount, rho, pi, mu, factor):
        """Make one step and return its TD error; NaN if a row is invalid or `steps` refuses the step.

        row  (7,) scratch for the columns of `steps`
        """
        p = len(state[0])
        if not dense:
            indices, values = feature_rows.ordered_row(indices, values)
            next_indices, next_values = feature_rows.ordered_row(next_indices, next_values)
        if not (
            feature_rows.row_is_sound(indices, values, p) and feature_rows.row_is_sound(next_indices, next_values, p)
        ):
            return np.nan
        row[0], row[1], row[2], row[3], row[4], row[5] = reward, discount, rho, pi, mu, factor
        columns = row[0:1], row[1:2], row[2:3], row[3:4], row[4:5], row[5:6], row[0:0] != 0.0, row[6:7]
        x = indices[0:0], values.size, indices, values, np.inf
        x_next = indices[0:0], next_values.size, next_indices, next_values, np.inf
        return row[6] if steps(state, constants, x, x_next, columns, 0) else np.nan

    return keep(step, describe_kernel("step", rule, dense), nogil=True, **COMPILE)
