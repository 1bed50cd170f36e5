"""The summary of a reproduction: claims by verdict for each section, and the answers to the questions."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from gradient_dd.experiments.job import Scale
from gradient_dd.experiments.paper.texts import QUESTIONS, SECTIONS
from gradient_dd.experiments.verdicts import (
    ALIKE,
    FULLY,
    MAIN,
    WORDS,
    ClaimVerdict,
    Comparison,
    Tally,
    compared,
    over_all,
    tally,
    under,
)
from gradient_dd.experiments.wording import answer_word, over_the_run, pooled

COUNTED = WORDS[:-1]  # verdicts of claims that were judged


class Way(NamedTuple):
    """A way of tuning, with its label in the control of the page and its explanation."""

    key: str
    tuning: str
    label: str
    explanation: str


WAYS = (
    Way(
        "p",
        MAIN,
        "as in the paper",
        "As in the paper: Gradient-DD, TD and TDRC tune the step size (on Baird also κ), GTD2 and TDC also ζ.",
    ),
    Way("a", ALIKE, "equal budgets", "The same number of settings for every learner."),
    Way(
        "f",
        FULLY,
        "by search",
        "Every learner has the same search budget for all of its parameters, including κ and ζ.",
    ),
)
Switched = list[tuple[str, Any]]


def switched(make: Callable[[Way], Any]) -> Switched:
    """Return the content for each way of tuning with its CSS classes; equal content of several ways appears once."""
    found: Switched = []
    for way in WAYS:
        made = make(way)
        same = next((place for place, (_, one) in enumerate(found) if one == made), None)
        if same is None:
            found.append((f"t t-{way.key}", made))
        else:
            found[same] = (f"{found[same][0]} t-{way.key}", made)
    return [("", found[0][1])] if len(found) == 1 else found


def comparisons_of(verdict: ClaimVerdict, way: Way) -> list[Comparison]:
    """Return the comparisons of a claim under a way of tuning; if there are none, the comparisons that decide it."""
    return compared(under(verdict.judgements, way.tuning))


def word_of(verdict: ClaimVerdict, way: Way) -> str:
    """Return the verdict on a claim under a way of tuning."""
    return over_all(under(verdict.judgements, way.tuning), verdict.needed)


def published(verdicts: Iterable[ClaimVerdict]) -> list[ClaimVerdict]:
    """Return the counted claims: all except our own claims, and claims about time, which depend on the machine."""
    return [one for one in verdicts if one.source == "paper"]


def counts(verdicts: Iterable[ClaimVerdict], way: Way = WAYS[0]) -> dict[str, int]:
    """Return the number of published claims with each verdict."""
    found = [word_of(one, way) for one in published(verdicts)]
    return {word: found.count(word) for word in COUNTED}


class Answer(NamedTuple):
    """The answer to a question under one way of tuning."""

    question: str
    word: str
    sentence: str


def answers(verdicts: Iterable[ClaimVerdict], scale: Scale, way: Way = WAYS[0]) -> list[Answer]:
    """Return the answers to the questions whose claims are judged."""
    by_name, found = {one.claim: one for one in verdicts}, []
    for question in QUESTIONS:
        final, mean = (
            [one for name in names if name in by_name for one in comparisons_of(by_name[name], way)]
            for names in (question.final, question.mean)
        )
        if final:
            word, told = answer_word(final), pooled(final)
            over_run = [one for one in mean if one.measure == one.tuned_for == "mean_error"]
            if word == "Undecided" and scale.runs:
                word = f"Not decided with {scale.runs} runs"
            found.append(Answer(question.text, word, f"{told} {over_the_run(over_run)}" if over_run else told))
    return found


def scorecard(verdicts: Iterable[ClaimVerdict]) -> list[tuple[str, dict[str, int], Tally]]:
    """Return a row for each section and for the total: title, published claims by verdict, comparisons by outcome."""
    own, rows = published(verdicts), []
    for title, some in (
        *((section.title, [one for one in own if one.section == section.name]) for section in SECTIONS),
        ("All", own),
    ):
        compared = [one for verdict in some for one in comparisons_of(verdict, WAYS[0])]
        rows += [(title, counts(some), tally(compared))] if some else []
    return rows
