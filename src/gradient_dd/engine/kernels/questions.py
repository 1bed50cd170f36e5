"""The kernel of questions: many lanes of one rule on one stream, each with its own signal, horizon, policy and states.

Lanes are contiguous, memory[i, part, slot], so that a feature touches one stretch of memory. The lanes of a *run* see
the same steps; with `shared` they also have the same discount and ratio, so that one trace serves all of them. The
arithmetic is that of `Learner.update`, in the same order: a lane in double precision has the bits of a learner alone.
"""

from functools import cache
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, INNER, keep, use_widest_vectors
from gradient_dd.engine.kernels.question_passes import join_rows, largest_of, move_row, sum_both, sum_row
from gradient_dd.engine.kernels.question_quality import BLAME_WEIGHT, add_returns, is_measured
from gradient_dd.engine.kernels.question_traces import decay_and_grow, make_trace_passes
from gradient_dd.engine.kernels.rules import IN_LANES, PLAIN, describe_kernel, make_coefficients
from gradient_dd.engine.kernels.stream_lanes import ETA, W, settle
from gradient_dd.engine.kernels.vectors import make_numbers
from gradient_dd.engine.questions import BOUNDS, MOVES, TRACE_SIGNALS
from gradient_dd.engine.stream import FeatureRows
from gradient_dd.learners import Rule

W_X, W_NEXT, W_Z, ETA_X, ETA_NEXT, ETA_Z, SHRINK = range(len(MOVES))


@cache
def questions_kernel(rule: Rule, shared: bool, double: bool) -> Any:
    """Return `run` for a rule, compiled when it is called first; `double` is the precision of the memory."""
    smallest_scale, largest_scale, limit, most, smallest = BOUNDS[double]
    coefficients: Any = make_coefficients(rule, IN_LANES, (*PLAIN, *TRACE_SIGNALS), MOVES)
    sum_along, move_along = make_trace_passes(shared)
    has_eta, has_change, shrinks = rule.has_eta, "x_change" in rule.arguments, "eta_eta" in rule.moves
    moves_x, moves_next, moves_z = (name in rule.moves for name in ("w_x", "w_next", "w_z"))
    eta_x, eta_next, eta_z = (name in rule.moves for name in ("eta_x", "eta_next", "eta_z"))
    names = [trace.name for trace in rule.traces]
    has_z, has_b = "z" in names, "b" in names
    asks_z, asks_b = "z_eta" in rule.arguments, "b_eta" in rule.arguments
    ratio_in_trace = any("rho" in trace.arguments for trace in rule.traces if trace.name == "z")
    numbers_of_z: Any = make_numbers(rule, rule.traces[names.index("z")]) if has_z else None
    numbers_of_b: Any = make_numbers(rule, rule.traces[names.index("b")]) if has_b else None

    @numba.njit(**INNER)
    def change_along_x(traces, last, moved, step, runs, into):
        """Fill `into` with x·(w − w_prev): w moved by w_x x + w_next x' + w_z z in the step that a lane saw last."""
        use_widest_vectors()
        places, here, _, rows = step
        begin, view = runs
        into[:] = 0.0
        for run in range(view.size):
            for j in range(rows):
                i, value = np.uintp(places[j]), here[j]
                if value != 0.0:
                    on_x, on_next = last[view[run], i, 0], last[view[run], i, 1]
                    for lane in range(begin[run], begin[run + 1]):
                        change = moved[W_X, lane] * on_x + moved[W_NEXT, lane] * on_next
                        if moves_z:
                            change += moved[W_Z, lane] * traces[0, i, run if shared else lane]
                        into[lane] += value * change

    @numba.njit(**INLINE)
    def remember(last, last_places, last_count, view, step):
        """Keep x and x' of a step that a view saw, in place of the one that it saw before."""
        places, here, there, rows = step
        for j in range(last_count[view]):
            last[view, last_places[view, j]] = 0.0
        for j in range(rows):
            last_places[view, j] = places[j]
            last[view, places[j], 0] = here[j]
            last[view, places[j], 1] = there[j]
        last_count[view] = rows

    @numba.njit(**INNER)
    def set_trace_numbers(decay, gain, kept, before, fixed, rho, t, seen, runs, second):
        """Fill decay and gain (columns,) of a trace; a run that does not see the step keeps its trace as it is."""
        begin, view = runs
        for run in range(view.size):
            first, end = (run, run + 1) if shared else (begin[run], begin[run + 1])
            for column in range(first, end):
                decay[column], gain[column] = 1.0, 0.0
                if seen[t, view[run]]:
                    ratio = rho[t, column]
                    if has_b and second:
                        decay[column], gain[column] = numbers_of_b(
                            fixed[column], before[column], kept[column], 0.0, ratio, 0.0
                        )
                    elif has_z:
                        decay[column], gain[column] = numbers_of_z(
                            fixed[column], before[column], kept[column], 0.0, ratio, 0.0
                        )

    @numba.njit(**INNER)
    def keep_before(before, data, t, runs):
        """Keep discount, ratio and probabilities of a step that was seen; all are 0 where the question ended."""
        _, discount, rho, seen, pi, mu, _ = data
        begin, view = runs
        for run in range(view.size):
            first, end = (run, run + 1) if shared else (begin[run], begin[run + 1])
            for column in range(first, end) if seen[t, view[run]] else range(0):
                goes_on = 1.0 if discount[t, column] != 0.0 else 0.0
                before[column, 0] = discount[t, column]
                before[column, 1] = goes_on * rho[t, column]
                if pi.shape[0]:
                    before[column, 2], before[column, 3] = goes_on * pi[t, column], goes_on * mu[t, column]

    @numba.njit(**INNER)
    def call_rule(lanes, column, work, constants, numbers, reach):
        """Make the coefficients of some lanes; return how many of them would leave their bounds."""
        use_widest_vectors()
        first, end = lanes
        sums, deltas, moves, scale, stopped = work
        start, own, only_next = constants
        reward, discount, rho, factor = numbers
        on_x, on_next, largest = reach
        outside = 0
        for lane in range(first, end):
            own_column = column if shared else lane
            gamma, ratio = discount[own_column], rho[own_column]
            bootstrap = gamma * sums[1, lane] if gamma != 0.0 else 0.0
            delta = reward[lane] + bootstrap - sums[0, lane]
            deltas[lane] = delta
            alpha = start[0, lane] * factor
            beta, rho_x = start[1, lane] * alpha, 1.0 if only_next[lane] else ratio
            x_eta, z_eta, b_eta = scale[lane] * sums[2, lane], scale[lane] * sums[4, lane], scale[lane] * sums[5, lane]
            w_x, w_next, w_z, on_eta, after_eta, along_eta, shrunk = coefficients(
                own, lane, alpha, beta, ratio, rho_x, gamma, delta, x_eta, sums[3, lane], z_eta, b_eta
            )
            w_next, after_eta = w_next if gamma != 0.0 else 0.0, after_eta if gamma != 0.0 else 0.0
            live = stopped[lane] < 0
            on_z = largest[own_column] if has_z else 0.0
            fine = (abs(w_x) * on_x <= limit) & (abs(w_next) * on_next <= limit) & (abs(w_z) * on_z <= limit)
            fine = fine & (abs(on_eta) * on_x <= limit) & (abs(after_eta) * on_next <= limit)
            fine = fine & (abs(along_eta) * on_z <= limit) & (on_z <= most)
            if shrinks:
                size = abs(scale[lane] * (1.0 + shrunk))
                fine = fine & (size > smallest_scale) & (size < largest_scale)
            moves[W_X, lane] = w_x if live else 0.0
            moves[W_NEXT, lane] = w_next if live else 0.0
            moves[W_Z, lane] = w_z if live else 0.0
            moves[ETA_X, lane] = on_eta if live else 0.0
            moves[ETA_NEXT, lane] = after_eta if live else 0.0
            moves[ETA_Z, lane] = along_eta if live else 0.0
            moves[SHRINK, lane] = shrunk if live else 0.0
            outside += 1 if live & (not fine) else 0
        return outside

    @numba.njit(**INNER)
    def stop_lanes(memory, scale, stopped, moves, runs, reach, step):
        """Look at every lane by itself: scales out of bounds are multiplied into η, and diverging lanes stop."""
        begin, _ = runs
        on_x, on_next, largest = reach
        for run in range(begin.size - 1):
            for lane in range(begin[run], begin[run + 1]):
                on_z = largest[run if shared else lane] if has_z else 0.0
                fine = abs(moves[W_X, lane]) * on_x <= limit and abs(moves[W_NEXT, lane]) * on_next <= limit
                fine = fine and abs(moves[W_Z, lane]) * on_z <= limit and abs(moves[ETA_X, lane]) * on_x <= limit
                fine = fine and abs(moves[ETA_NEXT, lane]) * on_next <= limit
                fine = fine and abs(moves[ETA_Z, lane]) * on_z <= limit and on_z <= most
                if shrinks and stopped[lane] < 0 and fine:
                    bounds = smallest_scale, largest_scale, limit
                    fine = settle(memory, lane, scale, moves[SHRINK, lane], bounds)
                    for move in (ETA_X, ETA_NEXT, ETA_Z):
                        moves[move, lane] /= scale[lane]
                if not fine:
                    stopped[lane] = step
                    moves[:, lane] = 0.0

    def run(state, constants, x, x_next, data, done):
        """Make a step of every lane for every row; `engine.questions.QuestionMemory` says what the arrays are."""
        use_widest_vectors()
        memory, scale, stopped, blame, quality = state[0]
        traces, listed, listed_count, before, kept = state[1]
        last, last_places, last_count, moved = state[2]
        lane_constants, fixed, runs = constants
        begin, view = runs
        x = FeatureRows(x[0], x[1], x[2], x[3], x[4])
        x_next = FeatureRows(x_next[0], x_next[1], x_next[2], x_next[3], x_next[4])
        reward, discount, rho, seen, _, _, factor = data
        steps, keep_all, dense = done
        p, slots = memory.shape[0], memory.shape[2]
        columns = view.size if shared else slots
        places, here, there = np.zeros(p, np.int64), np.zeros(p), np.zeros(p)
        spare, decay, gain, largest = (
            np.zeros(p, np.int64),
            np.zeros(columns),
            np.zeros(columns),
            np.zeros((2, columns)),
        )
        sums, deltas, moves = np.zeros((6, slots)), np.zeros(slots), np.zeros((len(MOVES), slots))
        by, scratch = np.zeros((len(MOVES), slots), memory.dtype), np.zeros(1, memory.dtype)
        for t in range(factor.size):
            uses_next = False
            for column in range(columns):
                uses_next |= discount[t, column] != 0.0
            rows = join_rows(x, x_next, t, uses_next, dense, places, here, there)
            step = places, here, there, rows
            sum_both(memory, W, places, here, there, rows, sums[0], sums[1])
            if has_eta:
                sum_row(memory, ETA, places, here, rows, sums[2])
            if has_change:
                change_along_x(traces, last, moved, step, runs, sums[3])
            for k in range(traces.shape[0]):
                set_trace_numbers(decay, gain, kept[k], before, fixed, rho, t, seen, runs, k == 1)
                own_list, bounds = (listed[k], spare, listed_count[k]), (largest[k], keep_all, smallest, most)
                listed_count[k] = decay_and_grow(traces[k], own_list, step, decay, gain, bounds)
            if asks_z:
                sum_along(memory, ETA, traces[0], listed[0], listed_count[0], begin, sums[4])
            if asks_b:
                sum_along(memory, ETA, traces[1], listed[1], listed_count[1], begin, sums[5])
            reach = largest_of(here, rows), largest_of(there, rows), largest[0]
            outside = 0
            for run in range(view.size):
                if seen[t, view[run]]:
                    numbers = reward[t], discount[t], rho[t], factor[t]
                    lanes = begin[run], begin[run + 1]
                    work = sums, deltas, moves, scale, stopped
                    outside += call_rule(lanes, run, work, lane_constants, numbers, reach)
                else:
                    moves[:, begin[run] : begin[run + 1]] = 0.0
                    deltas[begin[run] : begin[run + 1]] = 0.0
            if outside:
                stop_lanes(memory, scale, stopped, moves, runs, reach, steps + t)
            elif shrinks:
                for lane in range(slots):
                    scale[lane] *= 1.0 + moves[SHRINK, lane]
                    moves[ETA_X, lane] /= scale[lane]
                    moves[ETA_NEXT, lane] /= scale[lane]
                    moves[ETA_Z, lane] /= scale[lane]
            for k in range(SHRINK):
                by[k] = moves[k]
            if moves_x:
                move_row(memory, W, places, here, rows, by[W_X], scratch)
            if moves_next:
                move_row(memory, W, places, there, rows, by[W_NEXT], scratch)
            if moves_z:
                move_along(memory, W, traces[0], listed[0], listed_count[0], begin, by[W_Z], scratch)
            if eta_x:
                move_row(memory, ETA, places, here, rows, by[ETA_X], scratch)
            if eta_next:
                move_row(memory, ETA, places, there, rows, by[ETA_NEXT], scratch)
            if eta_z:
                move_along(memory, ETA, traces[0], listed[0], listed_count[0], begin, by[ETA_Z], scratch)
            if has_change:
                for run in range(view.size):
                    if seen[t, view[run]]:
                        for k in (W_X, W_NEXT, W_Z):
                            moved[k, begin[run] : begin[run + 1]] = moves[k, begin[run] : begin[run + 1]]
                for one in range(last.shape[0]):
                    if seen[t, one]:
                        remember(last, last_places, last_count, one, step)
            keep_before(before, data, t, runs)
            add_returns(quality, sums[0], reward[t], discount[t], rho[t], seen[t], runs, shared)
            if blame.shape[0] and is_measured(steps + t):
                number = float(1 + steps + t)
                for run in range(view.size):
                    for lane in range(begin[run], begin[run + 1]):
                        ratio = 1.0 if ratio_in_trace else rho[t, run if shared else lane]
                        by[0, lane] = number * ratio * deltas[lane] if stopped[lane] < 0 else 0.0
                    quality[BLAME_WEIGHT, begin[run] : begin[run + 1]] += number if seen[t, view[run]] else 0.0
                if has_z:
                    move_along(blame, 0, traces[0], listed[0], listed_count[0], begin, by[0], scratch)
                else:
                    move_row(blame, 0, places, here, rows, by[0], scratch)

    return keep(run, describe_kernel("questions", rule, shared, double), nogil=True, **COMPILE)
