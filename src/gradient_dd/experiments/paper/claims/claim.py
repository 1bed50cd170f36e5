"""A claim: a statement of the paper, where it stands, what would make it true, and the questions that decide it."""

from dataclasses import dataclass

from gradient_dd.experiments.paper.claims.evidence import Evidence
from gradient_dd.experiments.paper.claims.findings import finding
from gradient_dd.experiments.paper.claims.verdict import ALIKE, PAPER, Ask, Question, Verdict, judged, over_all


@dataclass(frozen=True)
class Claim:
    """A statement in our words, the studies whose figures show it, and the questions to ask of their evidence.

    needed   how many comparisons must hold; None stands for all of them
    source   "paper", or "ours" for a statement that we added
    """

    name: str
    where: str
    statement: str
    criterion: str
    studies: tuple[str, ...]
    ask: Ask
    needed: int | None = None
    source: str = "paper"

    def questions(self, evidence: dict[str, Evidence]) -> list[Question]:
        """Return the questions. They name settings selected on the studies' own runs; fresh runs are not needed yet."""
        return self.ask(evidence)

    def judge(self, questions: list[Question]) -> Verdict:
        """Return the verdict, from the fresh runs of the settings in the questions."""
        judgements = judged(questions, self.needed)
        main, alike = ([one for one in judgements if one.tuning == tuning] for tuning in (PAPER, ALIKE))
        return Verdict(
            claim=self.name,
            source=self.source,
            where=self.where,
            statement=self.statement,
            criterion=self.criterion,
            verdict=over_all(main, self.needed),
            held=sum(one.held for one in main),
            of=sum(one.of for one in main),
            alike=f"{over_all(alike, self.needed)} ({sum(one.held for one in alike)} of {sum(one.of for one in alike)})"
            if alike
            else "",
            finding=finding(judgements),
            studies=list(self.studies),
            needed=self.needed,
            judgements=judgements,
        )
