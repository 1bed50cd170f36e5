"""Checks of transitions, compiled: one pass over all numbers. What is wrong, and where, is found elsewhere."""

import numpy as np

from gradient_dd.engine.kernels.compiler import COMPILE
from gradient_dd.engine.kernels.keep import kept

SIZE_BITS = np.int64(0x7FFF_FFFF_FFFF_FFFF)  # of a double, all but its sign
FEW = 24  # indices of a row that are compared pair by pair; more are sorted


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
def within(indices, p):
    """Return whether all indices are from 0 to p − 1."""
    sound = True
    for j in range(indices.size):
        sound &= (indices[j] >= 0) & (indices[j] < p)
    return sound


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
    """Return whether the values of one row are finite, and its indices from 0 to p − 1, each once."""
    sound = True
    for j in range(values.size):
        sound &= abs(values[j]) < np.inf
    for j in range(indices.size):
        sound &= (indices[j] >= 0) & (indices[j] < p)
    if indices.size > FEW:
        indices = np.sort(indices)
        for j in range(1, indices.size):
            sound &= indices[j] != indices[j - 1]
    else:
        for i in range(1, indices.size):
            for j in range(i):
                sound &= indices[i] != indices[j]
    return sound
