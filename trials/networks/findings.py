"""Describe the findings: a sentence for each prediction, and the answer of the whole trial."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.experiments.verdicts import OUTCOMES, ClaimVerdict, Comparison
from gradient_dd.studies.intervals import ratio_interval
from trials.networks.cells import WITH_DD, dd_name

FEW = 8  # largest number of confirmed comparisons that are listed one by one
SHORT = {"sgd": "SGD", "adam": "Adam", "adam_without_momentum": "Adam, β₁ = 0"}
STREAM_SGD = ["stream", "sgd"]
CONTROL_DD = {"QC-DD": "QC", "QRC-DD": "QRC", "GQ2-DD": "GQ2"}


def shown(cell: dict[str, Any], label: str) -> Any:
    """Return the errors of a learner on test seeds, (seeds,)."""
    return np.array(cell[label]["errors"], float)


def finding(comparisons: list[Comparison]) -> str:
    """Return the refuting, undecided and confirming comparisons with intervals; many confirming ones as a range."""
    parts: list[str] = []
    told: set[str] = set()
    for outcome, word in zip(reversed(OUTCOMES), ("Refuted", "Open", "Held"), strict=True):
        new = {one.text: one for one in comparisons if one.outcome == outcome and one.text not in told}
        some = list(new.values())  # a ratio with two bounds is listed once
        if outcome == "holds" and len(comparisons) > FEW:
            values = [one.estimate for one in some]
            listed = [f"{len(some)} ratios from {number(min(values))} to {number(max(values))}"] if some else []
        else:
            listed = [told_one(one, before) for before, one in zip([None, *some], some, strict=False)]
        told |= new.keys()
        parts += [f"{word}: {'; '.join(listed)}."] if listed else []
    return " ".join(parts)


def told_one(one: Comparison, before: Comparison | None) -> str:
    """Return a number with its interval, or with its diverged runs if it has none; names are not repeated."""
    again = before is not None and of_what(before) == of_what(one) and one.task
    value = f"{one.task + ':' if again else one.text} {number(one.estimate)}"
    lost = [f"{who['label']} in {who['diverged']}" for who in (one.ours, one.rival) if who and who["diverged"]]
    if lost:
        return f"{value} (diverged: {', '.join(lost)} of {one.runs} runs)"
    return value if one.kind == "exact" else f"{value} [{number(one.low)}, {number(one.high)}]"


def of_what(one: Comparison) -> str:
    """Return the name of a number without the name of its cell."""
    return one.text.removesuffix(f", {one.task}:")


def number(value: float) -> str:
    """Return a number with three digits."""
    return f"{value:.3g}".replace("inf", "∞")


class Sides(NamedTuple):
    """The number of ratios, and of ratios with their whole 95 % interval below 1 and above 1."""

    all: int
    better: int
    worse: int

    def __str__(self) -> str:
        return f"smaller in {self.better} and larger in {self.worse} of {self.all}"


def sides(pairs: Iterable[tuple[dict[str, Any], str, str]]) -> Sides:
    """Return the sides of 1 on which the ratios of two learners lie; pairs: a cell and both names."""
    found = [ratio_interval((shown(cell, ours), shown(cell, rival))) for cell, ours, rival in pairs]
    return Sides(len(found), sum(one.high < 1 for one in found), sum(one.low > 1 for one in found))


def answer(evidence: Any, verdicts: list[ClaimVerdict]) -> list[str]:
    """Return the answer in three sentences, and the result of the ledger.

    Sentences: a stream with SGD, where neighbours do or do not share their gradient; Adam, replay and a distant copy;
    control and plain TD.
    """
    cells = evidence.prediction
    hot, raw = (
        " and ".join(gain(cells[name, "stream", "sgd"]) for name in names)
        for names in (("one-hot-walk", "one-hot-tilted"), ("walk", "tilted-walk"))
    )
    adam = [cell for (_, *way), cell in cells.items() if way[0] == "stream" and way != STREAM_SGD]
    replay = [cell for (_, sampling, _), cell in cells.items() if sampling == "replay"]
    near = [with_and_without(some, 1) for some in (adam, replay)]
    far = with_and_without(adam + replay, 100)
    agents = sides((cell, *pair) for cell in evidence.control.values() for pair in CONTROL_DD.items())
    stable = [cell for (problem, *_), cell in cells.items() if problem != "baird"]
    td = sides((cell, dd_name(base, 1), "TD") for cell in stable for base in WITH_DD)
    held = sum(one.verdict == "holds" for one in verdicts)
    return [
        f"On a stream with SGD and one input for each state Gradient-DD has {hot} times the error of GTD2, on- and "
        f"off-policy; where the input is the position, so that neighbours share their gradient, {raw} times.",
        f"On a stream with Adam the DD term makes the error of its learner {near[0]} comparisons, with replay "
        f"{near[1]}, and as a copy of 100 updates before, with Adam or replay, {far}.",
        f"In control it makes the cost {agents}; and beside plain TD, off Baird's counterexample, the error of a "
        f"learner with the term is {td}.",
        f"Of {len(verdicts)} predictions that were registered before the trial, {held} "
        f"{'holds' if held == 1 else 'hold'} in full.",
    ]


def with_and_without(cells: Iterable[dict[str, Any]], period: int) -> Sides:
    """Return the comparison of learners with and without the DD term."""
    return sides((cell, dd_name(base, period), base) for cell in cells for base in WITH_DD)


def gain(cell: dict[str, Any]) -> str:
    """Return the error of Gradient-DD relative to GTD2's."""
    return f"{ratio_interval((shown(cell, dd_name('GTD2', 1)), shown(cell, 'GTD2'))).estimate:.2f}"
