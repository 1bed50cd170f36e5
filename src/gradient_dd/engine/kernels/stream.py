"""The stream kernel: one learner on transitions from anywhere, given as rows of features.

The parts of a learner's memory stand beside each other, feature by feature: memory[i, part], the parts being w, η and
w − w_prev. So a feature touches one stretch of memory, and the features of rows that come soon are fetched ahead. Sums
run from left to right, as the interpreted step of `Learner` makes them, so both give the same bits.

`layout` says how rows of features lie in memory, and a kernel is compiled for one of them:

    rows     row t is from begin[t] to begin[t + 1]
    pairs    every row has `width` features
    single   every row has one feature
    dense    every row has all features, and needs no indices
"""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types

from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, typed_as_any
from gradient_dd.engine.kernels.given_rows import ordered_row, row_is_sound
from gradient_dd.engine.kernels.keep import describe_kernel, keep
from gradient_dd.engine.kernels.rules import IN_A_ROW, PLAIN, make_coefficients
from gradient_dd.engine.kernels.stream_traces import (
    clear_along,
    dot,
    eta_along,
    largest_change,
    largest_of,
    make_grow_traces,
    move_along,
    move_by_change,
    places_of_traces,
    remember,
    set_change_aside,
    trace_row,
)
from gradient_dd.engine.reference import KNOWN_MOVES, PRODUCTS
from gradient_dd.engine.single import (
    CHANGE,
    CHANGED,
    DENSE,
    ETA,
    EVERYWHERE,
    HALF,
    LIMIT,
    SCALE_RANGE,
    FeatureRows,
    TraceArrays,
    W,
)
from gradient_dd.learners import Rule

FAR_AHEAD = {"rows": 6, "pairs": 6, "single": 24, "dense": 0}  # rows by which features are fetched ahead
SMALLEST_SCALE, LARGEST_SCALE = SCALE_RANGE
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


def uses_change(rule: Rule) -> bool:
    """Return whether a rule asks for w − w_prev."""
    return "x_change" in rule.arguments or "w_change" in rule.moves


class RowPasses(NamedTuple):
    """Compiled functions that go along a row of features."""

    span: Any
    products: Any
    stays_within: Any
    move: Any
    clear_change: Any
    list_places: Any
    fetch_row: Any


@cache
def make_row_passes(layout: str, has_eta: bool, has_change: bool) -> RowPasses:
    """Return the functions that go along a row of features."""
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
        begin, end = span(rows, t)
        return abs(coefficient) * largest_of(rows.values, begin, end) <= LIMIT

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
        """Add the features of a row to a list; return its length, or EVERYWHERE."""
        if dense:
            return EVERYWHERE
        begin, end = span(rows, t)
        for j in range(begin, end):
            if rows.values[j] != 0.0:
                changed[count] = rows.indices[j]
                count += 1
        return count

    @numba.njit(**INLINE)
    def fetch_row(flat, parts, rows, t):
        begin, end = span(rows, t)
        for j in range(begin, end):
            fetch(flat, np.uintp(rows.indices[j]) * parts)

    return RowPasses(span, products, stays_within, move, clear_change, list_places, fetch_row)


class Moves(NamedTuple):
    """The coefficients of a step, in the order of KNOWN_MOVES."""

    w_x: float
    w_next: float
    w_z: float
    w_change: float
    eta_x: float
    eta_next: float
    eta_z: float
    eta_eta: float


def make_read(rule: Rule, layout: str) -> Any:
    """Return `read(...)`, which makes x a part of the traces and calls the rule."""
    coefficients: Any = make_coefficients(rule, IN_A_ROW, (*PLAIN, "z_eta", "b_eta", *PRODUCTS), KNOWN_MOVES)
    has_traces, has_products = bool(rule.traces), bool(set(PRODUCTS) & set(rule.arguments))
    asks_z, asks_b = "z_eta" in rule.arguments, "b_eta" in rule.arguments
    z, b = places_of_traces(rule)
    has_eta, dense = rule.has_eta, layout == "dense"
    grow_traces: Any = make_grow_traces(rule)
    passes = make_row_passes(layout, has_eta, uses_change(rule))
    span, products = passes.span, passes.products

    @numba.njit(**INLINE)
    def row_of(rows, t):
        """Return a row as `dot` reads it."""
        begin, end = span(rows, t)
        return rows.indices, rows.values, begin, end, dense

    @numba.njit(**INLINE)
    def dots(traces, half, x, x_next, t, goes_on):
        """Return x·x, x·x', x'·x', x·z and z·z."""
        here, trace = row_of(x, t), trace_row(traces, half, z)
        x_x, x_z, z_z = dot(here, here), dot(here, trace), dot(trace, trace)
        if not goes_on:
            return x_x, 0.0, 0.0, x_z, z_z
        there = row_of(x_next, t)
        return x_x, dot(here, there), dot(there, there), x_z, z_z

    @numba.njit(**INLINE)
    def read(memory, eta_scale, traces, half, all_entries, own, steps, x, x_next, t, transition):
        """Return whether the new traces, in the other half, are finite; the TD error; and the moves.

        steps       alpha and beta;  transition  reward, discount, and the ratios of the two halves
        """
        alpha, beta = steps
        reward, discount, rho, rho_x = transition
        goes_on, other = discount != 0.0, 1 - half
        bootstrap = discount * products(memory, x_next, t, False)[0] if goes_on else 0.0
        x_w, x_eta, x_change = products(memory, x, t, True)
        delta = reward + bootstrap - x_w
        x_eta = eta_scale * x_eta if has_eta else 0.0
        fine, z_eta, b_eta = True, 0.0, 0.0
        x_x = x_to_next = next_next = x_z = z_z = 0.0
        if has_traces:
            fine = grow_traces(traces, half, all_entries, own, row_of(x, t), alpha, rho)
            z_eta = eta_scale * eta_along(memory, trace_row(traces, other, z)) if asks_z else 0.0
            b_eta = eta_scale * eta_along(memory, trace_row(traces, other, b)) if asks_b else 0.0
        if has_products:
            x_x, x_to_next, next_next, x_z, z_z = dots(traces, other, x, x_next, t, goes_on)
        plain = alpha, beta, rho, rho_x, discount, delta, x_eta, x_change
        more = z_eta, b_eta, x_x, x_to_next, next_next, x_z, z_z
        return fine, delta, Moves(*coefficients(own, *plain, *more))

    return read


def make_fits(rule: Rule, layout: str) -> Any:
    """Return `fits(...)`, which says whether a step stays within its bounds."""
    has_traces, has_momentum, shrinks = bool(rule.traces), "w_change" in rule.moves, "eta_eta" in rule.moves
    stays_within = make_row_passes(layout, rule.has_eta, uses_change(rule)).stays_within
    z, _ = places_of_traces(rule)

    @numba.njit(**INLINE)
    def fits(memory, eta_scale, traces, half, x, x_next, t, goes_on, moves):
        """Return whether no weight moves by more than LIMIT, and η is neither forgotten nor beyond its scales."""
        if not (stays_within(x, t, moves.w_x) and stays_within(x, t, moves.eta_x)):
            return False
        if goes_on and not (stays_within(x_next, t, moves.w_next) and stays_within(x_next, t, moves.eta_next)):
            return False
        if has_traces:
            trace = trace_row(traces, half, z)
            most = largest_of(trace[1], trace[2], trace[3])
            if not (abs(moves.w_z) * most <= LIMIT and abs(moves.eta_z) * most <= LIMIT):
                return False
        if has_momentum and not abs(moves.w_change) * largest_change(memory) <= LIMIT:
            return False
        return not shrinks or SMALLEST_SCALE < abs(eta_scale * (1.0 + moves.eta_eta)) < LARGEST_SCALE

    return fits


def make_move(rule: Rule, layout: str) -> Any:
    """Return `move_all(...)`, which moves the weights."""
    has_eta, has_traces, has_momentum = rule.has_eta, bool(rule.traces), "w_change" in rule.moves
    has_change = uses_change(rule)
    passes = make_row_passes(layout, has_eta, has_change)
    move, clear_change = passes.move, passes.clear_change
    z, _ = places_of_traces(rule)

    @numba.njit(**INLINE)
    def forget_change(memory, counts, changed, traces, half, x, x_next, discount, t, first):
        """Set w − w_prev to zero wherever the step before has moved w; `first` is the first step of the call."""
        if t > first:
            clear_change(memory, x, t - ONE)
            if discount[t - ONE] != 0.0:
                clear_change(memory, x_next, t - ONE)
        else:
            everywhere = counts[CHANGED] == EVERYWHERE
            for j in range(len(memory) if everywhere else counts[CHANGED]):
                memory[np.uintp(j if everywhere else changed[j]), CHANGE] = 0.0
        if has_traces:
            clear_along(memory, trace_row(traces, half, z))

    @numba.njit(**INLINE)
    def move_all(memory, eta_scale, traces, half, x, x_next, t, goes_on, moves):
        """Move w, then η, along x, x', the trace in force, and the change of w in the step before."""
        if moves.w_x != 0.0:
            move(memory, W, x, t, moves.w_x)
        if goes_on and moves.w_next != 0.0:
            move(memory, W, x_next, t, moves.w_next)
        if has_eta and moves.eta_x != 0.0:
            move(memory, ETA, x, t, moves.eta_x / eta_scale)
        if has_eta and goes_on and moves.eta_next != 0.0:
            move(memory, ETA, x_next, t, moves.eta_next / eta_scale)
        if has_traces:
            trace = trace_row(traces, half, z)
            move_along(memory, W, trace, moves.w_z)
            if has_change:
                move_along(memory, CHANGE, trace, moves.w_z)
            if has_eta:
                move_along(memory, ETA, trace, moves.eta_z / eta_scale)
        if has_momentum:
            move_by_change(memory, moves.w_change)

    return forget_change, move_all


@cache
def stream_kernel(rule: Rule, layout: str) -> Any:
    """Return `steps`, compiled for a rule and a layout of rows."""
    read, fits = make_read(rule, layout), make_fits(rule, layout)
    forget_change, move_all = make_move(rule, layout)
    has_traces, has_momentum, shrinks = bool(rule.traces), "w_change" in rule.moves, "eta_eta" in rule.moves
    has_change = uses_change(rule)
    passes = make_row_passes(layout, rule.has_eta, has_change)
    fetch_row, list_places = passes.fetch_row, passes.list_places
    dense, ahead = layout == "dense", np.uintp(FAR_AHEAD[layout])

    def steps(state, constants, x, x_next, columns, begin):
        """Make a step for every row from `begin` on; return the first row not made, or how many rows there are.

        A row is not made where a move or the scale of η leaves its bounds, or η is forgotten. The row of x' is not
        looked at where its discount is 0.

        state      what is changed: the arrays of `SingleMemory`
        constants  alpha and zeta, the rule's own parameters, and whether the ratio of the x half is 1
        x, x_next  in the order of `FeatureRows`
        columns    reward, discount and rho (n,); pi and mu, (n,) or (0,); the factor of the schedule, (n,) or (1,); and
                   deltas (n,), to be filled with the TD errors
        """
        memory, scale, counts, changed = state[0], state[1], state[2], state[3]
        traces = TraceArrays(state[4], state[5], state[6], state[7], state[8])
        start, own, only_next = constants
        x = FeatureRows(x[0], x[1], x[2], x[3], x[4])
        x_next = FeatureRows(x_next[0], x_next[1], x_next[2], x_next[3], x_next[4])
        reward, discount, rho, pi, mu, factor, deltas = columns
        flat, parts = memory.reshape(memory.size), np.uintp(memory.shape[1])
        n, varies, first = np.uintp(reward.size), factor.size > 1, np.uintp(begin)
        eta_scale, half, all_entries = scale[0], counts[HALF], dense or counts[DENSE] > 0
        t = first
        while t < n:
            if ahead and t + ahead < n:
                fetch_row(flat, parts, x, t + ahead)
                fetch_row(flat, parts, x_next, t + ahead)
            goes_on = discount[t] != 0.0
            alpha = start[0] * factor[t if varies else NULL]
            transition = reward[t], discount[t], rho[t], 1.0 if only_next else rho[t]
            fine, delta, moves = read(
                memory, eta_scale, traces, half, all_entries, own, (alpha, start[1] * alpha), x, x_next, t, transition
            )
            if not (fine and fits(memory, eta_scale, traces, 1 - half, x, x_next, t, goes_on, moves)):
                break
            if shrinks:
                scale[0] = eta_scale = eta_scale * (1.0 + moves.eta_eta)
            if has_momentum:
                set_change_aside(memory)
            elif has_change:
                forget_change(memory, counts, changed, traces, half, x, x_next, discount, t, first)
            move_all(memory, eta_scale, traces, 1 - half, x, x_next, t, goes_on, moves)
            if has_traces:
                remember(traces.before, discount[t], rho[t], pi, mu, t)
                half = 1 - half
            deltas[t] = delta
            t += ONE
        if t > first:
            counts[HALF], counts[DENSE] = half, counts[DENSE] | dense
            if has_change:
                last, count = t - ONE, list_places(changed, 0, x, t - ONE)
                count = list_places(changed, count, x_next, last) if discount[last] != 0.0 else count
                counts[CHANGED] = EVERYWHERE if has_momentum else count
        return t

    return keep(steps, describe_kernel("stream", rule, layout), nogil=True, **COMPILE)


@cache
def step_kernel(rule: Rule, dense: bool) -> Any:
    """Return `step`, compiled for single transitions, whose rows are both dense or both sparse."""
    steps: Any = stream_kernel(rule, "dense" if dense else "pairs")

    def step(state, constants, indices, values, next_indices, next_values, row, reward, discount, rho, pi, mu, factor):
        """Make one step and return its TD error; NaN where a row is not sound, or `steps` does not make the step.

        row  (7,) room for the columns of `steps`
        """
        p = len(state[0])
        if not dense:
            indices, values = ordered_row(indices, values)
            next_indices, next_values = ordered_row(next_indices, next_values)
        if not (row_is_sound(indices, values, p) and row_is_sound(next_indices, next_values, p)):
            return np.nan
        row[0], row[1], row[2], row[3], row[4], row[5] = reward, discount, rho, pi, mu, factor
        columns = row[0:1], row[1:2], row[2:3], row[3:4], row[4:5], row[5:6], row[6:7]
        x = indices[0:0], values.size, indices, values, np.inf
        x_next = indices[0:0], next_values.size, next_indices, next_values, np.inf
        return row[6] if steps(state, constants, x, x_next, columns, 0) else np.nan

    return keep(step, describe_kernel("step", rule, dense), nogil=True, **COMPILE)
