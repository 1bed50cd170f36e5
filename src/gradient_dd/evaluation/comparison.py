"""What a comparison of policies gives back: a table, the best, those that cannot be told apart, and one sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.evaluation.findings import Verdict
from gradient_dd.evaluation.policy_gaps import Gap, gap_of
from gradient_dd.evaluation.policy_values import PolicyValue

NUMBERS = ("value", "low", "high", "difference", "difference_low", "difference_high")
NAMED = 5  # reasons and names that a sentence lists


class Judged(NamedTuple):
    """A policy with its value and its verdict."""

    found: PolicyValue
    verdict: Verdict

    @property
    def usable(self) -> bool:
        """Whether the value may be used."""
        return self.verdict.word != "not"


@dataclass(frozen=True, eq=False)
class PolicyQuestion:
    """The policies by one signal and one discount; the first is the baseline, the policy that made the log.

    factor  standard errors that a simultaneous interval reaches;  episodes  of the log
    """

    reward: str
    discount: float | None
    judged: Sequence[Judged]
    factor: float
    episodes: int

    def gap(self, first: Judged, second: Judged) -> Gap:
        """Return how much more the first policy is worth than the second."""
        return gap_of(first.found, second.found, self.factor, self.width)

    @cached_property
    def width(self) -> float:
        """The range of the values of the baseline and of the policies that may be used."""
        values = [one.found.value for one in self.judged if one.usable or one is self.baseline]
        return max(values) - min(values)

    @property
    def baseline(self) -> Judged:
        """The policy that made the log."""
        return self.judged[0]

    @property
    def best(self) -> Judged | None:
        """The usable policy with the largest value; None where no policy can be used."""
        usable = [one for one in self.judged if one.usable]
        return max(usable, key=lambda one: one.found.value) if usable else None

    @property
    def ties(self) -> list[Judged]:
        """The usable policies that cannot be told apart from the best, the largest value first; the best is one."""
        best = self.best
        if best is None:
            return []
        close = [one for one in self.judged if one.usable and (one is best or self.gap(best, one).low <= 0)]
        return sorted(close, key=lambda one: -one.found.value)

    @property
    def followed(self) -> Judged:
        """The policy to follow: the largest value among those that are surely better than the baseline, or it."""
        sure = [one for one in self.judged[1:] if one.usable and self.surely_better(one)]
        return max(sure, key=lambda one: one.found.value) if sure else self.baseline

    def surely_better(self, one: Judged) -> bool:
        """Return whether a policy is surely worth more than the baseline."""
        return self.gap(one, self.baseline).low > 0

    def records(self) -> list[dict[str, Any]]:
        """Return a record for each policy, the baseline first."""
        found = []
        for one in self.judged:
            gap = self.gap(one, self.baseline)
            numbers = (one.found.value, one.found.low, one.found.high, gap.apart, gap.low, gap.high)
            record = {"name": one.found.name, **dict(zip(NUMBERS, numbers, strict=True)), "verdict": one.verdict.word}
            more = {"effective_rows": one.found.rows, "why": one.verdict.reasons[:1]}
            found.append({**record, **more, "reward": self.reward, "discount": self.discount})
        return found

    @property
    def sentence(self) -> str:
        """What to do, in one sentence, and who looks better but cannot be trusted."""
        refused = [one for one in self.judged if not one.usable and one.found.value > self.followed.found.value]
        if not refused or not any(one.usable for one in self.judged[1:]):
            return self.decision
        return f"{self.decision} {names_of(refused)} would be worth more by numbers that cannot be trusted."

    @property
    def decision(self) -> str:
        """What to do."""
        best, base = self.best, self.baseline
        others = [one for one in self.judged[1:] if one.usable]
        if best is None or not others:
            why = next((reason for one in self.judged[1:] for reason in one.verdict.reasons), "no policy was given.")
            return f"Nothing here can be trusted, because: {why}"
        ties, today = [one for one in self.ties if one is not best], repr(base.found.name)
        if best is base:
            rest = "" if not ties else f" {names_of(ties)} cannot be told apart from it{self.more(ties)}."
            return f"Stay with {today}: no policy is worth more.{rest}"
        deployed = self.followed
        if deployed is base:
            return f"Stay with {today}: {best.found.name!r} and {today} cannot be told apart{self.more([base])}."
        gain, care = self.gap(deployed, base), "" if deployed.verdict.word == "trust" else " Take it with care."
        worth = f"worth {deployed.found.value:.4g}, {gain.apart:.4g} more than {today}"
        rest = f" {self.tied_words(best, ties)}{self.more(ties)}." if ties else ""
        return f"Deploy {deployed.found.name!r}: it is {worth} (from {gain.low:.4g} to {gain.high:.4g}).{care}{rest}"

    def tied_words(self, best: Judged, ties: Sequence[Judged]) -> str:
        """Return which policies cannot be told apart, and which of them may be no better than the baseline."""
        several, today = [best, *ties], repr(self.baseline.found.name)
        told, open_ones = f"{names_of(several)} cannot be told apart", [o for o in several if not self.surely_better(o)]
        open_ones = [one for one in open_ones if one is not self.baseline]
        if open_ones:
            return f"{told}, and {names_of(open_ones)} may be no better than {today}"
        return f"{told}, and all are better than {today}" if self.baseline not in ties else told

    def more(self, ties: Sequence[Judged]) -> str:
        """Return how many more episodes would tell the best from these, as the end of a sentence."""
        best = self.best
        if best is None:
            return ""
        gaps = [self.gap(best, one) for one in ties]
        if any(gap.least <= gap.fixed for gap in gaps):
            return "; they are closer than this method can tell"
        times = max((gap.reach / (gap.least - gap.fixed)) ** 2 for gap in gaps)
        return f"; about {rounded(max(0.0, times - 1) * self.episodes):,} more episodes would tell"


def rounded(count: float) -> int:
    """Return a count with two digits that count."""
    digits = max(0, int(np.log10(max(1.0, count))) - 1)
    return int(np.ceil(count / 10**digits)) * 10**digits


def names_of(several: Sequence[Judged]) -> str:
    """Return names as a list in a sentence."""
    words = [repr(one.found.name) for one in several]
    if len(words) > NAMED:
        words = [*words[:NAMED], f"{len(words) - NAMED} others"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


@dataclass(frozen=True, eq=False)
class PolicyComparison:
    """Policies on one log.

    questions  one for each signal and discount, in the order in which they were asked for
    stated     what was taken for what in the log;  seconds  how long all of it took
    """

    questions: Sequence[PolicyQuestion]
    confidence: float
    rows: int
    stated: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def table(self) -> list[dict[str, Any]]:
        """A record for each policy and question, the baseline first.

        It has a value and a difference to the baseline, both with an interval, and a verdict.
        """
        return [record for question in self.questions for record in question.records()]

    def frame(self) -> Any:
        """Return the table as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(self.table)

    @property
    def best(self) -> str | None:
        """The name of the best policy by the first question; None where nothing can be trusted."""
        best = self.questions[0].best
        return None if best is None else best.found.name

    @property
    def ties(self) -> list[str]:
        """The names of policies that cannot be told apart from the best by the first question, with the best."""
        return [one.found.name for one in self.questions[0].ties]

    @property
    def deploy(self) -> str:
        """The policy to follow by the first question: the largest value among those surely better than the baseline."""
        return self.questions[0].followed.found.name

    @property
    def sentence(self) -> str:
        """What to do, in one sentence for each question."""
        if len(self.questions) == 1:
            return self.questions[0].sentence
        return " ".join(f"{asked_words(one)}: {one.sentence}" for one in self.questions)

    def facts(self) -> dict[str, Any]:
        """Return all of it as plain data."""
        return {
            "sentence": self.sentence,
            "best": self.best,
            "ties": self.ties,
            "deploy": self.deploy,
            "confidence": self.confidence,
            "rows": self.rows,
            "table": self.table,
            "stated": list(self.stated),
            "seconds": dict(self.seconds),
        }


def asked_words(question: PolicyQuestion) -> str:
    """Return what a question is about, in words."""
    discount = "" if question.discount is None else f" at discount {question.discount:g}"
    return f"By {question.reward!r}{discount}"
