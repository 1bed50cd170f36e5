"""Very long horizons: what a shorter pilot says of them.

The best alpha and its error change with the length of a run like powers of it, roughly: with a constant step size alpha
must fall so that noise does, with a taper hardly at all. Both powers are measured between a quarter of the pilot's
horizon and the whole, around the best setting, and taken to hold up to the horizon asked for.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.theory.advice.pilot import Pilot
from gradient_dd.theory.advice.space import OCTAVE, Point

PART = 4  # the shorter pilot runs a quarter
AROUND = range(-6, 11, 2)  # places along alpha: a shorter run wants a larger one
RUNS = 4


class Powers(NamedTuple):
    """Of the length of a run, by which the best alpha and its two errors change; from −1 to 0."""

    alpha: float
    area: float
    last100: float


def powers(pilot: Pilot, point: Point, measure: str) -> Powers:
    """Return how the best alpha on the line of a point changes with the length of a run, and its errors with it."""
    line = [point.moved(0, place) for place in AROUND]
    found = [pilot.run(line, RUNS, share) for share in (PART, 1)]
    logs = {name: [np.log2(getattr(scores, name).mean(axis=0)) for scores in found] for name in ("area", "last100")}
    best = [int(np.argmin(errors)) for errors in logs[measure]]
    places = [vertex(errors, at) for errors, at in zip(logs[measure], best, strict=True)]
    alpha = (places[1] - places[0]) * AROUND.step / OCTAVE
    changes = alpha, *(errors[1][best[1]] - errors[0][best[0]] for errors in logs.values())
    return Powers(*(float(np.clip(change / np.log2(PART), -1.0, 0.0)) for change in changes))


def vertex(errors: Array, at: int) -> float:
    """Return where a parabola through the least error and its neighbours is least, counting places from 0."""
    if not 0 < at < len(errors) - 1 or not np.isfinite(errors[at - 1 : at + 2]).all():
        return float(at)
    left, middle, right = errors[at - 1 : at + 2]
    bend = left - 2 * middle + right
    return at + float((left - right) / (2 * bend)) if bend > 0 else float(at)
