"""A trace of a block of lanes: one vector for all of them, with the list of its non-zeros.

An entry below SMALLEST of the largest one is dropped: it is less than the rounding of the largest, and both will decay
by the same factors, so it stays so.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.kernels.compiler_options import INLINE
from gradient_dd.engine.kernels.intrinsics import aligned
from gradient_dd.engine.kernels.lane_state import lane_parameters
from gradient_dd.engine.kernels.row_table import Rows, touches
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task

SMALLEST = 2.0**-53


class TracedLanes(NamedTuple):
    """The arrays that the traced kernel changes; weights and fields are flat, with contiguous lanes.

    w, eta   (rows, B); the true η of a lane is its scale × eta
    change   (rows, B) the last change of w, for a rule with momentum; else empty
    start    (2, B) alpha and zeta as given
    fields   (parameters + 2, B) the rule's parameters in force, x·(w − w_prev) of the coming step, the scale of η
    shared   the rule's own parameters, those that its traces read being equal in all lanes
    vectors  (2, p) the traces z and b;  places (2, p) which entries are listed;  marks (2, p) 1 for those
    counts   (2,) how many are listed;  sizes (2,) the largest |entry|
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
    before: Array
    memory: Array


class TracedTable(NamedTuple):
    """What `Touches` has for each outcome, as far as the traced kernel reads it, and π and μ of its action."""

    rows: Rows
    x: Array
    x_next: Array
    u: Array
    reward: Array
    rho: Array
    rho_x: Array
    discount: Array
    pi: Array
    mu: Array


def traced_table(task: Task, rho_mode: str) -> TracedTable:
    """Return the table of a task."""
    table, _ = touches(task, rho_mode)
    pi, mu = task.action_probabilities
    return TracedTable(
        *(table.rows, table.x, table.x_next, table.u, table.reward, table.rho, table.rho_x, table.discount),
        *(np.array(pi), np.array(mu)),
    )


def new_traced_lanes(settings: Sequence[Setting], block: int, width: int, initial_w: Array) -> TracedLanes:
    """Return fresh lanes, one for each setting, filled up to `block` with lanes that never move."""
    rule, p = settings[0].rule, len(initial_w)
    names = lane_parameters(rule)
    rows = p + width
    w, eta, start, fields = (aligned(count, block) for count in (rows, rows, 2, len(names) + 2))
    w.reshape(-1, block)[:p] = initial_w[:, None]
    for lane, setting in enumerate(settings):
        start.reshape(2, block)[:, lane] = setting.values["alpha"], setting.values.get("zeta", 0.0)
        fields.reshape(-1, block)[2 : len(names), lane] = [setting.values[name] for name in names[2:]]
    fields.reshape(-1, block)[-1] = 1.0
    return TracedLanes(
        *(w, eta, aligned(rows, block) if "w_change" in rule.moves else aligned(0, 1), start, fields),
        shared=np.array([settings[0].values[name] for name in names[2:]] or [0.0]),
        vectors=np.zeros(2 * p),
        places=np.zeros(2 * p, np.uint64),
        marks=np.zeros(2 * p, np.int8),
        counts=np.zeros(2, np.int64),
        sizes=np.zeros(2),
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
def add_features(lanes, which, gain, table, first, width):
    """Add gain × x to a trace."""
    p = np.uintp(lanes.marks.size >> 1)
    base = which * p
    for j in range(first, first + width):
        more, row = gain * table.x[j], table.rows[j]
        if more != 0.0:
            if lanes.marks[base + row] == 0:
                lanes.marks[base + row] = 1
                lanes.places[base + np.uintp(lanes.counts[which])] = row
                lanes.counts[which] += 1
            lanes.vectors[base + row] += more
            lanes.sizes[which] = max(lanes.sizes[which], abs(lanes.vectors[base + row]))


@numba.njit(**INLINE)
def products_with(lanes, which, table, first, width):
    """Return x·(a trace)."""
    p = np.uintp(lanes.marks.size >> 1)
    total = 0.0
    for j in range(first, first + width):
        if table.x[j] != 0.0:
            total += table.x[j] * lanes.vectors[which * p + table.rows[j]]
    return total
