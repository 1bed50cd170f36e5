"""The stream kernel for many lanes: settings of one rule side by side on the same transitions.

Lanes are contiguous: memory[i, part, lane], the parts being w and η, so that a feature touches one stretch of memory
and loops over lanes become vector code. The arithmetic is that of `stream.py`, in the same order, so a lane has the
bits of a learner alone. The change w − w_prev is not stored: it is w_x x + w_next x' of the step before, so the rows
of that step, which all lanes share, and two numbers for each lane give it.
"""

from functools import cache
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, INNER, keep, use_widest_vectors
from gradient_dd.engine.kernels.question_lanes import ETA, W, settle
from gradient_dd.engine.kernels.rules import IN_LANES, describe_kernel, make_coefficients
from gradient_dd.engine.kernels.stream import LARGEST_SCALE, SMALLEST_SCALE, fetch
from gradient_dd.engine.single import LIMIT, FeatureRows
from gradient_dd.learners import Rule

AHEAD = 6  # rows by which features are fetched ahead
LINE = 8  # numbers of a cache line


@cache
def lanes_kernel(rule: Rule, dense: bool, per_lane: bool, double: bool) -> Any:
    """Return `run` for a rule, compiled when it is called first.

    dense     rows of features are dense;  per_lane  each lane has a reward, a discount and a ratio of its own
    double    the memory has double precision; η over its scale stays within single precision otherwise
    """
    smallest, largest = (SMALLEST_SCALE, LARGEST_SCALE) if double else (1e-15, 1e15)
    coefficients: Any = make_coefficients(rule, IN_LANES)
    has_eta, has_change, shrinks = rule.has_eta, "x_change" in rule.arguments, "eta_eta" in rule.moves
    moves_next = "w_next" in rule.moves

    @numba.njit(**INLINE)
    def place(rows, begin, j):
        return np.uintp(j - begin) if dense else np.uintp(rows.indices[j])

    @numba.njit(**INNER)
    def product(memory, part, rows, t, into):
        """Fill `into` with a row of features times a part of every lane, summed from left to right."""
        use_widest_vectors()
        begin, end = rows.begin[t], rows.begin[t + 1]
        into[:] = 0.0
        j = begin
        while j + 4 <= end:  # four features at a time: sums are read and written once for all of them
            v0, v1, v2, v3 = rows.values[j], rows.values[j + 1], rows.values[j + 2], rows.values[j + 3]
            s0, s1 = memory[place(rows, begin, j), part], memory[place(rows, begin, j + 1), part]
            s2, s3 = memory[place(rows, begin, j + 2), part], memory[place(rows, begin, j + 3), part]
            for lane in range(into.size):
                into[lane] = (((into[lane] + v0 * s0[lane]) + v1 * s1[lane]) + v2 * s2[lane]) + v3 * s3[lane]
            j += 4
        while j < end:
            stretch, value = memory[place(rows, begin, j), part], rows.values[j]
            for lane in range(into.size):
                into[lane] += value * stretch[lane]
            j += 1

    @numba.njit(**INNER)
    def changes(rows, t, last, w_x, w_next, into):
        """Fill `into` with x·(w − w_prev)."""
        use_widest_vectors()
        begin, end = rows.begin[t], rows.begin[t + 1]
        into[:] = 0.0
        for j in range(begin, end):
            i, value = place(rows, begin, j), rows.values[j]
            on_x, on_next = last[i, 0], last[i, 1]
            if on_x != 0.0 or on_next != 0.0:
                for lane in range(into.size):
                    into[lane] += value * (w_x[lane] * on_x + w_next[lane] * on_next)

    @numba.njit(**INLINE)
    def remember(last, rows, t, column):
        begin, end = rows.begin[t], rows.begin[t + 1]
        for j in range(begin, end):
            last[place(rows, begin, j), column] += rows.values[j]

    @numba.njit(**INLINE)
    def forget(last, rows, t):
        begin, end = rows.begin[t], rows.begin[t + 1]
        for j in range(begin, end):
            last[place(rows, begin, j)] = 0.0

    @numba.njit(**INNER)
    def move(memory, part, rows, t, coefficient):
        use_widest_vectors()
        begin, end = rows.begin[t], rows.begin[t + 1]
        for j in range(begin, end):
            stretch, value = memory[place(rows, begin, j), part], rows.values[j]
            for lane in range(coefficient.size):
                stretch[lane] += coefficient[lane] * value

    @numba.njit(**INLINE)
    def reach(rows, t):
        """Return the largest feature of a row, without its sign."""
        most = 0.0
        for j in range(rows.begin[t], rows.begin[t + 1]):
            most = max(most, abs(rows.values[j]))
        return most

    @numba.njit(**INLINE)
    def fetch_row(flat, width, rows, t):
        for j in range(rows.begin[t], rows.begin[t + 1]):
            first = np.uintp(rows.indices[j]) * width
            for line in range(width // np.uintp(LINE)):
                fetch(flat, first + np.uintp(line) * np.uintp(LINE))

    def run(state, constants, x, x_next, data, counts):
        """Make a step of every lane for every row.

        state      memory (p, parts, lanes); the scale (lanes,) of η; stopped (lanes,), the step at which a lane would
                   have left its bounds and stands still from there on, −1 for none; last (p, 2), x and x' of the step
                   before, and moved (2, lanes), its w_x and w_next; sums (p, lanes), the sum of w after every so many
                   steps
        constants  alpha and zeta (2, lanes); the rule's own parameters (parameters, lanes); whether the ratio of the x
                   half is 1 (lanes,)
        x, x_next  in the order of `FeatureRows`
        data       reward, discount, rho: (n, 1) or (n, lanes); whether x' is used (n,); the factor of the schedule
                   (n,); the block (n,) of every row; weights (blocks, lanes) of alpha
        counts     after how many steps w is added to the sums, 0 for never; the steps before the first
        """
        use_widest_vectors()
        memory, scale, stopped, last, moved, sums = state
        start, own, only_next = constants
        x = FeatureRows(x[0], x[1], x[2], x[3], x[4])
        x_next = FeatureRows(x_next[0], x_next[1], x_next[2], x_next[3], x_next[4])
        reward, discount, rho, goes_on, factor, block, weights = data
        every, done = counts
        lanes = scale.size
        x_w, next_w, x_eta, x_change = np.zeros(lanes), np.zeros(lanes), np.zeros(lanes), np.zeros(lanes)
        w_x, w_next, eta_x, shrink = np.zeros(lanes), np.zeros(lanes), np.zeros(lanes), np.zeros(lanes)
        flat, width = memory.reshape(memory.size), np.uintp(memory.shape[1] * memory.shape[2])
        for t in range(block.size):
            if not dense and t + AHEAD < block.size:
                fetch_row(flat, width, x, t + AHEAD)
                fetch_row(flat, width, x_next, t + AHEAD)
            product(memory, W, x, t, x_w)
            if goes_on[t]:
                product(memory, W, x_next, t, next_w)
            if has_eta:
                product(memory, ETA, x, t, x_eta)
            if has_change:
                changes(x, t, last, moved[0], moved[1], x_change)
                if t > 0:
                    forget(last, x, t - 1)
                    if goes_on[t - 1]:
                        forget(last, x_next, t - 1)
                else:
                    last[:] = 0.0
            on_x, on_next = reach(x, t), reach(x_next, t) if goes_on[t] else 0.0
            weight, outside = weights[block[t]], 0
            for lane in range(lanes):
                question = lane if per_lane else 0
                gamma, ratio = discount[t, question], rho[t, question]
                bootstrap = gamma * next_w[lane] if gamma != 0.0 else 0.0
                delta = reward[t, question] + bootstrap - x_w[lane]
                alpha = start[0, lane] * factor[t] * weight[lane]
                rho_x = 1.0 if only_next[lane] else ratio
                on_w, after, on_eta, shrunk = coefficients(
                    own,
                    lane,
                    alpha,
                    start[1, lane] * alpha,
                    ratio,
                    rho_x,
                    gamma,
                    delta,
                    scale[lane] * x_eta[lane],
                    x_change[lane],
                )
                after = after if gamma != 0.0 else 0.0
                live = stopped[lane] < 0
                w_x[lane] = on_w if live else 0.0
                w_next[lane] = after if live else 0.0
                eta_x[lane] = on_eta if live else 0.0
                fine = (abs(on_w) * on_x <= LIMIT) & (abs(on_eta) * on_x <= LIMIT) & (abs(after) * on_next <= LIMIT)
                if shrinks:
                    shrink[lane] = shrunk if live else 0.0
                    size = abs(scale[lane] * (1.0 + shrunk))
                    fine = fine & (size > smallest) & (size < largest)
                outside += 1 if live & (not fine) else 0
            if outside == 0:
                if shrinks:
                    for lane in range(lanes):
                        scale[lane] *= 1.0 + shrink[lane]
                        eta_x[lane] /= scale[lane]
            else:
                for lane in range(lanes):
                    fine = abs(w_x[lane]) * on_x <= LIMIT and abs(eta_x[lane]) * on_x <= LIMIT
                    fine = fine and abs(w_next[lane]) * on_next <= LIMIT
                    if shrinks and stopped[lane] < 0 and fine:
                        fine = settle(memory, lane, scale, shrink[lane], (smallest, largest, LIMIT))
                        eta_x[lane] /= scale[lane]
                    if not fine:
                        stopped[lane] = done + t
                        w_x[lane] = w_next[lane] = eta_x[lane] = 0.0
            move(memory, W, x, t, w_x)
            if moves_next and goes_on[t]:
                move(memory, W, x_next, t, w_next)
            if has_eta:
                move(memory, ETA, x, t, eta_x)
            if has_change:
                remember(last, x, t, 0)
                if goes_on[t]:
                    remember(last, x_next, t, 1)
                moved[0] = w_x
                moved[1] = w_next
            if every > 0 and (done + t + 1) % every == 0:
                for i in range(sums.shape[0]):
                    for lane in range(lanes):
                        sums[i, lane] += memory[i, W, lane]

    return keep(run, describe_kernel("stream_lanes", rule, dense, per_lane, double), nogil=True, **COMPILE)
