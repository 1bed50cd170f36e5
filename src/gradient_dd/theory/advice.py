"""Advice for a task: a learner and its parameters for a horizon and a schedule.

The search tries settings of several learners within one budget:

    scout    every coarse point, on the whole horizon if that is cheap, else on a sixteenth of it. A short run favours
             large step sizes: the best alpha of a long run is between 1/16 and 2 times the best alpha of the scout
    full     the remaining points, on the whole horizon
    refine   the best points and their neighbours, at half the distance, then a quarter, on more runs
    judge    the best point of each learner that can still win, on separate runs, which give the predicted errors

Above some alpha a few runs diverge, too few to occur in every pilot. The judge therefore also runs each point with a
larger and a smaller alpha. It takes the smaller alpha if that costs little and the larger alpha has a far larger error.

All points of a stage use the same runs, and no two stages share a run. The budget counts estimated core-seconds
instead of measured time, so the same call gives the same advice on every machine. A horizon that is too long for the
budget is cut, and the advice is for the shorter run.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import isfinite, log2, nan
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.errors import bad_request, number, one_of
from gradient_dd.learners import LEARNERS, Rule, Setting, find
from gradient_dd.tasks import Task
from gradient_dd.theory.dynamics import checked
from gradient_dd.theory.pilot import Point, PointErrors, TaskPilot, expected_steps, part_of, spaces_of

MEASURES = ("mean_error", "last100")
TRIED = ("td", "tdc", "tdrc", "gtd2", "gradient_dd")  # the default learners
POINTS = 2000  # approximate number of errors recorded in a run that is counted in steps
TYPICAL, CUT = 150, 0.2  # a run of 150 settings may take this share of the budget;
TOO_LONG = 1.5  # a horizon longer by this factor is cut
NOT_TRIED = "not tried"
DIVERGED = "diverged with every setting that was tried"
BUDGET = 6.5  # in estimated core-seconds
SHORT = 16  # if the whole horizon is too long, a scout runs this fraction of it
SHARES = {"scout": 0.2, "full": 0.2, "refine": 0.25, "judge": 0.25}  # share of the budget for each stage
RUNS = {"scout": (1, 4), "full": (1, 4), "refine": (2, 32), "judge": (4, 64)}  # minimum and maximum number of runs
LINES = 2  # number of lines refined per learner
DISTANCES = (0.5, 0.25)  # octaves of alpha to the neighbours in each refinement; half as many of each other parameter
HOPELESS = 3.0  # a line is dropped if its best error exceeds the best error of all lines by this factor
CLOSE = 1.5  # a learner can still win if its best error is within this factor of the best error of all
ALIKE = 1.02  # among learners with errors within this factor, the learner with the fewest parameters wins
BESIDE = 0.5  # octaves of alpha from a judged point to its neighbours
STEEP = 2.0  # the error rises steeply if it rises by this factor at the next larger alpha,
LITTLE = 1.15  # and a smaller alpha costs little if it raises the error by at most this factor


OnProgress = Callable[[str, float], None]  # the next stage, and the share of all stages completed
Stage = dict[Point, PointErrors]


class AdviceSearch:
    """A search with a pilot and a measure. `rows` holds the best point of each learner found so far."""

    def __init__(self, pilot: TaskPilot, measure: str, budget: float, on_progress: OnProgress) -> None:
        self.pilot, self.measure, self.budget, self.on_progress = pilot, measure, budget, on_progress
        self.rows, self.stages, self.stages_done = dict[str, PointErrors](), 4, 0

    def best(self) -> PointErrors | None:
        """Search, and return the row to recommend; None if every point diverged."""
        points = self.scout()
        for distance in DISTANCES:
            near = (near for point in points for near in neighbours(point, distance))
            points = self.best_of_lines(self.run("refine", near))
        refined = [self.rows[learner] for learner in dict.fromkeys(point.learner for point in points)]
        finalists = [row for row in refined if self.error(row) <= CLOSE * self.error(refined[0])]
        return self.judge(finalists) if finalists else None

    def scout(self) -> list[Point]:
        """Run all coarse points, then return the points to refine."""
        coarse = [Point(space, places) for space in self.pilot.spaces for places in space.coarse()]
        if self.pilot.core_seconds(len(coarse)) <= SHARES["scout"] * self.budget:
            return self.best_of_lines(self.run("scout", coarse))
        self.stages = 5
        lines = self.best_of_lines(self.run("scout", coarse, SHORT), several=True)
        octaves = range(-int(log2(SHORT)), 2)
        return self.best_of_lines(self.run("full", (point.moved(k) for point in lines for k in octaves)))

    def judge(self, finalists: list[PointErrors]) -> PointErrors:
        """Return the best finalist over its previous and its separate runs; of several about equal, the simplest."""
        stage = self.run("judge", (row.point.moved(step) for row in finalists for step in (0, BESIDE, -BESIDE)))
        errors = {}
        for old in finalists:
            new = stage[self.stepped_back(stage, old.point)]
            rows = [new, old] if new.point == old.point else [new]
            errors[new.point.learner] = float(np.concatenate([getattr(row, self.measure) for row in rows]).mean())
            self.rows[new.point.learner] = new
        least = min(errors.values())
        if not isfinite(least):  # a few runs diverged at each of these step sizes
            none = np.empty(0)
            return self.judge([PointErrors(row.point.moved(-1), none, none, none) for row in finalists])
        alike = [self.rows[name] for name in errors if errors[name] <= ALIKE * least]
        searched = {row.point: sum(not axis.is_fixed for axis in row.point.space.axes) for row in alike}
        return min(alike, key=lambda row: (searched[row.point], errors[row.point.learner]))

    def stepped_back(self, stage: Stage, point: Point) -> Point:
        """Return the point, or its neighbour with a smaller alpha if that neighbour is safer."""
        here, above, below = (self.error(stage[point.moved(step)]) for step in (0, BESIDE, -BESIDE))
        prudent = above > STEEP * here and below <= LITTLE * here
        return point.moved(-BESIDE) if prudent or not isfinite(here) else point

    def by_error(self, stage: Stage) -> list[PointErrors]:
        """Return the rows of a stage that did not diverge, sorted by error and then by alpha."""
        finite = [row for row in stage.values() if isfinite(self.error(row))]
        return sorted(finite, key=lambda row: (self.error(row), row.point.places[0]))

    def best_of_lines(self, stage: Stage, several: bool = False) -> list[Point]:
        """Return the best point of each line that is near the best line and among the best lines of its learner.

        With `several`, one of the two conditions is enough. The best line comes first.
        """
        lines: dict[Point, PointErrors] = {}
        for row in self.by_error(stage):
            lines.setdefault(row.point.line, row)
        chosen, counts = [], Counter[str]()
        for row in lines.values():
            is_near = self.error(row) <= HOPELESS * self.error(next(iter(lines.values())))
            is_first = counts[row.point.learner] < LINES
            counts[row.point.learner] += 1
            if (is_near and is_first) or (several and (is_near or is_first)):
                chosen.append(row.point)
        return chosen

    def run(self, name: str, points: Iterable[Point], share: int = 1) -> Stage:
        """Run points on as many runs as the budget of the stage allows, and record the best point of each learner."""
        chosen = list(dict.fromkeys(points))
        if not chosen:
            return {}
        runs = self.affordable_runs(name, len(chosen), share)
        seconds = self.pilot.core_seconds(len(chosen), runs, share)
        words = f", about {seconds:.1f} s of core time" if seconds >= 0.1 else ""
        done = min(self.stages_done / self.stages, 1.0)
        self.on_progress(f"{name}: {len(chosen)} settings, {runs} runs{words}", done)
        self.stages_done += 1
        stage = {row.point: row._replace(stage=name) for row in self.pilot.run(chosen, runs, share)}
        self.rows |= {row.point.learner: row for row in reversed(self.by_error(stage))}
        return stage

    def affordable_runs(self, stage: str, settings: int, share: int) -> int:
        """Return the number of runs that the budget of a stage allows, within its bounds."""
        (fewest, most), budget = RUNS[stage], SHARES[stage] * self.budget
        counts = range(most, fewest, -1)
        return next((runs for runs in counts if self.pilot.core_seconds(settings, runs, share) <= budget), fewest)

    def error(self, row: PointErrors) -> float:
        """Return the mean error of a row in the measure of the search."""
        return float(getattr(row, self.measure).mean())


def neighbours(point: Point, distance: float) -> list[Point]:
    """Return a point and its neighbours along each axis and along the diagonals of alpha and another axis.

    The products ζα and κα matter, so low errors lie along diagonals.
    """
    return [point, *(Point(point.space, places) for places in point.space.neighbours([point.places], distance))]


class PredictedError(NamedTuple):
    """An error predicted from pilot runs: their mean, its standard error, and the number of runs."""

    mean: float
    standard_error: float
    runs: int


@dataclass(frozen=True)
class TunedLearner:
    """The best setting found for a learner, and its predicted errors.

    refined  False if the error in the first stages was too large for the setting to be refined
    curve    (runs, bins) errors along the pilot runs
    """

    setting: Setting
    mean_error: PredictedError
    last100: PredictedError
    refined: bool
    curve: Array


@dataclass(frozen=True)
class Advice:
    """The recommended learner and its evidence.

    best           the recommendation; None if everything diverged
    candidates     the tuned learners with a finite error, best first
    left_out       the reason, by name, for each learner that is not a candidate
    measure        the minimised error, "mean_error" or "last100"
    initial_error  the error of the initial weights
    horizon        the requested horizon
    pilot_horizon  the horizon of the pilot runs and errors: a part of `horizon` if that is very long
    """

    best: TunedLearner | None
    candidates: list[TunedLearner]
    left_out: dict[str, str]
    measure: str
    initial_error: float
    horizon: Horizon
    pilot_horizon: Horizon

    def error_of(self, one: TunedLearner) -> PredictedError:
        """Return the predicted error in the measure of the advice."""
        return one.mean_error if self.measure == "mean_error" else one.last100

    @property
    def beats_standing_still(self) -> bool:
        """Whether the recommendation has a smaller predicted error than the initial weights."""
        return self.best is not None and self.error_of(self.best).mean < self.initial_error

    @property
    def is_cut(self) -> bool:
        """Whether the pilot ran only a part of the horizon."""
        return self.pilot_horizon.points != self.horizon.points


@checked
def advise(
    task: Task,
    horizon: Horizon,
    schedule: Schedule = constant,
    *,
    sampling: str = "trajectory",
    measure: str = "mean_error",
    learners: Iterable[str | Rule] = TRIED,
    budget: float = BUDGET,
    on_progress: OnProgress = lambda doing, share: None,
) -> Advice:
    """Return advice for a task from pilot runs.

    `on_progress` is called before every stage. `budget` is in estimated core-seconds, without compilation.
    """
    horizon.check(task)
    schedule = check_schedule(schedule)
    listed = isinstance(learners, Iterable) and not isinstance(learners, str) and getattr(learners, "ndim", 1) > 0
    several: Iterable[Any] = learners if listed else [learners]
    rules = list(dict.fromkeys(map(find, several)))
    squares = np.asarray(task.sparse_features.multiply(task.sparse_features).sum(axis=1)).ravel()
    mean_square, off_policy = float(task.visits @ squares), bool(np.ptp(task.transitions.rho) > 0)
    spaces = spaces_of(rules, mean_square, expected_steps(task, horizon), off_policy)
    pilot = TaskPilot(task, coarser(horizon), schedule, sampling, spaces)
    return advise_with(pilot, measure, budget, on_progress, task.rmsve(task.initial_weights))


def advise_with(pilot: TaskPilot, measure: str, budget: float, on_progress: OnProgress, initial_error: float) -> Advice:
    """Return the advice from a pilot, which runs a part of its horizon if the whole is too long for the budget."""
    one_of("'measure'", measure, MEASURES)
    budget = number("'budget'", "be a positive number of seconds", budget, low=0.0, positive=True)
    horizon, longer = pilot.horizon, pilot.core_seconds(TYPICAL) / (CUT * budget)
    if longer > TOO_LONG:
        pilot.horizon = part_of(horizon, longer)
    least = pilot.core_seconds(TYPICAL)
    if least > budget:  # one episode of some tasks has millions of steps
        rule = f"take at most {budget:.0f} s of core time for {TYPICAL} settings and the shortest run"
        hint = "Give a number of steps instead of episodes."
        raise bad_request("The pilot of the advice", rule, f"about {least:.0f} s", hint)
    search = AdviceSearch(pilot, measure, budget, on_progress)
    best, chosen, candidates = search.best(), None, []
    for row in sorted(search.rows.values(), key=lambda row: (row.stage != "judge", search.error(row))):
        errors, is_refined = (estimate(row.mean_error), estimate(row.last100)), row.stage in ("refine", "judge")
        candidates.append(TunedLearner(row.point.setting, *errors, is_refined, row.curve))
        if row is best:
            chosen = candidates[-1]
    tried = [space.rule.name for space in pilot.spaces]
    left_out = {name: NOT_TRIED for name in LEARNERS if name not in tried}
    left_out |= {name: DIVERGED for name in tried if name not in search.rows}
    return Advice(chosen, candidates, left_out, measure, initial_error, horizon, pilot.horizon)


def coarser(horizon: Horizon) -> Horizon:
    """Return a horizon with about POINTS errors instead of one per step; a few of the last steps may be lost."""
    if horizon.steps is None or horizon.points <= POINTS:
        return horizon
    every = horizon.steps // POINTS
    return Horizon(steps=horizon.steps // every * every, every=every)


def estimate(errors: Array) -> PredictedError:
    """Return the mean of errors over runs and its standard error, nan for one run."""
    runs = len(errors)
    return PredictedError(float(errors.mean()), float(errors.std(ddof=1) / runs**0.5) if runs > 1 else nan, runs)
