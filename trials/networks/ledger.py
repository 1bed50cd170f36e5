"""The predictions that were registered before the trial, each with its criterion.

Every prediction has a second one, `own`, by the author of the trial, written before the trial was run at full scale.
Both are kept as written; the verdict describes the result.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.experiments.verdicts import Ask, Claim, ClaimQuestion, ClaimVerdict, exactly
from gradient_dd.studies.intervals import EXPLODED, Interval, ratio_interval
from trials.networks.cells import OPTIMISERS, WITH_DD, c_name, dd_name
from trials.networks.findings import CONTROL_DD, SHORT, finding, shown
from trials.networks.spiral import LEARNERS_HERE

WHERE = "registered"
RAW = ("walk", "tilted-walk", "mountain-car")
FOUR = ("collision", "walk", "tilted-walk", "mountain-car")
ONE_HOT = {"walk": "one-hot-walk", "tilted-walk": "one-hot-tilted"}
MARGIN = 0.9  # a ratio below it counts as clearly better


class NetworkEvidence(NamedTuple):
    """The measurements: predictions by (problem, sampling, optimiser), control by world, the spiral, the mechanism."""

    prediction: dict[tuple[str, str, str], dict[str, Any]]
    control: dict[str, dict[str, Any]]
    spiral: dict[str, dict[str, Any]]
    mechanism: dict[str, float]


class Prediction(NamedTuple):
    """A claim, and the expectation of the author of the trial."""

    claim: Claim
    own: str

    def judge(self, evidence: NetworkEvidence) -> ClaimVerdict:
        """Return the verdict."""
        verdict = self.claim.judge(self.claim.ask(evidence))
        return replace(verdict, finding=finding(verdict.comparisons))


def ratio(cell: dict[str, Any], ours: str, rival: str, side: str, bound: float, place: str) -> ClaimQuestion:
    """Return the question whether the error ratio of two learners is on one side of a bound."""
    pair = shown(cell, ours), shown(cell, rival)
    asked = ratio_of([pair], side, bound, f"{ours} / {rival}, {place}:", place)
    lost = (
        {"label": name, "diverged": int((~np.isfinite(one)).sum())}
        for name, one in zip((ours, rival), pair, strict=True)
    )
    return replace(asked, facts=asked.facts | dict(zip(("ours", "rival"), lost, strict=True)))


def ratio_of(pairs: list[tuple[Any, Any]], side: str, bound: float, text: str, place: str) -> ClaimQuestion:
    """Return the question whether a ratio of errors, or the quotient of two ratios, is on one side of a bound."""

    def answer(level: float) -> Interval:
        return ratio_interval(*pairs, level=level)

    facts = {"text": text, "task": place, "runs": len(pairs[0][0])}
    return ClaimQuestion("ratio", (), side, bound, tuned_for="", answer=answer, facts=facts)


def number(value: float, side: str, bound: float, text: str) -> ClaimQuestion:
    """Return the question whether a deterministic number is on one side of a bound."""
    return ClaimQuestion("exact", (), side, bound, tuned_for="", answer=exactly(value), facts={"text": text})


def replay_sgd(evidence: NetworkEvidence) -> list[ClaimQuestion]:
    """Return questions for replay and SGD: every DD form at period 1 against its learner without the term."""
    cells = {problem: cell for (problem, *way), cell in evidence.prediction.items() if way == ["replay", "sgd"]}
    return [
        ratio(cell, dd_name(base, 1), base, "above", MARGIN, problem)
        for problem, cell in cells.items()
        for base in WITH_DD
    ]


def stream_sgd(evidence: NetworkEvidence) -> list[ClaimQuestion]:
    """Return questions for SGD on a stream with raw inputs: Gradient-DD within 15 % of GTD2, the mechanism's size."""
    asked = []
    for problem in RAW:
        cell = evidence.prediction[problem, "stream", "sgd"]
        for side, bound in (("above", 0.85), ("below", 1.15)):
            asked.append(ratio(cell, dd_name("GTD2", 1), "GTD2", side, bound, problem))
    for problem in ("walk", "tilted-walk"):
        text = f"size of the mechanism, {problem}:"
        asked.append(number(abs(evidence.mechanism[problem]), "below", 0.1, text))
    return asked


def one_hot(evidence: NetworkEvidence) -> list[ClaimQuestion]:
    """Return questions for one input per state, where the theory predicts the mechanism and a gain from the term."""
    asked = []
    for raw, hot in ONE_HOT.items():
        text = f"size of the mechanism, {hot}, over that of {raw}:"
        asked.append(number(abs(evidence.mechanism[hot] / evidence.mechanism[raw]), "above", 3.0, text))
        cell = evidence.prediction[hot, "stream", "sgd"]
        asked.append(ratio(cell, dd_name("GTD2", 1), "GTD2", "below", 1.0, hot))
    return asked


def stream_adam(optimiser: str) -> Callable[[NetworkEvidence], list[ClaimQuestion]]:
    """Return the questions whether Gradient-DD beats GTD2 on a stream with an optimiser, on four problems."""

    def ask(evidence: NetworkEvidence) -> list[ClaimQuestion]:
        cells = {problem: evidence.prediction[problem, "stream", optimiser] for problem in FOUR}
        return [ratio(cell, dd_name("GTD2", 1), "GTD2", "below", 1.0, problem) for problem, cell in cells.items()]

    return ask


def less_without_momentum(evidence: NetworkEvidence) -> list[ClaimQuestion]:
    """Return questions on Gradient-DD / GTD2 with Adam, over the ratio without momentum: below 1 if it damps that."""
    asked = []
    for problem in FOUR:
        with_it, without = (evidence.prediction[problem, "stream", name] for name in OPTIMISERS[1:])
        pairs = [(shown(cell, dd_name("GTD2", 1)), shown(cell, "GTD2")) for cell in (with_it, without)]
        asked.append(ratio_of(pairs, "below", 1.0, f"gain with β₁ = .9 over gain with β₁ = 0, {problem}:", problem))
    return asked


def half_correction(evidence: NetworkEvidence) -> list[ClaimQuestion]:
    """Return questions on TDC with c = ½ against TD, for every cell except Baird's."""
    return [
        ratio(cell, c_name("TDC"), "TD", "below", 1.1, f"{problem}, {sampling}, {SHORT[optimiser]}")
        for (problem, sampling, optimiser), cell in evidence.prediction.items()
        if problem != "baird"
    ]


def on_the_spiral(evidence: NetworkEvidence) -> list[ClaimQuestion]:
    """Return questions on the spiral: without ψ all errors diverge; with ψ all errors stay finite and decrease."""
    asked = []
    for label in LEARNERS_HERE:
        found = evidence.spiral[label]
        if "ψ" in label:
            asked.append(number(max(found["largest"]), "below", 1.5, f"{label}, largest error over the first:"))
            asked.append(number(max(found["last"]), "below", 1.0, f"{label}, last error over the first:"))
        else:
            asked.append(number(min(found["largest"]), "above", EXPLODED, f"{label}, largest error over the first:"))
    return asked


def optimism(evidence: NetworkEvidence) -> list[ClaimQuestion]:
    """Return questions on QRC relative to Q on Mountain Car: better only with optimistic initial values."""
    first, low = evidence.control["mountain-car"], evidence.control["mountain-car-pessimistic"]
    return [
        ratio(first, "QRC", "Q", "below", 1.0, "mountain-car"),
        ratio(low, "QRC", "Q", "above", MARGIN, "mountain-car-pessimistic"),
    ]


def control_dd(evidence: NetworkEvidence) -> list[ClaimQuestion]:
    """Return questions on the DD form of every gradient learner of control, against the learner without the term."""
    return [
        ratio(cell, ours, rival, "above", MARGIN, world)
        for world, cell in evidence.control.items()
        for ours, rival in CONTROL_DD.items()
    ]


def distance(evidence: NetworkEvidence) -> list[ClaimQuestion]:
    """Return questions on copies of period 100 with replay and Adam, against the learner without the term."""
    cells = {problem: cell for (problem, *way), cell in evidence.prediction.items() if way == ["replay", "adam"]}
    return [
        ratio(cell, dd_name(base, 100), base, "above", MARGIN, problem)
        for problem, cell in cells.items()
        for base in WITH_DD
    ]


def prediction(
    name: str,
    statement: str,
    criterion: str,
    ask: Callable[[NetworkEvidence], list[ClaimQuestion]],
    own: str,
    needed: int | None = None,
) -> Prediction:
    """Return one entry of the ledger."""
    return Prediction(Claim(name, WHERE, statement, Ask(criterion, (), ask), needed, source="ours"), own)


LEDGER = (
    prediction(
        "replay-sgd",
        "With replay and SGD the DD term is never clearly better.",
        "every ratio of errors with the term (period 1, κ tuned) to without lies above 0.9",
        replay_sgd,
        "Agreed: rows of a batch are no trajectory, so the term only damps. One or two ratios may stay open, by noise.",
    ),
    prediction(
        "stream-sgd",
        "On a stream with SGD and raw inputs Gradient-DD is within 15 % of GTD2, because the mechanism is gone: "
        "k(s, s')/k(s', s') is nearly γ.",
        "errors between 0.85 and 1.15 times those of GTD2; mean of k(s, s')/k(s', s') − γ below 0.1 in size",
        stream_sgd,
        "Agreed for the mechanism. With κ = 4 and a large α the term may still damp oscillation, so one of the three "
        "problems may pass 15 %.",
    ),
    prediction(
        "one-hot",
        "With one input for each state the mechanism is there, and Gradient-DD is better than GTD2.",
        "the mechanism at least 3 times as large as with raw inputs, and errors below those of GTD2",
        one_hot,
        "The mechanism yes. The gain only in part: states share the weights of the hidden layer, so the kernel is far "
        "from diagonal.",
    ),
    prediction(
        "stream-adam",
        "On a stream with Adam the term damps momentum and helps on at least 2 of 4 problems.",
        "Gradient-DD / GTD2 below 1 on 2 of 4",
        stream_adam("adam"),
        "Agreed, by 5 to 20 % on two or three of them.",
        needed=2,
    ),
    prediction(
        "adam-momentum",
        "It helps less with β₁ = 0.",
        "gain with β₁ = 0.9 over gain with β₁ = 0 below 1",
        less_without_momentum,
        "True in the mean, but most of the four will stay open with 30 seeds.",
    ),
    prediction(
        "half-correction",
        "TDC with c = ½ has at most 1.1 times the error of TD everywhere but on Baird's.",
        "ratio below 1.1 in every cell",
        half_correction,
        "Nearly everywhere: I expect 25 or more of the 30 cells, the rest open or failing on the stream with Adam.",
    ),
    prediction(
        "spiral",
        "On the spiral TD diverges, GTD2 and TDC diverge without ψ and converge with it.",
        f"mean updates: an error beyond {EXPLODED:g} times the first without ψ, the last below the first with it",
        on_the_spiral,
        "None: it was seen before, while the constants of the spiral were put right.",
    ),
    prediction(
        "optimism",
        "QRC's lead on Mountain Car is optimism of the initial values: it vanishes when they start pessimistic.",
        "QRC / Q below 1 from first values of about 0, and above 0.9 from −100",
        optimism,
        "No lead at all: in a look at four seeds of 6,000 steps QRC was slower than Q, as ζ = 1 and reg = 1 make its "
        "correction strong early.",
    ),
    prediction(
        "control-dd",
        "In control the DD term is never clearly better either.",
        "every ratio of costs with the term to without lies above 0.9",
        control_dd,
        "Added by who built the trial. Most of the twelve will hold, some stay open.",
    ),
    prediction(
        "distance",
        "A copy at a distance (period 100) with replay and Adam is never clearly better either.",
        "every ratio of errors with the term to without lies above 0.9",
        distance,
        "Added by who built the trial. It will fail on Baird's, where slowing down helps, and hold elsewhere.",
    ),
)
