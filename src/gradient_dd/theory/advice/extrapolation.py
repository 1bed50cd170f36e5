"""Very long horizons: what a shorter pilot says of them.

The best alpha and its error change like powers of the length of a run, roughly. With a constant step size alpha must
fall as a run grows; a taper makes it fall by itself. So for alpha the length is counted in units of the schedule, as
the sum of its factors. The powers are measured between a quarter of the pilot's horizon and the whole, around the best
setting, and taken to hold up to the horizon asked for.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.theory.advice.pilot import Pilot, part_of
from gradient_dd.theory.advice.space import OCTAVE, Point

PART = 4  # the shorter pilot runs a quarter
AROUND = range(-6, 11, 2)  # places along alpha: a shorter run wants a larger one
RUNS = 4
LEAST = 0.1  # octaves: where a taper leaves less than that to learn, nothing changes any more


class Changes(NamedTuple):
    """Factors, at most 1, of the best alpha and of its two errors when a run becomes longer."""

    alpha: float
    area: float
    last100: float


def changes(pilot: Pilot, point: Point, measure: str, horizon: Horizon) -> Changes:
    """Return the factors of alpha and of the errors of a point on a horizon beyond that of the pilot."""
    line = [point.moved(0, place) for place in AROUND]
    found = [pilot.run(line, RUNS, share) for share in (PART, 1)]
    logs = {name: [np.log2(getattr(scores, name).mean(axis=0)) for scores in found] for name in ("area", "last100")}
    best = [int(np.argmin(errors)) for errors in logs[measure]]
    places = [vertex(errors, at) for errors, at in zip(logs[measure], best, strict=True)]
    lengths = [pilot.scheduled_length(one) for one in (part_of(pilot.horizon, PART), pilot.horizon, horizon)]
    points = [pilot.horizon.points / PART, pilot.horizon.points, horizon.points]
    return Changes(
        prolonged((places[1] - places[0]) * AROUND.step / OCTAVE, *np.log2(lengths)),
        *(prolonged(errors[1][best[1]] - errors[0][best[0]], *np.log2(points)) for errors in logs.values()),
    )


def prolonged(change: float, part: float, whole: float, beyond: float) -> float:
    """Return the factor of a number from length `whole` to `beyond`, given its change from `part` to `whole`.

    Lengths and the change are in octaves. The number goes like a power of the length, from −1 to 0.
    """
    power = np.clip(change / max(whole - part, LEAST), -1.0, 0.0)
    return float(2.0 ** (power * (beyond - whole)))


def vertex(errors: Array, at: int) -> float:
    """Return where a parabola through the least error and its neighbours is least, counting places from 0."""
    if not 0 < at < len(errors) - 1 or not np.isfinite(errors[at - 1 : at + 2]).all():
        return float(at)
    left, middle, right = errors[at - 1 : at + 2]
    bend = left - 2 * middle + right
    return at + float((left - right) / (2 * bend)) if bend > 0 else float(at)
