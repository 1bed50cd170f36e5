"""Traces of questions: one column for all lanes that share a trace, or one for each lane.

A trace is values (p, columns) and the ordered list of the features where any column is not zero. An entry below
`smallest` of the largest one of its column is dropped, as `Learner` drops it: that is below the largest one's rounding.

With `shared`, the lanes of a run have one column: the weights of a feature move by coefficient × one number. Otherwise
each lane has a column of its own, beside its weights, so that this too becomes vector code.
"""

from functools import cache
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import INLINE, INNER, use_widest_vectors


@numba.njit(**INNER)
def decay_and_grow(values, lists, step, decay, gain, bounds):
    """Make decay z + gain x of every column; return how many features are listed now.

    lists   the features that are listed, room for such a list, and how many there are
    bounds  (columns,) to be filled with the largest |entry|; whether all entries are kept, the smallest share of the
            largest that is kept otherwise, and the largest entry. A column beyond that is cleared: its lanes stop
    """
    use_widest_vectors()
    places, here, _, rows = step
    listed, spare, count = lists
    largest, keep_all, smallest, most = bounds
    largest[:] = 0.0
    a, b, made = 0, 0, 0
    while True:
        while b < rows and here[b] == 0.0:
            b += 1
        if a >= count and b >= rows:
            break
        old = a < count and (b >= rows or listed[a] <= places[b])
        new = b < rows and (a >= count or places[b] <= listed[a])
        i = listed[a] if old else places[b]
        x = here[b] if new else 0.0
        a += 1 if old else 0
        b += 1 if new else 0
        row = values[np.uintp(i)]
        for column in range(decay.size):
            z = decay[column] * row[column] + gain[column] * x
            row[column] = z
            size = abs(z)
            largest[column] = largest[column] if size <= largest[column] else size
        spare[made] = i
        made += 1
    kept = 0
    for j in range(made):
        row, alive = values[np.uintp(spare[j])], 0
        for column in range(decay.size):
            size = abs(row[column])
            drops = (not largest[column] <= most) | ((size <= smallest * largest[column]) & (not keep_all))
            row[column] = 0.0 if drops else row[column]
            alive += 0 if drops else 1
        if alive or keep_all:
            listed[kept] = spare[j]
            kept += 1
    return kept


@cache
def make_trace_passes(shared: bool) -> Any:
    """Return `sum_along(...)` and `move_along(...)`, for lanes that share traces or have their own."""

    @numba.njit(**INNER)
    def sum_along(memory, part, values, listed, count, begin, into):
        """Fill `into` (slots,) with the trace of each lane times a part of it, summed from left to right."""
        use_widest_vectors()
        into[:] = 0.0
        for j in range(count):
            i = np.uintp(listed[j])
            row, z = memory[i, part], values[i]
            if shared:
                for run in range(begin.size - 1):
                    if z[run] != 0.0:
                        add(into[begin[run] : begin[run + 1]], row[begin[run] : begin[run + 1]], z[run])
            else:
                for lane in range(into.size):
                    into[lane] += z[lane] * row[lane]

    @numba.njit(**INNER)
    def move_along(memory, part, values, listed, count, begin, by, scratch):
        """Move a part of every lane along its trace, by as much as `by` (slots,) says."""
        use_widest_vectors()
        flat, parts, slots = memory.reshape(memory.size), np.uintp(memory.shape[1]), np.uintp(memory.shape[2])
        for j in range(count):
            i = np.uintp(listed[j])
            first = (i * parts + np.uintp(part)) * slots
            if shared:
                for run in range(np.uintp(begin.size - 1)):
                    if values[i, run] != 0.0:
                        scratch[0] = values[i, run]  # in the precision of the memory
                        value = scratch[0]
                        for lane in range(np.uintp(begin[run]), np.uintp(begin[run + np.uintp(1)])):
                            flat[first + lane] += by[lane] * value
            else:
                z = values[i]
                for lane in range(np.uintp(by.size)):
                    flat[first + lane] += by[lane] * z[lane]

    return sum_along, move_along


@numba.njit(**INLINE)
def add(into, row, value):
    """Add value × row to an array of the same length."""
    use_widest_vectors()
    for lane in range(into.size):
        into[lane] += row[lane] * value
