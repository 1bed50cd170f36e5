"""Baird's counterexample: every statement under every variant.

A variant is: the ratios as printed or of the usual policies; where ρ stands (R on the whole sample, T on the
bootstrapped half), for the learners it makes a difference to; and the initial weights, the paper's or random ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from gradient_dd.experiments.claims import Ask
from gradient_dd.experiments.paper.asking import (
    AS_GOOD,
    AS_GOOD_AS,
    BEST_KAPPA,
    GOALS,
    LOWER,
    WAYS,
    WHOLE,
    one_over_best,
    tuned_ways,
    values_of,
)
from gradient_dd.experiments.paper.studies import BAIRD_FIVE_KAPPAS, BAIRD_KAPPAS
from gradient_dd.experiments.tuning import ByStudy, StudyEvidence
from gradient_dd.experiments.verdicts import ALIKE, FULLY, MAIN, ClaimQuestion, Pair
from gradient_dd.report.figure import Line

ZERO = 1e-3  # of the initial error: what counts as reaching zero
HALF = 0.5  # of the initial error: what counts as learning at all

RATIOS = {"paper": "printed ratios", "standard": "usual ratios"}
STARTS = {"baird": "the paper's initial weights", "baird-starts": "random initial weights"}
KAPPAS = {MAIN: BAIRD_KAPPAS, ALIKE: BAIRD_FIVE_KAPPAS}
PLACES = {"R": "ρ on the whole sample", "T": "ρ on the bootstrap"}

TD, TDRC, TDC, HTD, HTD_DD = (WHOLE[name] for name in ("td", "tdrc", "tdc", "htd", "htd_dd"))
GTD2, GTD2_TO_TD, DD = (
    {mode: replace(WHOLE[name], rho_mode=mode) for mode in PLACES} for name in ("gtd2", "gtd2_to_td", "gradient_dd")
)


class Variant(NamedTuple):
    """A variant under one way of tuning: its name, the place of ρ, its evidence, and by search the one of κ = 1."""

    name: str
    tuning: str
    mode: str
    evidence: StudyEvidence
    kappa_one: StudyEvidence | None = None

    def pair(self, case: str, ours: Line, rival: Line | None = None, goal: str = "last100") -> Pair:
        """Return the settings that two lines select, or that one line selects."""
        chosen = self.evidence.choose(case, ours, goal)
        return Pair(chosen, None if rival is None else self.evidence.choose(case, rival, goal), goal)

    def question(self, kind: str, pair: Pair, side: str, bound: float) -> ClaimQuestion:
        """Return a question about this variant."""
        return ClaimQuestion(kind, (pair,), side, bound, self.name, self.tuning, pair.measure)


Asked = Callable[[Variant, str], list[ClaimQuestion]]


def reading_name(ratios: str, mode: str, words: str) -> str:
    """Return the name of a variant; without a mode the place of ρ makes no difference."""
    return ", ".join(filter(None, (RATIOS[ratios], PLACES.get(mode), words)))


def on_baird(
    words: str,
    asked: Asked,
    largest_only: bool = False,
    modes: tuple[str, ...] = tuple(PLACES),
    long: bool = False,
    tunings: tuple[str, ...] = WAYS,
) -> Ask:
    """Ask a statement of every variant, on every size or on the largest.

    With one mode ρ makes no difference. `long` adds the longer runs from the paper's initial weights.
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
            question
            for ratios, one in variants(evidence)
            for case in of_ratios(one.evidence, ratios)[-1 if largest_only else 0 :]
            for question in asked(one, case)
        ]

    return Ask(words, ("baird",), questions)


def of_ratios(found: StudyEvidence, ratios: str) -> list[str]:
    """Return the cases with these ratios, the smaller size first."""
    cases = [case for case, tasks in found.cases.items() if tasks[0].parameters.get("ratios", "standard") == ratios]
    return sorted(cases, key=found.size)


def shares(side: str, bound: float, *lines: dict[str, Line] | Line) -> Asked:
    """Ask on which side of a share of the initial error learners end; a dict has a line for each place of ρ."""

    def asked(variant: Variant, case: str) -> list[ClaimQuestion]:
        ours = [line if isinstance(line, Line) else line[variant.mode] for line in lines]
        return [variant.question("share", variant.pair(case, line), side, bound) for line in ours]

    return asked


def is_better(variant: Variant, case: str) -> list[ClaimQuestion]:
    """Ask whether Gradient-DD ends lower than GTD2, TDC and TDRC."""
    pairs = [variant.pair(case, DD[variant.mode], rival) for rival in (GTD2[variant.mode], TDC, TDRC)]
    return [variant.question("ratio", pair, "below", 1.0) for pair in pairs]


def is_as_good(variant: Variant, case: str) -> list[ClaimQuestion]:
    """Ask whether Gradient-DD is as good as every rival, in the final and the mean error."""
    rivals = (GTD2[variant.mode], GTD2_TO_TD[variant.mode], TD, TDRC, TDC, HTD, HTD_DD)
    pairs = [variant.pair(case, DD[variant.mode], rival, goal) for goal, rival in product(GOALS, rivals)]
    return [variant.question("ratio", pair, "below", AS_GOOD) for pair in pairs]


def kappa_one_is_good(variant: Variant, case: str) -> list[ClaimQuestion]:
    """Ask whether κ = 1 is as good as the best κ; by search, ζ is tuned with both."""
    if variant.kappa_one is None:
        pair = one_over_best(variant.evidence, case, values_of("kappa", KAPPAS[variant.tuning], variant.mode))
    else:
        one = Line("Gradient-DD, κ = 1", "gradient_dd", (("kappa", 1.0),), variant.mode)
        best = variant.evidence.choose(case, DD[variant.mode])
        pair = Pair(variant.kappa_one.choose(case, one), best, "last100")
    return [variant.question("ratio", pair, "below", AS_GOOD)]


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
