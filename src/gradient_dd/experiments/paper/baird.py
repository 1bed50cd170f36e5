"""Baird's counterexample: every statement under every variant.

A variant is: the ratios as printed or those of the usual policies; where ρ stands (R on the whole sample, T on the
bootstrapped half), for the learners it makes a difference to; and the initial weights, the paper's or random ones.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gradient_dd.experiments.claims import Ask
from gradient_dd.experiments.paper.asking import AS_GOOD, BEST_KAPPA, LOWER, ByStudy, one_over_best, values_of
from gradient_dd.experiments.paper.studies import BAIRD_FIVE_KAPPAS, BAIRD_KAPPAS
from gradient_dd.experiments.tuning import StudyEvidence
from gradient_dd.experiments.verdicts import ALIKE, FULLY, MAIN, ClaimQuestion, Pair
from gradient_dd.report.figure import Line

ZERO = 1e-3  # of the initial error: what counts as reaching zero
HALF = 0.5  # of the initial error: what counts as learning at all

RATIOS = {"paper": "printed ratios", "standard": "usual ratios"}
STARTS = {"baird": "the paper's initial weights", "baird-starts": "random initial weights"}
SUFFIX = {MAIN: "", ALIKE: "-alike", FULLY: "-fully"}
KAPPAS = {MAIN: BAIRD_KAPPAS, ALIKE: BAIRD_FIVE_KAPPAS}
PLACES = {"R": "ρ on the whole sample", "T": "ρ on the bootstrap"}
MODES = tuple(PLACES)

TD, TDRC, TDC = Line("TD", "td"), Line("TDRC", "tdrc"), Line("TDC", "tdc")
GTD2 = {mode: Line("GTD2", "gtd2", rho_mode=mode) for mode in MODES}
DD = {mode: Line("Gradient-DD", "gradient_dd", rho_mode=mode) for mode in MODES}


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


def long_runs(steps: int | None) -> str:
    """Return how readings call the longer runs of the paper's initial weights."""
    return f"{steps:,} steps"


def readings(
    evidence: ByStudy, modes: tuple[str, ...], long: bool = False, tunings: tuple[str, ...] = tuple(SUFFIX)
) -> Iterator[Reading]:
    """Yield every variant; with one mode ρ makes no difference. `long` adds the longer runs of the paper's weights."""
    for start, words in STARTS.items():
        for tuning in tunings:
            if start + SUFFIX[tuning] not in evidence:
                continue  # a first look leaves some studies out
            found = evidence[start + SUFFIX[tuning]]
            for ratios in RATIOS:
                for mode in modes:
                    name = reading_name(ratios, mode if len(modes) > 1 else "", words)
                    one = evidence[f"{start}-one"] if tuning == FULLY else None
                    yield Reading(name, tuning, mode, found, of_ratios(found, ratios), one)
    if long and "baird-long" in evidence:
        found = evidence["baird-long"]
        for ratios in RATIOS:
            name = reading_name(ratios, "R" if len(modes) > 1 else "", long_runs(found.study.steps))
            yield Reading(name, MAIN, "R", found, of_ratios(found, ratios))


def of_ratios(found: StudyEvidence, ratios: str) -> list[str]:
    """Return the cases with these ratios, the smaller size first."""
    cases = [case for case, tasks in found.cases.items() if tasks[0].parameters.get("ratios", "standard") == ratios]
    return sorted(cases, key=found.size)


def on_baird(
    words: str, asked: Asked, modes: tuple[str, ...] = MODES, largest_only: bool = False, long: bool = False
) -> Ask:
    """Return the questions of a statement under every variant, on every size or on the largest."""

    def questions(evidence: ByStudy) -> list[ClaimQuestion]:
        return [
            question
            for one in readings(evidence, modes, long)
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


def kappa_one_is_good(reading: Reading, case: str) -> list[ClaimQuestion]:
    """Return the question whether κ = 1 is as good as the best κ; tuned fully, ζ is tuned with both."""
    if reading.kappa_one is None:
        pair = one_over_best(reading.evidence, case, values_of("kappa", KAPPAS[reading.tuning], reading.mode))
    else:
        one = Line("Gradient-DD, κ = 1", "gradient_dd", (("kappa", 1.0),), reading.mode)
        best = reading.evidence.choose(case, DD[reading.mode])
        pair = Pair(reading.kappa_one.choose(case, one), best, "last100")
    return [question(reading, "ratio", pair, "below", AS_GOOD)]


TD_DIVERGES = on_baird("no step size ends below the initial error", shares("above", 1.0, TD), ("R",))
IS_BETTER = on_baird(LOWER.words, is_better)
TDRC_IS_UNSTABLE = on_baird("no step size halves the initial error", shares("above", HALF, TDRC), ("R",), True)
OTHERS_STAY_ABOVE_ZERO = on_baird(
    "end above 1/1000 of the initial error", shares("above", ZERO, GTD2, TDC, TDRC), long=True
)
REACHES_ZERO = on_baird("ends below 1/1000 of the initial error", shares("below", ZERO, DD), long=True)
KAPPA_ONE_IS_GOOD = on_baird(BEST_KAPPA.words, kappa_one_is_good)
