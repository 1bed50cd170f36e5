"""Baird's counterexample: every statement under every variant.

A variant consists of the ratios (as printed, or those of the usual policies), the place of ρ (R: on the whole sample,
T: on the bootstrapped half) for learners that depend on it, and the initial weights (the paper's, or random).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from gradient_dd.experiments.paper.asking import (
    AS_GOOD,
    AS_GOOD_AS,
    BEST_KAPPA,
    GOALS,
    LOWER,
    WAYS,
    WHOLE,
    ordered,
    tuned_ways,
    values_of,
)
from gradient_dd.experiments.paper.studies import BAIRD_FIVE_KAPPAS, BAIRD_KAPPAS
from gradient_dd.experiments.tuning import ByStudy, StudyEvidence
from gradient_dd.experiments.verdicts import ALIKE, FULLY, MAIN, Ask, ClaimQuestion, Pair
from gradient_dd.report.figure import Line

ZERO = 1e-3  # share of the initial error below which an error counts as zero
HALF = 0.5  # share of the initial error above which a learner has not learned

RATIOS = {"paper": "printed ratios", "standard": "usual ratios"}
STARTS = {"baird": "the paper's initial weights", "baird-starts": "random initial weights"}
KAPPAS = {MAIN: BAIRD_KAPPAS, ALIKE: BAIRD_FIVE_KAPPAS}
PLACES = {"R": "ρ on the whole sample", "T": "ρ on the bootstrap"}

TD, TDRC, TDC, HTD, HTD_DD = (WHOLE[name] for name in ("td", "tdrc", "tdc", "htd", "htd_dd"))
GTD2, GTD2_TO_TD, DD = (
    {mode: replace(WHOLE[name], rho_mode=mode) for mode in PLACES} for name in ("gtd2", "gtd2_to_td", "gradient_dd")
)


class Variant(NamedTuple):
    """A variant under one way of tuning: name, place of ρ, evidence and, if tuned by search, evidence with κ = 1."""

    name: str
    tuning: str
    mode: str
    evidence: StudyEvidence
    kappa_one: StudyEvidence | None = None


Lines = dict[str, Line] | Line  # a dict has a line for each place of ρ
Pairs = Callable[[Variant, str], list[Pair]]


def reading_name(ratios: str, mode: str, words: str) -> str:
    """Return the name of a variant; a variant without a mode does not depend on the place of ρ."""
    return ", ".join(filter(None, (RATIOS[ratios], PLACES.get(mode), words)))


def on_baird(
    words: str,
    kind: str,
    side: str,
    bound: float,
    pairs: Pairs,
    largest_only: bool = False,
    modes: tuple[str, ...] = tuple(PLACES),
    long: bool = False,
    tunings: tuple[str, ...] = WAYS,
) -> Ask:
    """Ask about pairs of every variant, on every size or on the largest size.

    One mode means that the place of ρ makes no difference. `long` adds longer runs from the paper's initial weights.
    """

    def variants(evidence: ByStudy) -> Iterator[tuple[str, Variant]]:
        for start, weights in STARTS.items():
            for tuning, _, (found,) in tuned_ways(evidence, tunings, start):
                one = evidence[f"{start}-one"] if tuning == FULLY else None
                for ratios, mode in product(RATIOS, modes):
                    name = reading_name(ratios, mode if len(modes) > 1 else "", weights)
                    yield ratios, Variant(name, tuning, mode, found, one)
        if long and "baird-long" in evidence:
            found = evidence["baird-long"]
            for ratios in RATIOS:
                name = reading_name(ratios, "R" if len(modes) > 1 else "", f"{found.study.steps:,} steps")
                yield ratios, Variant(name, MAIN, "R", found)

    def questions(evidence: ByStudy) -> list[ClaimQuestion]:
        return [
            ClaimQuestion(kind, (pair,), side, bound, one.name, one.tuning, pair.measure)
            for ratios, one in variants(evidence)
            for case in of_ratios(one.evidence, ratios)[-1 if largest_only else 0 :]
            for pair in pairs(one, case)
        ]

    return Ask(words, ("baird",), questions)


def of_ratios(found: StudyEvidence, ratios: str) -> list[str]:
    """Return the cases with these ratios, the smaller size first."""
    cases = [case for case, tasks in found.cases.items() if tasks[0].parameters.get("ratios", "standard") == ratios]
    return sorted(cases, key=found.size)


def ends(*lines: Lines) -> Pairs:
    """Return a function that pairs the final errors of learners with the initial error."""
    return lambda one, case: [Pair(one.evidence.choose(case, placed(line, one)), None, "last100") for line in lines]


def over(*rivals: Lines, goals: tuple[str, ...] = ("last100",)) -> Pairs:
    """Return a function that pairs Gradient-DD with each rival, tuned for each goal."""

    def pairs(one: Variant, case: str) -> list[Pair]:
        choose = one.evidence.choose
        return [
            Pair(choose(case, DD[one.mode], goal), choose(case, placed(rival, one), goal), goal)
            for goal, rival in product(goals, rivals)
        ]

    return pairs


def placed(line: Lines, one: Variant) -> Line:
    """Return the line for the place of ρ in a variant."""
    return line if isinstance(line, Line) else line[one.mode]


def kappa_one(one: Variant, case: str) -> list[Pair]:
    """Return the pair of κ = 1 and the best κ; in searches, ζ is tuned for both settings."""
    if one.kappa_one is None:
        lines = values_of("kappa", KAPPAS[one.tuning], one.mode)
        (line,) = values_of("kappa", (1.0,), one.mode)
        return [Pair(one.evidence.choose(case, line), ordered(one.evidence, case, lines)[0], "last100")]
    line = Line("Gradient-DD, κ = 1", "gradient_dd", (("kappa", 1.0),), one.mode)
    return [Pair(one.kappa_one.choose(case, line), one.evidence.choose(case, DD[one.mode]), "last100")]


TD_DIVERGES = on_baird("no step size ends below the initial error", "share", "above", 1.0, ends(TD), modes=("R",))
IS_BETTER = on_baird(LOWER.words, "ratio", "below", 1.0, over(GTD2, TDC, TDRC))
TDRC_IS_UNSTABLE = on_baird(
    "no step size halves the initial error", "share", "above", HALF, ends(TDRC), largest_only=True, modes=("R",)
)
OTHERS_STAY_ABOVE_ZERO = on_baird(
    "end above 1/1000 of the initial error", "share", "above", ZERO, ends(GTD2, TDC, TDRC), long=True
)
REACHES_ZERO = on_baird("ends below 1/1000 of the initial error", "share", "below", ZERO, ends(DD), long=True)
KAPPA_ONE_IS_GOOD = on_baird(BEST_KAPPA.words, "ratio", "below", AS_GOOD, kappa_one)
RIVALS = over(GTD2, GTD2_TO_TD, TD, TDRC, TDC, HTD, HTD_DD, goals=GOALS)
AS_GOOD_BY_SEARCH = on_baird(AS_GOOD_AS.words, "ratio", "below", AS_GOOD, RIVALS, tunings=(FULLY,))
