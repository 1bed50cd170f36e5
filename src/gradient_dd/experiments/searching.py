"""Tuning by search: every learner on every case spends the same budget of updates, and all searches go on together.

In each round the settings that the searches ask for run as studies, whose units share their trajectories. The store
keeps them like those of any study: a second call repeats the rounds and runs only what is missing.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.experiment import Job
from gradient_dd.experiments.tuning import FRESH, JUDGED_STARTS, ErrorTable, StudyEvidence, Wanted
from gradient_dd.learners import Setting
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results
from gradient_dd.studies.search import Found, Request, SearchStudy, searching
from gradient_dd.studies.study import as_grid
from gradient_dd.tasks import Task, build

if TYPE_CHECKING:
    import pandas as pd


class TriedSetting(NamedTuple):
    """A setting of a case and its errors, (measures, runs); nan on tuning runs that it does not have."""

    setting: Setting
    errors: Array


def key_of(setting: Setting) -> Any:
    """Return what identifies a setting."""
    return setting.rule.name, setting.rho_mode, *setting.values.values()


@dataclass(eq=False)
class SearchEvidence(StudyEvidence):
    """Results of the searches of a study, by case; `beside` is the study whose test runs the selected settings get.

    Tuning runs are numbered after the test runs of `beside`. Where a case has random initial weights, every tuning run
    has weights of its own; the test runs have others. Settings are selected among those that have all tuning runs.
    """

    tried: dict[str, dict[Any, TriedSetting]] = field(default_factory=dict, repr=False)
    rounds: dict[str, list[Results]] = field(default_factory=dict, repr=False)

    @property
    def study(self) -> SearchStudy:
        """The study."""
        study = self.results.study
        assert isinstance(study, SearchStudy)
        return study

    @property
    def base(self) -> Study:
        """The study whose test runs are used."""
        return self.beside or self.study

    @property
    def first_run(self) -> int:
        """The number of the first tuning run."""
        return self.base.first_run + (1 + FRESH) * self.base.runs

    def task_of_run(self, case: str, run: int) -> Task:
        """Return the task of a tuning run, counted from 0."""
        (one,) = self.cases[case]
        if not self.has_random_starts(case):
            return one
        seed = one.parameters["start_seed"] + run
        return build(one.name, **dict(one.parameters) | {"start_seed": seed})

    def part(self, tasks: tuple[Task, ...], settings: Iterable[Setting], runs: range) -> Study:
        """Return some settings on some tuning runs as a plain study."""
        plain = {one.name: getattr(self.study, one.name) for one in fields(Study)}
        first = self.first_run + runs.start
        grids = tuple(map(as_grid, settings))
        return Study(**plain | {"tasks": tasks, "grids": grids, "first_run": first, "runs": len(runs)})

    def round(self, case: str, settings: Sequence[Setting], runs: range) -> list[Study]:
        """Return the studies of settings on tuning runs: one, or one for each run with initial weights of its own."""
        if not self.has_random_starts(case):
            return [self.part((self.task_of_run(case, 0),), settings, runs)]
        return [self.part((self.task_of_run(case, run),), settings, range(run, run + 1)) for run in runs]

    def keep(self, case: str, results: Sequence[Results], runs: range) -> None:
        """Keep the results of a round; errors of random initial weights are relative to the first one."""
        tried = self.tried.setdefault(case, {})
        self.rounds.setdefault(case, []).extend(results)
        parts = []
        for one in results:
            (task,) = one.tasks.values()
            unit = task.rmsve(task.initial_weights) if self.has_random_starts(case) else 1.0
            parts.append(np.stack([one.errors(str(task), goal)[1] for goal in self.study.goals]) / unit)
        errors = np.concatenate(parts, axis=2)
        for place, setting in enumerate(results[0].study.settings()):
            empty = np.full((len(self.study.goals), self.study.runs), np.nan)
            kept = tried.setdefault(key_of(setting), TriedSetting(setting, empty))
            kept.errors[:, runs.start : runs.stop] = errors[:, place]

    def frames(self) -> "list[pd.DataFrame]":
        """Return tables of all settings that were tried; `runs` says how many tuning runs each has."""
        import pandas as pd

        found = []
        for case in self.cases:
            if self.has_random_starts(case):
                frames = [one.frame() for one in self.rounds[case]]
                found.append(pd.concat(frames).drop_duplicates(ignore_index=True))
            else:
                settings = [one.setting for one in self.tried[case].values()]
                whole = self.part((self.task_of_run(case, 0),), settings, range(self.study.runs))
                found.append(Results(whole, self.results.path).frame())
        return found

    def among(self, case: str, wanted: Wanted, measure: str) -> list[Setting]:
        """Return the wanted settings that were tried on a case."""
        return [one.setting for one in self.tried[case].values() if wanted(one.setting)]

    def n_settings(self, among: list[Setting]) -> int:
        """Return how many settings a search tries: the same number for every learner and measure."""
        return self.study.budget.coarse + self.study.budget.refined

    def read(self, case: str, measure: str, fresh: bool) -> ErrorTable:
        """Return settings and errors of a case; of the tuning runs, the settings that have all of them."""
        if fresh:
            return super().read(case, measure, fresh)
        whole = [one for one in self.tried[case].values() if not np.isnan(one.errors).any()]
        place = self.study.goals.index(measure)
        return ErrorTable([one.setting for one in whole], np.stack([one.errors[place] for one in whole]))

    def fresh_study(self, case: str, settings: list[Setting]) -> Study:
        """Return the study that runs selected settings on the test runs."""
        if not self.has_random_starts(case):
            return super().fresh_study(case, settings)
        (one,) = self.cases[case]
        others = tuple(build(one.name, **dict(one.parameters) | {"start_seed": seed}) for seed in JUDGED_STARTS)
        tests = range(max(1, FRESH * self.base.runs // len(others)))
        first = self.base.first_run + self.base.runs
        return replace(self.part(others, settings, tests), name=f"{self.study.name}-fresh", first_run=first)


class Search(NamedTuple):
    """The search of one learner on one case for one measure."""

    evidence: SearchEvidence
    case: str
    goal: str
    steps: Generator[Request, Array, Found]


def search_all(evidence: Sequence[SearchEvidence], job: Job) -> None:
    """Run the searches of several studies, round by round, until each has spent its budget."""
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
        following = []
        for search, errors in run_round(wanted, job):
            with suppress(StopIteration):
                following.append((search, search.steps.send(errors)))
        wanted = following
    if searches:
        job.tell(f"{len(searches)} searches", [one.study for one in evidence], begin)


def run_round(wanted: Sequence[tuple[Search, Request]], job: Job) -> Iterator[tuple[Search, Array]]:
    """Run what searches ask for, each setting of a case once, and yield the errors for each search."""
    several = {search.evidence.study.name: search.evidence for search, _ in wanted}
    asked: dict[tuple[str, str, range], dict[Any, Setting]] = {}
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
    for search, (settings, runs) in wanted:
        tried, goal = search.evidence.tried[search.case], search.evidence.study.goals.index(search.goal)
        rows = [tried[key_of(one)].errors[goal, runs.start : runs.stop] for one in settings]
        yield search, np.stack(rows)
