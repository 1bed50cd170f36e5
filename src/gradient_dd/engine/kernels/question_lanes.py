"""Passes over the lanes of questions: sums, moves, traces, and comparisons of predictions with returns.

The features of x and x' form one sorted list with two values each. Most features of a tile coder stay active from one
step to the next, so a pass for both vectors reads most of the memory only once.

A trace consists of values (p, columns) and the sorted list of features where any column is not zero. Entries smaller
than `smallest` times the largest entry of their column are dropped, as in `Learner`, because they are below its
rounding error. With `shared`, the lanes of a range share one column: the weights of a feature move by coefficient × one
number. Otherwise each lane has its own column; this loop is vectorised too.

A lane follows one return at a time: it stores its prediction x·w, adds up the rewards that follow, and compares the two
when the question ends or less than LEFT of the return's weight remains. Then the lane waits for up to as many steps as
the return had, so that returns do not all begin where questions begin. Means weight the n-th comparison by n, so that
early predictions are forgotten.
"""

from functools import cache
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import INLINE, INNER, use_widest_vectors
from gradient_dd.engine.questions import LEFT, QUALITY, JoinedRow

W, ETA = range(2)  # the parts of the memory
AHEAD, RETURN, VALUE, LENGTH, WAIT, COUNT, ERROR, MEAN, VARIANCE, BLAME_WEIGHT = range(len(QUALITY))
SPREAD = 0.6180339887498949  # the fractional parts of multiples of the golden ratio fill [0, 1) evenly


@numba.njit(**INNER)
def join_rows(x, x_next, t, uses_next, dense, places, here, there):
    """Fill `places` with the features of x or x' in order, `here` and `there` with their values; return the row."""
    count = 0
    a, a_end = x.begin[t], x.begin[t + 1]
    b, b_end = (x_next.begin[t], x_next.begin[t + 1]) if uses_next else (0, 0)
    if dense:
        for i in range(a_end - a):
            value, after = x.values[a + i], x_next.values[b + i] if uses_next else 0.0
            if value != 0.0 or after != 0.0:
                places[count], here[count], there[count] = i, value, after
                count += 1
        return JoinedRow(places, here, there, count)
    while True:
        while a < a_end and x.values[a] == 0.0:
            a += 1
        while b < b_end and x_next.values[b] == 0.0:
            b += 1
        if a >= a_end and b >= b_end:
            return JoinedRow(places, here, there, count)
        in_x = a < a_end and (b >= b_end or x.indices[a] <= x_next.indices[b])
        in_next = b < b_end and (a >= a_end or x_next.indices[b] <= x.indices[a])
        places[count] = x.indices[a] if in_x else x_next.indices[b]
        here[count] = x.values[a] if in_x else 0.0
        there[count] = x_next.values[b] if in_next else 0.0
        a += 1 if in_x else 0
        b += 1 if in_next else 0
        count += 1


@numba.njit(**INNER)
def sum_both(memory, part, step, x_sum, next_sum):
    """Fill two arrays (slots,) with the products of x and x' with a part of every lane, summed from left to right."""
    use_widest_vectors()
    places, here, there, count = step.places, step.here, step.there, step.length
    x_sum[:] = 0.0
    next_sum[:] = 0.0
    j = 0
    while j + 2 <= count:  # two features at a time, so that sums are read and written once for both
        a0, a1, b0, b1 = here[j], here[j + 1], there[j], there[j + 1]
        row0, row1 = memory[np.uintp(places[j]), part], memory[np.uintp(places[j + 1]), part]
        for lane in range(x_sum.size):
            w0, w1 = row0[lane], row1[lane]
            x_sum[lane] = (x_sum[lane] + a0 * w0) + a1 * w1
            next_sum[lane] = (next_sum[lane] + b0 * w0) + b1 * w1
        j += 2
    if j < count:
        row, a, b = memory[np.uintp(places[j]), part], here[j], there[j]
        for lane in range(x_sum.size):
            x_sum[lane] += a * row[lane]
            next_sum[lane] += b * row[lane]


@numba.njit(**INNER)
def sum_row(memory, part, places, values, count, into):
    """Fill `into` (slots,) with the product of a vector and a part of every lane, summed from left to right."""
    use_widest_vectors()
    into[:] = 0.0
    for j in range(count):
        row, value = memory[np.uintp(places[j]), part], values[j]
        if value != 0.0:
            for lane in range(into.size):
                into[lane] += value * row[lane]


@numba.njit(**INNER)
def move_row(memory, part, places, values, count, by, scratch):
    """Add `by` (slots,) × a vector to a part of every lane."""
    use_widest_vectors()
    for j in range(count):
        if values[j] != 0.0:
            scratch[0] = values[j]  # rounded to the precision of the memory
            row, value = memory[np.uintp(places[j]), part], scratch[0]
            for lane in range(by.size):
                row[lane] += by[lane] * value


@numba.njit(**INLINE)
def settle(memory, lane, scale, shrink, bounds):
    """Shrink a lane's scale of η, and multiply it into η if it leaves its bounds; return whether η stays bounded.

    bounds  the smallest and the largest scale, and the largest |entry| of η
    """
    smallest, largest, limit = bounds
    scale[lane] *= 1.0 + shrink
    size = abs(scale[lane])
    if not size < largest:
        most = 0.0
        for i in range(memory.shape[0]):
            most = max(most, abs(memory[i, ETA, lane]))
        if not size * most <= limit:
            return False
    if not smallest < size < largest:
        for i in range(memory.shape[0]):
            memory[i, ETA, lane] = memory[i, ETA, lane] * scale[lane] if shrink != -1.0 else 0.0
        scale[lane] = 1.0
    return True


@numba.njit(**INNER)
def decay_and_grow(values, listed, count, spare, step, decay, gain, largest, smallest, most):
    """Set every column to decay z + gain x; return the new number of listed features.

    listed    the `count` listed features, to update;  spare  scratch for such a list
    largest   (columns,) to fill with the largest |entry|
    smallest  the share of the largest entry below which an entry is dropped; negative to drop none
    most      a column with a larger entry is cleared, and its lanes stop
    """
    use_widest_vectors()
    places, here, rows = step.places, step.here, step.length
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
    stay = 0
    for j in range(made):
        row, alive = values[np.uintp(spare[j])], 0
        for column in range(decay.size):
            drops = (not largest[column] <= most) | (abs(row[column]) <= smallest * largest[column])
            row[column] = 0.0 if drops else row[column]
            alive += 0 if drops else 1
        if alive or smallest < 0.0:
            listed[stay] = spare[j]
            stay += 1
    return stay


@cache
def make_trace_passes(shared: bool) -> Any:
    """Compile `sum_along` and `move_along`, for lanes that share traces or have their own."""

    @numba.njit(**INNER)
    def sum_along(memory, part, traces, which, begin, into):
        """Fill `into` (slots,) with the product of each lane's trace and a part of the lane, from left to right."""
        use_widest_vectors()
        values, listed = traces.values[which], traces.listed[which]
        into[:] = 0.0
        for j in range(traces.counts[which]):
            i = np.uintp(listed[j])
            row, z = memory[i, part], values[i]
            if shared:
                for k in range(begin.size - 1):
                    if z[k] != 0.0:
                        add(into[begin[k] : begin[k + 1]], row[begin[k] : begin[k + 1]], z[k])
            else:
                for lane in range(into.size):
                    into[lane] += z[lane] * row[lane]

    @numba.njit(**INNER)
    def move_along(memory, part, traces, which, begin, by, scratch):
        """Add `by` (slots,) × each lane's trace to a part of the lane."""
        use_widest_vectors()
        values, listed = traces.values[which], traces.listed[which]
        flat, parts, slots = memory.reshape(memory.size), np.uintp(memory.shape[1]), np.uintp(memory.shape[2])
        for j in range(traces.counts[which]):
            i = np.uintp(listed[j])
            first = (i * parts + np.uintp(part)) * slots
            if shared:
                for k in range(np.uintp(begin.size - 1)):
                    if values[i, k] != 0.0:
                        scratch[0] = values[i, k]  # rounded to the precision of the memory
                        value = scratch[0]
                        for lane in range(np.uintp(begin[k]), np.uintp(begin[k + np.uintp(1)])):
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


@numba.njit(**INNER)
def add_returns(quality, x_w, reward, discount, rho, seen, ranges, shared):
    """Advance the returns of all lanes by one step, and drop a return if its question does not include the step."""
    use_widest_vectors()
    begin, view = ranges.begin, ranges.views
    for k in range(view.size):
        if not seen[view[k]]:
            quality[AHEAD, begin[k] : begin[k + 1]] = 0.0
            continue
        for lane in range(begin[k], begin[k + 1]):
            ratio, gamma = rho[k if shared else lane], discount[k if shared else lane]
            ahead, wait = quality[AHEAD, lane], quality[WAIT, lane]
            fresh, waits = (ahead == 0.0) & (wait <= 0.0), (ahead == 0.0) & (wait > 0.0)
            value = x_w[lane] if fresh else quality[VALUE, lane]
            length = 1.0 if fresh else quality[LENGTH, lane] + 1.0
            ahead = ratio if fresh else ahead * ratio
            total = ahead * reward[lane] + (0.0 if fresh else quality[RETURN, lane])
            ahead = ahead * gamma
            ends = (not ahead >= LEFT) & (not waits)
            n = quality[COUNT, lane] + 1.0
            rate = 2.0 / (n + 1.0) if ends else 0.0
            away, wrong = total - quality[MEAN, lane], total - value
            quality[AHEAD, lane] = 0.0 if ends else ahead
            quality[RETURN, lane] = total
            quality[VALUE, lane] = value
            quality[LENGTH, lane] = length
            share = n * SPREAD - np.floor(n * SPREAD)
            quality[WAIT, lane] = np.floor(share * length) if ends else max(wait - 1.0, 0.0)
            quality[COUNT, lane] = n if ends else n - 1.0
            quality[ERROR, lane] += rate * (wrong * wrong - quality[ERROR, lane])
            quality[MEAN, lane] += rate * away
            quality[VARIANCE, lane] = (1.0 - rate) * (quality[VARIANCE, lane] + rate * away * away)
