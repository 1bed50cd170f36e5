"""The traced lane kernel: for rules with traces, products of features, or momentum.

A step is made in passes, as in the wide kernel: each row that a vector touches is one pass over the lanes, and what the
rule needs is summed in short arrays between. A trace does not depend on the weights, so all lanes of a block share one:
settings are grouped by the parameters that their traces read. It is kept as a vector and the list of its non-zeros.

One kernel serves all tasks: nothing in it depends on the shape of the features.
"""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler_options import COMPILE, INLINE, INNER
from gradient_dd.engine.kernels.folding import take_any_errors
from gradient_dd.engine.kernels.fused import WHOLE_STRIPS, set_step_sizes
from gradient_dd.engine.kernels.intrinsics import barrier, disjoint
from gradient_dd.engine.kernels.keep import describe_kernel, keep
from gradient_dd.engine.kernels.lane_state import lane_parameters
from gradient_dd.engine.kernels.trace_vector import add_features, decay_trace, products_with
from gradient_dd.engine.kernels.vectors import use_widest_vectors
from gradient_dd.learners import MOVES, Rule
from gradient_dd.learners.trace import Trace

TINY, HUGE = 2.0**-400, 2.0**400  # outside this range the scale of η is multiplied into η
SMALLEST_SHRINK = 2.0**-60  # used in place of a shrink by exactly 0: a forgotten η keeps 1e-18 of its size
PRODUCTS = ("x_x", "x_next", "next_next", "x_z", "z_z")
SUMS = ("delta", "x_eta", "z_eta", "b_eta")  # of each lane, summed over rows


class Scratch(NamedTuple):
    """Arrays between the passes of a step, (B,) each: sums of the lanes, coefficients, and an error's term."""

    delta: Any
    x_eta: Any
    z_eta: Any
    b_eta: Any
    w_x: Any
    w_next: Any
    w_z: Any
    w_change: Any
    eta_x: Any
    eta_next: Any
    eta_z: Any
    gap: Any


@numba.njit(**INLINE)
def new_scratch(B):
    """Return scratch arrays for B lanes."""
    return Scratch(
        *(np.zeros(B), np.zeros(B), np.zeros(B), np.zeros(B), np.zeros(B), np.zeros(B)),
        *(np.zeros(B), np.zeros(B), np.zeros(B), np.zeros(B), np.zeros(B), np.zeros(B)),
    )


def trace_source(rule: Rule, trace: Trace) -> str:
    """Return the source of `numbers`: decay and gain of a trace; what it keeps is written to the memory."""
    names = {name: f"shared[{i}]" for i, name in enumerate(lane_parameters(rule)[2:])}
    names |= {f"{name}_before": f"before[{i}]" for i, name in enumerate(("discount", "rho", "pi", "mu"))}
    names |= {name: f"memory[{i}]" for i, name in enumerate(trace.memory)}
    kept = [f"memory[{i}]" for i in range(len(trace.memory))]
    arguments = ", ".join(names.get(name, name) for name in trace.arguments)
    return "\n".join(
        [
            "def numbers(shared, before, memory, alpha, rho, x_trace):",
            f"    decay, gain, {''.join(f'{place}, ' for place in kept)}= step({arguments})",
            "    return decay, gain",
        ]
    )


def rule_source(rule: Rule) -> str:
    """Return the source of `call_rule`: from the sums of every lane to its coefficients."""
    held = lane_parameters(rule)
    arguments = [f"load_fields(fields, F{held.index(a)} * B + lane)" if a in held else a for a in rule.arguments]
    loop = [f"{name} = load_{name}(scratch.{name}, lane)" for name in SUMS if name in rule.arguments]
    scales = "eta_eta" in rule.moves
    if scales:
        loop += ["scale = load_fields(fields, SCALE * B + lane)"]
        loop += [f"{name} = scale * {name}" for name in SUMS[1:] if name in rule.arguments]
    if "x_change" in rule.arguments:
        loop += ["x_change = load_fields(fields, CHANGE * B + lane)"]
    loop += [f"{', '.join(rule.moves)}, = step({', '.join(arguments)})"]
    if scales:
        loop += ["shrink = 1.0 + eta_eta", "scale = scale * (shrink if shrink != 0.0 else SMALLEST_SHRINK)"]
        loop += ["store_fields(fields, SCALE * B + lane, scale)", "outside += 0 if TINY < abs(scale) < HUGE else 1"]
        loop += [f"{move} = {move} / scale" for move in rule.moves if move.startswith("eta_") and move != "eta_eta"]
    loop += [f"store_{move}(scratch.{move}, lane, {move})" for move in rule.moves if move != "eta_eta"]
    return "\n".join(
        [
            f"def call_rule(fields, scratch, B, rho, rho_x, discount, {', '.join(PRODUCTS)}):",
            "    use_widest_vectors()",
            "    outside = 0",
            "    for lane in range(B):",
            *(f"        {line}" for line in loop),
            "    return outside",
        ]
    )


def make_numbers(rule: Rule, trace: Trace) -> Any:
    """Compile the step of a trace."""
    names: dict[str, Any] = {"step": numba.njit(trace.step, **INLINE)}
    exec(trace_source(rule, trace), names)
    return numba.njit(names["numbers"], **INLINE)


def make_call_rule(rule: Rule) -> Any:
    """Compile the rule's step for all lanes."""
    scopes = ["fields", *SUMS, *(move for move in MOVES if move != "eta_eta")]
    held = len(lane_parameters(rule))
    names: dict[str, Any] = {"step": numba.njit(rule.step, inline="always"), "use_widest_vectors": use_widest_vectors}
    names |= {"TINY": TINY, "HUGE": HUGE, "SMALLEST_SHRINK": SMALLEST_SHRINK}
    names |= {"CHANGE": np.uintp(held), "SCALE": np.uintp(held + 1)} | {f"F{i}": np.uintp(i) for i in range(held)}
    for scope in scopes:
        names[f"load_{scope}"], names[f"store_{scope}"] = disjoint(scope, scopes)
    exec(rule_source(rule), names)
    return numba.njit(names["call_rule"], **INLINE)


# Passes over the lanes ---------------------------------------------------------------------------------------------


# A pass promises that its rows are disjoint, and ends with a barrier, because a row has another scope in the next one.
SCOPES = ["sums", "row0", "row1", "row2", "row3"]
load_sums, store_sums = disjoint("sums", SCOPES)
load_row, store_row = disjoint("row0", SCOPES)
(load_1, store_1), (load_2, store_2), (load_3, store_3) = (disjoint(scope, SCOPES) for scope in SCOPES[2:])
FOUR = np.uintp(4)  # rows of a trace that one pass over the lanes takes together


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
def entry(lanes, base, i):
    """Return a row of a trace, and its value there."""
    row = lanes.places[base + i]
    return row, lanes.vectors[base + row]


@numba.njit(**INLINE)
def sum_along(sums, array, lanes, which, B):
    """Set the sums of all lanes to the product of a trace with their weights."""
    use_widest_vectors()
    set_all(sums, 0.0, B)
    base, count = which * np.uintp(lanes.marks.size >> 1), np.uintp(lanes.counts[which])
    whole = count - count % FOUR
    for i in range(np.uintp(0), whole, FOUR):
        (r0, z0), (r1, z1) = entry(lanes, base, i), entry(lanes, base, i + np.uintp(1))
        (r2, z2), (r3, z3) = entry(lanes, base, i + np.uintp(2)), entry(lanes, base, i + np.uintp(3))
        r0, r1, r2, r3 = r0 * B, r1 * B, r2 * B, r3 * B
        for lane in range(B):
            two = load_sums(sums, lane) + load_row(array, r0 + lane) * z0 + load_1(array, r1 + lane) * z1
            store_sums(sums, lane, two + load_2(array, r2 + lane) * z2 + load_3(array, r3 + lane) * z3)
        barrier()
    for i in range(whole, count):
        row, value = entry(lanes, base, i)
        add_row(sums, array, row * B, value, B)


@numba.njit(**INLINE)
def move_along_z(array, lanes, coefficients, B):
    """Move all lanes along the trace z."""
    use_widest_vectors()
    base, count = np.uintp(0), np.uintp(lanes.counts[0])
    whole = count - count % FOUR
    for i in range(np.uintp(0), whole, FOUR):
        (r0, z0), (r1, z1) = entry(lanes, base, i), entry(lanes, base, i + np.uintp(1))
        (r2, z2), (r3, z3) = entry(lanes, base, i + np.uintp(2)), entry(lanes, base, i + np.uintp(3))
        r0, r1, r2, r3 = r0 * B, r1 * B, r2 * B, r3 * B
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
    """Move w along its last change, and let that be the beginning of the next one."""
    use_widest_vectors()
    for row in range(np.uintp(lanes.change.size) // B):
        begin = row * B  # a range in steps of B could fail, and the compiler would count references in every step
        for lane in range(B):
            again = load_sums(coefficients, lane) * load_row(lanes.change, begin + lane)
            store_row(lanes.change, begin + lane, again)
            store_1(lanes.w, begin + lane, load_1(lanes.w, begin + lane) + again)
        barrier()


@numba.njit(**INNER)
def rescale(eta, fields, B):
    """Multiply the scale of η into η in every lane where it has become tiny or huge. This is rare."""
    first = np.uintp(fields.size) - B
    for lane in range(B):
        scale = fields[first + lane]
        if not TINY < abs(scale) < HUGE:
            for i in range(lane, np.uintp(eta.size), B):
                if eta[i] != 0.0:  # zero stays zero even where the scale is infinite
                    eta[i] *= scale
            fields[first + lane] = 1.0


def make_advance_traces(rule: Rule) -> Any:
    """Compile `advance_traces`, which makes this step's x a part of every trace."""
    numbers = {trace.name: make_numbers(rule, trace) for trace in rule.traces}
    has_z, has_b = "z" in numbers, "b" in numbers
    of_z: Any = numbers.get("z")
    of_b: Any = numbers.get("b")
    Z, B_TRACE = np.uintp(0), np.uintp(1)
    feeds_back = any("x_trace" in trace.arguments for trace in rule.traces)

    @numba.njit(**INLINE)
    def advance_traces(lanes, table, outcome, first, width):
        alpha, rho = lanes.fields[0], table.rho[outcome]
        if has_z:
            x_trace = products_with(lanes, Z, table, first, width) if feeds_back else 0.0
            decay, gain = of_z(lanes.shared, lanes.before, lanes.memory, alpha, rho, x_trace)
            decay_trace(lanes, Z, decay)
            add_features(lanes, Z, gain, table, first, width)
        if has_b:
            decay, gain = of_b(lanes.shared, lanes.before, lanes.memory, alpha, rho, 0.0)
            decay_trace(lanes, B_TRACE, decay)
            add_features(lanes, B_TRACE, gain, table, first, width)
        goes_on = 1.0 if table.discount[outcome] != 0.0 else 0.0  # all that is before is 0 where an episode starts
        lanes.before[0] = table.discount[outcome]
        lanes.before[1] = goes_on * rho
        lanes.before[2] = goes_on * table.pi[outcome]
        lanes.before[3] = goes_on * table.mu[outcome]

    return advance_traces


def make_take_step(rule: Rule) -> Any:
    """Compile `take_step`: one step of all lanes."""
    call_rule, advance_traces = make_call_rule(rule), make_advance_traces(rule)
    asks, makes = {name: name in rule.arguments for name in (*SUMS, "x_change")}, {m: m in rule.moves for m in MOVES}
    asks_x_eta, asks_z_eta, asks_b_eta, asks_change = (asks[n] for n in ("x_eta", "z_eta", "b_eta", "x_change"))
    w_x, w_next, w_z, w_change = (makes[m] for m in ("w_x", "w_next", "w_z", "w_change"))
    eta_x, eta_next, eta_z = (makes[m] for m in ("eta_x", "eta_next", "eta_z"))
    needs_products = any(name in rule.arguments for name in PRODUCTS)
    CHANGE, Z, B_TRACE = np.uintp(len(lane_parameters(rule))), np.uintp(0), np.uintp(1)

    @numba.njit(**INLINE)
    def read_sums(lanes, table, outcome, first, width, B, scratch):
        set_all(scratch.delta, table.reward[outcome], B)
        if asks_x_eta:
            set_all(scratch.x_eta, 0.0, B)
        for j in range(first, first + width):
            if table.u[j] != 0.0:
                add_row(scratch.delta, lanes.w, table.rows[j] * B, table.u[j], B)
            if asks_x_eta and table.x[j] != 0.0:
                add_row(scratch.x_eta, lanes.eta, table.rows[j] * B, table.x[j], B)
        if asks_z_eta:
            sum_along(scratch.z_eta, lanes.eta, lanes, Z, B)
        if asks_b_eta:
            sum_along(scratch.b_eta, lanes.eta, lanes, B_TRACE, B)

    @numba.njit(**INLINE)
    def products(lanes, table, first, width):
        x_x, x_next, next_next, z_z = 0.0, 0.0, 0.0, 0.0
        for j in range(first, first + width):
            x_x += table.x[j] * table.x[j]
            x_next += table.x[j] * table.x_next[j]
            next_next += table.x_next[j] * table.x_next[j]
        for i in range(np.uintp(lanes.counts[0])):
            value = lanes.vectors[lanes.places[i]]
            z_z += value * value
        return x_x, x_next, next_next, products_with(lanes, Z, table, first, width), z_z

    @numba.njit(**INLINE)
    def move_weights(lanes, table, first, width, B, scratch):
        if w_change:
            repeat_change(lanes, scratch.w_change, B)
        for j in range(first, first + width):
            begin, x, x_next = table.rows[j] * B, table.x[j], table.x_next[j]
            if x != 0.0:
                if w_x:
                    move_row(lanes.w, begin, scratch.w_x, x, B)
                    if w_change:
                        move_row(lanes.change, begin, scratch.w_x, x, B)
                if eta_x:
                    move_row(lanes.eta, begin, scratch.eta_x, x, B)
            if x_next != 0.0:
                if w_next:
                    move_row(lanes.w, begin, scratch.w_next, x_next, B)
                    if w_change:
                        move_row(lanes.change, begin, scratch.w_next, x_next, B)
                if eta_next:
                    move_row(lanes.eta, begin, scratch.eta_next, x_next, B)
        if w_z:
            move_along_z(lanes.w, lanes, scratch.w_z, B)
        if eta_z:
            move_along_z(lanes.eta, lanes, scratch.eta_z, B)

    @numba.njit(**INLINE)
    def keep_change(lanes, table, first, coming, width, B, scratch):
        """Keep x·(w − w_prev) for the coming x, whose products with x, x' and z are known."""
        use_widest_vectors()
        if w_change:  # the change is a vector of its own
            kept = lanes.fields[CHANGE * B : (CHANGE + np.uintp(1)) * B]
            set_all(kept, 0.0, B)
            for i in range(coming, coming + width):
                add_row(kept, lanes.change, table.rows[i] * B, table.x[i], B)
            return
        with_x, with_next, with_z = 0.0, 0.0, 0.0
        if w_z:
            with_z = products_with(lanes, Z, table, coming, width)
        for i in range(coming, coming + width):
            if table.x[i] != 0.0:
                for j in range(first, first + width):
                    if table.rows[i] == table.rows[j]:
                        with_x += table.x[i] * table.x[j]
                        with_next += table.x[i] * table.x_next[j]
        for lane in range(B):
            change = 0.0
            if w_x:
                change += scratch.w_x[lane] * with_x
            if w_next:
                change += scratch.w_next[lane] * with_next
            if w_z:
                change += scratch.w_z[lane] * with_z
            lanes.fields[CHANGE * B + lane] = change

    @numba.njit(**INLINE)
    def take_step(lanes, table, outcome, coming, width, B, scratch):
        first = outcome * width
        advance_traces(lanes, table, outcome, first, width)
        read_sums(lanes, table, outcome, first, width, B, scratch)
        x_x, x_next, next_next, x_z, z_z = 0.0, 0.0, 0.0, 0.0, 0.0
        if needs_products:
            x_x, x_next, next_next, x_z, z_z = products(lanes, table, first, width)
        rho, rho_x, discount = table.rho[outcome], table.rho_x[outcome], table.discount[outcome]
        outside = call_rule(lanes.fields, scratch, B, rho, rho_x, discount, x_x, x_next, next_next, x_z, z_z)
        move_weights(lanes, table, first, width, B, scratch)
        if asks_change:
            keep_change(lanes, table, first, coming * width, width, B, scratch)
        return outside

    return take_step


@cache
def traced_kernel(rule: Rule) -> Any:
    """Compile `run(column, segments, table, measure, lanes, errors)` for a rule."""
    take_step = make_take_step(rule)

    def run(column, segments, table, measure, lanes, errors):
        use_widest_vectors()
        B, t = np.uintp(errors.now.size) & WHOLE_STRIPS, np.uintp(0)
        width = np.uintp(table.rows.size // table.reward.size)
        scratch = new_scratch(errors.now.size)
        for s in range(segments.end.size):
            set_step_sizes(lanes, segments.factor[s], B, B)
            while t < np.uintp(segments.end[s]):
                outcome, coming = np.uintp(column[t]), np.uintp(column[t + np.uintp(1)])
                if take_step(lanes, table, outcome, coming, width, B, scratch):
                    rescale(lanes.eta, lanes.fields, B)
                t += np.uintp(1)
            if segments.point[s] >= 0 or segments.last[s]:
                take_any_errors(lanes.w, measure, errors, scratch.gap, B, segments, s)

    return keep(run, describe_kernel("traced", rule), nogil=True, **COMPILE)
