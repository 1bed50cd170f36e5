"""How good each answer is, while it is learnt: returns beside predictions, and when the projected error is measured.

A lane follows one return at a time. It keeps its prediction x·w, adds up what follows, and compares the two when the
question ended or less than LEFT of the return's weight is ahead. Then it waits, for up to as many steps as that return
had, so that returns do not all begin where questions begin. Means weigh the n-th comparison by n, so that early
predictions are forgotten.
"""

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import INLINE, INNER, use_widest_vectors
from gradient_dd.engine.questions import LEFT, MEASURED_EVERY, QUALITY

AHEAD, RETURN, VALUE, LENGTH, WAIT, COUNT, ERROR, MEAN, VARIANCE, BLAME_WEIGHT = range(len(QUALITY))
SPREAD = 0.6180339887498949  # the multiples of the golden ratio, without their whole parts, fill [0, 1) evenly


@numba.njit(**INLINE)
def is_measured(step):
    """Return whether δz of a step goes into the projected error."""
    return step % MEASURED_EVERY == 0


@numba.njit(**INNER)
def add_returns(quality, x_w, reward, discount, rho, seen, runs, shared):
    """Follow the returns of all lanes by one step; a return that meets a step outside the question is given up."""
    use_widest_vectors()
    begin, view = runs
    for run in range(view.size):
        if not seen[view[run]]:
            quality[AHEAD, begin[run] : begin[run + 1]] = 0.0
            continue
        for lane in range(begin[run], begin[run + 1]):
            ratio, gamma = rho[run if shared else lane], discount[run if shared else lane]
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
