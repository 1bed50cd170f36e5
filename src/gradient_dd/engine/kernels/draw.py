"""The compiled sampler: random words in, outcomes of a task out."""

import numpy as np

from gradient_dd.engine.kernels.keep import kept


@kept(nogil=True)
def draw(words, group, first, size, keep, outcome, after, column):
    """Fill `column` with outcomes and return the group to draw from next.

    The upper half of a word chooses an entry of the group, the lower half one of its two outcomes.
    """
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    for t in range(len(column)):
        word = words[t]
        entry = first[group] + (((word >> half) * size[group]) >> half)
        side = np.uint64((word & low) >= keep[entry])
        column[t] = outcome[entry, side]
        group = after[entry, side]
    return group
