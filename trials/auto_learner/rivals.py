"""The rivals of `AutoLearner` on one run of a task: tuned rules with last and averaged weights, and LSTD.

Each rival has 15 step sizes, and some have two ratios of step sizes. TD and TDRC also have tapered steps, α/(1 + t/τ)
with τ a tenth of the run. Every setting is measured twice: with its last weights, and with their average over the last
half to three quarters of the run so far. All rivals see the same transitions.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.schedules import Schedule, constant
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.stream.auto import AutoLearner
from gradient_dd.tasks import Task

SEED = 7331  # of trajectories
POINTS = 200  # points of a run at which the error is measured
ALPHAS: Array = np.power(10.0, 0.2 - 0.3 * np.arange(15))  # over the mean of ‖x‖²
OWN_ALPHAS: Array = np.power(10.0, 2.3 - 0.3 * np.arange(15))  # of `AutoLearner`: for least squares, 1 over the ridge
RIVALS: dict[str, tuple[str, tuple[float, ...], bool]] = {  # rule, ratios of step sizes, tapered
    "TD": ("td", (1.0,), False),
    "TD, tapered": ("td", (1.0,), True),
    "TDC": ("tdc", (0.25, 4.0), False),
    "TDRC": ("tdrc", (1.0,), False),
    "TDRC, tapered": ("tdrc", (1.0,), True),
    "GTD2": ("gtd2", (0.25, 4.0), False),
    "Gradient-DD": ("gradient_dd", (0.25, 1.0), False),
    "HTD": ("htd", (1.0, 16.0), False),
}
FIRST_TURN = 64  # steps before an average first restarts; the interval then doubles each time
SAMPLED = 10  # steps between two weights that are averaged
LSTD_FEATURES = 250  # largest number of features for LSTD
SETTLED = 1000  # steps of a run before its largest error is measured
RIDGES = (0.001, 0.1, 10.0, 1000.0)  # of LSTD


class RivalSteps(NamedTuple):
    """The transitions of a part of a run: rows of states, and numbers (n,)."""

    row: Any
    next_row: Any
    reward: Array
    discount: Array
    rho: Array


class Road:
    """One run of a task: its transitions in POINTS equal parts, and the error of weights.

    unit  unit of step sizes, 1 over the mean of ‖x‖²;  every  number of steps of a part
    """

    def __init__(self, task: Task, steps: int, run: int) -> None:
        self.task, self.steps, self.run, self.every = task, steps, run, max(1, steps // POINTS)
        self.outcomes = OutcomeSampler(task, SEED, run).take(steps)
        rows, states = task.row_features.copy(), task.sparse_features.copy()
        rows.sort_indices()
        self.sparse = rows.shape[1] > LSTD_FEATURES
        self.rows = rows if self.sparse else rows.toarray()
        self.unit = 1 / float(task.visits @ np.asarray(states.multiply(states).sum(axis=1)).ravel())
        self.root = np.sqrt(task.visits)
        self.X = sp.diags(self.root) @ states
        self.values = self.root * task.true_values

    def parts(self) -> Iterator[RivalSteps]:
        """Yield the transitions, part by part."""
        row, next_row, reward, discount, rho, _ = self.task.transitions
        for begin in range(0, self.steps, self.every):
            o = self.outcomes[begin : begin + self.every]
            yield RivalSteps(self.rows[row[o]], self.rows[next_row[o]], reward[o], discount[o], rho[o])

    def errors(self, w: Array) -> Array:
        """Return the error of every lane for w (p, lanes); inf if weights are not finite."""
        with np.errstate(all="ignore"):
            gaps = np.linalg.norm(self.X @ w - self.values[:, None], axis=0)
        return np.nan_to_num(gaps, nan=np.inf, posinf=np.inf)


def settings_of(name: str, unit: float) -> list[Setting]:
    """Return the settings of a rival."""
    rule, ratios, _ = RIVALS[name]
    made: list[dict[str, Any]] = [{"alpha": alpha * unit, "zeta": zeta} for zeta in ratios for alpha in ALPHAS]
    known = {parameter.name for parameter in LEARNERS[rule].parameters}
    return [LEARNERS[rule].setting(**{key: one[key] for key in one if key in known}) for one in made]


class RivalErrors(NamedTuple):
    """The mean errors over a run, (settings,): with the last weights, and with their average."""

    plain: Array
    averaged: Array


def rival_errors(road: Road, name: str) -> RivalErrors:
    """Return the mean errors of a rival on one run; averages use every SAMPLED-th weights."""
    settings, tenth = settings_of(name, road.unit), road.steps / 10
    tapered = Schedule(lambda n: 1 / (1 + n / tenth), per="step") if RIVALS[name][2] else constant
    horizon = Horizon(steps=road.steps, every=road.every)
    lanes = LaneRun(road.task, settings, horizon, tapered, seed=SEED, run=road.run)
    plain: list[Array] = []
    averaged: list[Array] = []
    sums, older = np.zeros((2, road.task.n_features, len(settings)))
    count, old_count, turn = 0, 0, FIRST_TURN
    apart = min(SAMPLED, road.every) if road.task.n_features <= LSTD_FEATURES else road.every
    with np.errstate(all="ignore"):
        for done in range(apart, road.steps + 1, apart):
            lanes.advance(apart)
            w = lanes.weights()[0].T
            sums, count = sums + w, count + 1
            if done % road.every == 0:
                plain.append(road.errors(w))
                averaged.append(road.errors((older + sums) / (old_count + count)))
            if done >= turn:
                older, old_count, turn, sums, count = sums, count, 2 * done, np.zeros_like(sums), 0
    return RivalErrors(np.mean(plain, axis=0), np.mean(averaged, axis=0))


class AutoRun(NamedTuple):
    """The errors of `AutoLearner` in a run: their mean, the last, and the largest after the first SETTLED steps."""

    mean_error: float
    end: float
    peak: float


def auto_run(road: Road, alpha: float | None = None, quadratic: bool | None = None) -> AutoRun:
    """Return the errors of `AutoLearner` on one run; the unit of alpha is 1 over the mean of ‖x‖²."""
    own = None if alpha is None else alpha * road.unit
    agent = AutoLearner(road.task.n_features, own, quadratic=quadratic, initial_w=road.task.initial_weights)
    errors = []
    for row, next_row, reward, discount, rho in road.parts():
        agent.update_many(row, reward, discount, next_row, rho)
        errors.append(float(road.errors(agent.w[:, None])[0]))
    settled = min(SETTLED // road.every, len(errors) - 1)
    return AutoRun(float(np.mean(errors)), errors[-1], max(errors[settled:]))


def lstd_errors(road: Road) -> Array:
    """Return the mean error of recursive LSTD over a run for every ridge; it is solved at every point."""
    w = np.asarray(road.task.initial_weights, float)
    A, b, errors, unit = np.zeros((len(w), len(w))), np.zeros(len(w)), [], np.eye(len(w))
    for row, next_row, reward, discount, rho in road.parts():
        A = A + row.T @ (rho[:, None] * (row - discount[:, None] * next_row))
        b = b + row.T @ (rho * reward)
        solved = [np.linalg.lstsq(A + one * unit, b + one * w, rcond=None)[0] for one in RIDGES]
        errors.append(road.errors(np.column_stack(solved)))
    return np.asarray(np.mean(errors, axis=0))
