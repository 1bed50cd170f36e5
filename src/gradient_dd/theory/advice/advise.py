"""Advice for a task: which learner, with which parameters, for so many episodes or steps and a schedule."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.errors import bad_request, one_of
from gradient_dd.learners import LEARNERS, Rule, Setting, find
from gradient_dd.tasks import Task
from gradient_dd.theory.advice.pilot import Changes, Pilot, TaskPilot, changes, expected_steps, part_of
from gradient_dd.theory.advice.search import BUDGET, OnProgress, Row, Search
from gradient_dd.theory.advice.space import spaces_of

MEASURES = ("area", "last100")
TRIED = ("td", "tdc", "tdrc", "gtd2", "gradient_dd")  # unless others are named
POINTS = 2000  # errors taken in a run that is counted in steps, about
TYPICAL, CUT = 150, 0.2  # a horizon on which so many settings take this share of the budget in a run is long enough,
TOO_LONG = 1.5  # and one so many times longer is cut to it
NOT_TRIED = "not among the learners to try"
DIVERGED = "diverged with every setting that was tried"


class PredictedError(NamedTuple):
    """An error predicted from pilot runs: their mean, its standard error, and how many runs there were."""

    mean: float
    doubt: float
    runs: int

    def times(self, factor: float) -> "PredictedError":
        """Return the error multiplied by a factor."""
        return PredictedError(self.mean * factor, self.doubt * factor, self.runs)


@dataclass(frozen=True)
class TunedLearner:
    """The best setting found for a learner, and its errors.

    setting        the learner with its parameters
    area, last100  predicted errors: over all points of a run, and at its end
    refined        False where the scout showed an error so much larger than the best that no more was tried
    curve          (runs, bins) errors along the pilot runs
    """

    setting: Setting
    area: PredictedError
    last100: PredictedError
    refined: bool
    curve: Array


@dataclass(frozen=True)
class Advice:
    """What to take, and what it rests on.

    best           the advice; None where everything diverged
    candidates     the tuned learners with a finite error, the best first
    left_out       why a learner is not among the candidates, by its name
    measure        "area" or "last100", what was to be small
    initial_error  the error of the initial weights: that of not learning
    horizon        what the advice is for
    pilot_horizon  what the pilot ran: a part of `horizon` where that is very long. Then `best` is extrapolated
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
        return one.area if self.measure == "area" else one.last100

    @property
    def beats_standing_still(self) -> bool:
        """Whether the advice has a smaller predicted error than the initial weights."""
        return self.best is not None and self.error_of(self.best).mean < self.initial_error

    @property
    def is_extrapolated(self) -> bool:
        """Whether the pilot ran a part of the horizon only."""
        return self.pilot_horizon.points != self.horizon.points


def advise(
    task: Task,
    horizon: Horizon,
    schedule: Schedule = constant,
    *,
    sampling: str = "trajectory",
    measure: str = "area",
    learners: Iterable[str | Rule] = TRIED,
    budget: float = BUDGET,
    on_progress: OnProgress = lambda progress: None,
) -> Advice:
    """Return advice for a task from pilot runs on it.

    `on_progress` is called before every stage. `budget` is in estimated seconds of one core, compiling left out.
    """
    horizon.check(task)
    check_schedule(schedule)
    rules = list(dict.fromkeys(map(find, learners)))
    squares = np.asarray(task.sparse_features.multiply(task.sparse_features).sum(axis=1)).ravel()
    mean_square, off_policy = float(task.visits @ squares), bool(np.ptp(task.transitions.rho) > 0)
    spaces = spaces_of(rules, mean_square, expected_steps(task, horizon), off_policy)
    pilot = TaskPilot(task, coarser(horizon), schedule, sampling, spaces)
    return advise_with(pilot, measure, budget, on_progress, task.rmsve(task.initial_weights))


def advise_with(pilot: Pilot, measure: str, budget: float, on_progress: OnProgress, initial_error: float) -> Advice:
    """Return the advice of a pilot, on a part of its horizon where the whole is too long for the budget."""
    one_of("'measure'", measure, MEASURES)
    horizon, longer = pilot.horizon, pilot.core_seconds(TYPICAL) / (CUT * budget)
    if longer > TOO_LONG:
        pilot.horizon = part_of(horizon, longer)
    least = pilot.core_seconds(TYPICAL)
    if least > budget:  # one episode of some tasks has millions of steps
        rule = f"take at most {budget:.0f} s of a core for {TYPICAL} settings and the shortest run"
        raise bad_request(
            "The pilot of the advice", rule, f"about {least:.0f} s", "Give a number of steps, not of episodes."
        )
    search = Search(pilot, measure, budget, on_progress)
    best = search.best()
    rows = sorted(search.rows.values(), key=lambda row: (row.stage != "judge", search.error(row)))
    candidates = [candidate(pilot, row) for row in rows]
    chosen = next((one for one, row in zip(candidates, rows, strict=True) if row is best), None)
    if chosen is not None and best is not None and pilot.horizon != horizon:
        search.report("longer runs: how the best alpha changes", 0.5 * budget)
        chosen = changed(chosen, changes(pilot, best.point, measure, horizon))
    return Advice(chosen, candidates, left_out(pilot, search), measure, initial_error, horizon, pilot.horizon)


def coarser(horizon: Horizon) -> Horizon:
    """Return a horizon with an error every few steps instead of at each step; its last few steps may be lost."""
    if horizon.steps is None or horizon.points <= POINTS:
        return horizon
    every = horizon.steps // POINTS
    return Horizon(steps=horizon.steps // every * every, every=every)


def candidate(pilot: Pilot, row: Row) -> TunedLearner:
    """Return a row of the search with its setting."""
    setting = pilot.spaces[row.point.learner].setting(row.point)
    return TunedLearner(setting, estimate(row.area), estimate(row.last100), row.stage in ("refine", "judge"), row.curve)


def estimate(errors: Array) -> PredictedError:
    """Return the mean of errors over runs with its standard error, which is NaN where there is one run."""
    runs = len(errors)
    return PredictedError(
        float(errors.mean()), float(errors.std(ddof=1) / runs**0.5) if runs > 1 else float("nan"), runs
    )


def changed(chosen: TunedLearner, by: Changes) -> TunedLearner:
    """Return a tuned learner for a longer run."""
    old = chosen.setting
    values = {**old.values, "alpha": old.values["alpha"] * by.alpha}
    return replace(
        chosen,
        setting=old.rule.setting(rho_mode=old.rho_mode, **values),
        area=chosen.area.times(by.area),
        last100=chosen.last100.times(by.last100),
    )


def left_out(pilot: Pilot, search: Search) -> dict[str, str]:
    """Return why a learner is not among the candidates, by its name."""
    return {name: NOT_TRIED for name in LEARNERS if name not in pilot.spaces} | {
        name: DIVERGED for name in pilot.spaces if name not in search.rows
    }
