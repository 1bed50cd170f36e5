"""Claims: a statement, where it stands, the questions that decide it, and the sentence that tells what was found."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradient_dd.experiments.verdicts import (
    ALIKE,
    FULLY,
    ClaimQuestion,
    ClaimVerdict,
    Comparison,
    Judgement,
    judged,
    over_all,
    tally,
)
from gradient_dd.report.figure import SYMBOLS, joined

MANY = 4  # judgements from which on only their counts are shown
MEASURES = {
    "last100": "at the end",
    "mean_error": "over all episodes",
    "early": "over the first twentieth",
    "episodes": "in episodes",
}
SAMPLED_TEST = "test_a_claim_does_not_hold_where_it_is_false[{claim}]"
TESTS = {  # by the kind of a claim's comparisons; all others have the one above
    "time": "test_the_cost_is_read_from_the_units_of_the_study",
    "exact": "test_statements_of_theory_are_computed[{claim}]",
}


@dataclass(frozen=True)
class Ask:
    """How a claim is decided: the criterion in words, the studies it rests on, and the questions to their evidence."""

    criterion: str
    studies: tuple[str, ...]
    questions: Callable[[Any], list[ClaimQuestion]]

    def __call__(self, evidence: Any) -> list[ClaimQuestion]:
        return self.questions(evidence)


@dataclass(frozen=True)
class Claim:
    """A statement in our words, where it stands, and what decides it.

    needed   how many comparisons must hold; None stands for all of them
    section, group, figure   where the report shows it; a claim without a section is among the extras
    source   "paper"; "time" for a statement of the paper on wall-clock time, which depends on the machine and is not
             counted; "ours" for one that we added
    """

    name: str
    where: str
    statement: str
    ask: Ask
    needed: int | None = None
    source: str = "paper"
    section: str = "extras"
    group: str = ""
    figure: str = ""

    @property
    def studies(self) -> tuple[str, ...]:
        """The studies whose figures show the claim."""
        return self.ask.studies

    @property
    def criterion(self) -> str:
        """What would make the claim true, in words."""
        return self.ask.criterion

    def judge(self, questions: list[ClaimQuestion]) -> ClaimVerdict:
        """Return the verdict, from fresh runs of the settings in the questions."""
        judgements = judged(questions, self.needed)
        main, every = of_tuning(judgements, decisive(judgements)), compared(judgements)
        return ClaimVerdict(
            claim=self.name,
            source=self.source,
            where=self.where,
            statement=self.statement,
            criterion=self.criterion,
            verdict=over_all(main, self.needed),
            **tally(compared(main))._asdict(),
            alike=self.told(of_tuning(judgements, ALIKE)),
            fully=self.told(of_tuning(judgements, FULLY)),
            finding=sentences(judgements),
            studies=list(self.studies),
            needed=self.needed,
            judgements=judgements,
            section=self.section,
            group=self.group,
            figure=self.figure,
            test=self.test(every),
            variants=list(dict.fromkeys(one.variant for one in every if one.variant)),
            runs=sorted({one.runs for one in every if one.runs}),
            selection_runs=sorted({one.selection_runs for one in every if one.selection_runs}),
        )

    def test(self, comparisons: list[Comparison]) -> str:
        """Return the test that shows that the criterion distinguishes true from false."""
        kinds = {one.kind for one in comparisons}
        test = next((test for kind, test in TESTS.items() if kind in kinds), SAMPLED_TEST)
        return f"tests/experiments/test_claims.py::{test.format(claim=self.name)}"

    def told(self, judgements: list[Judgement]) -> str:
        """Return a word with its counts; empty without any judgement."""
        return f"{over_all(judgements, self.needed)} ({tally(compared(judgements))})" if judgements else ""


def decisive(judgements: list[Judgement]) -> str:
    """Return the way of tuning that decides a claim: the first that it asks about."""
    return judgements[0].tuning if judgements else ""


def of_tuning(judgements: list[Judgement], tuning: str) -> list[Judgement]:
    """Return the judgements under one way of tuning."""
    return [one for one in judgements if one.tuning == tuning]


def compared(judgements: list[Judgement]) -> list[Comparison]:
    """Return the comparisons of several judgements."""
    return [one for judgement in judgements for one in judgement.comparisons]


def sentences(judgements: list[Judgement]) -> str:
    """Return what was found with the way of tuning that decides, then how much holds where tuning is another."""
    main = of_tuning(judgements, decisive(judgements))
    goals = len({one.tuned_for for one in judgements}) > 1
    parts = [sentence(one, name_of(one, goals)) for one in main] if len(main) <= MANY else [tallies(main, goals)]
    others: dict[str, list[Judgement]] = {}
    for one in judgements:
        if one not in main:
            others.setdefault(one.tuning, []).append(one)
    for tuning, found in others.items():
        (first, *rest) = found
        short = not rest and len(first.comparisons) <= MANY
        parts.append(f"{tuning}: {sentence(first, '') if short else tallies(found, goals)}")
    return " ".join(f"{first_upper(part)}." for part in parts if part)


def tallies(judgements: list[Judgement], goals: bool) -> str:
    """Return how many comparisons held, are open and were refuted, by reading or by what was tuned for."""
    return "; ".join(" ".join(filter(None, [name_of(one, goals), one.tally])) for one in judgements)


def name_of(judgement: Judgement, goals: bool) -> str:
    """Return what tells a judgement from the others of its claim; `goals` says whether they are tuned for several."""
    words = {"last100": "the end", "mean_error": "all episodes"}
    tuned = f"tuned for {words.get(judgement.tuned_for, judgement.tuned_for)}" if goals else ""
    return ", ".join(part for part in (judgement.reading if judgement.reading != "default" else "", tuned) if part)


def sentence(judgement: Judgement, name: str) -> str:
    """Return the numbers of a judgement: for each pair of learners one for each size."""
    rows: dict[str, list[Comparison]] = {}
    for one in judgement.comparisons:
        rows.setdefault(row_name(one), []).append(one)
    listed = "; ".join(f"{name} {numbers(some)}" for name, some in rows.items())
    return f"{name + ': ' if name else ''}{listed} ({judgement.tally})"


def row_name(one: Comparison) -> str:
    """Return what a number is of."""
    if one.text:
        return one.text
    ours, rival = (one.ours or {}).get("label", ""), (one.rival or {}).get("label", "")
    if one.kind == "growth":
        return f"{rival} / {ours} grows by"
    if one.kind == "share":
        return f"{ours} ends at this share of the first error:"
    when = MEASURES.get(one.measure, "")
    return f"{ours} / {rival} {when}".strip()


def numbers(some: list[Comparison]) -> str:
    """Return estimates, where they were found, and which learners sit at an edge of their step sizes."""
    symbol = SYMBOLS.get(some[0].task.partition("(")[0], "")
    places = [f"{one.before['size']} to {one.size}" if one.before else f"{one.size}" for one in some]
    at = f" at {symbol} = {joined(places)}" if symbol else ""
    edges = dict.fromkeys(one.edge for one in some if one.edge)
    edge = f" (edge of the grid: {'; '.join(edges)})" if edges else ""
    return joined([f"{one.estimate:.3g}" for one in some]) + at + edge


def first_upper(text: str) -> str:
    """Return a text with a capital first letter, unless that is a symbol."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text
