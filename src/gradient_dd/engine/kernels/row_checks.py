"""Checks of transitions, compiled: one pass over all numbers. What is wrong, and where, is found elsewhere."""

import numpy as np

from gradient_dd.engine.kernels.compiler import COMPILE, kept
from gradient_dd.engine.stream import IN_ORDER, OUTSIDE, UNORDERED

SIZE_BITS = np.int64(0x7FFF_FFFF_FFFF_FFFF)  # of a double, all but its sign
CHUNK = 256  # rows that are looked at while they are in the cache


@kept(nogil=True, **COMPILE)
def largest_bits(words):
    """Return the largest |value| of doubles that are given, and returned, as their 64 bits.

    Sizes of doubles are ordered as their bits are, infinity and NaN last, and a maximum of integers runs as vectors.
    """
    most = np.int64(0)
    for j in range(words.size):
        most = max(most, words[j] & SIZE_BITS)
    return most


@kept(nogil=True, **COMPILE)
def pairs_order(indices, values, width, p):
    """Return IN_ORDER, UNORDERED or OUTSIDE for the indices of rows that all have the same width.

    An index that stands again with a value of 0 is in order. Loops over a chunk of rows run as vectors.
    """
    outside, falls, last = np.int64(0), np.int64(0), np.int64(p - 1)
    size, step, one = np.uintp(indices.size), np.uintp(width), np.uintp(1)
    for begin in range(np.uintp(0), size, max(one, np.uintp(CHUNK) * step)):
        end = min(size, begin + np.uintp(CHUNK) * step)
        outside |= np.int64(indices[begin]) | (last - np.int64(indices[begin]))
        for j in range(begin + one, end):
            index = np.int64(indices[j])
            outside |= index | (last - index)  # becomes negative, for good, where one of the two is
            falls += index <= indices[j - one]
        for j in range(begin + step, end, step):  # from one row to the next they may fall
            falls -= indices[j] <= indices[j - one]
    if outside < 0:
        return OUTSIDE
    if falls:
        for begin in range(0, indices.size, width):
            for j in range(begin + 1, begin + width):
                again = (indices[j] == indices[j - 1]) & (values[j] == 0.0)
                if indices[j] <= indices[j - 1] and not again:
                    return UNORDERED
    return IN_ORDER


@kept(nogil=True, **COMPILE)
def columns_are_sound(reward, discount, rho):
    """Return whether rewards are finite, discounts in [0, 1], and ratios finite and not negative."""
    sound = True
    for t in range(reward.size):
        sound &= abs(reward[t]) < np.inf
        sound &= (discount[t] >= 0.0) & (discount[t] <= 1.0)
        sound &= (rho[t] >= 0.0) & (rho[t] < np.inf)
    return sound


@kept(nogil=True, **COMPILE)
def row_is_sound(indices, values, p):
    """Return whether the values of one row are finite, and its indices from 0 to p − 1, in order and each once."""
    sound, last = True, -1
    for j in range(values.size):
        sound &= abs(values[j]) < np.inf
    for j in range(indices.size):
        sound &= (indices[j] > last) & (indices[j] < p)
        last = indices[j]
    return sound
