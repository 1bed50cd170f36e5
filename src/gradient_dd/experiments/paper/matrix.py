"""Statements that are judged under several readings, as a matrix: statement × reading."""

import re
from typing import NamedTuple

from gradient_dd.experiments.paper.claims import Judgement, Verdict
from gradient_dd.experiments.paper.claims.verdict import ALIKE, PAPER

PLACED = re.compile(r", ρ placed ([RT])")


class Cell(NamedTuple):
    """What a statement comes to under a reading: a word for its colour, its fraction, and the same tuned alike."""

    verdict: str
    fraction: str
    alike: str


class Matrix(NamedTuple):
    """Verdicts as columns, readings as rows; None where a statement is not judged under a reading."""

    verdicts: list[Verdict]
    rows: list[tuple[str, list[Cell | None]]]


def is_of_readings(verdict: Verdict) -> bool:
    """Return whether a verdict has more than one reading."""
    return len({judgement.reading for judgement in verdict.judgements}) > 1


def matrix_of(verdicts: list[Verdict]) -> Matrix:
    """Return the matrix. A statement for which the place of ρ makes no difference stands in the rows of R only."""
    found = dict.fromkeys(judgement.reading for verdict in verdicts for judgement in verdict.judgements)
    names = [name for name in found if PLACED.search(name) or not has_placed(name, list(found))]
    return Matrix(verdicts, [(name, [cell(verdict, name) for verdict in verdicts]) for name in names])


def has_placed(name: str, names: list[str]) -> bool:
    """Return whether a reading is also there with a place of ρ."""
    return any(PLACED.sub("", other) == name for other in names if other != name)


def cell(verdict: Verdict, reading: str) -> Cell | None:
    """Return what a verdict comes to under a reading."""
    placed = PLACED.search(reading)
    same = {reading} | ({PLACED.sub("", reading)} if placed and placed[1] == "R" else set())
    main = [one for one in verdict.judgements if one.reading in same and one.tuning == PAPER]
    alike = [one for one in verdict.judgements if one.reading in same and one.tuning == ALIKE]
    if not main:
        return None
    return Cell(main[0].verdict, fraction(main), fraction(alike))


def fraction(judgements: list[Judgement]) -> str:
    """Return how many comparisons hold, of how many; empty without any."""
    of = sum(one.of for one in judgements)
    return f"{sum(one.held for one in judgements)} of {of}" if of else ""
