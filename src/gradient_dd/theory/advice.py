"""Advice for a task: which learner, with which parameters, for a horizon and a schedule.

Every learner is tuned by the search of `studies.search`, all on the same runs; with fewer parameters it tries fewer
settings. The best setting of each learner is then judged on separate runs, which give the predicted errors.

Above some alpha rare runs diverge, too rare to occur in every search. So the judge also runs each setting with a larger
and a smaller step size, and takes the smaller one if the error rises steeply above the selected one and this costs
little.

The budget counts estimated core-seconds instead of measured time, so the same call gives the same advice on every
machine. A horizon that is too long for the budget is cut, and the advice is for the shorter run.

Some learners are special cases of others, bit for bit: TD is TDRC with ζ = 0, TDC is TDRC with reg = 0, GTD2 is
Gradient-DD with κ = 0. The search runs the general learner, so five learners need two compiled kernels. Compiling a
kernel takes a second or two.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from math import ceil, inf, isfinite, log2, nan
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.errors import bad_request, number, one_of
from gradient_dd.learners import LEARNERS, Rule, Setting, find
from gradient_dd.studies.search import FULL, QUICK, Budget, SearchSpace, searching, space_of
from gradient_dd.tasks import Task
from gradient_dd.theory.arguments import checked

MEASURES = ("mean_error", "last100")
TRIED = ("td", "tdc", "tdrc", "gtd2", "gradient_dd")  # unless others are named
POINTS = 2000  # errors taken in a run that is counted in steps, about
NOT_TRIED = "not among the learners to try"
DIVERGED = "diverged with every setting that was tried"
BUDGET = 6.5  # core seconds
BUDGETS = (  # of the search of a learner with three parameters; the first that is affordable is taken
    FULL,
    Budget(coarse=160, refined=192, runs=4, finals=((20, 12), (8, 32))),
    QUICK,
    Budget(coarse=96, refined=48, runs=1, finals=((8, 6), (4, 16))),
)
JUDGE_RUNS, JUDGE_SHARE = (4, 64), 0.25  # minimum and maximum; of the budget
TOO_LONG = 1.75  # a horizon that is too long by this factor is cut
LARGEST_ALPHA = 4.0  # in units of one over the mean of ‖x‖²; no tested setting is stable above it
STILL = 16.0  # the smallest alpha is the largest, divided by this factor times the steps: w hardly moves
MOST_OCTAVES = 22  # of alpha
SMALLEST_ALPHA = 1e-12  # that is judged
ALIKE = 1.02  # among learners whose errors are within this factor, the fewest parameters win
BESIDE = 2**0.5  # the factor between the step sizes that are judged
STEEP = 2.0  # the error rises steeply if it rises by this factor at the next larger alpha,
LITTLE = 1.15  # and a smaller alpha costs little if it raises the error by at most this factor
SPECIAL_CASES: dict[str, tuple[str, dict[str, float]]] = {  # learner: the general learner, and its parameters
    "td": ("tdrc", {"zeta": 0.0, "reg": 0.0}),
    "tdc": ("tdrc", {"reg": 0.0}),
    "gtd2": ("gradient_dd", {"kappa": 0.0}),
}
SEED = 1_729_000_000  # of pilot runs, plus the number of the first run of a round; studies use small seeds
JUDGED = 10_000  # the number of the first run of the judge
NS_PER_STEP, NS_PER_ROW = 40.0, 0.35  # of a core: per step, and per row of weights that a setting updates in it
FUSED_ROWS = 8  # with more rows per step the engine is slower, and takes
WIDE_NS_PER_STEP, WIDE_NS_PER_ROW = 1000.0, 0.9
NS_PER_ERROR = 1.0  # per setting and non-zero of the features, if errors outweigh steps


class SearchProgress(NamedTuple):
    """The next stage, its estimated core-seconds, and the share of all stages that is done."""

    doing: str
    core_seconds: float
    share: float


OnProgress = Callable[[SearchProgress], None]
Search = tuple[SearchSpace, Budget]


class PredictedError(NamedTuple):
    """An error predicted from pilot runs: their mean, its standard error, and the number of runs."""

    mean: float
    doubt: float
    runs: int


@dataclass(frozen=True)
class TunedLearner:
    """The best setting found for a learner, its predicted errors, and (runs, bins) errors along the pilot runs."""

    setting: Setting
    mean_error: PredictedError
    last100: PredictedError
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
        """Whether the advice has a smaller predicted error than the initial weights."""
        return self.best is not None and self.error_of(self.best).mean < self.initial_error

    @property
    def is_cut(self) -> bool:
        """Whether the pilot ran only a part of the horizon."""
        return self.pilot_horizon.points != self.horizon.points


@dataclass
class Pilot:
    """Runs settings on a task: the lane engine, with this horizon, schedule and sampling."""

    task: Task
    horizon: Horizon
    schedule: Schedule
    sampling: str

    def run(self, settings: Sequence[Setting], runs: range) -> Any:
        """Return the results of settings on runs; ranges with another start have other runs."""
        from gradient_dd.engine.lanes import run_lanes  # here, so that importing this file loads no compiler

        how: dict[str, Any] = {"schedule": self.schedule, "sampling": self.sampling, "seed": SEED + runs.start}
        return run_lanes(self.task, list(map(generalised, settings)), self.horizon, runs=len(runs), **how)

    def core_seconds(self, lane_runs: float, runs: int) -> float:
        """Return the estimated core-seconds of so many pairs of a setting and a run, and so many runs."""
        rows = min(2 * int(np.diff(self.task.row_features.indptr).max()), self.task.n_features)
        fused = rows <= FUSED_ROWS
        once, each = (NS_PER_STEP, NS_PER_ROW) if fused else (WIDE_NS_PER_STEP, WIDE_NS_PER_ROW)
        steps = expected_steps(self.task, self.horizon)
        errors = max(0.0, self.horizon.points * self.task.sparse_features.nnz - steps * rows)  # `once` has the rest
        return 1e-9 * (runs * steps * once + lane_runs * (steps * each * rows + NS_PER_ERROR * errors))

    def cost(self, searches: Sequence[Search]) -> float:
        """Return the estimated core-seconds of searches that go on together."""
        runs = max((one.runs * len(one.steps) + one.all_runs for _, one in searches), default=0)
        return self.core_seconds(sum(budget.lane_runs for _, budget in searches), runs)


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
    on_progress: OnProgress = lambda progress: None,
) -> Advice:
    """Return advice for a task from pilot runs.

    `on_progress` is called before every stage. `budget` is in estimated core-seconds, without compilation.
    """
    horizon.check(task)
    schedule = check_schedule(schedule)
    one_of("'measure'", measure, MEASURES)
    budget = number("'budget'", "be a positive number of seconds", budget, low=0.0, positive=True)
    several = learners if isinstance(learners, Iterable) and not isinstance(learners, str) else [learners]
    rules = list(dict.fromkeys(map(find, several)))
    pilot = Pilot(task, coarser(horizon), schedule, sampling)
    whole, affordable = pilot.horizon, (1 - JUDGE_SHARE) * budget
    for level in BUDGETS:
        searches = [one for rule in rules for one in searches_of(task, rule, whole, level)]
        if pilot.cost(searches) <= affordable:
            break
    if pilot.cost(searches) > TOO_LONG * affordable:
        pilot.horizon = part_of(whole, pilot.cost(searches) / affordable)
    if (least := pilot.cost(searches)) > TOO_LONG * budget:  # one episode of some tasks has millions of steps
        rule = f"take at most {budget:.3g} s of a core for the shortest run"
        raise bad_request("The pilot of the advice", rule, f"about {least:.3g} s", "Give steps instead of episodes.")
    candidates = judged(pilot, tuned(pilot, searches, measure, on_progress), measure, budget, on_progress)
    errors = [getattr(one, measure).mean for one in candidates]
    alike = [one for one, error in zip(candidates, errors, strict=True) if error <= ALIKE * errors[0]]
    best = min(alike, key=lambda one: len(free_values(task, one.setting.rule)), default=None)
    left_out = {name: NOT_TRIED for name in LEARNERS if name not in {rule.name for rule in rules}}
    diverged = {rule.name for rule in rules} - {one.setting.rule.name for one in candidates}
    left_out |= {rule.name: DIVERGED for rule in rules if rule.name in diverged}
    return Advice(best, candidates, left_out, measure, task.rmsve(task.initial_weights), whole, pilot.horizon)


# The spaces


def searches_of(task: Task, rule: Rule, horizon: Horizon, budget: Budget) -> list[Search]:
    """Return the searches of a learner, one for each placement of ρ; fewer parameters need fewer settings.

    The mean of ‖x‖² sets the scale of alpha.
    """
    squares = np.asarray(task.sparse_features.multiply(task.sparse_features).sum(axis=1)).ravel()
    largest = LARGEST_ALPHA / float(task.visits @ squares)
    octaves = min(ceil(log2(STILL * expected_steps(task, horizon))), MOST_OCTAVES)
    free = free_values(task, rule)
    share = 2.0 ** min(0, len(free) - 2)
    own = replace(budget, coarse=int(share * budget.coarse), refined=int(share * budget.refined))
    fixed = {one.name: (one.default,) for one in rule.parameters if one.default == 0 or one.shared}
    space = space_of(rule, {**fixed, **free, "alpha": (largest / 2.0**octaves, largest)}, task, own)
    modes = ("R", "T") if rule.has_rho_mode and np.ptp(task.transitions.rho) > 0 else ("R",)
    return [(replace(space, rho_mode=mode), own) for mode in modes]


def free_values(task: Task, rule: Rule) -> dict[str, Sequence[float]]:
    """Return the values to try of the parameters that are searched, except alpha.

    A parameter whose default is 0 has no scale, and keeps it.
    """
    found: dict[str, Sequence[float]] = {}
    for one in rule.parameters:
        values = one.grid(task) if callable(one.grid) else one.grid
        if one.name != "alpha" and one.default != 0 and not one.shared and len(values) != 1:
            found[one.name] = values or sorted({one.default / 4, one.default, min(4 * one.default, one.high)})
    return found


def generalised(setting: Setting) -> Setting:
    """Return the setting that a pilot runs: the same steps, by the general learner."""
    general, fixed = SPECIAL_CASES.get(setting.rule.name, ("", {}))
    if not general or setting.rule not in LEARNERS[setting.rule.name].forms:  # a user's rule may have the same name
        return setting
    values: dict[str, Any] = {**setting.values, **fixed}
    return LEARNERS[general].setting(setting.rho_mode, **values)


# The search and the judge


def tuned(pilot: Pilot, searches: Sequence[Search], measure: str, on_progress: OnProgress) -> list[Setting]:
    """Return the best setting of each learner that has a finite error; all searches share their runs."""
    asked, best = {one: next(one) for one in starmap(searching, searches)}, dict[str, tuple[float, Setting]]()
    budget = searches[0][1] if searches else QUICK
    stages, done = 2 + len(budget.steps) + len(budget.finals), 0
    while asked:
        runs = min((runs for _, runs in asked.values()), key=lambda runs: runs.start)
        ours = {one: settings for one, (settings, own) in asked.items() if own == runs}
        every = [setting for settings in ours.values() for setting in settings]
        seconds = pilot.core_seconds(len(every) * len(runs), len(runs))
        on_progress(SearchProgress(f"search: {len(every)} settings, {len(runs)} runs", seconds, done / stages))
        errors, done = getattr(pilot.run(every, runs), measure).T, min(done + 1, stages - 1)
        for one, settings in ours.items():
            try:
                asked[one] = one.send(errors[: len(settings)])
            except StopIteration as end:
                del asked[one]
                setting, error = end.value.setting, float(end.value.trail[0].errors.mean())
                if error < best.get(setting.rule.name, (inf, setting))[0]:  # over the placements of ρ
                    best[setting.rule.name] = error, setting
            errors = errors[len(settings) :]
    return [setting for _, setting in best.values()]


def judged(
    pilot: Pilot, settings: Sequence[Setting], measure: str, budget: float, on_progress: OnProgress
) -> list[TunedLearner]:
    """Return the learners with their errors on separate runs, best first.

    Where rare runs diverge with every setting, smaller step sizes are judged.
    """
    if not settings or settings[0].values["alpha"] < SMALLEST_ALPHA:
        return []
    beside = [scaled(setting, factor) for setting in settings for factor in (1.0, BESIDE, 1 / BESIDE)]
    fewest, most = JUDGE_RUNS
    runs = int(np.clip(JUDGE_SHARE * budget / pilot.core_seconds(len(beside), 1), fewest, most))
    seconds = pilot.core_seconds(len(beside) * runs, runs)
    on_progress(SearchProgress(f"judge: {len(beside)} settings, {runs} runs", seconds, 0.9))
    results, found = pilot.run(beside, range(JUDGED, JUDGED + runs)), []
    means = getattr(results, measure).mean(axis=0)
    for first in range(0, len(beside), 3):
        here, above, below = means[first : first + 3]
        prudent = above > STEEP * here and below <= LITTLE * here
        place = first + 2 if prudent or not isfinite(here) else first
        if isfinite(means[place]):
            mean_error, last100 = (predicted(getattr(results, name)[:, place]) for name in MEASURES)
            found.append(TunedLearner(beside[place], mean_error, last100, results.curve[:, place]))
    if not found:
        return judged(pilot, [scaled(setting, 0.5) for setting in settings], measure, budget, on_progress)
    return sorted(found, key=lambda one: getattr(one, measure).mean)


def scaled(setting: Setting, factor: float) -> Setting:
    """Return a setting with alpha multiplied by a factor."""
    values: dict[str, Any] = {**setting.values, "alpha": factor * setting.values["alpha"]}
    return setting.rule.setting(setting.rho_mode, **values)


def predicted(errors: Array) -> PredictedError:
    """Return the mean of errors over runs and its standard error, nan for one run."""
    runs = len(errors)
    return PredictedError(float(errors.mean()), float(errors.std(ddof=1) / runs**0.5) if runs > 1 else nan, runs)


# Horizons


def expected_steps(task: Task, horizon: Horizon) -> float:
    """Return the mean number of steps of a run."""
    return float(horizon.steps) if horizon.steps is not None else horizon.points * task.expected_length


def coarser(horizon: Horizon) -> Horizon:
    """Return a horizon with about POINTS errors instead of one per step; a few last steps may be lost."""
    if horizon.steps is None or horizon.points <= POINTS:
        return horizon
    every = horizon.steps // POINTS
    return Horizon(steps=horizon.steps // every * every, every=every)


def part_of(horizon: Horizon, share: float) -> Horizon:
    """Return the first 1/share of a horizon, at least one point."""
    points = max(1, round(horizon.points / share))
    if horizon.episodes is not None:
        return Horizon(episodes=points)
    return Horizon(steps=points * horizon.every, every=horizon.every)
