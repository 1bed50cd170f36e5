"""The registry of findings, and the verdict that summarises them.

A finding is a function of the evidence of its subject. The function yields any number of pairs (level, sentence), or of
plain sentences, which have the gravest level of the finding. The subjects are:

    data     `LogData` of log_data.py: columns, rows and episodes of the log
    ratios   `RatioFacts` of data_findings.py: the ratios of a policy on the log
    rows     `RowEvidence` of row_findings.py: the order and the type of the rows
    policy   `PolicyEvidence` of policy_findings.py: the value of a policy
    states, learner   of result.py and passes.py: the requested states, and a learner that the user names

The sentence says what was found and why it matters. The remedy of the finding follows it, unless the level is "fine".
The tables of docs/explanation/when-to-trust.md are generated from docstrings and remedies, and
tests/evaluation/planted_failures.py has a log for each finding that triggers it.
"""

from collections.abc import Callable, Iterable, Iterator
from inspect import cleandoc
from typing import Any, NamedTuple

LEVELS = ("fine", "with care", "not")
ADVICE = {
    "trust": "Trust this value: no finding questions it.",
    "with care": "Use this value with care.",
    "not": "Do not trust this value.",
}
Found = Iterator[str | tuple[str, str]]


class Finding(NamedTuple):
    """The result of one check: its level, its topic, and a sentence that ends with the remedy."""

    level: str
    about: str
    sentence: str
    remedy: str = ""

    @property
    def reason(self) -> str:
        """The sentence without the remedy."""
        return self.sentence.removesuffix(self.remedy).rstrip()


class Check(NamedTuple):
    """A registered finding.

    subject  the evidence that `find` takes;  about  topic; two findings may share one
    gravest  its gravest possible level;  meaning  its docstring;  remedy  advice for the user
    """

    subject: str
    about: str
    gravest: str
    meaning: str
    remedy: str
    find: Callable[[Any], list[tuple[str, str]]]


FINDINGS: dict[str, Check] = {}  # by function name


def finding(subject: str, about: str, gravest: str, remedy: str) -> Callable[[Callable[[Any], Found]], Any]:
    """Return a decorator that registers a function as a finding; its docstring is the meaning."""

    def register(find: Callable[[Any], Found]) -> Any:
        def said(evidence: Any) -> list[tuple[str, str]]:
            return [(gravest, one) if isinstance(one, str) else one for one in find(evidence)]

        meaning = cleandoc(find.__doc__ or "").replace("\n", " ")
        FINDINGS[find.__name__] = Check(subject, about, gravest, meaning, remedy, said)
        return find

    return register


def findings_of(subject: str, evidence: Any) -> list[Finding]:
    """Return all findings of a subject on its evidence, in order of registration."""
    found = []
    for check in FINDINGS.values():
        for level, sentence in check.find(evidence) if check.subject == subject else ():
            remedy = "" if level == "fine" else check.remedy
            found.append(Finding(level, check.about, f"{sentence} {remedy}".rstrip(), remedy))
    return found


def sentences_of(findings: Iterable[Finding]) -> Iterator[str]:
    """Yield the sentences of findings; a remedy of several findings follows only the first of these findings."""
    known: set[str] = set()
    for one in findings:
        yield one.reason if one.remedy in known else one.sentence
        known.add(one.remedy)


def level_of(size: float, care: float, refuse: float) -> str:
    """Return the level of a size: "with care" above the limit `care`, "not" above the limit `refuse`, else "fine"."""
    return "not" if size > refuse else "with care" if size > care else "fine"


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
        """The meaning of the word for the reader."""
        return ADVICE[self.word]


def verdict_of(findings: list[Finding]) -> Verdict:
    """Return the word of the gravest finding, and all findings, gravest first."""
    ordered = sorted(findings, key=lambda one: -LEVELS.index(one.level))
    word = ordered[0].level if ordered else "fine"
    return Verdict("trust" if word == "fine" else word, tuple(ordered))
