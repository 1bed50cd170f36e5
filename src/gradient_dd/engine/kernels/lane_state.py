"""The state of a block of lanes: weights, step sizes, and what a lane remembers from one step to the next.

Lane l of weight row i is w[i × B + l], B being the number of lanes of the block. A loop over lanes therefore runs over
contiguous numbers and becomes vector code.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.kernels.compiler import STRIP, aligned
from gradient_dd.engine.kernels.rules import has_steady_shrink, lane_parameters
from gradient_dd.learners import Rule, Setting

MOST_LANES = 128  # the most lanes of a fused block; more gain nothing


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


class Layout(NamedTuple):
    """How a block lies in memory: its lanes B, how far rows of its fields are apart, and its spare weight rows."""

    lanes: int
    stride: int
    spare: int


def lane_fields(rule: Rule) -> list[str]:
    """Return the names of the rows of `Lanes.fields`, in their order. A parameter may be called "scale" too."""
    held = [f"parameter_{name}" for name in lane_parameters(rule)]
    steady = ["shrink", "inverse_shrink", "memory_inverse"] if keeps_inverse(rule) else []
    return [*held, "memory_x_change", *steady, "memory_scale"]


def keeps_inverse(rule: Rule) -> bool:
    """Return whether lanes carry the inverse of the scale of η along; the traced kernel divides in every step."""
    return rule.is_plain and has_steady_shrink(rule)


def new_weights(settings: Sequence[Setting], layout: Layout, initial_w: Array) -> tuple[Array, Array, Array, Array]:
    """Return `w`, `eta`, `start` and `fields` of fresh lanes: one for each setting, the others never move."""
    rule, p = settings[0].rule, len(initial_w)
    B, stride, rows = layout.lanes, layout.stride, p + layout.spare
    names = lane_parameters(rule)
    w, eta, start, fields = aligned(rows, B), aligned(rows, B), aligned(2, B), aligned(len(lane_fields(rule)), stride)
    w.reshape(-1, B)[:p] = initial_w[:, None]
    for lane, setting in enumerate(settings):
        start.reshape(2, B)[:, lane] = setting.values["alpha"], setting.values.get("zeta", 0.0)
        fields.reshape(-1, stride)[2 : len(names), lane] = [setting.values[name] for name in names[2:]]
    fields.reshape(-1, stride)[-2 if keeps_inverse(rule) else -1 :] = 1.0
    return w, eta, start, fields


def new_lanes(settings: Sequence[Setting], layout: Layout, initial_w: Array, diagonal: bool) -> Lanes:
    """Return fresh lanes of a rule without traces; `diagonal` says that the metric of a natural rule is diagonal."""
    rule, p, metric = settings[0].rule, len(initial_w), np.zeros(0)
    if rule.natural:
        ridge = settings[0].values["ridge"]
        metric = np.concatenate([[0.0], np.full(p + layout.spare, ridge) if diagonal else (np.eye(p) / ridge).ravel()])
    return Lanes(*new_weights(settings, layout, initial_w), metric)
