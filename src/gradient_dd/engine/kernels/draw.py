"""The compiled sampler: random words in, outcomes of a task out, and where episodes end."""

import numpy as np
from numpy.typing import NDArray

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


@kept(nogil=True)
def find_ends(column, ends, places):
    """Fill `places` with the numbers of steps up to each end of an episode, and return how many there are.

    `ends` says of each outcome whether it is one. There is room for one place more than there are steps.
    """
    count = 0
    for t in range(len(column)):
        places[count] = t + 1
        count += ends[column[t]]
    return count


def ends_in(column: NDArray[np.int32], ends: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the numbers of steps up to each end of an episode."""
    places = np.empty(len(column) + 1, np.int64)
    return places[: find_ends(column, ends, places)].copy()
