"""Vectors that all lanes of a block share, because they do not depend on the weights: features, traces, directions.

A trace is a vector with the list of its non-zeros. An entry smaller than SMALLEST times the largest is dropped: it is
below the rounding error of the largest, and stays below it, because both decay by the same factors.

A natural rule moves w along M⁻¹x and M⁻¹x', where M = (ε I + Σ x xᵀ) / (n + 1) after n steps. Its metric is a flat
array: n, then the matrix (ε I + Σ x xᵀ)⁻¹, which the Sherman-Morrison formula updates.
"""

from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import INLINE, INNER, compile_source, use_widest_vectors
from gradient_dd.engine.reference import Before
from gradient_dd.learners import Rule

SMALLEST = 2.0**-53


@numba.njit(**INLINE)
def product(table, first, width, vectors, base):
    """Return x·v, where x is given by its rows from `first` on, and v begins at `base` in `vectors`."""
    total = 0.0
    for j in range(first, first + width):
        if table.x[j] != 0.0:
            total += table.x[j] * vectors[base + table.rows[j]]
    return total


@numba.njit(**INLINE)
def products_ahead(table, first, coming, width):
    """Return the products of the next step's x (rows from `coming`) with this step's x and x' (from `first`)."""
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
    base, listed, largest = which * np.uintp(lanes.marks.size >> 1), np.uintp(0), 0.0
    bound = SMALLEST * abs(decay) * lanes.sizes[which]
    for i in range(np.uintp(lanes.counts[which])):
        row = lanes.places[base + i]
        value = lanes.vectors[base + row] * decay
        size = abs(value)
        if not size <= bound:  # so that NaN stays and is detected
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


def trace_place(rule: Rule, name: str) -> int:
    """Return the place of the trace "z" or "b" among the traces of a rule; 0 if the rule does not have it."""
    return next((k for k, trace in enumerate(rule.traces) if trace.name == name), 0)


def make_numbers(rule: Rule) -> Any:
    """Compile `numbers`, which returns the decay and the gain of trace `which`, and updates the trace's `memory`."""
    lines, steps = ["def numbers(which, shared, before, memory, alpha, rho, x_trace):"], {}
    names = {name: f"shared[{i}]" for i, name in enumerate(rule.own_parameters)}
    names |= {f"{name}_before": f"before[{i}]" for i, name in enumerate(Before._fields)}
    for k, trace in enumerate(rule.traces):
        memory = {name: f"memory[{i}]" for i, name in enumerate(trace.memory)}
        arguments = ", ".join((names | memory).get(name, name) for name in trace.arguments)
        lines += [
            f"    if which == {k}:",
            f"        {', '.join(['decay', 'gain', *memory.values()])} = step_{k}({arguments})",
            "        return decay, gain",
        ]
        steps[f"step_{k}"] = numba.njit(trace.step, **INLINE)
    return numba.njit(compile_source("\n".join([*lines, "    return 1.0, 0.0"]), steps), **INLINE)


def make_advance_traces(rule: Rule) -> Any:
    """Compile `advance_traces`, which decays every trace and adds this step's x to it."""
    count, numbers, feeds_back = len(rule.traces), make_numbers(rule), "x_trace" in rule.trace_arguments

    @numba.njit(**INLINE)
    def advance_traces(lanes, table, step):
        alpha, rho, p = lanes.fields[0], table.rho[step.outcome], np.uintp(lanes.marks.size >> 1)
        for which in range(np.uintp(count)):
            x_trace = product(table, step.first, step.width, lanes.vectors, which * p) if feeds_back else 0.0
            decay, gain = numbers(which, lanes.shared, lanes.before, lanes.memory[which], alpha, rho, x_trace)
            decay_trace(lanes, which, decay)
            add_features(lanes, which, gain, table, step)
        goes_on = 1.0 if table.discount[step.outcome] != 0.0 else 0.0  # all of `before` is 0 at the start of an episode
        lanes.before[0] = table.discount[step.outcome]
        lanes.before[1] = goes_on * rho
        lanes.before[2] = goes_on * lanes.pi[step.outcome]
        lanes.before[3] = goes_on * lanes.mu[step.outcome]

    return advance_traces


# The metric of a natural rule -------------------------------------------------------------------------------------


# Functions index a flat array: a reshape could fail, so the compiler would count references in every step.


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


@numba.njit(**INNER)
def set_directions(metric, rows, x, x_next, span, along, along_next):
    """Add x to the metric, then set `along` (p,) to M⁻¹x and `along_next` to M⁻¹x'."""
    use_widest_vectors()
    p, size = np.uintp(along.size), 1.0
    combine(metric, rows, x, span, 1.0, along)
    for j in range(span[0], span[1]):
        if x[j] != 0.0:
            size += x[j] * along[rows[j]]
    for i in range(p):
        begin, factor = np.uintp(1) + i * p, along[i] / size
        for j in range(p):
            metric[begin + j] -= along[j] * factor
    metric[0] += 1.0
    combine(metric, rows, x, span, metric[0] + 1.0, along)
    combine(metric, rows, x_next, span, metric[0] + 1.0, along_next)
