"""The traces of one learner, as lists of places in order with a value each, and products of such lists.

A trace has two halves. A step makes the new trace in the spare one, and changes halves when it is certain to be made:
so a step that is refused changes nothing. An entry below SMALLEST of the largest is dropped, unless rows are dense: it
is below the rounding of the largest one.
"""

from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import INLINE, INNER
from gradient_dd.engine.kernels.vectors import SMALLEST, make_numbers
from gradient_dd.engine.single import CHANGE, ETA
from gradient_dd.learners import Rule

NULL, ONE = np.uintp(0), np.uintp(1)


@numba.njit(**INLINE)
def largest_of(values, begin, end):
    """Return the largest |value| between two places."""
    most = 0.0
    for j in range(begin, end):
        most = max(most, abs(values[j]))
    return most


@numba.njit(**INLINE)
def place_of(row, j):
    """Return the feature at a place of a row: its indices, values, begin, end, and whether it is dense."""
    return j - row[2] if row[4] else np.uintp(row[0][j])


@numba.njit(**INNER)
def dot(x, y):
    """Return the product of two rows, summed from left to right."""
    a, b, total = x[2], y[2], 0.0
    while a < x[3] and b < y[3]:
        i, k = place_of(x, a), place_of(y, b)
        if i == k:
            total += x[1][a] * y[1][b]
        a += ONE if i <= k else NULL
        b += ONE if k <= i else NULL
    return total


@numba.njit(**INNER)
def grow(decay, z, gain, x, places, values):
    """Fill `places` and `values` with decay z + gain x; return how many there are, and the largest |value|."""
    a, b, made, largest = z[2], x[2], NULL, 0.0
    while a < z[3] or b < x[3]:
        i = place_of(z, a) if a < z[3] else place_of(x, b)
        k = place_of(x, b) if b < x[3] else i
        if b < x[3] and x[1][b] == 0.0:
            b += ONE
            continue
        value = 0.0
        if a < z[3] and i <= k:
            value = decay * z[1][a]
            a += ONE
        if b < x[3] and k <= i:
            value += gain * x[1][b]
            b += ONE
        places[made], values[made] = min(i, k), value
        largest = max(largest, abs(value)) if abs(value) < np.inf else np.inf
        made += ONE
    return made, largest


@numba.njit(**INLINE)
def drop_small(places, values, count, bound):
    """Leave out the entries of a list that are not above a bound; return how many stay."""
    stay = NULL
    for j in range(count):
        if abs(values[j]) > bound:
            places[stay], values[stay] = places[j], values[j]
            stay += ONE
    return stay


@numba.njit(**INLINE)
def trace_row(traces, half, k):
    """Return a trace as `dot` reads a row."""
    return traces.places[half, k], traces.values[half, k], NULL, np.uintp(traces.lengths[half, k]), False


@numba.njit(**INNER)
def eta_along(memory, z):
    """Return the product of a trace and η over its scale."""
    total = 0.0
    for j in range(z[3]):
        total += z[1][j] * memory[np.uintp(z[0][j]), ETA]
    return total


@numba.njit(**INNER)
def move_along(memory, part, z, coefficient):
    """Move a part of the memory along a trace."""
    if coefficient != 0.0:
        for j in range(z[3]):
            memory[np.uintp(z[0][j]), part] += coefficient * z[1][j]


@numba.njit(**INNER)
def clear_along(memory, z):
    """Set w − w_prev to zero along a trace."""
    for j in range(z[3]):
        memory[np.uintp(z[0][j]), CHANGE] = 0.0


@numba.njit(**INLINE)
def remember(before, discount, rho, pi, mu, t):
    """Keep a transition for the traces of the next one; all of it is 0 where an episode ended."""
    goes_on = discount != 0.0
    before[0] = discount
    before[1] = rho if goes_on else 0.0
    before[2] = pi[t] if goes_on and pi.size else 0.0
    before[3] = mu[t] if goes_on and mu.size else 0.0


def make_grow_traces(rule: Rule) -> Any:
    """Return `grow_traces(...)`, which makes the next x a part of every trace, in the spare half."""
    names = [trace.name for trace in rule.traces]
    has_z, has_b = "z" in names, "b" in names
    z, b = (names.index(name) if name in names else 0 for name in ("z", "b"))
    of_z: Any = make_numbers(rule, rule.traces[z]) if has_z else None
    of_b: Any = make_numbers(rule, rule.traces[b]) if has_b else None
    feeds_back = "x_trace" in rule.trace_arguments

    @numba.njit(**INNER)
    def grow_one(traces, half, k, dense, x, decay, gain):
        places, values = traces.places[1 - half, k], traces.values[1 - half, k]
        made, largest = grow(decay, trace_row(traces, half, k), gain, x, places, values)
        traces.lengths[1 - half, k] = made if dense else drop_small(places, values, made, SMALLEST * largest)
        return largest < np.inf

    @numba.njit(**INLINE)
    def grow_traces(traces, half, dense, own, x, alpha, rho):
        """Return whether all new traces are finite."""
        fine, numbers = True, traces.numbers[1 - half]
        for k in range(numbers.shape[0]):
            for j in range(numbers.shape[1]):
                numbers[k, j] = traces.numbers[half, k, j]
        if has_z:
            x_trace = dot(x, trace_row(traces, half, z)) if feeds_back else 0.0
            decay, gain = of_z(own, traces.before, numbers[z], alpha, rho, x_trace)
            fine &= grow_one(traces, half, z, dense, x, decay, gain)
        if has_b:
            x_trace = dot(x, trace_row(traces, half, b)) if feeds_back else 0.0
            decay, gain = of_b(own, traces.before, numbers[b], alpha, rho, x_trace)
            fine &= grow_one(traces, half, b, dense, x, decay, gain)
        return fine

    return grow_traces
