"""The traced lane kernel: for rules with traces, products of features, momentum or a metric, and for long rows.

A step consists of passes: each row that a vector touches needs one pass over the lanes, and short arrays hold the sums
that the rule needs between the passes. Traces and metrics do not depend on the weights, so all lanes of a block share
them: settings are grouped by the parameters that their traces read.

One kernel serves all tasks, because it does not depend on the shape of the features.
"""

from collections import namedtuple
from functools import cache
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels import state
from gradient_dd.engine.kernels.compiler import (
    COMPILE,
    INLINE,
    barrier,
    compile_source,
    disjoint,
    keep,
    use_widest_vectors,
)
from gradient_dd.engine.kernels.rows import Step, lanes_of, take_any_errors
from gradient_dd.engine.kernels.rules import describe_kernel
from gradient_dd.engine.kernels.state import ETA_SUMS, call_step, read_memory, shrink_eta
from gradient_dd.engine.kernels.vectors import (
    make_advance_traces,
    product,
    products_ahead,
    set_directions,
    trace_place,
)
from gradient_dd.engine.reference import PRODUCTS
from gradient_dd.learners import MOVES, Rule

SUMS = ("delta", *ETA_SUMS)  # sums over rows, for each lane
DIRECTIONS = tuple(move for move in MOVES if move != "eta_eta")
SHARED = ("rho", "rho_x", "discount", *PRODUCTS)  # the signals of a step that all lanes share
Scratch = namedtuple(
    "Scratch", "delta x_eta z_eta b_eta w_x w_next w_z w_change eta_x eta_next eta_z gap along along_next"
)
"""Arrays between the passes of a step.

delta … b_eta      (B,) sums of each lane;  w_x … eta_z  (B,) its coefficients;  gap  (B,) a term of the error
along, along_next  (p,) the directions M⁻¹x and M⁻¹x' of a natural rule
"""
SCRATCH_SOURCE = f"""def new_scratch(B, p):
    return Scratch({"np.zeros(B), " * (len(Scratch._fields) - 2)} np.zeros(p), np.zeros(p))
"""
new_scratch = numba.njit(compile_source(SCRATCH_SOURCE, {"Scratch": Scratch, "np": np}), **INLINE)


def make_call_rule(rule: Rule) -> Any:
    """Compile `call_rule`, which computes the coefficients of every lane from its sums."""
    loop = [f"{name} = load_{name}(scratch.{name}, lane)" for name in SUMS if name in rule.arguments]
    loop += [*read_memory(rule), *call_step(rule), *shrink_eta(rule, steady=False)]
    loop += [f"store_{move}(scratch.{move}, lane, {move})" for move in rule.moves if move != "eta_eta"]
    head = ["def call_rule(fields, scratch, B, shared):", "    use_widest_vectors()"]
    head += [f"    {', '.join(SHARED)} = shared", "    outside = 0", "    for lane in range(B):"]
    source = "\n".join([*head, *(f"        {line}" for line in loop), "    return outside"])
    return state.compile_lane_loop(source, rule, ["fields", *SUMS, *DIRECTIONS], {})


# Passes over the lanes ---------------------------------------------------------------------------------------------


# A pass promises that its rows are disjoint. It ends with a barrier, because a row has another scope in the next pass.
SCOPES = ["sums", "row0", "row1", "row2", "row3"]
load_sums, store_sums = disjoint("sums", SCOPES)
load_row, store_row = disjoint("row0", SCOPES)
(load_1, store_1), (load_2, store_2), (load_3, store_3) = (disjoint(scope, SCOPES) for scope in SCOPES[2:])
FOUR = np.uintp(4)  # number of rows of a trace in one pass over the lanes


@numba.njit(**INLINE)
def set_all(sums, value, B):
    """Set the sums of all lanes to one value."""
    use_widest_vectors()
    for lane in range(B):
        sums[lane] = value


@numba.njit(**INLINE)
def add_row(sums, array, begin, value, B):
    """Add value × one row to the sums of all lanes."""
    use_widest_vectors()
    for lane in range(B):
        store_sums(sums, lane, load_sums(sums, lane) + load_row(array, begin + lane) * value)
    barrier()


@numba.njit(**INLINE)
def move_row(array, begin, coefficients, value, B):
    """Add coefficients × value to one row of all lanes."""
    use_widest_vectors()
    for lane in range(B):
        store_row(array, begin + lane, load_row(array, begin + lane) + load_sums(coefficients, lane) * value)
    barrier()


@numba.njit(**INLINE)
def move_w_by_both(w, begin, scratch, x, x_next, B):
    """Add w_x × x + w_next × x' to one row of w in all lanes."""
    use_widest_vectors()
    for lane in range(B):
        by = load_sums(scratch.w_x, lane) * x + load_1(scratch.w_next, lane) * x_next
        store_row(w, begin + lane, load_row(w, begin + lane) + by)
    barrier()


@numba.njit(**INLINE)
def entry(lanes, base, i):
    """Return the row and the value of an entry of a trace."""
    row = lanes.places[base + i]
    return row, lanes.vectors[base + row]


@numba.njit(**INLINE)
def four_entries(lanes, base, i, B):
    """Return where the rows of four trace entries begin in the weights, and the values of the entries."""
    (r0, z0), (r1, z1) = entry(lanes, base, i), entry(lanes, base, i + np.uintp(1))
    (r2, z2), (r3, z3) = entry(lanes, base, i + np.uintp(2)), entry(lanes, base, i + np.uintp(3))
    return r0 * B, r1 * B, r2 * B, r3 * B, z0, z1, z2, z3


@numba.njit(**INLINE)
def sum_along(sums, array, lanes, which, B):
    """Set the sums of all lanes to the product of a trace with their weights."""
    use_widest_vectors()
    set_all(sums, 0.0, B)
    base, count = which * np.uintp(lanes.marks.size >> 1), np.uintp(lanes.counts[which])
    whole = count - count % FOUR
    for i in range(np.uintp(0), whole, FOUR):
        r0, r1, r2, r3, z0, z1, z2, z3 = four_entries(lanes, base, i, B)
        for lane in range(B):
            two = load_sums(sums, lane) + load_row(array, r0 + lane) * z0 + load_1(array, r1 + lane) * z1
            store_sums(sums, lane, two + load_2(array, r2 + lane) * z2 + load_3(array, r3 + lane) * z3)
        barrier()
    for i in range(whole, count):
        row, value = entry(lanes, base, i)
        add_row(sums, array, row * B, value, B)


@numba.njit(**INLINE)
def move_along(array, lanes, which, coefficients, B):
    """Add coefficients × a trace to the weights of all lanes."""
    use_widest_vectors()
    base, count = which * np.uintp(lanes.marks.size >> 1), np.uintp(lanes.counts[which])
    whole = count - count % FOUR
    for i in range(np.uintp(0), whole, FOUR):
        r0, r1, r2, r3, z0, z1, z2, z3 = four_entries(lanes, base, i, B)
        for lane in range(B):
            along = load_sums(coefficients, lane)
            store_row(array, r0 + lane, load_row(array, r0 + lane) + along * z0)
            store_1(array, r1 + lane, load_1(array, r1 + lane) + along * z1)
            store_2(array, r2 + lane, load_2(array, r2 + lane) + along * z2)
            store_3(array, r3 + lane, load_3(array, r3 + lane) + along * z3)
        barrier()
    for i in range(whole, count):
        row, value = entry(lanes, base, i)
        move_row(array, row * B, coefficients, value, B)


@numba.njit(**INLINE)
def repeat_change(lanes, coefficients, B):
    """Add coefficients × the last change to w, and begin the next change with these products."""
    use_widest_vectors()
    for row in range(np.uintp(lanes.change.size) // B):
        begin = row * B  # a range in steps of B could fail, so the compiler would count references in every step
        for lane in range(B):
            again = load_sums(coefficients, lane) * load_row(lanes.change, begin + lane)
            store_row(lanes.change, begin + lane, again)
            store_1(lanes.w, begin + lane, load_1(lanes.w, begin + lane) + again)
        barrier()


def make_read(rule: Rule) -> Any:
    """Compile `read`, which computes the sums of each lane that the rule uses, and returns the SHARED signals."""
    asks_x_eta, asks_z_eta, asks_b_eta = (name in rule.arguments for name in ETA_SUMS)
    asks_products = bool(set(PRODUCTS) & set(rule.arguments))
    z, b = (np.uintp(trace_place(rule, name)) for name in ("z", "b"))

    @numba.njit(**INLINE)
    def read(lanes, table, step, scratch):
        o, B = step.outcome, step.B
        x_x, x_next, next_next, x_z, z_z = 0.0, 0.0, 0.0, 0.0, 0.0
        set_all(scratch.delta, table.reward[o], B)
        if asks_x_eta:
            set_all(scratch.x_eta, 0.0, B)
        for j in range(step.first, step.first + step.width):
            if table.u[j] != 0.0:
                add_row(scratch.delta, lanes.w, table.rows[j] * B, table.u[j], B)
            if asks_x_eta and table.x[j] != 0.0:
                add_row(scratch.x_eta, lanes.eta, table.rows[j] * B, table.x[j], B)
            if asks_products:
                x_x += table.x[j] * table.x[j]
                x_next += table.x[j] * table.x_next[j]
                next_next += table.x_next[j] * table.x_next[j]
        if asks_z_eta:
            sum_along(scratch.z_eta, lanes.eta, lanes, z, B)
        if asks_b_eta:
            sum_along(scratch.b_eta, lanes.eta, lanes, b, B)
        if asks_products:
            base = z * np.uintp(lanes.marks.size >> 1)
            for i in range(np.uintp(lanes.counts[z])):
                value = entry(lanes, base, i)[1]
                z_z += value * value
            x_z = product(table, step.first, step.width, lanes.vectors, base)
        return table.rho[o], table.rho_x[o], table.discount[o], x_x, x_next, next_next, x_z, z_z

    return read


def make_move_weights(rule: Rule) -> Any:
    """Compile `move_weights`, which moves w and η of all lanes along x, x', z and the last change of w.

    A plain rule moves w once, by w_x x + w_next x'.
    """
    w_x, w_next, w_z, w_change, eta_x, eta_next, eta_z = (
        move in rule.moves for move in ("w_x", "w_next", "w_z", "w_change", "eta_x", "eta_next", "eta_z")
    )
    plain, natural, z = rule.is_plain, rule.natural, np.uintp(trace_place(rule, "z"))

    @numba.njit(**INLINE)
    def move_w(lanes, begin, coefficients, value, B):
        move_row(lanes.w, begin, coefficients, value, B)
        if w_change:
            move_row(lanes.change, begin, coefficients, value, B)

    @numba.njit(**INLINE)
    def move_weights(lanes, table, step, scratch):
        B = step.B
        if w_change:
            repeat_change(lanes, scratch.w_change, B)
        if natural:
            span = step.first, step.first + step.width
            set_directions(lanes.metric, table.rows, table.x, table.x_next, span, scratch.along, scratch.along_next)
            for i in range(np.uintp(scratch.along.size)):
                move_w_by_both(lanes.w, i * B, scratch, scratch.along[i], scratch.along_next[i], B)
        for j in range(step.first, step.first + step.width):
            begin, x, x_next = table.rows[j] * B, table.x[j], table.x_next[j]
            if plain and not natural:
                move_w_by_both(lanes.w, begin, scratch, x, x_next, B)
            if x != 0.0:
                if w_x and not plain:
                    move_w(lanes, begin, scratch.w_x, x, B)
                if eta_x:
                    move_row(lanes.eta, begin, scratch.eta_x, x, B)
            if x_next != 0.0:
                if w_next and not plain:
                    move_w(lanes, begin, scratch.w_next, x_next, B)
                if eta_next:
                    move_row(lanes.eta, begin, scratch.eta_next, x_next, B)
        if w_z:
            move_along(lanes.w, lanes, z, scratch.w_z, B)
        if eta_z:
            move_along(lanes.eta, lanes, z, scratch.eta_z, B)

    return move_weights


def make_write_change(rule: Rule) -> Any:
    """Compile `write_change`, which computes x·(w − w_prev) for the next step's x from the directions of w."""
    w_x, w_next, w_z, w_change = (move in rule.moves for move in ("w_x", "w_next", "w_z", "w_change"))
    CHANGE, natural, z = state.field_begins(rule)["memory_x_change"], rule.natural, np.uintp(trace_place(rule, "z"))

    @numba.njit(**INLINE)
    def write_change(lanes, table, step, scratch):
        use_widest_vectors()
        coming, width, B, none = step.coming, step.width, step.B, np.uintp(0)
        if w_change:  # the change is stored as a vector
            changes = lanes.fields[CHANGE : CHANGE + B]
            set_all(changes, 0.0, B)
            for i in range(coming, coming + width):
                add_row(changes, lanes.change, table.rows[i] * B, table.x[i], B)
            return
        if natural:
            with_x = product(table, coming, width, scratch.along, none)
            with_next = product(table, coming, width, scratch.along_next, none)
        else:
            with_x, with_next = products_ahead(table, step.first, coming, width)
        with_z = product(table, coming, width, lanes.vectors, z * np.uintp(lanes.marks.size >> 1)) if w_z else 0.0
        for lane in range(B):
            change = 0.0
            if w_x:
                change += scratch.w_x[lane] * with_x
            if w_next:
                change += scratch.w_next[lane] * with_next
            if w_z:
                change += scratch.w_z[lane] * with_z
            lanes.fields[CHANGE + lane] = change

    return write_change


@cache
def traced_kernel(rule: Rule) -> Any:
    """Compile `kernel(column, segments, table, measure, lanes, errors)` for a rule."""
    advance_traces, read, call_rule = make_advance_traces(rule), make_read(rule), make_call_rule(rule)
    move_weights, write_change = make_move_weights(rule), make_write_change(rule)
    asks_change, after_tiny = "x_change" in rule.arguments, state.AFTER_TINY if rule.is_plain else 1.0

    def kernel(column, segments, table, measure, lanes, errors):
        use_widest_vectors()
        B, t = lanes_of(errors), np.uintp(0)
        width = np.uintp(table.rows.size // table.reward.size)
        scratch = new_scratch(errors.now.size, lanes.vectors.size // 2)
        for s in range(segments.end.size):
            state.set_step_sizes(lanes, segments.factor[s], B, state.STRIDE)
            while t < np.uintp(segments.end[s]):
                outcome, coming = np.uintp(column[t]), np.uintp(column[t + np.uintp(1)])
                step = Step(outcome, outcome * width, coming * width, width, B)
                advance_traces(lanes, table, step)
                outside = call_rule(lanes.fields, scratch, B, read(lanes, table, step, scratch))
                move_weights(lanes, table, step, scratch)
                if asks_change:
                    write_change(lanes, table, step, scratch)
                if outside:
                    state.rescale(lanes.eta, lanes.fields, B, after_tiny)
                t += np.uintp(1)
            if segments.point[s] >= 0 or segments.last[s]:
                take_any_errors(lanes.w, measure, errors, scratch.gap, segments, s)

    return keep(kernel, describe_kernel("traced", rule), nogil=True, **COMPILE)
