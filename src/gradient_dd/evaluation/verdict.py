"""The verdict: one word for all that was found in the data and in the answer."""

from typing import NamedTuple

from gradient_dd.evaluation.findings import LEVELS, Finding

WORDS = {"fine": "trust", "with care": "with care", "not": "not"}


class Verdict(NamedTuple):
    """One word, "trust", "with care" or "not", and all findings, the gravest first."""

    word: str
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return self.word

    @property
    def reasons(self) -> list[str]:
        """The sentences that speak against trust."""
        return [one.sentence for one in self.findings if one.level != "fine"]


NOT_JUDGED = Verdict("not", (Finding("not", "verdict", "The answer has not been judged."),))


def verdict_of(findings: list[Finding]) -> Verdict:
    """Return the word of the gravest finding, and all findings, the gravest first."""
    ordered = sorted(findings, key=lambda one: -LEVELS.index(one.level))
    return Verdict(WORDS[ordered[0].level] if ordered else "trust", tuple(ordered))
