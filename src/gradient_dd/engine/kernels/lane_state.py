"""The state of a block of lanes: weights, step sizes, and what a lane remembers from one step to the next.

Lane l of weight row i is w[i × B + l], B being the number of lanes of the block. A loop over lanes therefore runs over
contiguous numbers and becomes vector code.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.kernels.intrinsics import aligned
from gradient_dd.engine.kernels.row_table import Shape
from gradient_dd.engine.kernels.steady import has_steady_shrink
from gradient_dd.learners import Rule, Setting

STRIP = 8  # the number of lanes of a block is a multiple of this, so vector loops need no loop for the remainder
MOST_LANES = 128  # the most lanes of a fused block; more gain nothing

TINY_SCALE, HUGE_SCALE = 2.0**-400, 2.0**400  # outside this range the scale of η is multiplied into η
SMALLEST_SHRINK = 2.0**-60  # used in place of a shrink by exactly 0: a forgotten η keeps 1e-18 of its size
LARGEST_SHRINK = 2.0**60  # used in place of a larger one: a lane like that diverges as soon as its η is not 0


def padded_lanes(count: int) -> int:
    """Return how many lanes a block of `count` settings has: whole strips."""
    return -(-count // STRIP) * STRIP


class Lanes(NamedTuple):
    """The arrays that a kernel changes; each is flat, with contiguous lanes, and starts on a cache line.

    w, eta   (rows, B); the true η of a lane is its scale × eta
    start    (2, B) alpha and zeta as given
    fields   (…, stride) what `lane_fields` names: the rule's parameters in force, x·(w − w_prev) of the coming step,
             a steady shrink of η, its inverse and that of the scale of η; the scale of η
    metric   (p + 1,) or (p² + 1,) of a natural rule: its count of steps, then visits or (ε I + Σ x xᵀ)⁻¹; else empty
    """

    w: Array
    eta: Array
    start: Array
    fields: Array
    metric: Array


def lane_parameters(rule: Rule) -> list[str]:
    """Return the names of the parameters that a lane holds: alpha, beta, then the rule's own."""
    own = [p.name for p in rule.plain.parameters if p.name not in ("alpha", "zeta") and not p.shared]
    return ["alpha", "beta", *own]


def lane_fields(rule: Rule) -> list[str]:
    """Return the names of the rows of `Lanes.fields`, in their order. A parameter may be called "scale" too."""
    held = [f"parameter_{name}" for name in lane_parameters(rule)]
    steady = ["shrink", "inverse_shrink", "memory_inverse"] if has_steady_shrink(rule) else []
    return [*held, "memory_x_change", *steady, "memory_scale"]


def new_lanes(
    settings: list[Setting], block: int, stride: int, shape: Shape, initial_w: Array, diagonal: bool
) -> Lanes:
    """Return fresh lanes, one for each setting, filled up to `block` with lanes that never move.

    `stride` is the length of a row of the fields. `diagonal` says that the metric of a natural rule is diagonal.
    """
    rule, p = settings[0].rule, len(initial_w)
    names = lane_parameters(rule)
    w, eta, start = aligned(p + shape.width, block), aligned(p + shape.width, block), aligned(2, block)
    fields = aligned(len(lane_fields(rule)), stride)
    w.reshape(-1, block)[:p] = initial_w[:, None]
    for lane, setting in enumerate(settings):
        start.reshape(2, block)[:, lane] = setting.values["alpha"], setting.values.get("zeta", 0.0)
        fields.reshape(-1, stride)[2 : len(names), lane] = [setting.values[name] for name in names[2:]]
    fields.reshape(-1, stride)[-2 if has_steady_shrink(rule) else -1 :] = 1.0
    metric = np.zeros(0)
    if rule.natural:
        ridge = settings[0].values["ridge"]
        metric = np.concatenate([[0.0], np.full(p + shape.width, ridge) if diagonal else (np.eye(p) / ridge).ravel()])
    return Lanes(w, eta, start, fields, metric)
