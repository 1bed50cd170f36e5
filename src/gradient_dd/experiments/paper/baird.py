"""Baird's counterexample: every statement under every variant.

A variant is: the ratios as printed or those of the usual policies; where ρ stands (R on the whole sample, T on the
bootstrapped half), for the learners it makes a difference to; and the initial weights, the paper's or random ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from gradient_dd.experiments.claims import Ask
from gradient_dd.experiments.paper.asking import (
    AS_GOOD,
    AS_GOOD_AS,
    BEST_KAPPA,
    LOWER,
    WAYS,
    WHOLE,
    ByStudy,
    one_over_best,
    tuned_ways,
    values_of,
)
from gradient_dd.experiments.paper.studies import BAIRD_FIVE_KAPPAS, BAIRD_KAPPAS
from gradient_dd.experiments.tuning import StudyEvidence
from gradient_dd.experiments.verdicts import ALIKE, FULLY, MAIN, ClaimQuestion, Pair
from gradient_dd.report.figure import Line

ZERO = 1e-3  # of the initial error: what counts as reaching zero
HALF = 0.5  # of the initial error: what counts as learning at all

RATIOS = {"paper": "printed ratios", "standard": "usual ratios"}
STARTS = {"baird": "the paper's initial weights", "baird-starts": "random initial weights"}
KAPPAS = {MAIN: BAIRD_KAPPAS, ALIKE: BAIRD_FIVE_KAPPAS}
PLACES = {"R": "ρ on the whole sample", "T": "ρ on the bootstrap"}
MODES = tuple(PLACES)

TD, TDRC, TDC, HTD, HTD_DD = (WHOLE[name] for name in ("td", "tdrc", "tdc", "htd", "htd_dd"))
GTD2, GTD2_TO_TD, DD = (
    {mode: replace(WHOLE[name], rho_mode=mode) for mode in MODES} for name in ("gtd2", "gtd2_to_td", "gradient_dd")
)


class Reading(NamedTuple):
    """One reading, one way of tuning, the evidence, its cases, and tuned fully the evidence of κ = 1."""

    name: str
    tuning: str
    mode: str
    evidence: StudyEvidence
    cases: list[str]
    kappa_one: StudyEvidence | None = None


Asked = Callable[[Reading, str], list[ClaimQuestion]]


def reading_name(ratios: str, mode: str, words: str) -> str:
    """Return the name of a variant; without a mode the place of ρ makes no difference."""
    return ", ".join(filter(None, (RATIOS[ratios], PLACES.get(mode), words)))


def readings(
    evidence: ByStudy, modes: tuple[str, ...] = MODES, long: bool = False, tunings: tuple[str, ...] = WAYS
) -> Iterator[Reading]:
    """Yield every variant; with one mode ρ makes no difference. `long` adds the longer runs of the paper's weights."""
    for start, words in STARTS.items():
        for tuning, _, (found,) in tuned_ways(evidence, tunings, start):
            one = evidence[f"{start}-one"] if tuning == FULLY else None
            for ratios, mode in product(RATIOS, modes):
                name = reading_name(ratios, mode if len(modes) > 1 else "", words)
                yield Reading(name, tuning, mode, found, of_ratios(found, ratios), one)
    if long and "baird-long" in evidence:
        found = evidence["baird-long"]
        for ratios in RATIOS:
            name = reading_name(ratios, "R" if len(modes) > 1 else "", f"{found.study.steps:,} steps")
            yield Reading(name, MAIN, "R", found, of_ratios(found, ratios))


def of_ratios(found: StudyEvidence, ratios: str) -> list[str]:
    """Return the cases with these ratios, the smaller size first."""
    cases = [case for case, tasks in found.cases.items() if tasks[0].parameters.get("ratios", "standard") == ratios]
    return sorted(cases, key=found.size)


def on_baird(words: str, asked: Asked, largest_only: bool = False, **which: Any) -> Ask:
    """Return the questions of a statement under the variants of `readings`, on every size or on the largest."""

    def questions(evidence: ByStudy) -> list[ClaimQuestion]:
        return [
            question
            for one in readings(evidence, **which)
            for case in (one.cases[-1:] if largest_only else one.cases)
            for question in asked(one, case)
        ]

    return Ask(words, ("baird",), questions)


def question(reading: Reading, kind: str, pair: Pair, side: str, bound: float) -> ClaimQuestion:
    """Return a question of a variant."""
    return ClaimQuestion(kind, (pair,), side, bound, reading.name, reading.tuning)


def shares(side: str, bound: float, *lines: dict[str, Line] | Line) -> Asked:
    """Return the questions on which side of a share of the initial error learners end; a dict has a line for each ρ."""

    def asked(reading: Reading, case: str) -> list[ClaimQuestion]:
        ours = [line if isinstance(line, Line) else line[reading.mode] for line in lines]
        pairs = [Pair(reading.evidence.choose(case, line), None, "last100") for line in ours]
        return [question(reading, "share", pair, side, bound) for pair in pairs]

    return asked


def is_better(reading: Reading, case: str) -> list[ClaimQuestion]:
    """Return the questions whether Gradient-DD ends lower than GTD2, TDC and TDRC."""
    ours = reading.evidence.choose(case, DD[reading.mode])
    return [
        question(reading, "ratio", Pair(ours, reading.evidence.choose(case, rival), "last100"), "below", 1.0)
        for rival in (GTD2[reading.mode], TDC, TDRC)
    ]


def is_as_good(reading: Reading, case: str) -> list[ClaimQuestion]:
    """Return the questions whether Gradient-DD is as good as every rival, in the final and the mean error."""
    rivals = (GTD2[reading.mode], GTD2_TO_TD[reading.mode], TD, TDRC, TDC, HTD, HTD_DD)
    found = []
    for goal, rival in product(("last100", "mean_error"), rivals):
        ours, theirs = (reading.evidence.choose(case, line, goal) for line in (DD[reading.mode], rival))
        found.append(replace(question(reading, "ratio", Pair(ours, theirs, goal), "below", AS_GOOD), tuned_for=goal))
    return found


def kappa_one_is_good(reading: Reading, case: str) -> list[ClaimQuestion]:
    """Return the question whether κ = 1 is as good as the best κ; tuned fully, ζ is tuned with both."""
    if reading.kappa_one is None:
        pair = one_over_best(reading.evidence, case, values_of("kappa", KAPPAS[reading.tuning], reading.mode))
    else:
        one = Line("Gradient-DD, κ = 1", "gradient_dd", (("kappa", 1.0),), reading.mode)
        best = reading.evidence.choose(case, DD[reading.mode])
        pair = Pair(reading.kappa_one.choose(case, one), best, "last100")
    return [question(reading, "ratio", pair, "below", AS_GOOD)]


TD_DIVERGES = on_baird("no step size ends below the initial error", shares("above", 1.0, TD), modes=("R",))
IS_BETTER = on_baird(LOWER.words, is_better)
TDRC_IS_UNSTABLE = on_baird(
    "no step size halves the initial error", shares("above", HALF, TDRC), largest_only=True, modes=("R",)
)
OTHERS_STAY_ABOVE_ZERO = on_baird(
    "end above 1/1000 of the initial error", shares("above", ZERO, GTD2, TDC, TDRC), long=True
)
REACHES_ZERO = on_baird("ends below 1/1000 of the initial error", shares("below", ZERO, DD), long=True)
KAPPA_ONE_IS_GOOD = on_baird(BEST_KAPPA.words, kappa_one_is_good)
AS_GOOD_BY_SEARCH = on_baird(AS_GOOD_AS.words, is_as_good, tunings=(FULLY,))
