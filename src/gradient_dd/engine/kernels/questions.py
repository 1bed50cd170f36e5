"""The kernel of questions: many lanes of one rule on one stream, each with its own signal, horizon, policy and states.

Lanes are contiguous, memory[i, part, slot], so that a feature uses one block of memory. The lanes of a *range* see the
same steps; with `shared` they also have the same discount and ratio, and share one trace. The arithmetic follows
`Learner.update` in the same order, so a lane in double precision is bit-identical to a single learner.
"""

from functools import cache
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels import question_lanes
from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, INNER, keep, use_widest_vectors
from gradient_dd.engine.kernels.feature_rows import largest_of
from gradient_dd.engine.kernels.question_lanes import AHEAD, BLAME_WEIGHT, ETA, W, make_trace_passes
from gradient_dd.engine.kernels.rules import IN_LANES, PLAIN, STEP_SIZES, describe_kernel, make_coefficients
from gradient_dd.engine.kernels.vectors import make_numbers, trace_place
from gradient_dd.engine.questions import (
    BOUNDS,
    MEASURED_EVERY,
    MOVES,
    TRACE_SIGNALS,
    LaneConstants,
    LaneRanges,
    LaneTraces,
    LastStep,
    QuestionData,
)
from gradient_dd.engine.single import FeatureRows
from gradient_dd.learners import Rule

W_X, W_NEXT, W_Z, ETA_X, ETA_NEXT, ETA_Z, SHRINK = range(len(MOVES))
SUMS = 6  # x·w, x'·w, x·η, x·(w − w_prev), z·η and b·η of every lane
X_W, NEXT_W, X_ETA, X_CHANGE, Z_ETA, B_ETA = range(SUMS)


@numba.njit(**INLINE)
def columns_of(ranges, k, shared):
    """Return the begin and the end of the columns (of traces, discounts and ratios) of a range of lanes."""
    return (k, k + 1) if shared else (ranges.begin[k], ranges.begin[k + 1])


@numba.njit(**INNER)
def remember_rows(last, view, step):
    """Replace x and x' of the last step of a view with x and x' of a new step."""
    for j in range(last.counts[view]):
        last.rows[view, last.places[view, j]] = 0.0
    for j in range(step.length):
        place = step.places[j]
        last.places[view, j] = place
        last.rows[view, place, 0] = step.here[j]
        last.rows[view, place, 1] = step.there[j]
    last.counts[view] = step.length


@numba.njit(**INNER)
def remember_transition(before, data, t, ranges, shared):
    """Store discount, ratio and probabilities where a step is seen; 0 at the end of a question or an episode."""
    for k in range(ranges.views.size):
        first, end = columns_of(ranges, k, shared)
        for column in range(first, end) if data.seen[t, ranges.views[k]] else range(0):
            goes_on = 1.0 if data.discount[t, column] != 0.0 and not data.cut[t] else 0.0
            before[column, 0] = goes_on * data.discount[t, column]
            before[column, 1] = goes_on * data.rho[t, column]
            if data.pi.shape[0]:
                before[column, 2] = goes_on * data.pi[t, column]
                before[column, 3] = goes_on * data.mu[t, column]


def make_read(rule: Rule, shared: bool, double: bool) -> Any:
    """Compile `read`, which decays every trace, adds the next x to it, and computes the sums of a step."""
    smallest, most = BOUNDS[double].share, BOUNDS[double].entry
    has_eta, has_change, moves_z = rule.has_eta, "x_change" in rule.arguments, "w_z" in rule.moves
    asks_z, asks_b = "z_eta" in rule.arguments, "b_eta" in rule.arguments
    (sum_along, _), make = make_trace_passes(shared), make_numbers(rule)
    z, b = trace_place(rule, "z"), trace_place(rule, "b")

    @numba.njit(**INNER)
    def sum_changes(traces, last, step, ranges, into):
        """Fill `into` with x·(w − w_prev): w moved by w_x x + w_next x' + w_z z in a lane's last step."""
        use_widest_vectors()
        begin, view, moved = ranges.begin, ranges.views, last.moved
        into[:] = 0.0
        for k in range(view.size):
            for j in range(step.length):
                i, value = np.uintp(step.places[j]), step.here[j]
                if value != 0.0:
                    on_x, on_next = last.rows[view[k], i, 0], last.rows[view[k], i, 1]
                    for lane in range(begin[k], begin[k + 1]):
                        change = moved[W_X, lane] * on_x + moved[W_NEXT, lane] * on_next
                        if moves_z:
                            change += moved[W_Z, lane] * traces.values[z, i, k if shared else lane]
                        into[lane] += value * change

    @numba.njit(**INNER)
    def set_trace_numbers(which, decay, gain, numbers, before, fixed, data, t, ranges):
        """Set decay and gain (columns,) of a trace: 1 and 0 for ranges that do not see the step."""
        for k in range(ranges.views.size):
            first, end = columns_of(ranges, k, shared)
            for column in range(first, end):
                decay[column], gain[column] = 1.0, 0.0
                if data.seen[t, ranges.views[k]]:
                    own, old, ratio = fixed[column], before[column], data.rho[t, column]
                    decay[column], gain[column] = make(which, own, old, numbers[column], 0.0, ratio, 0.0)

    @numba.njit(**INNER)
    def read(memory, traces, last, constants, ranges, data, t, step, dense_traces, room, sums, largest):
        """Fill `sums` (SUMS, slots), and `largest` (2, columns) with the largest entries of the traces."""
        spare, decay, gain = room
        question_lanes.sum_both(memory, W, step, sums[X_W], sums[NEXT_W])
        if has_eta:
            question_lanes.sum_row(memory, ETA, step.places, step.here, step.length, sums[X_ETA])
        if has_change:
            sum_changes(traces, last, step, ranges, sums[X_CHANGE])
        for k in range(traces.values.shape[0]):
            set_trace_numbers(k, decay, gain, traces.numbers[k], traces.before, constants.fixed, data, t, ranges)
            listed, count, share = traces.listed[k], traces.counts[k], -1.0 if dense_traces else smallest
            traces.counts[k] = question_lanes.decay_and_grow(
                traces.values[k], listed, count, spare, step, decay, gain, largest[k], share, most
            )
        if asks_z:
            sum_along(memory, ETA, traces, z, ranges.begin, sums[Z_ETA])
        if asks_b:
            sum_along(memory, ETA, traces, b, ranges.begin, sums[B_ETA])

    return read


def make_decide(rule: Rule, shared: bool, double: bool) -> Any:
    """Compile `decide`, which computes the moves of every lane, and stops the lanes that diverge."""
    smallest_scale, largest_scale, limit, most, _ = BOUNDS[double]
    coefficients: Any = make_coefficients(rule, IN_LANES, (*STEP_SIZES, *PLAIN, *TRACE_SIGNALS), MOVES)
    shrinks, has_z = "eta_eta" in rule.moves, bool(rule.traces)

    @numba.njit(**INLINE)
    def stays_within(w_x, w_next, w_z, eta_x, eta_next, eta_z, on_x, on_next, on_z):
        """Return whether no weight moves by more than the limit; `on_…` are the largest |x|, |x'| and |z|."""
        fine = (abs(w_x) * on_x <= limit) & (abs(w_next) * on_next <= limit) & (abs(w_z) * on_z <= limit)
        fine &= (abs(eta_x) * on_x <= limit) & (abs(eta_next) * on_next <= limit) & (abs(eta_z) * on_z <= limit)
        return fine & (on_z <= most)

    @numba.njit(**INNER)
    def call_rule(first, end, k, scale, stopped, constants, data, t, sums, deltas, moves, reach):
        """Set the moves of a range of lanes; return the number of lanes that would leave their bounds."""
        use_widest_vectors()
        reward, discount, rho, factor = data.reward[t], data.discount[t], data.rho[t], data.factor[t]
        on_x, on_next, largest = reach
        outside = 0
        for lane in range(first, end):
            column = k if shared else lane
            gamma, ratio = discount[column], rho[column]
            bootstrap = gamma * sums[NEXT_W, lane] if gamma != 0.0 else 0.0
            delta = reward[lane] + bootstrap - sums[X_W, lane]
            deltas[lane] = delta
            alpha, size = constants.start[0, lane] * factor, scale[lane]
            ratio_x, x_change = 1.0 if constants.only_next[lane] else ratio, sums[X_CHANGE, lane]
            x_eta, z_eta, b_eta = size * sums[X_ETA, lane], size * sums[Z_ETA, lane], size * sums[B_ETA, lane]
            given = alpha, constants.start[1, lane] * alpha, ratio, ratio_x, gamma, delta, x_eta, x_change, z_eta, b_eta
            w_x, w_next, w_z, eta_x, eta_next, eta_z, shrink = coefficients(constants.own, lane, given)
            w_next, eta_next = w_next if gamma != 0.0 else 0.0, eta_next if gamma != 0.0 else 0.0
            on_z, live = largest[column] if has_z else 0.0, stopped[lane] < 0
            fine = stays_within(w_x, w_next, w_z, eta_x, eta_next, eta_z, on_x, on_next, on_z)
            if shrinks:
                size = abs(size * (1.0 + shrink))
                fine &= (size > smallest_scale) & (size < largest_scale)
            moves[W_X, lane] = w_x if live else 0.0
            moves[W_NEXT, lane] = w_next if live else 0.0
            moves[W_Z, lane] = w_z if live else 0.0
            moves[ETA_X, lane] = eta_x if live else 0.0
            moves[ETA_NEXT, lane] = eta_next if live else 0.0
            moves[ETA_Z, lane] = eta_z if live else 0.0
            moves[SHRINK, lane] = shrink if live else 0.0
            outside += 1 if live & (not fine) else 0
        return outside

    @numba.njit(**INNER)
    def stop_lanes(memory, scale, stopped, moves, ranges, reach, number):
        """Check each lane: multiply scales out of bounds into η, and stop diverging lanes."""
        on_x, on_next, largest = reach
        for k in range(ranges.views.size):
            for lane in range(ranges.begin[k], ranges.begin[k + 1]):
                on_z = largest[k if shared else lane] if has_z else 0.0
                w_x, w_next, w_z = moves[W_X, lane], moves[W_NEXT, lane], moves[W_Z, lane]
                eta_x, eta_next, eta_z = moves[ETA_X, lane], moves[ETA_NEXT, lane], moves[ETA_Z, lane]
                fine = stays_within(w_x, w_next, w_z, eta_x, eta_next, eta_z, on_x, on_next, on_z)
                fine |= stopped[lane] >= 0
                if shrinks and stopped[lane] < 0 and fine:
                    fine = question_lanes.settle(
                        memory, lane, scale, moves[SHRINK, lane], (smallest_scale, largest_scale, limit)
                    )
                    for move in (ETA_X, ETA_NEXT, ETA_Z):
                        moves[move, lane] /= scale[lane]
                if not fine:
                    stopped[lane] = number
                    moves[:, lane] = 0.0

    @numba.njit(**INNER)
    def decide(memory, scale, stopped, constants, ranges, data, t, number, sums, deltas, moves, reach):
        """Fill `deltas` (slots,) and `moves` (MOVES, slots); moves of η are divided by its scale."""
        use_widest_vectors()
        outside = 0
        for k in range(ranges.views.size):
            first, end = ranges.begin[k], ranges.begin[k + 1]
            if data.seen[t, ranges.views[k]]:
                outside += call_rule(first, end, k, scale, stopped, constants, data, t, sums, deltas, moves, reach)
            else:
                moves[:, first:end] = 0.0
                deltas[first:end] = 0.0
        if outside:
            stop_lanes(memory, scale, stopped, moves, ranges, reach, number)
        elif shrinks:
            for lane in range(scale.size):
                scale[lane] *= 1.0 + moves[SHRINK, lane]
                moves[ETA_X, lane] /= scale[lane]
                moves[ETA_NEXT, lane] /= scale[lane]
                moves[ETA_Z, lane] /= scale[lane]

    return decide


@cache
def questions_kernel(rule: Rule, shared: bool, double: bool) -> Any:
    """Return the kernel `steps` for a rule; its first call compiles it. `double` selects double precision."""
    read, decide = make_read(rule, shared, double), make_decide(rule, shared, double)
    _, move_along = make_trace_passes(shared)
    moves_x, moves_next, moves_z = (name in rule.moves for name in ("w_x", "w_next", "w_z"))
    eta_x, eta_next, eta_z = (name in rule.moves for name in ("eta_x", "eta_next", "eta_z"))
    has_change, has_z, z = "x_change" in rule.arguments, bool(rule.traces), trace_place(rule, "z")
    ratio_in_trace = any("rho" in trace.arguments for trace in rule.traces if trace.name == "z")

    @numba.njit(**INNER)
    def move(memory, traces, begin, step, by, scratch):
        """Move w and η of every lane along x, x' and the trace; `by` (MOVES, slots) in the precision of the memory."""
        if moves_x:
            question_lanes.move_row(memory, W, step.places, step.here, step.length, by[W_X], scratch)
        if moves_next:
            question_lanes.move_row(memory, W, step.places, step.there, step.length, by[W_NEXT], scratch)
        if moves_z:
            move_along(memory, W, traces, z, begin, by[W_Z], scratch)
        if eta_x:
            question_lanes.move_row(memory, ETA, step.places, step.here, step.length, by[ETA_X], scratch)
        if eta_next:
            question_lanes.move_row(memory, ETA, step.places, step.there, step.length, by[ETA_NEXT], scratch)
        if eta_z:
            move_along(memory, ETA, traces, z, begin, by[ETA_Z], scratch)

    @numba.njit(**INNER)
    def remember(traces, last, ranges, data, t, step, moves):
        """Store the values of this step that the next step needs."""
        if has_change:
            for k in range(ranges.views.size):
                if data.seen[t, ranges.views[k]]:
                    for lane in range(ranges.begin[k], ranges.begin[k + 1]):
                        for one in (W_X, W_NEXT, W_Z):
                            last.moved[one, lane] = moves[one, lane]
            for view in range(last.rows.shape[0]):
                if data.seen[t, view]:
                    remember_rows(last, view, step)
        remember_transition(traces.before, data, t, ranges, shared)

    @numba.njit(**INNER)
    def add_blame(blame, quality, stopped, traces, ranges, data, t, step, number, deltas, by, scratch):
        """Add number × δz to the sums that estimate the projected error."""
        for k in range(ranges.views.size):
            weight = number if data.seen[t, ranges.views[k]] else 0.0
            for lane in range(ranges.begin[k], ranges.begin[k + 1]):
                ratio = 1.0 if ratio_in_trace else data.rho[t, k if shared else lane]
                by[lane] = number * ratio * deltas[lane] if stopped[lane] < 0 else 0.0
                quality[BLAME_WEIGHT, lane] += weight
        if has_z:
            move_along(blame, 0, traces, z, ranges.begin, by, scratch)
        else:
            question_lanes.move_row(blame, 0, step.places, step.here, step.length, by, scratch)

    def steps(lanes, traces, last, constants, ranges, x, x_next, data, done):
        """Make one step of every lane for every row; `engine.questions.QuestionMemory` describes the arrays."""
        use_widest_vectors()
        memory, scale, stopped, blame, quality = lanes
        traces, last, constants = LaneTraces(*traces), LastStep(*last), LaneConstants(*constants)
        ranges, x, x_next, data = LaneRanges(*ranges), FeatureRows(*x), FeatureRows(*x_next), QuestionData(*data)
        before, dense_traces, dense = done
        p, slots, columns = memory.shape[0], memory.shape[2], data.discount.shape[1]
        places, here, there = np.zeros(p, np.int64), np.zeros(p), np.zeros(p)
        room = np.zeros(p, np.int64), np.zeros(columns), np.zeros(columns)
        sums, largest = np.zeros((SUMS, slots)), np.zeros((2, columns))
        deltas, moves = np.zeros(slots), np.zeros((len(MOVES), slots))
        by, scratch = np.zeros((len(MOVES), slots), memory.dtype), np.zeros(1, memory.dtype)
        for t in range(data.factor.size):
            uses_next = False
            for column in range(columns):
                uses_next |= data.discount[t, column] != 0.0
            step = question_lanes.join_rows(x, x_next, t, uses_next, dense, places, here, there)
            read(memory, traces, last, constants, ranges, data, t, step, dense_traces, room, sums, largest)
            reach = largest_of(here, 0, step.length), largest_of(there, 0, step.length), largest[z]
            decide(memory, scale, stopped, constants, ranges, data, t, before + t, sums, deltas, moves, reach)
            for k in range(SHRINK):
                by[k] = moves[k]
            move(memory, traces, ranges.begin, step, by, scratch)
            remember(traces, last, ranges, data, t, step, moves)
            question_lanes.add_returns(
                quality, sums[X_W], data.reward[t], data.discount[t], data.rho[t], data.seen[t], ranges, shared
            )
            if data.cut[t]:  # the rewards that would have followed are unknown
                quality[AHEAD] = 0.0
            if (before + t) % MEASURED_EVERY == 0:
                number = float(1 + before + t)
                add_blame(blame, quality, stopped, traces, ranges, data, t, step, number, deltas, by[0], scratch)

    return keep(steps, describe_kernel("questions", rule, shared, double), nogil=True, **COMPILE)
