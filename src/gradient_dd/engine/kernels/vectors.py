"""Vectors that all lanes of a block share, because no weight is in them: features, traces, directions of natural rules.

A trace is a vector with the list of its non-zeros. An entry below SMALLEST of the largest one is dropped: it is less
than the rounding of the largest, and both will decay by the same factors, so it stays so.

A natural rule moves w along M⁻¹x and M⁻¹x', M = (ε I + Σ x xᵀ) / (n + 1) after n steps. Its metric is a flat array: n,
then the matrix (ε I + Σ x xᵀ)⁻¹, which the formula of Sherman and Morrison brings up to date.
"""

from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import INLINE, INNER, compile_source, use_widest_vectors
from gradient_dd.engine.reference import Before
from gradient_dd.learners import Rule
from gradient_dd.learners.trace import Trace

SMALLEST = 2.0**-53
Z, B_TRACE = np.uintp(0), np.uintp(1)  # which of the two traces


@numba.njit(**INLINE)
def product(table, first, width, vector):
    """Return x·vector, x being that of the rows from `first` on."""
    total = 0.0
    for j in range(first, first + width):
        if table.x[j] != 0.0:
            total += table.x[j] * vector[table.rows[j]]
    return total


@numba.njit(**INLINE)
def products_ahead(table, first, coming, width):
    """Return the products of the coming x with this step's x and x', each given by where its rows begin."""
    with_x, with_next = 0.0, 0.0
    for i in range(coming, coming + width):
        if table.x[i] != 0.0:
            for j in range(first, first + width):
                if table.rows[i] == table.rows[j]:
                    with_x += table.x[i] * table.x[j]
                    with_next += table.x[i] * table.x_next[j]
    return with_x, with_next


# Traces -----------------------------------------------------------------------------------------------------------


@numba.njit(**INLINE)
def decay_trace(lanes, which, decay):
    """Multiply a trace by its decay, and drop the entries that have become too small."""
    p = np.uintp(lanes.marks.size >> 1)
    base, listed, largest = which * p, np.uintp(0), 0.0
    bound = SMALLEST * abs(decay) * lanes.sizes[which]
    for i in range(np.uintp(lanes.counts[which])):
        row = lanes.places[base + i]
        value = lanes.vectors[base + row] * decay
        size = abs(value)
        if not size <= bound:  # written so that what is not a number stays, and is seen
            lanes.places[base + listed] = row
            lanes.vectors[base + row] = value
            largest = max(largest, size)
            listed += np.uintp(1)
        else:
            lanes.vectors[base + row] = 0.0
            lanes.marks[base + row] = 0
    lanes.counts[which] = listed
    lanes.sizes[which] = largest


@numba.njit(**INLINE)
def add_features(lanes, which, gain, table, step):
    """Add gain × x to a trace."""
    base = which * np.uintp(lanes.marks.size >> 1)
    for j in range(step.first, step.first + step.width):
        more, row = gain * table.x[j], table.rows[j]
        if more != 0.0:
            if lanes.marks[base + row] == 0:
                lanes.marks[base + row] = 1
                lanes.places[base + np.uintp(lanes.counts[which])] = row
                lanes.counts[which] += 1
            lanes.vectors[base + row] += more
            lanes.sizes[which] = max(lanes.sizes[which], abs(lanes.vectors[base + row]))


def make_numbers(rule: Rule, trace: Trace, first: int = 0) -> Any:
    """Compile `numbers`: decay and gain of a trace; its new memory is written, from place `first` on."""
    memory = {name: f"memory[{first + i}]" for i, name in enumerate(trace.memory)}
    names = {name: f"shared[{i}]" for i, name in enumerate(rule.own_parameters)} | memory
    names |= {f"{name}_before": f"before[{i}]" for i, name in enumerate(Before._fields)}
    lines = [
        "def numbers(shared, before, memory, alpha, rho, x_trace):",
        f"    {', '.join(['decay', 'gain', *memory.values()])} = "
        f"step({', '.join(names.get(name, name) for name in trace.arguments)})",
        "    return decay, gain",
    ]
    return numba.njit(compile_source("\n".join(lines), {"step": numba.njit(trace.step, **INLINE)}), **INLINE)


def make_advance_traces(rule: Rule) -> Any:
    """Compile `advance_traces`, which makes this step's x a part of every trace."""
    first = np.cumsum([0, *(len(trace.memory) for trace in rule.traces)])  # places of what the traces remember
    numbers = {trace.name: make_numbers(rule, trace, begin) for trace, begin in zip(rule.traces, first, strict=False)}
    has_z, has_b = "z" in numbers, "b" in numbers
    of_z: Any = numbers.get("z")
    of_b: Any = numbers.get("b")
    feeds_back = "x_trace" in rule.trace_arguments

    @numba.njit(**INLINE)
    def advance_traces(lanes, table, step):
        alpha, rho = lanes.fields[0], table.rho[step.outcome]
        if has_z:
            x_trace = product(table, step.first, step.width, lanes.vectors) if feeds_back else 0.0
            decay, gain = of_z(lanes.shared, lanes.before, lanes.memory, alpha, rho, x_trace)
            decay_trace(lanes, Z, decay)
            add_features(lanes, Z, gain, table, step)
        if has_b:
            x_trace = 0.0
            if feeds_back:
                x_trace = product(table, step.first, step.width, lanes.vectors[lanes.marks.size >> 1 :])
            decay, gain = of_b(lanes.shared, lanes.before, lanes.memory, alpha, rho, x_trace)
            decay_trace(lanes, B_TRACE, decay)
            add_features(lanes, B_TRACE, gain, table, step)
        goes_on = 1.0 if table.discount[step.outcome] != 0.0 else 0.0  # all that is before is 0 where an episode starts
        lanes.before[0] = table.discount[step.outcome]
        lanes.before[1] = goes_on * rho
        lanes.before[2] = goes_on * lanes.pi[step.outcome]
        lanes.before[3] = goes_on * lanes.mu[step.outcome]

    return advance_traces


# The metric of a natural rule -------------------------------------------------------------------------------------


# Its functions index a flat array: a reshape could fail, and the compiler would count references in every step.


@numba.njit(**INLINE)
def combine(metric, rows, values, span, scale, direction):
    """Set `direction` (p,) to scale × the sum of rows of the metric's matrix, each times its value, over a span."""
    use_widest_vectors()
    p = np.uintp(direction.size)
    for i in range(p):
        direction[i] = 0.0
    for j in range(span[0], span[1]):
        if values[j] != 0.0:
            begin, value = np.uintp(1) + rows[j] * p, scale * values[j]
            for i in range(p):
                direction[i] += value * metric[begin + i]


@numba.njit(**INLINE)
def observe(metric, rows, x, span, direction):
    """Take x into the metric; `direction` is scratch, (p,)."""
    use_widest_vectors()
    p, size = np.uintp(direction.size), 1.0
    combine(metric, rows, x, span, 1.0, direction)
    for j in range(span[0], span[1]):
        if x[j] != 0.0:
            size += x[j] * direction[rows[j]]
    for i in range(p):
        begin, factor = np.uintp(1) + i * p, direction[i] / size
        for j in range(p):
            metric[begin + j] -= direction[j] * factor
    metric[0] += 1.0


@numba.njit(**INNER)
def set_directions(metric, rows, x, x_next, span, along, along_next):
    """Take x into the metric, then set `along` (p,) to M⁻¹x and `along_next` to M⁻¹x'."""
    use_widest_vectors()
    observe(metric, rows, x, span, along)
    combine(metric, rows, x, span, metric[0] + 1.0, along)
    combine(metric, rows, x_next, span, metric[0] + 1.0, along_next)
