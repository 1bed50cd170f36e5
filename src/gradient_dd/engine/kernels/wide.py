"""The wide lane kernel: for features with many non-zeros, and for natural rules along M⁻¹x and M⁻¹x'.

The same step as the fused kernel, row by row: each row of x and x' is one pass over the lanes, and what a rule needs is
summed in short arrays between. It takes any number of lanes, so that one M⁻¹ serves all settings of a run.
"""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, use_widest_vectors
from gradient_dd.engine.kernels.errors import lanes_of, make_take_errors
from gradient_dd.engine.kernels.eta_scale import bounded, is_inside, rescale
from gradient_dd.engine.kernels.fused import make_products, set_step_sizes
from gradient_dd.engine.kernels.keep import describe_kernel, keep, named
from gradient_dd.engine.kernels.lane_state import lane_fields
from gradient_dd.engine.kernels.row_table import Shape, Step
from gradient_dd.engine.kernels.rules import IN_FIELDS, make_coefficients
from gradient_dd.learners import Rule


class WideScratch(NamedTuple):
    """Arrays between the passes of a step: signals and coefficients of each lane (B,), directions of w (p,)."""

    delta: Any
    x_eta: Any
    w_x: Any
    w_next: Any
    eta_x: Any
    along: Any
    along_next: Any


@numba.njit(**INLINE)
def new_scratch(B, p):
    """Return scratch arrays for B lanes and p features."""
    return WideScratch(np.empty(B), np.empty(B), np.empty(B), np.empty(B), np.empty(B), np.empty(p), np.empty(p))


# A sparse vector is given by two arrays of the table, its rows and values, and by `span`, where it begins and ends.
# (A record of them would count references in every step.)


@numba.njit(**COMPILE)
def combine(inverse, rows, values, span, scale, direction):
    """Set `direction` (p,) to scale × the sum of rows of the inverse, each times its value."""
    use_widest_vectors()
    p = np.uintp(direction.size)
    for i in range(p):
        direction[i] = 0.0
    for j in range(span[0], span[1]):
        if values[j] != 0.0:
            row, value = rows[j], scale * values[j]
            for i in range(p):
                direction[i] += value * inverse[row, i]


@numba.njit(**COMPILE)
def observe(metric, rows, values, span, direction):
    """Take a vector x into (ε I + Σ x xᵀ)⁻¹ by Sherman-Morrison; `direction` is scratch, (p,)."""
    use_widest_vectors()
    p = np.uintp(direction.size)
    inverse = metric[1:].reshape(p, p)
    metric[0] += 1.0
    product = 1.0
    combine(inverse, rows, values, span, 1.0, direction)
    for j in range(span[0], span[1]):
        if values[j] != 0.0:
            product += values[j] * direction[rows[j]]
    for i in range(p):
        factor = direction[i] / product
        for j in range(p):
            inverse[i, j] -= direction[j] * factor


@numba.njit(**COMPILE)
def solve(metric, rows, values, span, direction):
    """Set `direction` (p,) to M⁻¹ times a vector."""
    p = np.uintp(direction.size)
    combine(metric[1:].reshape(p, p), rows, values, span, metric[0] + 1.0, direction)


# One step, in passes over the lanes -------------------------------------------------------------------------------


@numba.njit(**INLINE)
def read_signals(lanes, table, step, scratch):
    """Set `delta` to δ, and `x_eta` to x·η without the scale of η."""
    use_widest_vectors()
    delta, x_eta, B = scratch.delta, scratch.x_eta, step.B
    delta[:] = table.reward[step.outcome]
    x_eta[:] = 0.0
    for j in range(step.first, step.first + step.width):
        begin = table.rows[j] * B
        for lane in range(B):
            delta[lane] += lanes.w[begin + lane] * table.u[j]
        if table.x[j] != 0.0:
            for lane in range(B):
                x_eta[lane] += lanes.eta[begin + lane] * table.x[j]


def make_call_rule(rule: Rule) -> Any:
    """Compile `call_rule`, which turns the signals of all lanes into coefficients."""
    coefficients: Any = make_coefficients(rule, IN_FIELDS)
    change_field, scale_field = (
        np.uintp(lane_fields(rule).index(name)) for name in ("memory_x_change", "memory_scale")
    )

    @numba.njit(**INLINE)
    def call_rule(lanes, table, step, scratch):
        """Set the coefficients, shrink the scale of η, and return how many scales left their range."""
        use_widest_vectors()
        fields, o, B, outside = lanes.fields, step.outcome, step.B, 0
        rho, rho_x, discount = table.rho[o], table.rho_x[o], table.discount[o]
        for lane in range(B):
            scale = fields[scale_field * B + lane]
            delta, x_eta, x_change = scratch.delta[lane], scale * scratch.x_eta[lane], fields[change_field * B + lane]
            w_x, w_next, eta_x, eta_eta = coefficients(fields, B, lane, rho, rho_x, discount, delta, x_eta, x_change)
            scale *= bounded(1.0 + eta_eta)
            fields[scale_field * B + lane] = scale
            outside += 0 if is_inside(scale) else 1
            scratch.w_x[lane], scratch.w_next[lane], scratch.eta_x[lane] = w_x, w_next, eta_x / scale
        return outside

    return call_rule


@numba.njit(**INLINE)
def move_row(w, begin, scratch, x, x_next, B):
    """Add w_x × x + w_next × x' to one row of w in all lanes."""
    use_widest_vectors()
    for lane in range(B):
        w[begin + lane] += x * scratch.w_x[lane] + x_next * scratch.w_next[lane]


@numba.njit(**INLINE)
def move_w(lanes, table, step, scratch):
    """Move w along x and x'."""
    for j in range(step.first, step.first + step.width):
        move_row(lanes.w, table.rows[j] * step.B, scratch, table.x[j], table.x_next[j], step.B)


@numba.njit(**INLINE)
def move_w_along_metric(lanes, table, step, k, scratch):
    """Take x into the metric, then move w along M⁻¹x and M⁻¹x'."""
    span = step.first, step.first + step.width
    observe(lanes.metric, table.rows, table.x, (step.first, step.first + k), scratch.along)
    solve(lanes.metric, table.rows, table.x, span, scratch.along)
    solve(lanes.metric, table.rows, table.x_next, span, scratch.along_next)
    for i in range(np.uintp(scratch.along.size)):
        move_row(lanes.w, i * step.B, scratch, scratch.along[i], scratch.along_next[i], step.B)


@numba.njit(**INLINE)
def move_eta(lanes, table, step, scratch):
    """Move η along x."""
    use_widest_vectors()
    for j in range(step.first, step.first + step.width):
        if table.x[j] != 0.0:
            begin = table.rows[j] * step.B
            for lane in range(step.B):
                lanes.eta[begin + lane] += scratch.eta_x[lane] * table.x[j]


@numba.njit(**INLINE)
def products_along_metric(table, coming, k, scratch):
    """Return the products of the coming x with M⁻¹x and M⁻¹x'."""
    with_x, with_next = 0.0, 0.0
    for j in range(coming, coming + k):
        if table.x[j] != 0.0:
            with_x += table.x[j] * scratch.along[table.rows[j]]
            with_next += table.x[j] * scratch.along_next[table.rows[j]]
    return with_x, with_next


def make_take_step(rule: Rule, shape: Shape) -> Any:
    """Compile `take_step`: one step of all lanes. It returns how many scales of η left their range."""
    k, width = np.uintp(shape.k), np.uintp(shape.width)
    call_rule, products = make_call_rule(rule), make_products(shape.k, shape.width)
    uses_change, natural = "x_change" in rule.arguments, rule.natural
    change_field = np.uintp(lane_fields(rule).index("memory_x_change"))

    @numba.njit(**COMPILE)
    @named(describe_kernel("wide", rule, shape))
    def take_step(lanes, table, outcome, coming, B, scratch):
        use_widest_vectors()
        step = Step(outcome, outcome * width, coming * width, width, B)
        read_signals(lanes, table, step, scratch)
        outside = call_rule(lanes, table, step, scratch)
        if natural:
            move_w_along_metric(lanes, table, step, k, scratch)
        else:
            move_w(lanes, table, step, scratch)
        move_eta(lanes, table, step, scratch)
        if uses_change:
            if natural:
                with_x, with_next = products_along_metric(table, step.coming, k, scratch)
            else:
                with_x, with_next = products(table, step.first, step.coming)
            for lane in range(B):
                change = scratch.w_x[lane] * with_x + scratch.w_next[lane] * with_next
                lanes.fields[change_field * B + lane] = change
        return outside

    return take_step


@cache
def wide_kernel(rule: Rule, shape: Shape, measure_k: int) -> Any:
    """Compile `run(column, segments, table, measure, lanes, errors)` for a rule and a shape of features."""
    width = shape.width
    take_step, take_errors = make_take_step(rule, shape), make_take_errors(measure_k)

    def run(column, segments, table, measure, lanes, errors):
        use_widest_vectors()
        B, t = lanes_of(errors), np.uintp(0)
        scratch = new_scratch(errors.now.size, lanes.w.size // errors.now.size - width)
        for s in range(segments.end.size):
            set_step_sizes(lanes, segments.factor[s], B, B)
            while t < np.uintp(segments.end[s]):
                outcome, coming = np.uintp(column[t]), np.uintp(column[t + np.uintp(1)])
                if take_step(lanes, table, outcome, coming, B, scratch):
                    rescale(lanes.eta, lanes.fields, B, B, False)
                t += np.uintp(1)
            if segments.point[s] >= 0 or segments.last[s]:
                take_errors(lanes.w, measure, errors, segments, s)

    return keep(run, describe_kernel("wide", rule, shape, measure_k), nogil=True, **COMPILE)
