"""Compiled functions for feature rows, and for the traces of one learner, which are stored as rows too.

A row is a tuple: sorted indices, values, begin, end, and whether the row is dense and has no indices.

A trace has two halves. A step computes the new trace in the spare half, and swaps the halves after its last check, so a
rejected step changes nothing. Unless rows are dense, entries smaller than SMALLEST times the largest entry are dropped,
because they are below its rounding error.
"""

from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, INNER, kept, use_widest_vectors
from gradient_dd.engine.kernels.vectors import SMALLEST, make_numbers
from gradient_dd.engine.single import CHANGE, ETA, IN_ORDER, MOST_SORTED, OUTSIDE, UNORDERED
from gradient_dd.learners import Rule

SIZE_BITS = np.int64(0x7FFF_FFFF_FFFF_FFFF)  # all bits of a double except its sign
CHUNK = np.uintp(256)  # number of rows checked at a time, while these rows are in the cache
BLOCK = np.uintp(32)  # number of rows sorted together
NULL, ONE = np.uintp(0), np.uintp(1)  # unsigned indices need no check for negative values


# The user's data --------------------------------------------------------------------------------------------------


@kept(nogil=True, **COMPILE)
def largest_bits(words):
    """Return the largest |value| of doubles, which are given and returned as their 64 bits.

    Absolute values of doubles have the order of their bits, with infinity and NaN last, and a maximum of integers is
    vectorised.
    """
    most = np.int64(0)
    for j in range(words.size):
        most = max(most, words[j] & SIZE_BITS)
    return most


@kept(nogil=True, **COMPILE)
def pairs_order(indices, width, p):
    """Return IN_ORDER, UNORDERED or OUTSIDE for the indices of rows that all have the same width."""
    use_widest_vectors()
    outside, falls, last = np.int64(0), np.int64(0), np.int64(p - 1)
    size, step = np.uintp(indices.size), np.uintp(width)
    for begin in range(NULL, size, max(ONE, CHUNK * step)):
        end = min(size, begin + CHUNK * step)
        for j in range(begin, end):
            index = np.int64(indices[j])
            outside |= index | (last - index)  # once a number is negative, `outside` stays negative
        for j in range(begin + ONE, end):
            falls += indices[j] <= indices[j - ONE]
        for j in range(begin + step, end, step):  # indices may fall from one row to the next
            falls -= indices[j] <= indices[j - ONE]
    return OUTSIDE if outside < 0 else UNORDERED if falls else IN_ORDER


@kept(nogil=True, **COMPILE)
def columns_are_sound(reward, discount, rho):
    """Return whether rewards are finite, discounts in [0, 1], and ratios finite and non-negative."""
    sound = True
    for t in range(reward.size):
        sound &= abs(reward[t]) < np.inf
        sound &= (discount[t] >= 0.0) & (discount[t] <= 1.0)
        sound &= (rho[t] >= 0.0) & (rho[t] < np.inf)
    return sound


@numba.njit(**INLINE)
def row_is_sound(indices, values, p):
    """Return whether the values of a row are finite, and its indices sorted, unique and from 0 to p − 1."""
    sound, last = True, -1
    for j in range(values.size):
        sound &= abs(values[j]) < np.inf
    for j in range(indices.size):
        sound &= (indices[j] > last) & (indices[j] < p)
        last = indices[j]
    return sound


@kept(nogil=True, **COMPILE)
def rows_are_sound(indices, values, next_indices, next_values, p):
    """Return whether both rows of a transition are valid."""
    return row_is_sound(indices, values, p) and row_is_sound(next_indices, next_values, p)


@numba.njit(**INNER)
def ordered_row(indices, values):
    """Return a row with sorted, unique indices; values of equal indices are added up from left to right.

    An unsorted row of more than MOST_SORTED features is returned unchanged.
    """
    count, falls = np.uintp(indices.size), False
    for j in range(ONE, count):
        falls |= indices[j] <= indices[j - ONE]
    if not falls or count > np.uintp(MOST_SORTED):
        return indices, values
    ordered, summed = indices.copy(), values.copy()
    for j in range(ONE, count):
        index, value = ordered[j], summed[j]
        place: Any = j
        while place and ordered[place - ONE] > index:
            ordered[place], summed[place] = ordered[place - ONE], summed[place - ONE]
            place -= ONE
        ordered[place], summed[place] = index, value
    last: Any = NULL
    for j in range(ONE, count):
        if ordered[j] == ordered[last]:
            summed[last] += summed[j]
        else:
            last += ONE
            ordered[last], summed[last] = ordered[j], summed[j]
    return ordered[: last + ONE], summed[: last + ONE]


@numba.njit(**INLINE)
def compare(keys, ranks, early, late):
    """Compare two features of each row of a block, and increase the rank of the feature that comes second."""
    use_widest_vectors()
    for row in range(BLOCK):
        in_order = np.int32(keys[early + row] <= keys[late + row])
        ranks[late + row] += in_order
        ranks[early + row] += np.int32(1) - in_order


@kept(nogil=True, **COMPILE)
def sort_rows(indices, values, width, ordered, summed):
    """Fill `ordered` and `summed` with rows of `width` features, sorted by index.

    The place of a feature in its row is the number of features that come before it. This number is counted for BLOCK
    rows together, one row in each lane of a vector, without branches.
    """
    use_widest_vectors()
    step, size = np.uintp(width), np.uintp(indices.size)
    keys, ranks = np.zeros(step * BLOCK, np.int32), np.zeros(step * BLOCK, np.int32)
    for begin in range(NULL, size, BLOCK * step):
        rows = min(BLOCK, (size - begin) // step)
        for j in range(step):
            for row in range(rows):
                keys[j * BLOCK + row] = indices[begin + row * step + j]
        ranks[:] = 0
        for j in range(step):
            for i in range(j):
                compare(keys, ranks, i * BLOCK, j * BLOCK)
        for row in range(rows):
            first = begin + row * step
            for j in range(step):
                place = first + np.uintp(ranks[j * BLOCK + row])
                ordered[place], summed[place] = indices[first + j], values[first + j]


@kept(nogil=True, **COMPILE)
def add_equal(ordered, summed, width):
    """Add up the values of equal indices from left to right in ordered rows; the first gets the sum, the others 0."""
    step = np.uintp(width)
    for first in range(NULL, np.uintp(ordered.size), step):
        place = first
        for j in range(first + ONE, first + step):
            if ordered[j] == ordered[place]:
                summed[place] += summed[j]
                summed[j] = 0.0
            else:
                place = j


@numba.njit(**INLINE)
def largest_of(values, begin, end):
    """Return the largest |value| between two places."""
    most = 0.0
    for j in range(begin, end):
        most = max(most, abs(values[j]))
    return most


@numba.njit(**INLINE)
def place_of(row, j):
    """Return the index of the feature at a place of a row."""
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


# Traces -----------------------------------------------------------------------------------------------------------


@numba.njit(**INNER)
def grow(decay, z, gain, x, places, values):
    """Fill `places` and `values` with decay z + gain x; return the number of entries and the largest |value|."""
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
    """Remove the entries whose |value| does not exceed a bound; return the number of entries that remain."""
    stay = NULL
    for j in range(count):
        if abs(values[j]) > bound:
            places[stay], values[stay] = places[j], values[j]
            stay += ONE
    return stay


@numba.njit(**INLINE)
def trace_row(traces, half, k):
    """Return a trace as a row."""
    return traces.places[half, k], traces.values[half, k], NULL, np.uintp(traces.lengths[half, k]), False


@numba.njit(**INNER)
def eta_along(memory, z):
    """Return the product of a trace and η / scale."""
    total = 0.0
    for j in range(z[3]):
        total += z[1][j] * memory[np.uintp(z[0][j]), ETA]
    return total


@numba.njit(**INNER)
def move_along(memory, part, z, coefficient):
    """Add coefficient × a trace to a part of the memory."""
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
    """Store a transition for the traces of the next step, or zeros if an episode ended."""
    goes_on = discount != 0.0
    before[0] = discount
    before[1] = rho if goes_on else 0.0
    before[2] = pi[t] if goes_on and pi.size else 0.0
    before[3] = mu[t] if goes_on and mu.size else 0.0


def make_grow_traces(rule: Rule) -> Any:
    """Compile `grow_traces`, which decays every trace and adds the next x, in the spare half."""
    count, make, feeds_back = len(rule.traces), make_numbers(rule), "x_trace" in rule.trace_arguments

    @numba.njit(**INNER)
    def grow_traces(traces, half, dense, own, x, alpha, rho):
        """Compute the new traces, and return whether all of them are finite."""
        fine = True
        for k in range(count):
            old, numbers = trace_row(traces, half, k), traces.numbers[1 - half, k]
            for j in range(numbers.size):
                numbers[j] = traces.numbers[half, k, j]
            decay, gain = make(k, own, traces.before, numbers, alpha, rho, dot(x, old) if feeds_back else 0.0)
            places, values = traces.places[1 - half, k], traces.values[1 - half, k]
            made, largest = grow(decay, old, gain, x, places, values)
            traces.lengths[1 - half, k] = made if dense else drop_small(places, values, made, SMALLEST * largest)
            fine &= largest < np.inf
        return fine

    return grow_traces
