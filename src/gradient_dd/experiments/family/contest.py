"""A contest: every learner tuned on some runs of a problem and shown on others.

Settings are selected by their mean error on the tuning runs: the best of a learner, and its best for each λ, by the
error over the whole run and by the error at its end. Only these run on the shown runs, and every comparison rests on
shown runs alone.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.experiment import Job
from gradient_dd.experiments.family.problems import TRACE_LENGTHS, WITH_DD, Problem, grids_of
from gradient_dd.experiments.family.trials import Trial
from gradient_dd.experiments.tuning import ErrorTable, Evidence, as_grid
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.studies import Study, intervals
from gradient_dd.studies.results import Results

MEASURES = ("area", "last100")  # the mean over the whole run, and over its last 100 steps


class Entrant(NamedTuple):
    """A learner for one λ, or tuned over λ where there is none; with `zetas`, with one of these values of ζ alone."""

    learner: str
    lam: float | None = None
    zetas: frozenset[float] | None = None

    def has(self, setting: Setting) -> bool:
        """Return whether a setting is one that the learner may choose."""
        return (
            setting.rule.name == self.learner
            and (self.lam is None or trace_length(setting) == self.lam)
            and (self.zetas is None or setting.values["zeta"] in self.zetas)
        )

    @property
    def label(self) -> str:
        """What the learner is called, with its λ where that is not tuned."""
        return LEARNERS[self.learner].label + ("" if self.lam is None else f", λ = {self.lam:g}")


class Contest(Evidence):
    """The errors of learners on problems: of all settings on the tuning runs, of the selected ones on the shown runs.

    first    by problem, the mean error of the first weights
    trials   what was measured beside the studies
    """

    def __init__(self, problems: Sequence[Problem], learners: Sequence[str], first: Mapping[str, float]) -> None:
        super().__init__()
        self.problems, self.learners, self.first = tuple(problems), tuple(learners), first
        self.results: dict[bool, dict[str, list[Results]]] = {}  # whether of fresh runs, then by problem
        self.trials: list[Trial] = []

    def read(self, case: str, measure: str, fresh: bool) -> ErrorTable:
        """Return the errors of a problem: runs of several studies side by side, tasks of one study averaged."""
        results = self.results[fresh][case]
        errors = [np.mean([one.errors(name, measure)[1] for name in one.tasks], axis=0) for one in results]
        return ErrorTable(list(results[0].study.settings()), np.concatenate(errors, axis=1))

    def choose(self, problem: str, entrant: Entrant, measure: str = "area") -> Setting:
        """Return the setting of a learner that is best on the tuning runs."""
        return self.best(problem, entrant.has, measure)

    def shown(self, problem: str, entrant: Entrant, measure: str = "area") -> Array:
        """Return the errors of that setting on the shown runs, (runs,)."""
        return self.errors(problem, self.choose(problem, entrant, measure), measure)

    def settings(self, problem: str, learner: str) -> list[Setting]:
        """Return the settings that a learner was tried with."""
        return self.among(problem, Entrant(learner).has, "area")

    def common_zetas(self, problem: str, dd: str, base: str) -> frozenset[float] | None:
        """Return the values of ζ that two learners were both tried with; None where the second had no others."""
        with_dd, without = (
            {one.values["zeta"] for one in self.settings(problem, name) if "zeta" in one.values} for name in (dd, base)
        )
        return frozenset(with_dd & without) if without - with_dd else None

    def has(self, problem: str, entrant: Entrant) -> bool:
        """Return whether a learner took part in a problem, with its λ if it is given."""
        learner, lam, _ = entrant
        takes_part = learner in self.learners and problem in [one.name for one in self.problems]
        return takes_part and (lam is None or lam in self.lambdas(problem, learner))

    def selected(self, problem: str) -> list[Setting]:
        """Return every setting that is to be shown, once: also the best with the values of ζ that the DD form has."""
        found: list[Setting] = []
        for learner in self.learners:
            for lam in (None, *self.lambdas(problem, learner)):
                found += [self.choose(problem, Entrant(learner, lam), measure) for measure in MEASURES]
        for dd, base in WITH_DD.items():
            if {dd, base} <= set(self.learners) and (zetas := self.common_zetas(problem, dd, base)):
                found += [self.choose(problem, Entrant(base, lam, zetas)) for lam in (None, 0.0)]
        return [one for place, one in enumerate(found) if one not in found[:place]]

    def lambdas(self, problem: str, learner: str) -> list[float]:
        """Return the values of λ that a learner was tried with; none where it has no trace."""
        if not any(parameter.name in TRACE_LENGTHS for parameter in LEARNERS[learner].parameters):
            return []
        return sorted({trace_length(one) for one in self.settings(problem, learner)})

    def exploded(self, problem: str, learner: str) -> tuple[int, int]:
        """Return how many of a learner's settings exploded in some tuning run, and how many there are."""
        settings, errors = self.table(problem, "area")
        ours = [place for place, one in enumerate(settings) if one.rule.name == learner]
        gone = intervals.has_exploded(errors[ours], self.first[problem])
        return int(gone.any(axis=1).sum()), len(gone)

    def favourite(self, problem: str) -> str:
        """Return the learner whose best setting has the lowest mean on the tuning runs."""
        return self.best(problem, lambda setting: True, "area").rule.name


def trace_length(setting: Setting) -> float:
    """Return λ of a setting; 0 where it has no trace."""
    return next((setting.values[name] for name in TRACE_LENGTHS if name in setting.values), 0.0)


def hold_contest(job: Job, problems: Sequence[Problem], learners: Sequence[str]) -> Contest:
    """Get all settings on the tuning runs, then the selected ones on the shown runs."""
    first = {one.name: first_error(one, one.runs_to_tune(job.scale)) for one in problems}
    contest = Contest(problems, learners, first)

    def results(studies: dict[str, list[Study]], what: str) -> dict[str, list[Results]]:
        found = iter(job.results([study for several in studies.values() for study in several], what))
        return {name: [next(found) for _ in several] for name, several in studies.items()}

    tuning, shown = {}, {}
    for one in problems:
        grids = grids_of(learners, one.example())
        tuning[one.name] = one.studies(grids, one.runs_to_tune(job.scale), job.scale.steps)
    contest.results[False] = results(tuning, f"{len(learners)} learners on {len(problems)} problems")
    for one in problems:
        grids = tuple(map(as_grid, contest.selected(one.name)))
        shown[one.name] = one.studies(grids, one.runs_to_show(job.scale), job.scale.steps, "-fresh")
    contest.results[True] = results(shown, "The selected settings on fresh runs")
    return contest


def first_error(problem: Problem, runs: range) -> float:
    """Return the mean error of the first weights over the tasks of some runs."""
    tasks = [one.build() for run in (runs if problem.drawn else runs[:1]) for one in problem.tasks_of(run)]
    return float(np.mean([one.rmsve(one.initial_weights) for one in tasks]))
