"""Baird's counterexample: every statement under every reading of it.

A reading is: the ratios as printed or those of the usual policies; where ρ stands (R on the whole sample, T on the
bootstrapped half), for the learners it makes a difference to; and the first weights, the paper's or random ones.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from gradient_dd.experiments.paper.claims.asking import AS_GOOD, one_over_best, values_of
from gradient_dd.experiments.paper.claims.evidence import Evidence
from gradient_dd.experiments.paper.claims.verdict import ALIKE, PAPER, Ask, Part, Question
from gradient_dd.experiments.paper.studies import BAIRD_FIVE_KAPPAS, BAIRD_KAPPAS
from gradient_dd.report.figure import Line

ZERO = 1e-3  # of the first error: what counts as reaching zero
HALF = 0.5  # of the first error: what counts as learning at all

RATIOS = {"paper": "printed ratios", "standard": "usual ratios"}
STARTS = {"baird": "the paper's first weights", "baird-starts": "random first weights"}
SUFFIX = {PAPER: "", ALIKE: "-alike"}

TD, TDRC, TDC = Line("TD", "td"), Line("TDRC", "tdrc"), Line("TDC", "tdc")
GTD2 = {mode: Line("GTD2", "gtd2", rho_mode=mode) for mode in ("R", "T")}
DD = {mode: Line("Gradient-DD", "gradient_dd", rho_mode=mode) for mode in ("R", "T")}


class Reading(NamedTuple):
    """One reading, one way of tuning, the evidence, and its cases."""

    name: str
    tuning: str
    mode: str
    evidence: Evidence
    cases: list[str]


Asked = Callable[[Reading, str], list[Question]]


def readings(evidence: dict[str, Evidence], modes: tuple[str, ...], long: bool = False) -> Iterator[Reading]:
    """Yield every reading; with one mode ρ makes no difference. `long` adds the longer runs of the paper's weights."""
    for start, words in STARTS.items():
        for tuning, suffix in SUFFIX.items():
            for ratios, named in RATIOS.items():
                for mode in modes:
                    found = evidence[start + suffix]
                    placed = f", ρ placed {mode}" if len(modes) > 1 else ""
                    yield Reading(f"{named}{placed}, {words}", tuning, mode, found, of_ratios(found, ratios))
    if long:
        found = evidence["baird-long"]
        for ratios, named in RATIOS.items():
            name = f"{named}{', ρ placed R' if len(modes) > 1 else ''}, {found.study.steps:,} steps"
            yield Reading(name, PAPER, "R", found, of_ratios(found, ratios))


def of_ratios(found: Evidence, ratios: str) -> list[str]:
    """Return the cases with these ratios, the smaller size first."""
    cases = [case for case, tasks in found.cases.items() if tasks[0].parameters.get("ratios", "standard") == ratios]
    return sorted(cases, key=found.size)


def on_baird(asked: Asked, modes: tuple[str, ...] = ("R", "T"), largest_only: bool = False, long: bool = False) -> Ask:
    """Return the questions of a statement under every reading, on every size or on the largest."""

    def ask(evidence: dict[str, Evidence]) -> list[Question]:
        return [
            question
            for one in readings(evidence, modes, long)
            for case in (one.cases[-1:] if largest_only else one.cases)
            for question in asked(one, case)
        ]

    return ask


def question(reading: Reading, kind: str, part: Part, side: str, bound: float) -> Question:
    """Return a question of a reading."""
    return Question(kind, (part,), side, bound, reading.name, reading.tuning)


def share(reading: Reading, case: str, line: Line, side: str, bound: float) -> Question:
    """Return the question on which side of a share of the first error a learner ends."""
    part = Part(reading.evidence.choose(case, line), None, "last100")
    return question(reading, "share", part, side, bound)


def td_diverges(reading: Reading, case: str) -> list[Question]:
    """No step size of TD ends below the first error."""
    return [share(reading, case, TD, "above", 1.0)]


def is_better(reading: Reading, case: str) -> list[Question]:
    """Gradient-DD ends lower than GTD2, TDC and TDRC."""
    ours = reading.evidence.choose(case, DD[reading.mode])
    return [
        question(reading, "ratio", Part(ours, reading.evidence.choose(case, rival), "last100"), "below", 1.0)
        for rival in (GTD2[reading.mode], TDC, TDRC)
    ]


def tdrc_is_unstable(reading: Reading, case: str) -> list[Question]:
    """No step size of TDRC halves the first error."""
    return [share(reading, case, TDRC, "above", HALF)]


def others_stay_above_zero(reading: Reading, case: str) -> list[Question]:
    """GTD2, TDC and TDRC end above a thousandth of the first error."""
    return [share(reading, case, line, "above", ZERO) for line in (GTD2[reading.mode], TDC, TDRC)]


def reaches_zero(reading: Reading, case: str) -> list[Question]:
    """Gradient-DD ends below a thousandth of the first error."""
    return [share(reading, case, DD[reading.mode], "below", ZERO)]


def kappa_one_is_good(reading: Reading, case: str) -> list[Question]:
    """κ = 1 is as good as the best κ."""
    kappas = BAIRD_KAPPAS if reading.tuning == PAPER else BAIRD_FIVE_KAPPAS
    part = one_over_best(reading.evidence, case, values_of("kappa", kappas, reading.mode))
    return [question(reading, "ratio", part, "below", AS_GOOD)]
