"""Pilots: many settings on the task itself, on runs that are kept for this purpose, and what they cost."""

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule
from gradient_dd.tasks import Task
from gradient_dd.theory.advice.space import Point, Space

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
