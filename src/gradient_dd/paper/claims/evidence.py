"""Evidence: the results a claim is judged on, and how its verdict is told.

A claim is judged on fresh runs of the settings that were selected on the study's own runs, so that no winner is
flattered; the mean on the selection runs stands beside in brackets. Criteria are stated with each claim. None is
forced: where it fails, the numbers say by how much, and whether it would hold under another reading.

    lower       a difference whose 95 % paired-bootstrap interval lies below zero
    as good     a ratio of means of at most 1.25
    insensitive largest over smallest tuned error, over the values of a parameter, of at most 2
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.learners import Setting
from gradient_dd.paper.figures import COMPARED
from gradient_dd.report.figure import Line
from gradient_dd.studies import statistics
from gradient_dd.studies.results import Results
from gradient_dd.studies.selection import places, tuned

AS_GOOD = 1.25
INSENSITIVE = 2.0
ZERO = 1e-3  # of the first error: what counts as reaching zero

TD, TDRC, GTD2, GTD2_ONE, TDC, TDC_ONE, DD = COMPARED


@dataclass(frozen=True)
class Verdict:
    """A claim with what we found."""

    claim: str
    where: str
    statement: str
    criterion: str
    verdict: str
    numbers: list[str]
    otherwise: list[str]
    reading: str
    study: str


@dataclass(eq=False)
class Evidence:
    """Results of a study, and for each of its tasks those of the selected settings on fresh runs."""

    results: Results
    fresh: dict[str, Results]
    _read: dict[tuple[bool, str, str], tuple[list[Setting], Array]] = field(default_factory=dict, repr=False)

    @property
    def tasks(self) -> list[str]:
        """The tasks of the study."""
        return list(self.results.tasks)

    def table(self, task: str, measure: str, fresh: bool = False) -> tuple[list[Setting], Array]:
        """Return settings and their errors; each table is read once."""
        key = fresh, task, measure
        if key not in self._read:
            self._read[key] = (self.fresh[task] if fresh else self.results).errors(task, measure)
        return self._read[key]

    def of_line(self, task: str, line: Line, measure: str = "last100") -> tuple[list[Setting], Array]:
        """Return the settings of a line and their errors on the study's runs."""
        settings, errors = self.table(task, measure)
        ours = places(settings, line.has)
        return [settings[place] for place in ours], errors[ours]

    def selected(self, task: str, line: Line, measure: str = "last100") -> Setting:
        """Return the setting of a line that has the smallest mean error on the study's runs."""
        settings, errors = self.table(task, measure)
        return settings[tuned(settings, errors, line.has)]

    def errors(self, task: str, line: Line, measure: str = "last100") -> Array:
        """Return the errors (runs,) of a line's selected setting, on fresh runs."""
        settings, errors = self.table(task, measure, fresh=True)
        return errors[settings.index(self.selected(task, line, measure))]

    def early(self, task: str, line: Line, share: int) -> float:
        """Return the mean error over the first 1/share of the run, of a line's selected setting on fresh runs."""
        curve = self.fresh[task].curves(task, [self.selected(task, line)])[0]
        return float(curve[:, : max(1, curve.shape[1] // share)].mean())

    def told(self, task: str, line: Line, measure: str = "last100") -> str:
        """Return a line's mean on fresh runs, and on those it was selected on."""
        settings, errors = self.table(task, measure)
        before = errors[tuned(settings, errors, line.has)].mean()
        return f"{line.label} {self.errors(task, line, measure).mean():.4g} ({before:.4g})"

    def lower(self, task: str, left: Line, right: Line, measure: str = "last100") -> tuple[bool, str]:
        """Return whether `left` is lower than `right`, and the numbers."""
        interval = statistics.paired_bootstrap(self.errors(task, left, measure), self.errors(task, right, measure))
        text = f"{short(task)}: {self.told(task, left, measure)}, {self.told(task, right, measure)}, "
        return bool(interval.high < 0), text + told_interval(interval)

    def as_good(self, task: str, left: Line, right: Line, measure: str = "last100") -> tuple[bool, str]:
        """Return whether `left` is at most 1.25 × `right`, and the numbers."""
        ratio = self.ratio(task, left, right, measure)
        text = f"{short(task)}: {self.told(task, left, measure)}, {self.told(task, right, measure)}, ratio {ratio:.2f}"
        return bool(ratio <= AS_GOOD), text

    def ratio(self, task: str, left: Line, right: Line, measure: str = "last100") -> float:
        """Return mean(left) / mean(right)."""
        return float(self.errors(task, left, measure).mean() / self.errors(task, right, measure).mean())


Judged = list[tuple[bool, str]]
Test = Callable[..., Judged]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper: where it stands, in our words, the studies it rests on, and the test that judges it.

    `others` are tests of the same statement under other readings, told beside a verdict that is not "holds".
    """

    name: str
    where: str
    statement: str
    criterion: str
    studies: tuple[str, ...]
    test: Test
    reading: str = "default"
    others: tuple[tuple[str, Test], ...] = ()

    def judge(self, evidence: dict[str, Evidence]) -> Verdict:
        """Return the verdict; the test is given the evidence of each study."""
        given = [evidence[study] for study in self.studies]
        judged = self.test(*given)
        verdict = in_words(judged)
        numbers = [f"{'✓' if holds else '✗'} {text}" for holds, text in judged]
        otherwise = [] if verdict == "holds" else [f"{how}: {tallied(test(*given))}" for how, test in self.others]
        study = ", ".join(self.studies)
        return Verdict(
            self.name, self.where, self.statement, self.criterion, verdict, numbers, otherwise, self.reading, study
        )


def in_words(judged: Judged) -> str:
    """Return the verdict of several comparisons."""
    held = [holds for holds, _ in judged]
    if not held:
        return "not judged"
    return "holds" if all(held) else "holds in part" if any(held) else "does not hold"


def tallied(judged: Judged) -> str:
    """Return a verdict with the comparisons that made it."""
    return f"{in_words(judged)} ({sum(holds for holds, _ in judged)} of {len(judged)})"


def told_interval(interval: statistics.Interval) -> str:
    """Return a difference as it stands in a sentence."""
    return f"difference {interval.difference:.2g} [{interval.low:.2g}, {interval.high:.2g}]"


def short(task: str) -> str:
    """Return a task in a word, e.g. "20" of "random_walk(n_states=20)"."""
    return task.partition("(")[2].rstrip(")").replace("n_states=", "").replace("n_features=", "p=")


def mean(errors: np.ndarray) -> str:
    """Return a mean as it stands in a sentence."""
    return f"{errors.mean():.4g}"
