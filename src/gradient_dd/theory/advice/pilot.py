"""Pilots: many settings on the task itself, on runs that are kept for this purpose, and what they cost.

A horizon may be too long to be tried. The best alpha and its error change like powers of the length of a run, roughly.
With a constant step size alpha must fall as a run grows; a taper makes it fall by itself. So for alpha the length is
counted in units of the schedule, as the sum of its factors. The powers are measured between a quarter of the pilot's
horizon and the whole, around the best setting, and taken to hold up to the horizon asked for.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule
from gradient_dd.tasks import Task
from gradient_dd.theory.advice.space import OCTAVE, Point, Space

SEED = 1_729_000_000  # pilots use the seeds from here on, one for each call, and leave the small ones to studies
NS_PER_STEP, NS_PER_ROW = 40.0, 0.35  # of one core: for each step, and for each row of weights a setting touches in it
FUSED_ROWS = 8  # where a step touches more rows the engine is slower, and it takes
WIDE_NS_PER_STEP, WIDE_NS_PER_ROW = 1000.0, 0.9
NS_PER_ERROR = 1.0  # for each setting and each non-zero of the features, where errors outweigh steps
SUMMED = 400  # factors of a schedule that stand for all in a sum


class Scores(NamedTuple):
    """Errors of points, all on the same pilot runs.

    points         what was run
    area, last100  (runs, points) inf where a run diverged
    curve          (runs, points, bins)
    """

    points: list[Point]
    area: Array
    last100: Array
    curve: Array


class Pilot(Protocol):
    """What a search needs: points, a horizon, a way to run points on it, and what that costs."""

    spaces: dict[str, Space]
    horizon: Horizon

    def run(self, points: list[Point], runs: int, share: float = 1.0) -> Scores:
        """Run points on the first 1/share of the horizon, on runs that no earlier call has seen."""

    def core_seconds(self, settings: int, runs: int = 1, share: float = 1.0) -> float:
        """Return about how long so many settings and runs take on one core."""

    def scheduled_length(self, horizon: Horizon) -> float:
        """Return how long a run is in units of the schedule: the sum of its factors, roughly."""


@dataclass
class TaskPilot:
    """A pilot on a task: the lane engine, with this horizon, schedule and sampling."""

    task: Task
    horizon: Horizon
    schedule: Schedule
    sampling: str
    spaces: dict[str, Space]
    calls: int = field(default=0, init=False)

    def run(self, points: list[Point], runs: int, share: float = 1.0) -> Scores:
        """Run points on the first 1/share of the horizon, on runs that no earlier call has seen."""
        from gradient_dd.engine.lanes import run_lanes  # here, so that importing this file loads no compiler

        self.calls += 1
        found = run_lanes(
            self.task,
            [self.spaces[point.learner].pilot_setting(point) for point in points],
            part_of(self.horizon, share),
            schedule=self.schedule,
            sampling=self.sampling,
            seed=SEED + self.calls,
            runs=runs,
        )
        return Scores(points, found.area, found.last100, found.curve)

    def core_seconds(self, settings: int, runs: int = 1, share: float = 1.0) -> float:
        """Return about how long so many settings and runs take on one core."""
        rows = min(2 * int(np.diff(self.task.row_features.indptr).max()), self.task.n_features)
        fused = rows <= FUSED_ROWS
        once, each = (NS_PER_STEP, NS_PER_ROW) if fused else (WIDE_NS_PER_STEP, WIDE_NS_PER_ROW)
        steps = expected_steps(self.task, self.horizon)
        errors = max(0.0, self.horizon.points * self.task.sparse_features.nnz - steps * rows)  # the rest is in `once`
        nanoseconds = steps * (once + each * rows * settings) + NS_PER_ERROR * errors * settings
        return runs / share * 1e-9 * nanoseconds

    def scheduled_length(self, horizon: Horizon) -> float:
        """Return how long a run is in units of the schedule: the sum of its factors, roughly."""
        steps = expected_steps(self.task, horizon)
        if self.schedule.per == "step":
            return sum_of_factors(self.schedule, steps)
        return sum_of_factors(self.schedule, steps / self.task.expected_length) if self.task.episodic else steps


def expected_steps(task: Task, horizon: Horizon) -> float:
    """Return how many steps a run has, on average."""
    return float(horizon.steps) if horizon.steps is not None else horizon.points * task.expected_length


def sum_of_factors(schedule: Schedule, count: float) -> float:
    """Return the sum of the first factors of a schedule, to within a few per cent."""
    n = np.unique(np.round(np.geomspace(1.0, max(1.0, count), SUMMED)))
    factors = schedule.factors(n.astype(np.int64))
    return float(factors[0] + np.trapezoid(factors, n))


def part_of(horizon: Horizon, share: float) -> Horizon:
    """Return the first 1/share of a horizon, of one point at least; a schedule counts there as in the whole."""
    points = max(1, round(horizon.points / share))
    if horizon.episodes is not None:
        return Horizon(episodes=points)
    return Horizon(steps=points * horizon.every, every=horizon.every)


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
