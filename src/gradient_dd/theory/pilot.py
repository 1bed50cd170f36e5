"""Pilot runs: the settings to try on a task, and the runs of many settings.

The settings of a learner form a space of `studies.search` with coordinates in octaves, one for each placement of ρ.

Some learners are special cases of others, bit for bit: TD is TDRC with ζ = 0, TDC is TDRC with reg = 0, GTD2 is
Gradient-DD with κ = 0. A pilot runs the general learner, so five learners need two compiled kernels. Compiling a kernel
takes a second or two, about as long as all runs of a stage.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule
from gradient_dd.learners import LEARNERS, Rule, Setting
from gradient_dd.studies.search import SearchAxis, SearchSpace
from gradient_dd.tasks import Task

SPECIAL_CASES: dict[str, tuple[str, dict[str, float]]] = {  # learner: the general learner, and its parameters
    "td": ("tdrc", {"zeta": 0.0, "reg": 0.0}),
    "tdc": ("tdrc", {"reg": 0.0}),
    "gtd2": ("gradient_dd", {"kappa": 0.0}),
}
LARGEST_ALPHA = 4.0  # in units of 1 / mean ‖x‖²; no tested setting is stable with a larger alpha
STILL = 16.0  # the smallest alpha is the largest alpha / (STILL × steps), with which w hardly moves
MOST_OCTAVES = 22  # maximum number of octaves of alpha
ZETAS = tuple(4.0**k for k in range(-3, 4))  # a rule with more parameters omits the first and the last two
KAPPAS = tuple(4.0**k for k in range(-1, 3))
FIXED = "reg"  # a parameter that keeps its default, for which TDRC is designed
SEED = 1_729_000_000  # pilots use seeds above this number, one for each call; studies use small seeds
NS_PER_STEP, NS_PER_ROW = 40.0, 0.35  # core time per step, and per row of weights that a setting updates in a step
FUSED_ROWS = 8  # with more rows per step, the engine needs these times:
WIDE_NS_PER_STEP, WIDE_NS_PER_ROW = 1000.0, 0.9
NS_PER_ERROR = 1.0  # time per setting and non-zero feature, if errors cost more than steps


class Point(NamedTuple):
    """A setting of a learner: a space, and a place on each of its axes, alpha first."""

    space: SearchSpace
    places: tuple[float, ...]

    @property
    def learner(self) -> str:
        """The name of the learner."""
        return self.space.rule.name

    @property
    def setting(self) -> Setting:
        """The setting of the learner itself."""
        return self.space.setting(self.places)

    @property
    def line(self) -> "Point":
        """The point with alpha at place 0, which represents all points that differ only in alpha."""
        return self._replace(places=(0.0, *self.places[1:]))

    def moved(self, octaves: float) -> "Point":
        """Return the point with alpha moved by some octaves."""
        alpha = self.space.axes[0]
        return self._replace(places=(alpha.moved(self.places[0], octaves / alpha.unit), *self.places[1:]))


def spaces_of(rules: Iterable[Rule], mean_square: float, steps: float, off_policy: bool) -> list[SearchSpace]:
    """Return the search spaces of learners.

    `mean_square` is the mean of ‖x‖² and sets the scale of alpha. The placement of ρ is searched only if `off_policy`.
    """
    octaves = min(ceil(log2(STILL * steps)), MOST_OCTAVES)
    alphas = tuple(LARGEST_ALPHA / mean_square / 2.0**k for k in range(octaves))
    found = []
    for rule in rules:
        searched = [one for one in rule.parameters if one.name not in ("alpha", FIXED) and not one.shared]
        searched = [one for one in searched if one.default]  # a parameter whose default is 0 has no scale
        given = {"zeta": ZETAS[1:-2] if len(searched) > 1 or FIXED in rule.defaults else ZETAS, "kappa": KAPPAS}
        around = {one.name: (one.default / 4, one.default, min(4 * one.default, one.high)) for one in searched}
        values = {name: given.get(name, tried) for name, tried in around.items()} | {"alpha": alphas}
        parameters = sorted(rule.parameters, key=lambda one: one.name != "alpha")
        axes = tuple(SearchAxis(one, values.get(one.name, (one.default,))) for one in parameters)
        modes = ("R", "T") if off_policy and rule.has_rho_mode else ("R",)
        found += [SearchSpace(rule, axes, mode) for mode in modes]
    return found


def generalised(setting: Setting) -> Setting:
    """Return the setting of the general learner that makes the same steps; a pilot runs this setting."""
    name = setting.rule.name
    if name not in SPECIAL_CASES or setting.rule not in LEARNERS[name].forms:  # a user's rule may have the same name
        return setting
    general, fixed = SPECIAL_CASES[name]
    return LEARNERS[general].setting(setting.rho_mode, **{**setting.values, **fixed})


class PointErrors(NamedTuple):
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
    spaces: Sequence[SearchSpace]
    calls: int = field(default=0, init=False)

    def run(self, points: list[Point], runs: int, share: float = 1.0) -> list[PointErrors]:
        """Return the errors of points on the first 1/share of the horizon, in runs that no earlier call used."""
        from gradient_dd.engine.lanes import run_lanes  # here, so that importing this file loads no compiler

        self.calls += 1
        settings, horizon = [generalised(point.setting) for point in points], part_of(self.horizon, share)
        how: dict[str, Any] = {"schedule": self.schedule, "sampling": self.sampling, "runs": runs}
        found = run_lanes(self.task, settings, horizon, seed=SEED + self.calls, **how)
        errors = found.mean_error.T, found.last100.T, np.moveaxis(found.curve, 1, 0)
        return [PointErrors(*one) for one in zip(points, *errors, strict=True)]

    def core_seconds(self, settings: int, runs: int = 1, share: float = 1.0) -> float:
        """Return the estimated core-seconds of some settings and runs."""
        rows = min(2 * int(np.diff(self.task.row_features.indptr).max()), self.task.n_features)
        fused = rows <= FUSED_ROWS
        once, each = (NS_PER_STEP, NS_PER_ROW) if fused else (WIDE_NS_PER_STEP, WIDE_NS_PER_ROW)
        steps = expected_steps(self.task, self.horizon)
        errors = max(0.0, self.horizon.points * self.task.sparse_features.nnz - steps * rows)  # the rest is in `once`
        nanoseconds = steps * (once + each * rows * settings) + NS_PER_ERROR * errors * settings
        return runs / share * 1e-9 * nanoseconds


def expected_steps(task: Task, horizon: Horizon) -> float:
    """Return the mean number of steps of a run."""
    return float(horizon.steps) if horizon.steps is not None else horizon.points * task.expected_length


def part_of(horizon: Horizon, share: float) -> Horizon:
    """Return the first 1/share of a horizon, at least one point."""
    points, every = max(1, round(horizon.points / share)), horizon.every
    return Horizon(steps=points * every, every=every) if horizon.episodes is None else Horizon(episodes=points)
