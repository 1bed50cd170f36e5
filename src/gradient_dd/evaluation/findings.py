"""The registry of findings, and the verdict that summarises them.

A finding is one small function with its subject, its gravest level and its meaning.

A function takes the evidence of its subject and yields (level, sentence), any number of times:

    data     `LogData` of log_data.py: columns, rows and episodes of the log
    ratios   `RatioFacts` of data_findings.py: the ratios of a policy on the log
    rows     `RowEvidence` of row_findings.py, for drift.py too: the order and the type of its rows
    policy   `PolicyEvidence` of policy_findings.py: the value of a policy

A sentence says what was found, why it matters, and what to do. The docstring says what the finding means and, after
"Remedy:", what to do. The tables of docs/explanation/when-to-trust.md are generated from the docstrings, and
tests/evaluation/planted_failures.py has a log for each finding that triggers it.
"""

from collections.abc import Callable, Iterator
from inspect import cleandoc
from typing import Any, NamedTuple

LEVELS = ("fine", "with care", "not")
ADVICE = {
    "trust": "Trust this value: no finding questions it.",
    "with care": "Use this value with care.",
    "not": "Do not trust this value.",
}

Found = Iterator[tuple[str, str]]
Finder = Callable[[Any], Found]


class Finding(NamedTuple):
    """The result of one check: its level, its subject, and a sentence."""

    level: str
    about: str
    sentence: str


class Check(NamedTuple):
    """A registered finding.

    subject  "data", "ratios", "rows" or "policy": the evidence that `find` takes
    about    topic; two findings may share one
    gravest  its gravest possible level of LEVELS
    meaning  the meaning, in words;  remedy  what to do, or ""
    """

    subject: str
    about: str
    gravest: str
    meaning: str
    remedy: str
    find: Finder


FINDINGS: dict[str, Check] = {}  # by function name


def finding(subject: str, about: str, gravest: str) -> Callable[[Finder], Finder]:
    """Return a decorator that registers a function as a finding."""

    def register(find: Finder) -> Finder:
        meaning, _, remedy = cleandoc(find.__doc__ or "").replace("\n", " ").partition(" Remedy: ")
        FINDINGS[find.__name__] = Check(subject, about, gravest, meaning.strip(), remedy.strip(), find)
        return find

    return register


def findings_of(subject: str, evidence: Any) -> list[Finding]:
    """Return all findings of a subject on its evidence, in order of registration."""
    return [
        Finding(level, check.about, sentence)
        for check in FINDINGS.values()
        if check.subject == subject
        for level, sentence in check.find(evidence)
    ]


WORDS = {"fine": "trust", "with care": "with care", "not": "not"}


class Verdict(NamedTuple):
    """One word, "trust", "with care" or "not", and all findings, gravest first."""

    word: str
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return self.word

    @property
    def reasons(self) -> list[str]:
        """The sentences of the findings that limit trust."""
        return [one.sentence for one in self.findings if one.level != "fine"]

    @property
    def advice(self) -> str:
        """What the word means for the reader."""
        return ADVICE[self.word]


NOT_JUDGED = Verdict("not", (Finding("not", "verdict", "The answer has not been judged."),))


def verdict_of(findings: list[Finding]) -> Verdict:
    """Return the word of the gravest finding, and all findings, gravest first."""
    ordered = sorted(findings, key=lambda one: -LEVELS.index(one.level))
    return Verdict(WORDS[ordered[0].level] if ordered else "trust", tuple(ordered))
