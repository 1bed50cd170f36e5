"""The wide lane kernel: for features with many non-zeros, and for natural rules along M⁻¹x and M⁻¹x'.

The same step as the fused kernel, row by row: each row of x and x' is one pass over the lanes, and what a rule needs is
summed in short arrays between. It takes any number of lanes, so that one M⁻¹ serves all settings of a run.
"""

from functools import cache
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.folding import COMPILE, INLINE, make_take_errors
from gradient_dd.engine.kernels.fused import (
    HUGE_SCALE,
    SMALLEST_SHRINK,
    TINY_SCALE,
    lane_parameters,
    make_products,
    rescale,
    set_step_sizes,
)
from gradient_dd.engine.kernels.row_table import Shape
from gradient_dd.learners import MOVES, Rule


def coefficients_source(rule: Rule) -> str:
    """Return the source of `coefficients`: the rule's step for one lane, all moves in the order of MOVES."""
    names = lane_parameters(rule)
    arguments = [f"fields[B * np.uintp({names.index(a)}) + lane]" if a in names else a for a in rule.arguments]
    lines = [
        "def coefficients(fields, B, lane, rho, rho_x, discount, delta, x_eta, x_change):",
        f"    {' = '.join(MOVES)} = 0.0",
        f"    {', '.join(rule.moves)}, = step({', '.join(arguments)})",
        f"    return {', '.join(MOVES)}",
    ]
    return "\n".join(lines)


@numba.njit(**COMPILE)
def combine(inverse, p, rows, values, first, width, scale, direction):
    """Set `direction` (p,) to scale × the sum of rows of the inverse, each times its value."""
    for i in range(p):
        direction[i] = 0.0
    for j in range(first, first + width):
        if values[j] != 0.0:
            row, value = rows[j], scale * values[j]
            for i in range(p):
                direction[i] += value * inverse[row, i]


@numba.njit(**COMPILE)
def observe(metric, p, rows, values, first, k, direction):
    """Take x into (ε I + Σ x xᵀ)⁻¹ by Sherman-Morrison; `direction` is scratch, (p,)."""
    inverse = metric[1:].reshape(p, p)
    metric[0] += 1.0
    product = 1.0
    combine(inverse, p, rows, values, first, k, 1.0, direction)
    for j in range(first, first + k):
        if values[j] != 0.0:
            product += values[j] * direction[rows[j]]
    for i in range(p):
        factor = direction[i] / product
        for j in range(p):
            inverse[i, j] -= direction[j] * factor


@numba.njit(**COMPILE)
def solve(metric, p, rows, values, first, width, direction):
    """Set `direction` (p,) to M⁻¹ times the vector with these values."""
    combine(metric[1:].reshape(p, p), p, rows, values, first, width, metric[0] + 1.0, direction)


@numba.njit(**INLINE)
def move_row(array, begin, B, first, a, second, b):
    """Add a × first + b × second to one row of all lanes."""
    for lane in range(B):
        array[begin + lane] += a * first[lane] + b * second[lane]


@cache
def wide_kernel(rule: Rule, shape: Shape, measure_k: int) -> Any:
    """Compile `run(column, segments, touches, measure, lanes, errors)` for a rule and a shape of features."""
    k, width = shape.k, shape.width
    K, W = np.uintp(k), np.uintp(width)
    names: dict[str, Any] = {"step": numba.njit(rule.step, **INLINE), "np": np}
    exec(coefficients_source(rule), names)
    coefficients = numba.njit(names["coefficients"], **INLINE)
    products, take_errors = make_products(k, width), make_take_errors(measure_k)
    changing, natural = "x_change" in rule.arguments, rule.natural
    change_field = np.uintp(len(lane_parameters(rule)))

    @numba.njit(**COMPILE)
    def take_step(lanes, touches, outcome, coming, B, scratch, along, along_next):
        w, eta, _, fields, metric = lanes
        rows, xs, ns, us, _, rewards, rhos, rhos_x, discounts = touches
        first, p = outcome * W, np.uintp(along.size)
        delta, x_eta, w_x, w_next, eta_x = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
        change, scale = fields[change_field * B : (change_field + np.uintp(1)) * B], fields[fields.size - B :]
        delta[:] = rewards[outcome]
        x_eta[:] = 0.0
        for j in range(first, first + W):
            begin = rows[j] * B
            for lane in range(B):
                delta[lane] += w[begin + lane] * us[j]
            if xs[j] != 0.0:
                for lane in range(B):
                    x_eta[lane] += eta[begin + lane] * xs[j]
        outside = 0
        for lane in range(B):
            on_x, on_next, on_eta, shrink = coefficients(
                fields,
                B,
                lane,
                rhos[outcome],
                rhos_x[outcome],
                discounts[outcome],
                delta[lane],
                scale[lane] * x_eta[lane],
                change[lane],
            )
            shrink = 1.0 + shrink
            scale[lane] *= shrink if shrink != 0.0 else SMALLEST_SHRINK
            outside += 0 if TINY_SCALE < abs(scale[lane]) < HUGE_SCALE else 1
            w_x[lane], w_next[lane], eta_x[lane] = on_x, on_next, on_eta / scale[lane]
        if natural:
            observe(metric, p, rows, xs, first, K, along)
            solve(metric, p, rows, xs, first, W, along)
            solve(metric, p, rows, ns, first, W, along_next)
            for i in range(p):
                move_row(w, i * B, B, w_x, along[i], w_next, along_next[i])
        for j in range(first, first + W):
            if not natural:
                move_row(w, rows[j] * B, B, w_x, xs[j], w_next, ns[j])
            if xs[j] != 0.0:
                begin = rows[j] * B
                for lane in range(B):
                    eta[begin + lane] += eta_x[lane] * xs[j]
        if changing:
            with_x, with_next = products(rows, xs, ns, first, coming * W)
            if natural:
                with_x, with_next = 0.0, 0.0
                for j in range(coming * W, coming * W + K):
                    if xs[j] != 0.0:
                        with_x += xs[j] * along[rows[j]]
                        with_next += xs[j] * along_next[rows[j]]
            for lane in range(B):
                change[lane] = w_x[lane] * with_x + w_next[lane] * with_next
        return outside

    @numba.njit(nogil=True, **COMPILE)
    def run(column, segments, touches, measure, lanes, errors):
        end, factor, point, last, step, episode = segments
        w, eta, start, fields, _ = lanes
        B = np.uintp(start.size // 2)
        scratch = np.empty((5, start.size // 2))
        p = w.size // (start.size // 2) - width
        along, along_next = np.empty(p), np.empty(p)
        t = np.uintp(0)
        for s in range(end.size):
            set_step_sizes(start, fields, factor[s], B, B)
            while t < np.uintp(end[s]):
                outcome, coming = np.uintp(column[t]), np.uintp(column[t + np.uintp(1)])
                if take_step(lanes, touches, outcome, coming, B, scratch, along, along_next):
                    rescale(eta, fields, B, B)
                t += np.uintp(1)
            if point[s] >= 0 or last[s]:
                take_errors(w, measure, errors, B, point[s], last[s], step[s], episode[s])

    return run
