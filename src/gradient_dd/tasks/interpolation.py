"""Features that are one at every fourth state and interpolate linearly between."""

import numpy as np
import scipy.sparse as sp


def interpolated(states: int, p: int, every: int) -> sp.csr_matrix:
    """Return (states, p) rows: state i has weight 1 − t on anchor k and t on k + 1, with i / every = k + t.

    States past the last anchor continue the line of the last two, so every row sums to 1 and values that are
    linear in the state are always representable.
    """
    place = np.arange(states) / every
    left = np.minimum(place.astype(int), p - 2)
    t = place - left
    rows = np.arange(states)
    matrix = sp.csr_matrix(
        (np.concatenate([1 - t, t]), (np.tile(rows, 2), np.concatenate([left, left + 1]))), shape=(states, p)
    )
    matrix.eliminate_zeros()
    return matrix
