"""Evidence: the results of a study that claims are judged on, and the settings they select.

A setting is selected on the study's own runs and judged on fresh ones, so that no winner is flattered. There are twice
as many fresh runs as runs to select on: 100 at the paper's scale. That number is fixed before anything is looked at.

A *case* is what one comparison is about: a task, with its errors run by run. Where a study has Baird's counterexample
with many random first weights, all of them are one case; its errors are those of each start, averaged over runs and
divided by the first error, and the fresh ones are of other starts.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.paper.studies import JUDGED_STARTS
from gradient_dd.learners import Setting
from gradient_dd.report.figure import Line
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results, places, tuned
from gradient_dd.studies.study import task_size
from gradient_dd.tasks import Task, build

EARLY = 20  # "early" is the mean over the first twentieth of a run
FRESH = 2  # fresh runs for each run to select on


@dataclass(frozen=True, eq=False)
class Chosen:
    """The setting that a line selects on a case: out of how many, and whether it lies at an edge of the grid.

    `held` are the parameters that the line does not choose.
    """

    evidence: "Evidence"
    case: str
    label: str
    held: tuple[tuple[str, float], ...]
    setting: Setting
    settings: int
    edge: str

    def errors(self, measure: str) -> Array:
        """Return its errors on fresh runs, (units,)."""
        return self.evidence.errors(self.case, self.setting, measure)

    def selection_mean(self, measure: str) -> float:
        """Return its mean error on the runs it was selected on; there is none for the start of a run."""
        if measure == "early":
            return float("nan")
        return float(self.evidence.errors(self.case, self.setting, measure, fresh=False).mean())


class Used(NamedTuple):
    """Errors that a judgement rests on: of a setting on a case, by measure, each (units,)."""

    case: str
    fresh: bool
    setting: Setting
    errors: dict[str, Array]


@dataclass(eq=False)
class Evidence:
    """Results of a study, and for each of its cases those of the selected settings on fresh runs."""

    results: Results
    fresh: dict[str, Results] = field(default_factory=dict)
    read_before: dict[tuple[bool, str, str], tuple[list[Setting], Array]] = field(default_factory=dict, repr=False)
    chosen_before: dict[tuple[str, Line, str], Chosen] = field(default_factory=dict, repr=False)
    used: dict[tuple[bool, str, str], "Used"] = field(default_factory=dict, repr=False)
    times: dict[tuple[str, str], Array] = field(default_factory=dict, repr=False)

    @property
    def study(self) -> Study:
        """The study."""
        return self.results.study

    @cached_property
    def cases(self) -> dict[str, list[Task]]:
        """The tasks by case: those that differ only in their random first weights are one."""
        found: dict[str, list[Task]] = {}
        for one in self.results.tasks.values():
            found.setdefault(case_name(one), []).append(one)
        return found

    def size(self, case: str) -> int:
        """Return the number a case is known by: m, p or N."""
        return task_size(self.cases[case][0])

    def has_random_starts(self, case: str) -> bool:
        """Return whether a case has random first weights."""
        return "start_seed" in self.cases[case][0].parameters

    def first_error(self, case: str) -> float:
        """Return the error of the first weights; 1 where errors are relative to it."""
        (first, *_) = self.cases[case]
        return 1.0 if self.has_random_starts(case) else first.rmsve(first.initial_weights)

    def fresh_study(self, case: str, settings: list[Setting]) -> Study:
        """Return the study that runs selected settings afresh."""
        tasks = self.cases[case]
        if not self.has_random_starts(case):
            return self.study.fresh(FRESH * self.study.runs, settings, (tasks[0],))
        others = tuple(build(tasks[0].name, **dict(tasks[0].parameters) | {"start_seed": k}) for k in JUDGED_STARTS)
        return self.study.fresh(self.study.runs, settings, others)

    def table(self, case: str, measure: str, fresh: bool = False) -> tuple[list[Setting], Array]:
        """Return settings and their errors (settings, units); each table is read once."""
        key = fresh, case, measure
        if key not in self.read_before:
            results = self.fresh[case] if fresh else self.results
            tasks = list(results.tasks.values()) if fresh else self.cases[case]
            parts = [read(results, one, measure) for one in tasks]
            settings = parts[0][0]
            if self.has_random_starts(case):
                errors = np.stack([part[1].mean(axis=1) for part in parts], axis=1)
                errors = errors / np.array([one.rmsve(one.initial_weights) for one in tasks])
            else:
                errors = parts[0][1]
            self.read_before[key] = settings, errors
        return self.read_before[key]

    def errors(self, case: str, setting: Setting, measure: str, fresh: bool = True) -> Array:
        """Return the errors of a setting, (units,); what is asked for is kept in `used`, for the tables."""
        settings, errors = self.table(case, measure, fresh)
        found = errors[settings.index(setting)]
        key = fresh, case, repr((setting.rule.name, setting.rho_mode, dict(setting.values)))
        self.used.setdefault(key, Used(case, fresh, setting, {})).errors[measure] = found
        return found

    def of_line(self, case: str, line: Line, measure: str = "last100") -> list[Setting]:
        """Return the settings of a line."""
        settings, _ = self.table(case, measure)
        return [settings[place] for place in places(settings, line.has)]

    def choose(self, case: str, line: Line, tuned_for: str = "last100") -> Chosen:
        """Return what a line selects: the setting with the smallest mean error on the study's runs.

        Several claims ask for the same; it is selected once.
        """
        key = case, line, tuned_for
        if key not in self.chosen_before:
            settings, errors = self.table(case, tuned_for)
            best = settings[tuned(settings, errors, line.has)]
            among = self.of_line(case, line, tuned_for)
            self.chosen_before[key] = Chosen(self, case, line.label, line.held, best, len(among), edge(best, among))
        return self.chosen_before[key]


def case_name(task: Task) -> str:
    """Return the name of a task without its random first weights."""
    parameters = {name: value for name, value in task.parameters.items() if name != "start_seed"}
    return f"{task.name}({', '.join(f'{name}={value}' for name, value in parameters.items())})"


def read(results: Results, task: Task, measure: str) -> tuple[list[Setting], Array]:
    """Return settings and errors (settings, runs) of a task; "early" is read from the learning curves."""
    if measure != "early":
        return results.errors(str(task), measure)
    settings = list(results.study.settings())
    curves = results.curves(str(task), settings)
    return settings, curves[:, :, : max(1, curves.shape[2] // EARLY)].mean(axis=2)


def edge(best: Setting, among: Iterable[Setting]) -> str:
    """Return which parameters of the best setting are the lowest or highest of the grid, e.g. "highest alpha"."""
    found = []
    for name, value in best.values.items():
        values = {setting.values[name] for setting in among}
        if len(values) > 1 and value in (min(values), max(values)):
            found.append(f"{'highest' if value == max(values) else 'lowest'} {name}")
    return ", ".join(found)
