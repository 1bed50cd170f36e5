"""Tuning: settings are selected on some runs and shown on others, so that no winner is flattered.

`StudyEvidence` holds the errors of each case: of all settings on the runs to tune on, of the selected settings on test
runs. A *case* is what one comparison is about: a task, or several tasks whose errors are averaged.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.schedules import constant
from gradient_dd.learners import Setting
from gradient_dd.report.figure import Line
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results, edge, tuned
from gradient_dd.studies.study import task_size
from gradient_dd.tasks import Task, build

if TYPE_CHECKING:
    import pandas as pd

EARLY = 20  # "early" is the mean over the first twentieth of a run
TENTH = 0.1  # of the initial error; "episodes" is how many a run needs to get below it, infinite if it never does
FRESH = 2  # test runs for each run to select on
FROM_CURVES = ("early", "episodes")  # measures of a run that are not kept as such
JUDGED_STARTS = range(11, 31)  # seeds of the initial weights that settings are judged on; they are selected on others

Wanted = Callable[[Setting], bool]


class ErrorTable(NamedTuple):
    """Settings and their errors, (settings, units); a unit is a run, or random initial weights."""

    settings: list[Setting]
    errors: Array


@dataclass(frozen=True, eq=False)
class TunedSetting:
    """The setting that a line selects on a case: out of how many, and whether it lies at an edge of the grid.

    `held` are the parameters that the line does not choose.
    """

    evidence: "StudyEvidence"
    case: str
    label: str
    held: tuple[tuple[str, float], ...]
    setting: Setting
    settings: int
    edge: str

    def errors(self, measure: str) -> Array:
        """Return the errors of the setting on test runs, (units,)."""
        return self.evidence.errors(self.case, self.setting, measure)

    def selection_mean(self, measure: str) -> float:
        """Return the mean error on the runs that the setting was selected on; curves are not looked at there."""
        if measure in FROM_CURVES:
            return float("nan")
        return float(self.evidence.errors(self.case, self.setting, measure, fresh=False).mean())

    def facts(self, measure: str) -> dict[str, Any]:
        """Return what a comparison tells of the learner."""
        return {
            "label": self.label,
            "learner": self.setting.rule.name,
            "study": self.evidence.study.name,
            "held": dict(self.held),
            "values": dict(self.setting.values),
            "rho_mode": self.setting.rho_mode,
            "settings": self.settings,
            "edge": self.edge,
            "mean": float(self.errors(measure).mean()),
            "selection_mean": self.selection_mean(measure),
        }


class Used(NamedTuple):
    """Errors that a judgement rests on: of a setting on a case, by measure, each (units,)."""

    case: str
    fresh: bool
    setting: Setting
    errors: dict[str, Array]


@dataclass(eq=False)
class StudyEvidence:
    """Results of a study, a case for each of its tasks, and those of the selected settings on test runs by case.

    There are twice as many test runs as runs to select on: 100 at the paper's scale. That number is fixed before any
    result is known. Where a study has a task with many random initial weights, all of them are one case; its errors are
    those of each start, averaged over runs and divided by the initial error, and the fresh ones are of other starts.

    A companion that runs as long as its study, `beside`, is judged on the test runs of that study.

    Tables of errors are read once, by case and measure. `used` and `times` keep what judgements rest on.
    """

    results: Results
    fresh: dict[str, Results] = field(default_factory=dict)
    beside: Study | None = None
    tables: dict[tuple[bool, str, str], ErrorTable] = field(default_factory=dict, repr=False)
    chosen_before: dict[tuple[str, Line, str], TunedSetting] = field(default_factory=dict, repr=False)
    used: dict[tuple[bool, str, str], Used] = field(default_factory=dict, repr=False)
    times: dict[tuple[str, str], Array] = field(default_factory=dict, repr=False)

    @property
    def study(self) -> Study:
        """The study."""
        return self.results.study

    @cached_property
    def cases(self) -> dict[str, list[Task]]:
        """The tasks by case: those that differ only in their random initial weights are one."""
        found: dict[str, list[Task]] = {}
        for one in self.results.tasks.values():
            found.setdefault(case_name(one), []).append(one)
        return found

    def size(self, case: str) -> int:
        """Return the number a case is known by: m, p or N."""
        return task_size(self.cases[case][0])

    def place(self, case: str) -> dict[str, Any]:
        """Return what a comparison tells of where it is made."""
        return {"study": self.study.name, "task": case, "size": self.size(case)}

    def variant(self, case: str) -> str:
        """Return what differs from the plain task, in words; empty where nothing does."""
        study, features = self.study, self.cases[case][0].parameters.get("features", "tabular")
        parts = [] if features == "tabular" else [f"{features} features"]
        parts += ["constant steps"] if study.episodes and study.schedule is constant else []
        return ", ".join([*parts, *(["independent draws"] if study.sampling == "iid" else [])])

    def has_random_starts(self, case: str) -> bool:
        """Return whether a case has random initial weights."""
        return "start_seed" in self.cases[case][0].parameters

    def first_error(self, case: str) -> float:
        """Return the error of the initial weights; 1 where errors are relative to it."""
        (first, *_) = self.cases[case]
        return 1.0 if self.has_random_starts(case) else first.rmsve(first.initial_weights)

    def fresh_study(self, case: str, settings: list[Setting]) -> Study:
        """Return the study that runs selected settings afresh."""
        tasks = self.cases[case]
        if not self.has_random_starts(case):
            base = self.beside or self.study
            fresh = base.fresh(FRESH * base.runs, settings, (tasks[0],))
            return replace(fresh, name=f"{self.study.name}-fresh")
        others = tuple(build(tasks[0].name, **dict(tasks[0].parameters) | {"start_seed": k}) for k in JUDGED_STARTS)
        return self.study.fresh(self.study.runs, settings, others)

    def frames(self) -> "list[pd.DataFrame]":
        """Return tables of all settings on the runs to tune on, one row for each task and setting."""
        return [self.results.frame()]

    def read(self, case: str, measure: str, fresh: bool) -> ErrorTable:
        """Return settings and errors of a case."""
        results = self.fresh[case] if fresh else self.results
        tasks = list(results.tasks.values()) if fresh else self.cases[case]
        parts = [task_errors(results, one, measure) for one in tasks]
        if not self.has_random_starts(case):
            return parts[0]
        errors = np.stack([part.errors.mean(axis=1) for part in parts], axis=1)
        return ErrorTable(parts[0].settings, errors / np.array([one.rmsve(one.initial_weights) for one in tasks]))

    def table(self, case: str, measure: str, fresh: bool = False) -> ErrorTable:
        """Return what `read` returns, read once."""
        key = fresh, case, measure
        if key not in self.tables:
            self.tables[key] = self.read(case, measure, fresh)
        return self.tables[key]

    def among(self, case: str, wanted: Wanted, measure: str) -> list[Setting]:
        """Return the wanted settings of a case."""
        return [one for one in self.table(case, measure).settings if wanted(one)]

    def errors(self, case: str, setting: Setting, measure: str, fresh: bool = True) -> Array:
        """Return the errors of a setting, (units,); what is asked for is kept in `used`."""
        settings, errors = self.table(case, measure, fresh)
        found: Array = errors[settings.index(setting)]
        key = fresh, case, repr((setting.rule.name, setting.rho_mode, dict(setting.values)))
        self.used.setdefault(key, Used(case, fresh, setting, {})).errors[measure] = found
        return found

    def choose(self, case: str, line: Line, tuned_for: str = "last100") -> TunedSetting:
        """Return what a line selects: the setting with the smallest mean error on the study's runs.

        Several claims ask for the same; it is selected once.
        """
        key = case, line, tuned_for
        if key not in self.chosen_before:
            settings, errors = self.table(case, tuned_for)
            best, among = settings[tuned(settings, errors, line.has)], self.among(case, line.has, tuned_for)
            facts = self.n_settings(among), edge(best, among)
            self.chosen_before[key] = TunedSetting(self, case, line.label, line.held, best, *facts)
        return self.chosen_before[key]

    def n_settings(self, among: list[Setting]) -> int:
        """Return how many settings a line selects from."""
        return len(among)


def case_name(task: Task) -> str:
    """Return the name of a task without its random initial weights."""
    parameters = {name: value for name, value in task.parameters.items() if name != "start_seed"}
    return f"{task.name}({', '.join(f'{name}={value}' for name, value in parameters.items())})"


def task_errors(results: Results, task: Task, measure: str) -> ErrorTable:
    """Return settings and errors (settings, runs) of a task; those of FROM_CURVES are read from learning curves."""
    if measure not in FROM_CURVES:
        return ErrorTable(*results.errors(str(task), measure))
    settings = list(results.study.settings())
    middle, curves = results.curves(str(task), settings)
    if measure == "early":
        return ErrorTable(settings, curves[:, :, : max(1, curves.shape[2] // EARLY)].mean(axis=2))
    first = task.rmsve(task.initial_weights)
    return ErrorTable(settings, first_below(curves, middle, first, TENTH * first))


def first_below(curves: Array, middles: Array, first: float, bound: float) -> Array:
    """Return when a curve first gets below a bound, infinite if never; curves: (settings, runs, bins).

    It is taken as straight between the middles of its bins, and from the initial error at 0 to the first of them.
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
