"""Passes over the lanes of questions: the features of a step joined once, then one stretch of memory for each.

The features of x and x' are joined into one ordered list with two values each. Most features of a tile coder stay
active from one step to the next, so a pass that serves both vectors reads most stretches once instead of twice.
"""

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import INLINE, INNER, use_widest_vectors


@numba.njit(**INNER)
def join_rows(x, x_next, t, uses_next, dense, places, here, there):
    """Fill `places` with the features of x or x' in order, `here` and `there` with their values; return how many."""
    count = 0
    a, a_end = x.begin[t], x.begin[t + 1]
    b, b_end = (x_next.begin[t], x_next.begin[t + 1]) if uses_next else (0, 0)
    if dense:
        for i in range(a_end - a):
            value, after = x.values[a + i], x_next.values[b + i] if uses_next else 0.0
            if value != 0.0 or after != 0.0:
                places[count], here[count], there[count] = i, value, after
                count += 1
        return count
    while True:
        while a < a_end and x.values[a] == 0.0:
            a += 1
        while b < b_end and x_next.values[b] == 0.0:
            b += 1
        if a >= a_end and b >= b_end:
            return count
        in_x = a < a_end and (b >= b_end or x.indices[a] <= x_next.indices[b])
        in_next = b < b_end and (a >= a_end or x_next.indices[b] <= x.indices[a])
        places[count] = x.indices[a] if in_x else x_next.indices[b]
        here[count] = x.values[a] if in_x else 0.0
        there[count] = x_next.values[b] if in_next else 0.0
        a += 1 if in_x else 0
        b += 1 if in_next else 0
        count += 1


@numba.njit(**INLINE)
def largest_of(values, count):
    """Return the largest of some values, without its sign."""
    most = 0.0
    for j in range(count):
        most = max(most, abs(values[j]))
    return most


@numba.njit(**INNER)
def sum_both(memory, part, places, here, there, count, x_sum, next_sum):
    """Fill two arrays (slots,) with x and with x' times a part of every lane, summed from left to right."""
    use_widest_vectors()
    x_sum[:] = 0.0
    next_sum[:] = 0.0
    j = 0
    while j + 2 <= count:  # two features at a time: sums are read and written once for both
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
    """Fill `into` (slots,) with a vector times a part of every lane, summed from left to right."""
    use_widest_vectors()
    into[:] = 0.0
    for j in range(count):
        row, value = memory[np.uintp(places[j]), part], values[j]
        if value != 0.0:
            for lane in range(into.size):
                into[lane] += value * row[lane]


@numba.njit(**INNER)
def move_row(memory, part, places, values, count, by, scratch):
    """Move a part of every lane along a vector, by as much as `by` (slots,) says."""
    use_widest_vectors()
    for j in range(count):
        if values[j] != 0.0:
            scratch[0] = values[j]  # in the precision of the memory
            row, value = memory[np.uintp(places[j]), part], scratch[0]
            for lane in range(by.size):
                row[lane] += by[lane] * value
