"""Evidence: the results a claim is judged on, and how its verdict is told.

A claim is judged on fresh runs of the settings that were selected on the study's own runs, so that no winner is
flattered; the numbers of the selection runs stand beside. Criteria are stated with each claim. None is forced: where it
fails, the numbers say by how much.

    lower       a difference whose 95 % paired-bootstrap interval lies below zero
    as good     a ratio of means of at most 1.25
    insensitive largest over smallest tuned error, over the values of a parameter, of at most 2
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradient_dd import summary
from gradient_dd.panels import matches
from gradient_dd.results import Results
from gradient_dd.studies.figures import COMPARED, ON_BAIRD, Line

AS_GOOD = 1.25
INSENSITIVE = 2.0
ZERO = 1e-3  # of the first error: what counts as reaching zero

LINES = {line.label: line for line in (*COMPARED, *ON_BAIRD)}
DD, TD, TDRC = "Gradient-DD", "TD", "TDRC"
GTD2, TDC = "GTD2, ζ tuned", "TDC, ζ tuned"


@dataclass(frozen=True)
class Verdict:
    """A claim with what we found."""

    claim: str
    where: str
    statement: str
    criterion: str
    verdict: str
    numbers: list[str]
    reading: str
    study: str


@dataclass(frozen=True)
class Evidence:
    """Results of a study, and of the selected settings on fresh runs (the same results where there are none)."""

    results: Results
    fresh: Results

    @property
    def tasks(self) -> list[str]:
        """The tasks of the study."""
        return list(self.results.tasks)

    def selected(self, task: str, line: Line, measure: str) -> Any:
        """Return the setting of a line that has the smallest mean error on the study's runs."""
        settings, errors = self.results.errors(task, measure)
        ours = [i for i, setting in enumerate(settings) if matches(line, setting)]
        return settings[ours[summary.select(errors[ours])]]

    def errors(self, task: str, label: str, measure: str = "last100", line: Line | None = None) -> np.ndarray:
        """Return the errors (runs,) of a line's selected setting, on fresh runs."""
        chosen = self.selected(task, line or LINES[label], measure)
        settings, errors = self.fresh.errors(task, measure)
        return errors[settings.index(chosen)]

    def lower(self, task: str, left: str, right: str, measure: str = "last100") -> tuple[bool, str]:
        """Return whether `left` is lower than `right`, and the numbers."""
        a, b = self.errors(task, left, measure), self.errors(task, right, measure)
        interval = summary.paired_bootstrap(a, b)
        text = f"{short(task)}: {left} {mean(a)}, {right} {mean(b)}, difference {interval.difference:.2g} "
        return bool(interval.high < 0), text + f"[{interval.low:.2g}, {interval.high:.2g}]"

    def as_good(self, task: str, left: str, right: str, measure: str = "last100") -> tuple[bool, str]:
        """Return whether `left` is at most 1.25 × `right`, and the numbers."""
        a, b = self.errors(task, left, measure), self.errors(task, right, measure)
        ratio = a.mean() / b.mean()
        return bool(ratio <= AS_GOOD), f"{short(task)}: {left} {mean(a)}, {right} {mean(b)}, ratio {ratio:.2f}"

    def ratio(self, task: str, left: str, right: str, measure: str = "last100") -> float:
        """Return mean(left) / mean(right)."""
        return float(self.errors(task, left, measure).mean() / self.errors(task, right, measure).mean())

    def tuned(self, task: str, lines: tuple[Line, ...], measure: str = "last100") -> list[float]:
        """Return the mean error of each line's selected setting."""
        return [float(self.errors(task, "", measure, line).mean()) for line in lines]


Judged = list[tuple[bool, str]]
Test = Callable[[Evidence], Judged]


@dataclass(frozen=True)
class Claim:
    """A statement of the paper: where it stands, in our words, the studies it rests on, and the test that judges it."""

    name: str
    where: str
    statement: str
    criterion: str
    studies: tuple[str, ...]
    test: Callable[..., Judged]
    reading: str = "default"

    def judge(self, evidence: dict[str, Evidence]) -> Verdict:
        """Return the verdict; the test is given the evidence of each study."""
        judged = self.test(*(evidence[study] for study in self.studies))
        held = [holds for holds, _ in judged]
        verdict = "holds" if all(held) else "holds in part" if any(held) else "does not hold"
        numbers = [f"{'✓' if holds else '✗'} {text}" for holds, text in judged]
        study = ", ".join(self.studies)
        return Verdict(self.name, self.where, self.statement, self.criterion, verdict, numbers, self.reading, study)


def short(task: str) -> str:
    """Return a task in a word, e.g. "20" of "random_walk(n_states=20)"."""
    return task.partition("(")[2].rstrip(")").replace("n_states=", "").replace("n_features=", "p=")


def mean(errors: np.ndarray) -> str:
    """Return a mean as it stands in a sentence."""
    return f"{errors.mean():.4g}"
