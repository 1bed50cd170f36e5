"""The scale of η: a rule that shrinks all of η shrinks one number of each lane.

η of a lane is kept as scale × stored numbers, and what a step adds to η is divided by the scale. Where the shrink is
steady (`rules.has_steady_shrink`) no step divides: the factor and its inverse are set where a segment begins, and each
step multiplies the scale by the one and the inverse of the scale by the other. Every 128 steps of the run the inverse
is corrected, so that rounding does not add up, and a scale that has left its range is multiplied into η. Lanes with a
strong shrink are checked more often. A lane's own shrink decides that, so its bits do not depend on its neighbours.
"""

from functools import cache
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import INLINE, INNER, use_widest_vectors
from gradient_dd.engine.kernels.lane_state import lane_fields
from gradient_dd.engine.kernels.rules import IN_FIELDS, make_coefficients
from gradient_dd.learners import PLAIN_MOVES, Rule

ETA_ETA = list(PLAIN_MOVES).index("eta_eta")
TINY_SCALE, HUGE_SCALE = 2.0**-400, 2.0**400  # outside this range the scale of η is multiplied into η
SMALLEST_SHRINK = 2.0**-60  # used in place of a shrink by exactly 0: a forgotten η keeps 1e-18 of its size
LARGEST_SHRINK = 2.0**600  # used in place of a larger one: such a lane diverges at once, and its scale stays finite
SELDOM = 128  # steps after which a scale is checked, at the latest; a power of two, like every period
AFTER_TINY, AFTER_HUGE = HUGE_SCALE / 2, 1.0  # the scale that a lane goes on with: a huge η must not become infinite


@numba.njit(**INLINE)
def bounded(shrink):
    """Return the factor that η shrinks by, kept away from zero and from what would make a scale infinite."""
    shrink = shrink if shrink != 0.0 else SMALLEST_SHRINK
    return LARGEST_SHRINK if abs(shrink) > LARGEST_SHRINK else shrink


@numba.njit(**INLINE)
def check_period(shrink):
    """Return after how many steps the scale of a lane is checked: before it can change by 2²⁵⁶, or in every step."""
    size = abs(shrink)
    return 128 if 0.25 <= size <= 4.0 else 32 if 0.00390625 <= size <= 256.0 else 4 if size <= 2.0**60 else 1


@numba.njit(**INLINE)
def is_due(step, period):
    """Return whether a step is a multiple of a power of two."""
    return step & (period - 1) == 0


@numba.njit(**INLINE)
def is_inside(scale):
    """Return whether a scale of η is in its range."""
    return TINY_SCALE < abs(scale) < HUGE_SCALE


@cache
def make_set_shrink(rule: Rule) -> Any:
    """Compile `set_shrink`, for a rule with a steady shrink. Rows of the fields are `stride` apart."""
    coefficients: Any = make_coefficients(rule, IN_FIELDS)
    shrinks = np.uintp(lane_fields(rule).index("shrink"))  # the row of the inverse is the next

    @numba.njit(**INLINE)
    def set_shrink(fields, B, stride):
        """Set the shrink of every lane and its inverse; return after how many steps scales are to be checked."""
        use_widest_vectors()
        every = SELDOM
        for lane in range(B):
            moves = coefficients(fields, stride, lane, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
            shrink = bounded(1.0 + moves[ETA_ETA])
            fields[shrinks * stride + lane] = shrink
            fields[shrinks * stride + stride + lane] = 1.0 / shrink
            every = min(every, check_period(shrink))
        return every

    return set_shrink


@numba.njit(**INNER)
def check_scales(eta, fields, B, stride, step):
    """After `step` steps of the run, correct the inverse of each scale; multiply scales out of their range into η."""
    use_widest_vectors()
    scales = np.uintp(fields.size) - stride
    inverses, shrinks = scales - stride, scales - stride * np.uintp(3)
    outside = 0
    for lane in range(B):
        scale, inverse = fields[scales + lane], fields[inverses + lane]
        due = is_due(step, check_period(fields[shrinks + lane]))
        fields[inverses + lane] = inverse * (2.0 - scale * inverse) if due else inverse  # a step of Newton's method
        outside += 1 if due and not is_inside(scale) else 0
    if outside:
        for lane in range(B):
            due = is_due(step, check_period(fields[shrinks + lane]))
            if due and not is_inside(fields[scales + lane]):
                multiply_in(eta, fields, B, scales, lane, False)
                fields[inverses + lane] = 1.0 / fields[scales + lane]


@numba.njit(**INNER)
def rescale(eta, fields, B, stride, to_one):
    """Multiply the scale of η into η in every lane where it has become tiny or huge. This is rare."""
    use_widest_vectors()
    scales = np.uintp(fields.size) - stride
    for lane in range(B):
        if not is_inside(fields[scales + lane]):
            multiply_in(eta, fields, B, scales, lane, to_one)


@numba.njit(**INLINE)
def multiply_in(eta, fields, B, scales, lane, to_one):
    """Multiply the scale of one lane into its η. The lane goes on with a scale of 1, or one that will last longer."""
    use_widest_vectors()
    scale = fields[scales + lane]
    left = 1.0 if to_one else AFTER_TINY if abs(scale) < 1.0 else AFTER_HUGE
    fields[scales + lane] = left
    factor = 1.0 / left  # exact, and apart from the scale so that their product does not vanish
    for i in range(lane, np.uintp(eta.size), B):
        eta[i] = eta[i] * scale * factor
