"""Claims: a statement, where it stands, and the questions that decide it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gradient_dd.experiments.verdicts import (
    ALIKE,
    FULLY,
    ClaimQuestion,
    ClaimVerdict,
    Judgement,
    compared,
    judged,
    over_all,
    tally,
    under,
)
from gradient_dd.experiments.wording import sentence

SAMPLED_TEST = "test_a_claim_does_not_hold_where_it_is_false[{claim}]"
TESTS = {  # by the type of a claim's comparisons
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
    short    the statement where there is little space
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
    short: str = ""

    @property
    def studies(self) -> tuple[str, ...]:
        """The studies whose figures show the claim."""
        return self.ask.studies

    def judge(self, questions: list[ClaimQuestion]) -> ClaimVerdict:
        """Return the verdict, from test runs of the settings in the questions."""
        judgements = judged(questions, self.needed)
        main, every = under(judgements), compared(judgements)
        # The test that shows that the criterion distinguishes true from false
        test = next((TESTS[one.kind] for one in every if one.kind in TESTS), SAMPLED_TEST).format(claim=self.name)
        return ClaimVerdict(
            claim=self.name,
            source=self.source,
            where=self.where,
            statement=self.statement,
            criterion=self.ask.criterion,
            verdict=over_all(main, self.needed),
            **tally(compared(main))._asdict(),
            alike=self.told(judgements, ALIKE),
            fully=self.told(judgements, FULLY),
            finding=sentence(compared(main), self.needed),
            studies=list(self.studies),
            needed=self.needed,
            judgements=judgements,
            section=self.section,
            group=self.group,
            figure=self.figure,
            short=self.short,
            test=f"tests/experiments/test_claims.py::{test}",
            variants=list(dict.fromkeys(one.variant for one in every if one.variant)),
            runs=sorted({one.runs for one in every if one.runs}),
            selection_runs=sorted({one.selection_runs for one in every if one.selection_runs}),
        )

    def told(self, judgements: list[Judgement], tuning: str) -> str:
        """Return the verdict with its counts under one way of tuning; empty without any judgement."""
        some = [one for one in judgements if one.tuning == tuning]
        return f"{over_all(some, self.needed)} ({tally(compared(some))})" if some else ""
