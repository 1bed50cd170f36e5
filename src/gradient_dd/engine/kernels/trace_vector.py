"""A trace of a block of lanes: one vector for all of them, with the list of its non-zeros.

An entry below SMALLEST of the largest one is dropped: it is less than the rounding of the largest, and both will decay
by the same factors, so it stays so.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.kernels.compiler import INLINE, aligned
from gradient_dd.engine.kernels.lane_state import Layout, new_weights
from gradient_dd.engine.kernels.row_table import Rows
from gradient_dd.engine.kernels.rules import lane_parameters
from gradient_dd.learners import Rule, Setting
from gradient_dd.learners.trace import Trace

SMALLEST = 2.0**-53
Z, B_TRACE = np.uintp(0), np.uintp(1)  # which of the two traces


class TracedLanes(NamedTuple):
    """The arrays that the traced kernel changes; weights and fields are flat, with contiguous lanes.

    w, eta   (rows, B); the true η of a lane is its scale × eta
    change   (rows, B) the last change of w, for a rule with momentum; else empty
    start    (2, B) alpha and zeta as given
    fields   (parameters + 2, B) the rule's parameters in force, x·(w − w_prev) of the coming step, the scale of η
    shared   the rule's own parameters, those that its traces read being equal in all lanes
    vectors  (2, p) the traces z and b;  places (2, p) which entries are listed;  marks (2, p) 1 for those
    counts   (2,) how many are listed;  sizes (2,) the largest |entry|
    pi, mu   (outcomes,) probabilities of the action under the two policies
    before   (4,) discount, ρ, π and μ of the step before, 0 where an episode starts
    memory   numbers that traces keep
    """

    w: Array
    eta: Array
    change: Array
    start: Array
    fields: Array
    shared: Array
    vectors: Array
    places: Rows
    marks: NDArray[np.int8]
    counts: NDArray[np.int64]
    sizes: Array
    pi: Array
    mu: Array
    before: Array
    memory: Array


def new_traced_lanes(
    settings: Sequence[Setting], layout: Layout, initial_w: Array, probabilities: tuple[Array, Array]
) -> TracedLanes:
    """Return fresh lanes of a rule with traces, products of features, or momentum; `probabilities` are π and μ."""
    rule, p = settings[0].rule, len(initial_w)
    w, eta, start, fields = new_weights(settings, layout, initial_w)
    own = [settings[0].values[name] for name in lane_parameters(rule)[2:]]
    return TracedLanes(
        *(w, eta, aligned(w.size if "w_change" in rule.moves else 0, 1), start, fields),
        shared=np.array(own or [0.0]),
        vectors=np.zeros(2 * p),
        places=np.zeros(2 * p, np.uint64),
        marks=np.zeros(2 * p, np.int8),
        counts=np.zeros(2, np.int64),
        sizes=np.zeros(2),
        pi=np.array(probabilities[0]),
        mu=np.array(probabilities[1]),
        before=np.zeros(4),
        memory=np.zeros(max(1, sum(len(trace.memory) for trace in rule.traces))),
    )


@numba.njit(**INLINE)
def decay_trace(lanes, which, decay):
    """Multiply a trace by its decay, and drop the entries that have become too small."""
    p = np.uintp(lanes.marks.size >> 1)
    base, kept, largest = which * p, np.uintp(0), 0.0
    bound = SMALLEST * abs(decay) * lanes.sizes[which]
    for i in range(np.uintp(lanes.counts[which])):
        row = lanes.places[base + i]
        value = lanes.vectors[base + row] * decay
        size = abs(value)
        if not size <= bound:  # written so that what is not a number stays, and is seen
            lanes.places[base + kept] = row
            lanes.vectors[base + row] = value
            largest = max(largest, size)
            kept += np.uintp(1)
        else:
            lanes.vectors[base + row] = 0.0
            lanes.marks[base + row] = 0
    lanes.counts[which] = kept
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


@numba.njit(**INLINE)
def product_with(lanes, which, table, first, width):
    """Return x·(a trace), x being that of the rows from `first` on."""
    p, total = np.uintp(lanes.marks.size >> 1), 0.0
    for j in range(first, first + width):
        if table.x[j] != 0.0:
            total += table.x[j] * lanes.vectors[which * p + table.rows[j]]
    return total


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


def make_numbers(rule: Rule, trace: Trace) -> Any:
    """Compile the step of a trace."""
    names: dict[str, Any] = {"step": numba.njit(trace.step, **INLINE)}
    exec(trace_source(rule, trace), names)
    return numba.njit(names["numbers"], **INLINE)


def make_advance_traces(rule: Rule) -> Any:
    """Compile `advance_traces`, which makes this step's x a part of every trace."""
    numbers = {trace.name: make_numbers(rule, trace) for trace in rule.traces}
    has_z, has_b = "z" in numbers, "b" in numbers
    of_z: Any = numbers.get("z")
    of_b: Any = numbers.get("b")
    feeds_back = any("x_trace" in trace.arguments for trace in rule.traces)

    @numba.njit(**INLINE)
    def advance_traces(lanes, table, step):
        alpha, rho = lanes.fields[0], table.rho[step.outcome]
        if has_z:
            x_trace = product_with(lanes, Z, table, step.first, step.width) if feeds_back else 0.0
            decay, gain = of_z(lanes.shared, lanes.before, lanes.memory, alpha, rho, x_trace)
            decay_trace(lanes, Z, decay)
            add_features(lanes, Z, gain, table, step)
        if has_b:
            decay, gain = of_b(lanes.shared, lanes.before, lanes.memory, alpha, rho, 0.0)
            decay_trace(lanes, B_TRACE, decay)
            add_features(lanes, B_TRACE, gain, table, step)
        goes_on = 1.0 if table.discount[step.outcome] != 0.0 else 0.0  # all that is before is 0 where an episode starts
        lanes.before[0] = table.discount[step.outcome]
        lanes.before[1] = goes_on * rho
        lanes.before[2] = goes_on * lanes.pi[step.outcome]
        lanes.before[3] = goes_on * lanes.mu[step.outcome]

    return advance_traces
