"""What a comparison of policies gives back: a table, the best, those that cannot be told apart, and one sentence.

Differences have simultaneous intervals: with the stated confidence all of them hold at once. The bootstrap samples are
the same for all policies, so what policies have in common cancels. The largest studentised deviation over all policies
gives the factor (max-t), and a margin of 5 % of the value is added for what no sample shows: the features' own error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation.findings import Verdict
from gradient_dd.evaluation.policy_values import PolicyValue

MARGIN = 0.05  # of the larger one of two values
NUMBERS = ("value", "low", "high", "difference", "difference_low", "difference_high")
USUAL, NORMAL = 0.9, 1.645  # a share of the copies, and how many standard errors they reach
NAMED = 5  # reasons and names that a sentence lists


class Judged(NamedTuple):
    """A policy with its value and its verdict."""

    found: PolicyValue
    verdict: Verdict

    @property
    def usable(self) -> bool:
        """Whether the value may be used."""
        return self.verdict.word != "not"


class Gap(NamedTuple):
    """How much more one policy is worth than another: its simultaneous interval is apart ± (reach + margin)."""

    apart: float
    reach: float
    margin: float

    @property
    def low(self) -> float:
        """The lower bound."""
        return self.apart - self.reach - self.margin

    @property
    def high(self) -> float:
        """The upper bound."""
        return self.apart + self.reach + self.margin


@dataclass(frozen=True, eq=False)
class Question:
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
        one, two = first.found, second.found
        apart = one.value - two.value
        spread = spread_of_difference(one.action_values.copies - two.action_values.copies, apart)
        margin = 0.0 if one is two else MARGIN * max(abs(one.value), abs(two.value))
        return Gap(apart, self.factor * spread, margin)

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
        close = [one for one in self.judged if one.usable and self.gap(best, one).low <= 0]
        return sorted(close, key=lambda one: -one.found.value)

    @property
    def deploy(self) -> str:
        """The policy to follow: the best where it is surely better than the baseline, else the baseline."""
        best = self.best
        sure = best is not None and self.gap(best, self.baseline).low > 0
        return best.found.name if best is not None and sure else self.baseline.found.name

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
        """What to do, in one sentence."""
        best, base = self.best, self.baseline
        others = [one for one in self.judged[1:] if one.usable]
        if best is None or not others:
            why = next((reason for one in self.judged[1:] for reason in one.verdict.reasons), "no policy was given.")
            return f"Nothing here can be trusted, because: {why}"
        name, gain = best.found.name, self.gap(best, base)
        ties = [one for one in self.ties if one is not best]
        if best is base:
            rest = "" if not ties else f" {names_of(ties)} cannot be told apart from it{self.more(ties)}."
            return f"Stay with {base.found.name!r}: no policy is worth more.{rest}"
        if gain.low <= 0:
            told = f"{name!r} and {base.found.name!r} cannot be told apart{self.more([base])}"
            return f"Stay with {base.found.name!r}: {told}."
        if ties:
            which = "all are" if self.all_better(ties) else f"{name!r} is"
            told = f"cannot be told apart, and {which} better than {base.found.name!r}"
            return f"{names_of([best, *ties])} {told}{self.more(ties)}."
        care = "" if best.verdict.word == "trust" else " Take it with care."
        worth = f"worth {best.found.value:.4g}, {gain.apart:.4g} more than {base.found.name!r}"
        return f"Deploy {name!r}: it is {worth} (from {gain.low:.4g} to {gain.high:.4g}).{care}"

    def all_better(self, ties: Sequence[Judged]) -> bool:
        """Return whether all of these are surely better than the baseline."""
        return all(self.gap(one, self.baseline).low > 0 for one in ties)

    def more(self, ties: Sequence[Judged]) -> str:
        """Return how many more episodes would tell the best from these, as the end of a sentence."""
        best = self.best
        if best is None:
            return ""
        gaps = [self.gap(best, one) for one in ties]
        if any(gap.apart <= gap.margin for gap in gaps):
            return "; they are closer than this method can tell"
        times = max((gap.reach / (gap.apart - gap.margin)) ** 2 for gap in gaps)
        return f"; about {rounded(max(0.0, times - 1) * self.episodes):,} more episodes would tell"


def spread_of_difference(copies: Array, centre: float) -> float:
    """Return the standard error of a difference from its bootstrap copies; a few wild copies do not count."""
    return float(np.quantile(np.abs(copies - centre), USUAL) / NORMAL)


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


def max_t_factor(found: Sequence[PolicyValue], confidence: float) -> float:
    """Return how many standard errors a simultaneous interval of all differences to the first policy reaches."""
    base = found[0]
    largest = np.zeros(len(base.action_values.copies))
    for one in found[1:]:
        apart = one.value - base.value
        copies = one.action_values.copies - base.action_values.copies
        spread = spread_of_difference(copies, apart)
        if spread > 0:
            largest = np.maximum(largest, np.abs(copies - apart) / spread)
    return float(np.quantile(largest, confidence))


@dataclass(frozen=True, eq=False)
class Comparison:
    """Policies on one log.

    questions  one for each signal and discount, in the order in which they were asked for
    stated     what was taken for what in the log;  seconds  how long all of it took
    """

    questions: Sequence[Question]
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
        """The policy to follow by the first question: the best if it is surely better than the baseline."""
        return self.questions[0].deploy

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


def asked_words(question: Question) -> str:
    """Return what a question is about, in words."""
    discount = "" if question.discount is None else f" at discount {question.discount:g}"
    return f"By {question.reward!r}{discount}"
