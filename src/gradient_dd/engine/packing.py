"""Lanes that have diverged stop costing: a block goes on with the others alone.

What is still to come of a diverged lane is known, for its error is infinite at every point from then on. So between two
pieces of a run the other lanes are copied into a smaller block, as soon as that saves a strip, and the errors of those
left behind are filled in. Every result has the same bits as without it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Segments
from gradient_dd.engine.kernels.folding import Errors
from gradient_dd.engine.kernels.intrinsics import aligned
from gradient_dd.engine.kernels.lane_state import Lanes, padded_lanes

PER_LANE = ("w", "eta", "start", "change")  # arrays with a column for each lane, beside its fields; some have no change


class Packed(NamedTuple):
    """The lanes of a block that go on, in arrays of their own.

    `places` are theirs in the whole block. Rows of the fields are `stride` apart.
    """

    places: NDArray[np.int64]
    stride: int
    lanes: Lanes
    errors: Errors


def lanes_to_keep(diverged: NDArray[np.int64], count: int) -> NDArray[np.int64] | None:
    """Return the places of the lanes that go on; None where leaving the others behind saves no strip.

    `diverged` is that of `Errors`, of which the first `count` lanes have a setting.
    """
    size = len(diverged) // 2
    places = np.flatnonzero(diverged[:count] == 0)
    return places if padded_lanes(len(places)) < size else None


def packed(lanes: Lanes, errors: Errors, stride: int, is_fixed: bool, places: NDArray[np.int64]) -> Packed:
    """Return copies of the lanes at some places, filled up to whole strips with copies of the last of them.

    `stride` is how far the rows of the fields are apart. It stays if it `is_fixed`; else it is the number of lanes.
    """
    size, block = len(errors.now), padded_lanes(len(places))
    columns = np.concatenate([places, np.repeat(places[-1:], block - len(places))])

    def chosen(array: Array, width: int = size, room: int = block) -> Array:
        rows = array.reshape(-1, width)
        copy = aligned(len(rows), room)
        copy.reshape(len(rows), room)[:, :block] = rows[:, columns]
        return copy

    room = stride if is_fixed else block
    small = lanes._replace(
        **{name: chosen(getattr(lanes, name)) for name in PER_LANE if name in lanes._fields},
        fields=chosen(lanes.fields, stride, room),
    )
    sums = {name: chosen(getattr(errors, name)) for name in ("now", "total", "last", "curve")}
    return Packed(places, room, small, Errors(**sums, diverged=errors.diverged.reshape(2, -1)[:, columns].ravel()))


def unpack(small: Packed, lanes: Lanes, errors: Errors, stride: int) -> None:
    """Copy the lanes that went on back to their places in the whole block."""
    places, size, block = small.places, len(errors.now), len(small.errors.now)
    pairs = [(getattr(small.lanes, name), getattr(lanes, name)) for name in PER_LANE if name in lanes._fields]
    for source, target in [*pairs, *zip(small.errors, errors, strict=True)]:
        rows = target.reshape(-1, size)
        rows[:, places] = source.reshape(len(rows), block)[:, : len(places)]
    fields = lanes.fields.reshape(-1, stride)
    fields[:, places] = small.lanes.fields.reshape(len(fields), small.stride)[:, : len(places)]


def add_infinite_errors(errors: Errors, places: NDArray[np.int64], segments: Segments) -> None:
    """Add what a piece of the run brings to lanes that were left behind: an infinite error at every point."""
    points = np.unique(segments.point[segments.point >= 0])
    if len(points):
        errors.total[places] = np.inf
        errors.curve.reshape(-1, len(errors.now))[np.ix_(points, places)] = np.inf
    if segments.last.any():
        errors.last[places] = np.inf
