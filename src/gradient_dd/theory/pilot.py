"""Pilots: the settings that may be tried on a task, and runs of many of them.

The settings of a learner are a lattice in the logarithm of every parameter. A point of the lattice counts in quarters
of an octave: place k on an axis is the value unit × 2^(k/4). So a point is a tuple of integers, its neighbours are
found by addition, and equal settings are equal points.

Some learners are special cases of others, bit for bit: TD is TDRC with ζ = 0, TDC is TDRC with reg = 0, GTD2 is
Gradient-DD with κ = 0. A pilot runs the general learner, so five learners need two compiled kernels. Compiling a kernel
takes a second or two, about as long as all runs of a stage.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import ceil, log2
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS, Rule, Setting
from gradient_dd.tasks import Task

OCTAVE = 4  # places
SPECIAL_CASES: dict[str, tuple[str, dict[str, float]]] = {  # learner: the general learner, and its parameters
    "td": ("tdrc", {"zeta": 0.0, "reg": 0.0}),
    "tdc": ("tdrc", {"reg": 0.0}),
    "gtd2": ("gradient_dd", {"kappa": 0.0}),
}
LARGEST_ALPHA = 4.0  # in units of one over the mean of ‖x‖²; no tested setting is stable above it
STILL = 16.0  # the smallest alpha is the largest, divided by this factor times the steps: w hardly moves
MOST_OCTAVES = 22  # of alpha
ZETAS = tuple(range(-6 * OCTAVE, 7 * OCTAVE, 2 * OCTAVE))  # 1/64, 1/16, … 64
FEW_ZETAS = tuple(range(-4 * OCTAVE, 3 * OCTAVE, 2 * OCTAVE))  # 1/16 … 4, for a rule with more parameters
KAPPAS = tuple(range(-2 * OCTAVE, 5 * OCTAVE, 2 * OCTAVE))  # 1/4 … 16
OTHERS = (-2 * OCTAVE, 0, 2 * OCTAVE)  # a quarter of the default, the default, four times it
FIXED = ("reg",)  # parameters that keep their default: TDRC is designed for it
SEED = 1_729_000_000  # pilots use seeds above it, one for each call; studies use small seeds
NS_PER_STEP, NS_PER_ROW = 40.0, 0.35  # of a core: per step, and per row of weights that a setting updates in it
FUSED_ROWS = 8  # with more rows per step the engine is slower, and takes
WIDE_NS_PER_STEP, WIDE_NS_PER_ROW = 1000.0, 0.9
NS_PER_ERROR = 1.0  # per setting and non-zero of the features, if errors outweigh steps


class Axis(NamedTuple):
    """A searched parameter: its value at place 0, and the places that are tried first."""

    name: str
    unit: float
    coarse: tuple[int, ...]


class Point(NamedTuple):
    """A setting of a learner: its rho_mode, and a place on each axis of its space, alpha first."""

    learner: str
    rho_mode: str
    places: tuple[int, ...]

    @property
    def line(self) -> "Point":
        """The point with alpha at place 0, which represents all points that differ only in alpha."""
        return self._replace(places=(0, *self.places[1:]))

    def moved(self, axis: int, places: int) -> "Point":
        """Return the point moved by some places along an axis; alpha is axis 0."""
        return self._replace(places=(*self.places[:axis], self.places[axis] + places, *self.places[axis + 1 :]))


class Space(NamedTuple):
    """All settings of a learner that a pilot may try."""

    rule: Rule
    axes: tuple[Axis, ...]
    rho_modes: tuple[str, ...] = ("R",)

    def coarse(self) -> list[Point]:
        """Return the points that are tried first."""
        places = list(product(*(axis.coarse for axis in self.axes)))
        return [Point(self.rule.name, mode, place) for mode in self.rho_modes for place in places]

    def values(self, point: Point) -> dict[str, float]:
        """Return the parameters of a point; parameters that are not searched have their defaults."""
        pairs = zip(self.axes, point.places, strict=True)
        return self.rule.defaults | {axis.name: axis.unit * 2.0 ** (place / OCTAVE) for axis, place in pairs}

    def setting(self, point: Point) -> Setting:
        """Return the setting of the learner itself."""
        return self.rule.setting(rho_mode=point.rho_mode, **self.values(point))

    def pilot_setting(self, point: Point) -> Setting:
        """Return the setting that a pilot runs: the same steps, by the general learner."""
        general, fixed = SPECIAL_CASES.get(self.rule.name, ("", {}))
        if not general or self.rule is not LEARNERS.get(self.rule.name):
            return self.setting(point)
        return LEARNERS[general].setting(rho_mode=point.rho_mode, **(self.values(point) | fixed))

    def is_legal(self, point: Point) -> bool:
        """Return whether every parameter is within its legal range."""
        try:
            self.setting(point)
        except BadRequestError:
            return False
        return True


def spaces_of(rules: Iterable[Rule], mean_square: float, steps: float, off_policy: bool) -> dict[str, Space]:
    """Return the space of each learner by its name.

    `mean_square` is the mean of ‖x‖² and sets the scale of alpha. rho_mode is searched only if `off_policy`.
    """
    octaves = min(ceil(log2(STILL * steps)), MOST_OCTAVES)
    alpha = Axis("alpha", LARGEST_ALPHA / mean_square, tuple(range(0, -octaves * OCTAVE, -OCTAVE)))
    return {
        rule.name: Space(rule, (alpha, *other_axes(rule)), ("R", "T") if off_policy and rule.has_rho_mode else ("R",))
        for rule in rules
    }


def other_axes(rule: Rule) -> Iterator[Axis]:
    """Yield the axes of a rule except alpha. A parameter whose default is 0 has no scale, and keeps it."""
    own = [p for p in rule.parameters if p.name not in ("alpha", "zeta", *FIXED) and not p.shared and p.default > 0]
    if "zeta" in rule.defaults:
        few = own or any(name in rule.defaults for name in FIXED)
        yield Axis("zeta", 1.0, FEW_ZETAS if few else ZETAS)
    for parameter in own:
        yield Axis(parameter.name, parameter.default, KAPPAS if parameter.name == "kappa" else OTHERS)


class Tried(NamedTuple):
    """A point with its errors in a stage: mean_error and last100 (runs,), curve (runs, bins)."""

    point: Point
    mean_error: Array
    last100: Array
    curve: Array
    stage: str = ""


@dataclass
class TaskPilot:
    """A pilot on a task: the lane engine, with this horizon, schedule and sampling."""

    task: Task
    horizon: Horizon
    schedule: Schedule
    sampling: str
    spaces: dict[str, Space]
    calls: int = field(default=0, init=False)

    def run(self, points: list[Point], runs: int, share: float = 1.0) -> list[Tried]:
        """Run points on the first 1/share of the horizon, on runs that no earlier call used."""
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
        errors = found.mean_error.T, found.last100.T, np.moveaxis(found.curve, 1, 0)
        return [Tried(*one) for one in zip(points, *errors, strict=True)]

    def core_seconds(self, settings: int, runs: int = 1, share: float = 1.0) -> float:
        """Return the estimated core-seconds of some settings and runs."""
        rows = min(2 * int(np.diff(self.task.row_features.indptr).max()), self.task.n_features)
        fused = rows <= FUSED_ROWS
        once, each = (NS_PER_STEP, NS_PER_ROW) if fused else (WIDE_NS_PER_STEP, WIDE_NS_PER_ROW)
        steps = expected_steps(self.task, self.horizon)
        errors = max(0.0, self.horizon.points * self.task.sparse_features.nnz - steps * rows)  # `once` has the rest
        nanoseconds = steps * (once + each * rows * settings) + NS_PER_ERROR * errors * settings
        return runs / share * 1e-9 * nanoseconds


def expected_steps(task: Task, horizon: Horizon) -> float:
    """Return the mean number of steps of a run."""
    return float(horizon.steps) if horizon.steps is not None else horizon.points * task.expected_length


def part_of(horizon: Horizon, share: float) -> Horizon:
    """Return the first 1/share of a horizon, at least one point."""
    points = max(1, round(horizon.points / share))
    if horizon.episodes is not None:
        return Horizon(episodes=points)
    return Horizon(steps=points * horizon.every, every=horizon.every)
