"""Tuning: settings are selected on tuning runs and judged on test runs, which avoids selection bias.

`StudyEvidence` holds the errors of each case: of all settings on tuning runs, and of the selected settings on test
runs. `SearchEvidence` is the evidence of a study whose learners are tuned by search. A *case* is the subject of one
comparison: a task, or several tasks whose errors are averaged.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.schedules import constant
from gradient_dd.experiments.job import Job
from gradient_dd.learners import Setting
from gradient_dd.report.figure import Line
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results, edge, tuned
from gradient_dd.studies.search import Found, Request, SearchStudy, searching
from gradient_dd.studies.study import as_grid, task_size
from gradient_dd.tasks import Task, build

if TYPE_CHECKING:
    import pandas as pd

EARLY = 20  # the measure "early" is the mean error over the first twentieth of a run
TENTH = 0.1  # share of the initial error; the measure "episodes" is the time until the error falls below it
FRESH = 2  # test runs for each tuning run
FROM_CURVES = ("early", "episodes")  # measures that are computed from learning curves
JUDGED_STARTS = range(11, 31)  # seeds of the initial weights of test runs; tuning runs have other seeds


class ErrorTable(NamedTuple):
    """Settings and their errors, (settings, units); a unit is a run, or random initial weights."""

    settings: list[Setting]
    errors: Array


@dataclass(frozen=True, eq=False)
class TunedSetting:
    """The setting that a line selects on a case, the number of candidates, and its edges of the grid."""

    evidence: "StudyEvidence"
    case: str
    line: Line
    setting: Setting
    settings: int
    edge: str

    def errors(self, measure: str) -> Array:
        """Return the errors of the setting on test runs, (units,)."""
        return self.evidence.errors(self.case, self.setting, measure)

    def selection_mean(self, measure: str) -> float:
        """Return the mean error on tuning runs; nan for measures from curves, which are read for test runs only."""
        if measure in FROM_CURVES:
            return float("nan")
        return float(self.evidence.errors(self.case, self.setting, measure, fresh=False).mean())

    def facts(self, measure: str) -> dict[str, Any]:
        """Return the facts about the learner that a comparison reports."""
        return {
            "label": self.line.label,
            "learner": self.setting.rule.name,
            "study": self.evidence.study.name,
            "held": dict(self.line.held),
            "values": dict(self.setting.values),
            "rho_mode": self.setting.rho_mode,
            "settings": self.settings,
            "edge": self.edge,
            "mean": float(self.errors(measure).mean()),
            "selection_mean": self.selection_mean(measure),
        }


@dataclass(eq=False)
class StudyEvidence:
    """The evidence of a study: its results, by case, and the results of selected settings on test runs, by case.

    There are twice as many test runs as tuning runs: 100 at the paper's scale. This number is fixed before any result
    is known. If a study has a task with many random initial weights, all these tasks form one case. The case has one
    error per start, averaged over runs and divided by the initial error, and the test runs have other starts.

    A companion with the length of its study, `beside`, is judged on the test runs of that study. Tables of errors are
    read once, by case and measure. `used` and `times` store the data behind judgements: the errors by measure, (units,)
    each, for (test runs or not, case, setting), and the nanoseconds of an update, for (case, learner).
    """

    results: Results
    fresh: dict[str, Results] = field(default_factory=dict)
    beside: Study | None = None
    tables: dict[tuple[bool, str, str], ErrorTable] = field(default_factory=dict, repr=False)
    chosen_before: dict[tuple[str, Line, str], TunedSetting] = field(default_factory=dict, repr=False)
    used: dict[tuple[bool, str, str], tuple[Setting, dict[str, Array]]] = field(default_factory=dict, repr=False)
    times: dict[tuple[str, str], Array] = field(default_factory=dict, repr=False)

    @property
    def study(self) -> Study:
        """The study."""
        return self.results.study

    @property
    def base(self) -> Study:
        """The study that defines the test runs."""
        return self.beside or self.study

    @cached_property
    def cases(self) -> dict[str, list[Task]]:
        """The tasks by case: tasks that differ only in their random initial weights are one case."""
        found: dict[str, list[Task]] = {}
        for one in self.results.tasks.values():
            found.setdefault(case_name(one), []).append(one)
        return found

    def size(self, case: str) -> int:
        """Return the size of the task: m, p or N."""
        return task_size(self.cases[case][0])

    def place(self, case: str) -> dict[str, Any]:
        """Return the facts about a case that a comparison reports."""
        return {"study": self.study.name, "task": case, "size": self.size(case)}

    def variant(self, case: str) -> str:
        """Return the differences from the plain task in words; empty if there are none."""
        study, features = self.study, self.cases[case][0].parameters.get("features", "tabular")
        parts = [] if features == "tabular" else [f"{features} features"]
        parts += ["constant steps"] if study.episodes and study.schedule is constant else []
        return ", ".join([*parts, *(["independent draws"] if study.sampling == "iid" else [])])

    def has_random_starts(self, case: str) -> bool:
        """Return whether a case has random initial weights."""
        return "start_seed" in self.cases[case][0].parameters

    def first_error(self, case: str) -> float:
        """Return the error of the initial weights; 1 if errors are relative to the initial error."""
        return 1.0 if self.has_random_starts(case) else initial_error(self.cases[case][0])

    def fresh_study(self, case: str, settings: list[Setting]) -> Study:
        """Return the study that runs selected settings on test runs."""
        tasks = self.cases[case]
        if self.has_random_starts(case):
            return self.study.fresh(self.study.runs, settings, starts_of(tasks[0], JUDGED_STARTS))
        fresh = self.base.fresh(FRESH * self.base.runs, settings, (tasks[0],))
        return replace(fresh, name=f"{self.study.name}-fresh")

    def frames(self) -> "list[pd.DataFrame]":
        """Return tables of all settings on tuning runs, one row for each task and setting."""
        return [self.results.frame()]

    def read(self, case: str, measure: str, fresh: bool) -> ErrorTable:
        """Return settings and errors of a case."""
        results = self.fresh[case] if fresh else self.results
        tasks = list(results.tasks.values()) if fresh else self.cases[case]
        parts = [task_errors(results, one, measure) for one in tasks]
        if not self.has_random_starts(case):
            return parts[0]
        errors = np.stack([part.errors.mean(axis=1) for part in parts], axis=1)
        return ErrorTable(parts[0].settings, errors / np.array(list(map(initial_error, tasks))))

    def table(self, case: str, measure: str, fresh: bool = False) -> ErrorTable:
        """Return the result of `read`, which is called only once per table."""
        key = fresh, case, measure
        if key not in self.tables:
            self.tables[key] = self.read(case, measure, fresh)
        return self.tables[key]

    def among(self, case: str, line: Line, measure: str) -> list[Setting]:
        """Return the settings of a case that belong to a line."""
        return [one for one in self.table(case, measure).settings if line.has(one)]

    def errors(self, case: str, setting: Setting, measure: str, fresh: bool = True) -> Array:
        """Return the errors of a setting, (units,), and keep them in `used`."""
        settings, errors = self.table(case, measure, fresh)
        found: Array = errors[settings.index(setting)]
        key = fresh, case, repr((setting.rule.name, setting.rho_mode, dict(setting.values)))
        self.used.setdefault(key, (setting, {}))[1][measure] = found
        return found

    def choose(self, case: str, line: Line, tuned_for: str = "last100") -> TunedSetting:
        """Return the setting of a line with the smallest mean error on tuning runs; all claims share it."""
        key = case, line, tuned_for
        if key not in self.chosen_before:
            settings, errors = self.table(case, tuned_for)
            best, among = settings[tuned(settings, errors, line.has)], self.among(case, line, tuned_for)
            facts = self.n_settings(among), edge(best, among)
            self.chosen_before[key] = TunedSetting(self, case, line, best, *facts)
        return self.chosen_before[key]

    def n_settings(self, among: list[Setting]) -> int:
        """Return the number of settings that a line selects from."""
        return len(among)


ByStudy = dict[str, StudyEvidence]


def initial_error(task: Task) -> float:
    """Return the error of the initial weights."""
    return task.rmsve(task.initial_weights)


def starts_of(task: Task, seeds: Iterable[int]) -> tuple[Task, ...]:
    """Return a task with random initial weights for each seed."""
    return tuple(build(task.name, **dict(task.parameters) | {"start_seed": seed}) for seed in seeds)


def case_name(task: Task) -> str:
    """Return the name of a task without the seed of its initial weights."""
    parameters = {name: value for name, value in task.parameters.items() if name != "start_seed"}
    return f"{task.name}({', '.join(f'{name}={value}' for name, value in parameters.items())})"


def task_errors(results: Results, task: Task, measure: str) -> ErrorTable:
    """Return settings and errors (settings, runs) of a task; some measures are computed from learning curves."""
    if measure not in FROM_CURVES:
        return ErrorTable(*results.errors(str(task), measure))
    settings = list(results.study.settings())
    middle, curves = results.curves(str(task), settings)
    if measure == "early":
        return ErrorTable(settings, curves[:, :, : max(1, curves.shape[2] // EARLY)].mean(axis=2))
    first = initial_error(task)
    return ErrorTable(settings, first_below(curves, middle, first, TENTH * first))


def first_below(curves: Array, middles: Array, first: float, bound: float) -> Array:
    """Return the time at which each curve first falls below a bound, or infinity; curves: (settings, runs, bins).

    Curves are interpolated linearly between the middles of their bins, starting at time 0 with the initial error.
    """
    times = np.concatenate([[0.0], middles])
    errors = np.concatenate([np.full((*curves.shape[:-1], 1), first), curves], axis=-1)
    below = errors < bound
    after = np.maximum(below.argmax(axis=-1), 1)
    high, low = (np.take_along_axis(errors, place[..., None], axis=-1)[..., 0] for place in (after - 1, after))
    with np.errstate(invalid="ignore", divide="ignore"):
        crossed = times[after - 1] + (times[after] - times[after - 1]) * (high - bound) / (high - low)
    found: Array = np.where(below.any(axis=-1), crossed, np.inf)
    return found


# Tuning by search ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class SearchEvidence(StudyEvidence):
    """The evidence of a study that is tuned by search; selected settings are judged on the test runs of `beside`.

    Tuning runs are numbered after the test runs of `beside`. If a case has random initial weights, every tuning run
    and every test start has different weights. Only settings with all tuning runs can be selected.

    `tried` contains every tried setting with its errors, (measures, runs); nan on tuning runs that were not made.
    """

    tried: dict[str, dict[Any, tuple[Setting, Array]]] = field(default_factory=dict, repr=False)
    rounds: dict[str, list[Results]] = field(default_factory=dict, repr=False)

    @property
    def study(self) -> SearchStudy:
        """The study."""
        study = self.results.study
        assert isinstance(study, SearchStudy)
        return study

    def part(self, tasks: tuple[Task, ...], settings: Iterable[Setting], runs: range) -> Study:
        """Return a plain study of some settings on some tuning runs, counted from 0."""
        plain = {one.name: getattr(self.study, one.name) for one in fields(Study)}
        first = self.base.first_run + (1 + FRESH) * self.base.runs + runs.start
        grids = tuple(map(as_grid, settings))
        return Study(**plain | {"tasks": tasks, "grids": grids, "first_run": first, "runs": len(runs)})

    def round(self, case: str, settings: Iterable[Setting], runs: range) -> list[Study]:
        """Return the studies of settings on tuning runs: one study, or one per run if initial weights differ."""
        (task,) = self.cases[case]
        if not self.has_random_starts(case):
            return [self.part((task,), settings, runs)]
        starts = starts_of(task, (task.parameters["start_seed"] + run for run in runs))
        return [self.part((one,), settings, range(run, run + 1)) for one, run in zip(starts, runs, strict=True)]

    def keep(self, case: str, results: Sequence[Results], runs: range) -> None:
        """Keep the results of a round; errors of random initial weights are relative to the initial error."""
        tried = self.tried.setdefault(case, {})
        self.rounds.setdefault(case, []).extend(results)
        parts = []
        for one in results:
            (task,) = one.tasks.values()
            unit = initial_error(task) if self.has_random_starts(case) else 1.0
            parts.append(np.stack([one.errors(str(task), goal)[1] for goal in self.study.goals]) / unit)
        errors = np.concatenate(parts, axis=2)
        for place, setting in enumerate(results[0].study.settings()):
            empty = np.full((len(self.study.goals), self.study.runs), np.nan)
            tried.setdefault(key_of(setting), (setting, empty))[1][:, runs.start : runs.stop] = errors[:, place]

    def frames(self) -> "list[pd.DataFrame]":
        """Return tables of all settings that were tried; `runs` counts the tuning runs of each setting."""
        import pandas as pd

        found = []
        for case in self.cases:
            if self.has_random_starts(case):
                frames = [one.frame() for one in self.rounds[case]]
                found.append(pd.concat(frames).drop_duplicates(ignore_index=True))
            else:
                settings = [setting for setting, _ in self.tried[case].values()]
                (whole,) = self.round(case, settings, range(self.study.runs))
                found.append(Results(whole, self.results.path).frame())
        return found

    def among(self, case: str, line: Line, measure: str) -> list[Setting]:
        """Return the settings of a line that were tried on a case."""
        return [setting for setting, _ in self.tried[case].values() if line.has(setting)]

    def n_settings(self, among: list[Setting]) -> int:
        """Return the number of settings that a search tries: the same for every learner and measure."""
        return self.study.budget.coarse + self.study.budget.refined

    def read(self, case: str, measure: str, fresh: bool) -> ErrorTable:
        """Return settings and errors of a case; for tuning runs, only settings with all tuning runs."""
        if fresh:
            return super().read(case, measure, fresh)
        whole = [(setting, errors) for setting, errors in self.tried[case].values() if not np.isnan(errors).any()]
        place = self.study.goals.index(measure)
        return ErrorTable([setting for setting, _ in whole], np.stack([errors[place] for _, errors in whole]))

    def fresh_study(self, case: str, settings: list[Setting]) -> Study:
        """Return the study that runs selected settings on test runs."""
        if not self.has_random_starts(case):
            return super().fresh_study(case, settings)
        tests = range(max(1, FRESH * self.base.runs // len(JUDGED_STARTS)))
        found = self.part(starts_of(self.cases[case][0], JUDGED_STARTS), settings, tests)
        return replace(found, name=f"{self.study.name}-fresh", first_run=self.base.first_run + self.base.runs)


def key_of(setting: Setting) -> Any:
    """Return a key that identifies a setting."""
    return setting.rule.name, setting.rho_mode, *setting.values.values()


class Search(NamedTuple):
    """The search of one learner on one case for one measure."""

    evidence: SearchEvidence
    case: str
    goal: str
    steps: Generator[Request, Array, Found]


def search_all(evidence: Sequence[SearchEvidence], job: Job) -> None:
    """Run the searches of several studies, round by round, until each has spent its budget of updates.

    In each round, the settings that the searches request run as studies, whose units share their trajectories. The
    store keeps the results: a second call repeats the rounds, and runs only missing results.
    """
    begin = perf_counter()
    searches = [
        Search(one, case, goal, searching(space, one.study.budget_at_scale))
        for one in evidence
        for case in one.cases
        for space in one.study.spaces()
        for goal in one.study.goals
    ]
    wanted = [(search, next(search.steps)) for search in searches]
    while wanted:
        run_round(wanted, job)
        following = []
        for search, (settings, runs) in wanted:
            tried, goal = search.evidence.tried[search.case], search.evidence.study.goals.index(search.goal)
            errors = np.stack([tried[key_of(one)][1][goal, runs.start : runs.stop] for one in settings])
            with suppress(StopIteration):
                following.append((search, search.steps.send(errors)))
        wanted = following
    if searches:
        job.tell(f"{len(searches)} searches", [one.study for one in evidence], begin)


def run_round(wanted: Sequence[tuple[Search, Request]], job: Job) -> None:
    """Run the settings that searches request, each setting of a case once, and keep the errors in the evidence."""
    asked: dict[tuple[str, str, range], dict[Any, Setting]] = {}
    several = {search.evidence.study.name: search.evidence for search, _ in wanted}
    for search, (settings, runs) in wanted:
        place = search.evidence.study.name, search.case, runs
        asked.setdefault(place, {}).update((key_of(one), one) for one in settings)
    studies = {
        (name, case, runs): several[name].round(case, list(some.values()), runs)
        for (name, case, runs), some in asked.items()
    }
    found = iter(job.results([study for some in studies.values() for study in some]))
    for (name, case, runs), some in studies.items():
        several[name].keep(case, list(islice(found, len(some))), runs)
