"""The result in a few words: claims by verdict for each section, and the answers to the questions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gradient_dd.experiments.claims import under
from gradient_dd.experiments.experiment import Experiment, PaperQuestion, Scale
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
)
from gradient_dd.experiments.wording import answer_word, over_the_run, pooled

COUNTED = WORDS[:-1]  # those of claims that were judged


class Way(NamedTuple):
    """A way of tuning, as the control of the page names it and the page explains it."""

    key: str
    tuning: str
    label: str
    explanation: str


WAYS = (
    Way(
        "p",
        MAIN,
        "as in the paper",
        "As the paper tunes: Gradient-DD, TD and TDRC choose a step size (on Baird κ too), GTD2 and TDC also ζ.",
    ),
    Way("a", ALIKE, "equal budgets", "The same number of settings for every learner."),
    Way(
        "f",
        FULLY,
        "by search",
        "Every learner spends the same budget of a search on all parameters it has, κ and ζ included.",
    ),
)
Switched = list[tuple[str, Any]]


def switched(make: Callable[[Way], Any]) -> Switched:
    """Return what is shown for each way of tuning, with its classes; what is the same for several once."""
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
    """Return the comparisons of a claim under a way of tuning; where it has none, those that decide it."""
    return compared(under(verdict.judgements, way.tuning))


def word_of(verdict: ClaimVerdict, way: Way) -> str:
    """Return the verdict on a claim under a way of tuning."""
    return over_all(under(verdict.judgements, way.tuning), verdict.needed)


def published(verdicts: Iterable[ClaimVerdict]) -> list[ClaimVerdict]:
    """Return the claims of the paper that are counted: those on time depend on the machine, others are ours."""
    return [one for one in verdicts if one.source == "paper"]


def counts(verdicts: Iterable[ClaimVerdict], way: Way = WAYS[0]) -> dict[str, int]:
    """Return how many published claims have each verdict."""
    found = [word_of(one, way) for one in published(verdicts)]
    return {word: found.count(word) for word in COUNTED}


class Answer(NamedTuple):
    """The answer to a question under one way of tuning."""

    question: str
    word: str
    sentence: str


def answer(question: PaperQuestion, verdicts: Mapping[str, ClaimVerdict], way: Way, scale: Scale) -> Answer | None:
    """Return the answer to a question; None where its claims are not judged."""
    final, mean = (
        [one for name in names if name in verdicts for one in comparisons_of(verdicts[name], way)]
        for names in (question.final, question.mean)
    )
    if not final:
        return None
    word, told = answer_word(final), pooled(final)
    over_run = [one for one in mean if one.measure == one.tuned_for == "mean_error"]
    if word == "Undecided" and scale.runs:
        word = f"Not decided with {scale.runs} runs"
    return Answer(question.text, word, f"{told} {over_the_run(over_run)}" if over_run else told)


def answers(experiment: Experiment, verdicts: Sequence[ClaimVerdict], scale: Scale, way: Way = WAYS[0]) -> list[Answer]:
    """Return the answers to the questions of an experiment."""
    by_name = {one.claim: one for one in verdicts}
    found = [answer(one, by_name, way, scale) for one in experiment.questions]
    return [one for one in found if one]


class ScoreRow(NamedTuple):
    """A section with its claims by verdict, and their comparisons by outcome."""

    title: str
    verdicts: dict[str, int]
    comparisons: Tally


def scorecard(experiment: Experiment, verdicts: Sequence[ClaimVerdict]) -> list[ScoreRow]:
    """Return a row for each section that has published claims, and one for all of them."""
    rows = []
    for title, some in (
        *((one.title, [v for v in published(verdicts) if v.section == one.name]) for one in experiment.sections),
        ("All", published(verdicts)),
    ):
        compared = [one for verdict in some for one in comparisons_of(verdict, WAYS[0])]
        rows += [ScoreRow(title, counts(some), tally(compared))] if some else []
    return rows
