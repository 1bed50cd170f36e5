"""The claims of the paper, and what our runs say of each.

A claim is judged on fresh runs of the settings that were selected on the study's own runs, so that no winner is
flattered. Criteria are stated with each claim. None is forced: where it fails, the numbers say by how much.

    ask_all      the questions of all claims whose studies are at hand; they name the settings to run afresh
    fresh_work   those settings, by study and case
    judge_all    the verdicts, once the fresh runs are there
"""

from dataclasses import asdict
from typing import Any

from gradient_dd.experiments.paper.claims.claim import Claim
from gradient_dd.experiments.paper.claims.evidence import Evidence
from gradient_dd.experiments.paper.claims.ledger import CLAIMS
from gradient_dd.experiments.paper.claims.verdict import WORDS, Comparison, Judgement, Question, Verdict
from gradient_dd.learners import Setting

__all__ = [
    "CLAIMS",
    "Claim",
    "Comparison",
    "Evidence",
    "Judgement",
    "Question",
    "Verdict",
    "as_data",
    "ask_all",
    "counts",
    "fresh_work",
    "judge_all",
]

Asked = list[tuple[Claim, list[Question]]]


def ask_all(evidence: dict[str, Evidence], whole: bool) -> Asked:
    """Return the questions of every claim whose studies are at hand; those of theory only for the `whole` paper."""
    return [
        (claim, claim.questions(evidence))
        for claim in CLAIMS
        if set(claim.studies) <= set(evidence) and (claim.studies or whole)
    ]


def fresh_work(asked: Asked) -> dict[tuple[str, str], list[Setting]]:
    """Return for each study and case every setting that a question names, once."""
    work: dict[tuple[str, str], list[Setting]] = {}
    for _, questions in asked:
        for part in (part for question in questions for part in question.parts):
            for chosen in (part.ours, part.rival):
                if chosen is not None:
                    settings = work.setdefault((chosen.evidence.study.name, chosen.case), [])
                    if chosen.setting not in settings:
                        settings.append(chosen.setting)
    return work


def judge_all(asked: Asked) -> list[Verdict]:
    """Return the verdict of every claim that was asked about."""
    return [claim.judge(questions) for claim, questions in asked]


def counts(verdicts: list[Verdict]) -> dict[str, int]:
    """Return how many verdicts on the paper have each word; statements that we added are not counted."""
    ours = [one for one in verdicts if one.source == "paper"]
    return {word: sum(one.verdict == word for one in ours) for word in WORDS}


def as_data(verdicts: list[Verdict]) -> list[dict[str, Any]]:
    """Return verdicts as plain data."""
    return [asdict(verdict) for verdict in verdicts]
