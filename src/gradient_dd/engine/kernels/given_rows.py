"""Rows of features and columns of numbers that a user gives: checked in one pass, and sorted where they need it.

What is wrong, and where, is found elsewhere. The rows of a block are sorted together, one row in each lane of a vector,
by the network of Batcher (1968): which two places it compares does not depend on the numbers.
"""

from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, INNER, kept, use_widest_vectors
from gradient_dd.engine.single import IN_ORDER, OUTSIDE, UNORDERED

SIZE_BITS = np.int64(0x7FFF_FFFF_FFFF_FFFF)  # of a double, all but its sign
CHUNK = 256  # rows that are looked at while they are in the cache
BLOCK = np.uintp(32)  # rows that are sorted together
MOST_INSERTED = np.uintp(256)  # indices of a single row that are sorted by insertion
NULL, ONE = np.uintp(0), np.uintp(1)  # unsigned places need no test for a negative one


@kept(nogil=True, **COMPILE)
def largest_bits(words):
    """Return the largest |value| of doubles that are given, and returned, as their 64 bits.

    Sizes of doubles are ordered as their bits are, infinity and NaN last, and a maximum of integers runs as vectors.
    """
    most = np.int64(0)
    for j in range(words.size):
        most = max(most, words[j] & SIZE_BITS)
    return most


@numba.njit(**INLINE)
def falls(indices, begin, end, width):
    """Return how many indices of the rows from `begin` to `end` are not above the one before them in their row."""
    use_widest_vectors()
    found = np.int64(0)
    for j in range(begin + ONE, end):
        found += indices[j] <= indices[j - ONE]
    for j in range(begin + width, end, width):  # from one row to the next they may fall
        found -= indices[j] <= indices[j - ONE]
    return found


@kept(nogil=True, **COMPILE)
def pairs_order(indices, width, p):
    """Return IN_ORDER, UNORDERED or OUTSIDE for the indices of rows that all have the same width."""
    outside, unordered, last = np.int64(0), np.int64(0), np.int64(p - 1)
    size, step = np.uintp(indices.size), np.uintp(width)
    for begin in range(NULL, size, max(ONE, np.uintp(CHUNK) * step)):
        end = min(size, begin + np.uintp(CHUNK) * step)
        for j in range(begin, end):
            index = np.int64(indices[j])
            outside |= index | (last - index)  # becomes negative, for good, where one of the two is
        unordered += falls(indices, begin, end, step)
    return OUTSIDE if outside < 0 else UNORDERED if unordered else IN_ORDER


@kept(nogil=True, **COMPILE)
def columns_are_sound(reward, discount, rho):
    """Return whether rewards are finite, discounts in [0, 1], and ratios finite and not negative."""
    sound = True
    for t in range(reward.size):
        sound &= abs(reward[t]) < np.inf
        sound &= (discount[t] >= 0.0) & (discount[t] <= 1.0)
        sound &= (rho[t] >= 0.0) & (rho[t] < np.inf)
    return sound


@numba.njit(**INLINE)
def row_is_sound(indices, values, p):
    """Return whether the values of one row are finite, and its indices from 0 to p − 1, in order and each once."""
    sound, last = True, -1
    for j in range(values.size):
        sound &= abs(values[j]) < np.inf
    for j in range(indices.size):
        sound &= (indices[j] > last) & (indices[j] < p)
        last = indices[j]
    return sound


@kept(nogil=True, **COMPILE)
def rows_are_sound(indices, values, next_indices, next_values, p):
    """Return whether both rows of a transition are sound."""
    return row_is_sound(indices, values, p) and row_is_sound(next_indices, next_values, p)


@numba.njit(**INNER)
def ordered_row(indices, values):
    """Return one row with its indices in order, each once; values of equal ones are added up from left to right.

    A long row that is not in order is returned as it is.
    """
    count = np.uintp(indices.size)
    if count == NULL or count > MOST_INSERTED or not falls(indices, NULL, count, count):
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


@kept(nogil=True, **COMPILE)
def sort_rows(indices, values, width, ordered, summed):
    """Fill `ordered` and `summed` with rows of the same width whose indices are in order.

    Values of equal indices are added up from left to right; zeros stand in the places that become free. The place of a
    value in its row is kept beside its index, in the lower bits of one number, which is what is sorted.
    """
    step, size, bits = np.uintp(width), np.uintp(indices.size), np.int64(0)
    while (np.int64(1) << bits) < width:
        bits += 1
    keys = np.empty(step * BLOCK, np.int64)
    for begin in range(NULL, size, BLOCK * step):
        end = min(size, begin + BLOCK * step)
        if falls(indices, begin, end, step):
            load_keys(keys, indices, begin, end, step, bits)
            sort_keys(keys, step)
            store_rows(keys, values, begin, end, step, bits, ordered, summed)
            add_equal(begin, end, step, ordered, summed)
        else:
            ordered[begin:end] = indices[begin:end]
            summed[begin:end] = values[begin:end]


@numba.njit(**INNER)
def load_keys(keys, indices, begin, end, width, bits):
    """Fill keys (width, BLOCK) with the indices of a block, and their places."""
    use_widest_vectors()
    rows = (end - begin) // width
    for j in range(width):
        for row in range(rows):
            keys[j * BLOCK + row] = (np.int64(indices[begin + row * width + j]) << bits) | np.int64(j)


@numba.njit(**INNER)
def sort_keys(keys, width):
    """Sort every column of keys (width, BLOCK): runs of 1, 2, 4, … are merged by the odd-even network."""
    length = ONE
    while length < width:
        apart = length
        while apart:
            for begin in range(apart % length, width - apart if apart < width else NULL, apart + apart):
                for j in range(begin, min(begin + apart, width - apart)):
                    if j // (length + length) == (j + apart) // (length + length):
                        compare(keys, j * BLOCK, (j + apart) * BLOCK)
            apart >>= ONE
        length <<= ONE


@numba.njit(**INLINE)
def compare(keys, low, high):
    """Put the smaller ones of two rows of keys into the first."""
    use_widest_vectors()
    for row in range(BLOCK):
        one, other = keys[low + row], keys[high + row]
        keys[low + row] = min(one, other)
        keys[high + row] = max(one, other)


@numba.njit(**INNER)
def store_rows(keys, values, begin, end, width, bits, ordered, summed):
    """Fill the rows of a block with the indices of sorted keys, and with the values that belong to them."""
    use_widest_vectors()
    mask = (np.int64(1) << bits) - np.int64(1)
    for row in range((end - begin) // width):
        first = begin + row * width
        for j in range(width):
            key = keys[j * BLOCK + row]
            ordered[first + j] = key >> bits
            summed[first + j] = values[first + np.uintp(key & mask)]


@numba.njit(**INNER)
def add_equal(begin, end, width, ordered, summed):
    """Add up the values of equal indices in ordered rows."""
    if falls(ordered, begin, end, width):
        for first in range(begin, end, width):
            place = first
            for j in range(first + ONE, first + width):
                if ordered[j] == ordered[place]:
                    summed[place] += summed[j]
                    summed[j] = 0.0
                else:
                    place = j
