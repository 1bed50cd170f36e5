"""A contest: every learner tuned on some runs of a problem and shown on others.

Settings are selected by their mean error on the tuning runs: the best of a learner, and its best for each λ, by the
error over the whole run and by the error at its end. Only these run on the shown runs, and every comparison rests on
shown runs alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.family.grids import TRACE_LENGTHS, WITH_DD, grids_of
from gradient_dd.experiments.family.problems import Problem, Scale
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.studies import Grid, Study, intervals
from gradient_dd.studies.results import Results, places, tuned
from gradient_dd.studies.sweep import run_all
from gradient_dd.studies.units import Progress

MEASURES = ("area", "last100")  # the mean over the whole run, and over its last 100 steps
OnProgress = Callable[[Progress], None]
Zetas = frozenset[float] | None  # the values of ζ that are allowed; None for all
Provider = Callable[[list[Study]], list[Results]]  # runs studies, or reads them


class Table(NamedTuple):
    """Settings, and by measure their errors (settings, runs)."""

    settings: list[Setting]
    errors: dict[str, Array]


@dataclass(eq=False)
class Contest:
    """The errors of learners on problems: of all settings on the tuning runs, of the selected ones on the shown runs.

    first   by problem, the mean error of the first weights
    """

    problems: tuple[Problem, ...]
    learners: tuple[str, ...]
    tuning: dict[str, Table] = field(default_factory=dict)
    shown: dict[str, Table] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)

    def choose(
        self, problem: str, learner: str, lam: float | None = None, measure: str = "area", zetas: Zetas = None
    ) -> Setting:
        """Return the setting of a learner, for one λ or tuned over λ, that is best on the tuning runs.

        With `zetas`, among settings with one of these alone.
        """
        settings, errors = self.tuning[problem]
        return settings[tuned(settings, errors[measure], lambda one: is_of(one, learner, lam, zetas))]

    def errors(
        self, problem: str, learner: str, lam: float | None = None, measure: str = "area", zetas: Zetas = None
    ) -> Array:
        """Return the errors of that setting on the shown runs, (runs,)."""
        settings, errors = self.shown[problem]
        return errors[measure][settings.index(self.choose(problem, learner, lam, measure, zetas))]

    def common_zetas(self, problem: str, dd: str, base: str) -> Zetas:
        """Return the values of ζ that two learners were both tried with; None where the second had no others."""
        with_dd, without = (
            {one.values["zeta"] for one in self.tuning[problem].settings if is_of(one, name) and "zeta" in one.values}
            for name in (dd, base)
        )
        return frozenset(with_dd & without) if without - with_dd else None

    def has(self, problem: str, learner: str, lam: float | None = None) -> bool:
        """Return whether a learner took part in a problem, with one λ if it is given."""
        return (
            problem in self.tuning
            and learner in self.learners
            and (lam is None or lam in self.lambdas(problem, learner))
        )

    def selected(self, problem: str) -> list[Setting]:
        """Return every setting that is to be shown, once: also the best with the values of ζ that the DD form has."""
        found: list[Setting] = []
        for learner in self.learners:
            for lam in (None, *self.lambdas(problem, learner)):
                for measure in MEASURES:
                    one = self.choose(problem, learner, lam, measure)
                    if one not in found:
                        found.append(one)
        for dd, base in WITH_DD.items():
            if {dd, base} <= set(self.learners) and (zetas := self.common_zetas(problem, dd, base)):
                for lam in (None, 0.0):
                    one = self.choose(problem, base, lam, zetas=zetas)
                    if one not in found:
                        found.append(one)
        return found

    def lambdas(self, problem: str, learner: str) -> list[float]:
        """Return the values of λ that a learner was tried with; none where it has no trace."""
        if not has_trace(learner):
            return []
        return sorted({trace_length(one) for one in self.tuning[problem].settings if one.rule.name == learner})

    def exploded(self, problem: str, learner: str) -> tuple[int, int]:
        """Return how many of a learner's settings exploded in some tuning run, and how many there are."""
        settings, errors = self.tuning[problem]
        gone = intervals.has_exploded(
            errors["area"][places(settings, lambda one: is_of(one, learner))], self.first[problem]
        )
        return int(gone.any(axis=1).sum()), len(gone)

    def favourite(self, problem: str) -> str:
        """Return the learner whose best setting has the lowest mean on the tuning runs."""
        settings, errors = self.tuning[problem]
        return settings[intervals.select(errors["area"])].rule.name


def trace_length(setting: Setting) -> float:
    """Return λ of a setting; 0 where it has no trace."""
    return next((setting.values[name] for name in TRACE_LENGTHS if name in setting.values), 0.0)


def has_trace(learner: str) -> bool:
    """Return whether a learner has a λ."""
    return any(parameter.name in TRACE_LENGTHS for parameter in LEARNERS[learner].parameters)


def is_of(setting: Setting, learner: str, lam: float | None = None, zetas: Zetas = None) -> bool:
    """Return whether a setting is of a learner, and of one λ and some ζ if they are given."""
    return (
        setting.rule.name == learner
        and (lam is None or trace_length(setting) == lam)
        and (zetas is None or setting.values["zeta"] in zetas)
    )


def hold(problems: Sequence[Problem], learners: Sequence[str], scale: Scale, provide: Provider) -> Contest:
    """Get all settings on the tuning runs from `provide`, then the selected ones on the shown runs."""
    contest = Contest(tuple(problems), tuple(learners) or tuple(LEARNERS))

    def results(studies: dict[str, list[Study]]) -> dict[str, Table]:
        found = iter(provide([study for several in studies.values() for study in several]))
        return {name: table_of([next(found) for _ in several]) for name, several in studies.items()}

    contest.tuning = results(
        {
            one.name: one.studies(grids_of(contest.learners, one.example()), scale.tuning(one), scale.steps)
            for one in problems
        }
    )
    contest.first = {one.name: first_error(one, scale.tuning(one)) for one in problems}
    contest.shown = results(
        {
            one.name: one.studies(
                tuple(map(as_grid, contest.selected(one.name))), scale.shown(one), scale.steps, "-fresh"
            )
            for one in problems
        }
    )
    return contest


def run_missing(
    studies: list[Study], store: Path, *, on_progress: OnProgress = lambda state: None, **how: Any
) -> list[Results]:
    """Run what a store lacks of studies, with those of one name as one in the progress; `how` goes to `run_all`."""
    return run_all(studies, store, on_progress=Gathered(studies, on_progress), **how)


def as_grid(setting: Setting) -> Grid:
    """Return a grid of one setting."""
    return Grid(setting.rule, tuple((name, (value,)) for name, value in setting.values.items()), setting.rho_mode)


def table_of(results: list[Results]) -> Table:
    """Return the errors of a problem: runs of several studies side by side, tasks of one study averaged."""
    settings = list(results[0].study.settings())
    errors = {
        measure: np.concatenate(
            [np.mean([one.errors(name, measure)[1] for name in one.tasks], axis=0) for one in results], axis=1
        )
        for measure in MEASURES
    }
    return Table(settings, errors)


def first_error(problem: Problem, runs: range) -> float:
    """Return the mean error of the first weights over the tasks of some runs."""
    tasks = [one.build() for run in (runs if problem.drawn else runs[:1]) for one in problem.tasks_of(run)]
    return float(np.mean([one.rmsve(one.initial_weights) for one in tasks]))


class Gathered:
    """Passes progress on, with all studies of one name as one: a problem that is drawn anew has one for each run."""

    def __init__(self, studies: Sequence[Study], on_progress: OnProgress) -> None:
        self.on_progress = on_progress
        self.states: dict[str, dict[int, Progress]] = {}
        self.whole: dict[str, Progress] = {}
        for study in studies:
            whole = self.whole.setdefault(study.name, Progress(study, {study.name: 0}, {study.name: 0}))
            whole.total[study.name] += study.n_settings * study.runs * len(study.tasks)

    def __call__(self, state: Progress) -> None:
        name = state.study.name
        parts = self.states.setdefault(name, {})
        parts[id(state)] = state
        whole = self.whole[name]
        whole.done[name] = sum(part.cells[0] for part in parts.values())
        for field_name in ("kept", "updates", "diverged", "core_seconds"):
            setattr(whole, field_name, sum(getattr(part, field_name) for part in parts.values()))
        self.on_progress(whole)
