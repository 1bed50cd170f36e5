"""The ledger: what others have published, and what we ask about the DD term, each with a verdict from shown runs.

A statement holds where the whole interval lies on the side that it says; `experiments.verdicts` has the words. The
evidence is the contest. A statement whose problems or learners did not take part has no questions, and no verdict.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.claims import Ask, Claim
from gradient_dd.experiments.family import independent_run, published
from gradient_dd.experiments.family.contest import Contest, Entrant
from gradient_dd.experiments.family.problems import WITH_DD
from gradient_dd.experiments.family.trials import fixed_point_name
from gradient_dd.experiments.verdicts import ClaimQuestion, ClaimVerdict
from gradient_dd.learners import LEARNERS
from gradient_dd.studies.intervals import Interval, ratio_interval

SENSITIVE = 2.0  # error at λ = 0 over that at λ = 0.9
NEAR = 1.05  # factor between two ratios that counts as agreement
AT_LAMBDAS = {"λ tuned": None, "λ = 0": 0.0}  # the two ways in which the DD term is judged
SAME_ZETAS = " and the same ζ, 144 settings against 72"  # again, with the values of ζ that both learners have
RATIO = "ratio of mean errors on shown runs"
AGAIN = "ratio to TD without a trace, on the same draws of the features: within 5 % of the other run's"

LearnerAt = tuple[str, float]  # a learner and its λ
Answer = Callable[[float], Interval]


class Duel(NamedTuple):
    """Two learners on a problem, and what is measured."""

    problem: str
    ours: Entrant
    rival: Entrant
    measure: str = "area"


def duel(problem: str, ours: str, rival: str, lam: float | None = None, measure: str = "area") -> Duel:
    """Return a duel of two learners with the same λ, or with λ tuned."""
    return Duel(problem, Entrant(ours, lam), Entrant(rival, lam), measure)


def compared(
    contest: Contest, duel: Duel, side: str, bound: float = 1.0, reading: str = "default"
) -> list[ClaimQuestion]:
    """Return the question whether a learner's error over a rival's is on a side of a bound; none if one is missing."""
    problem, *both, measure = duel
    if not all(contest.has(problem, one) for one in both):
        return []
    sides = {one.label: contest.shown(problem, one, measure) for one in both}
    return [question(problem, sides, ratio_of(sides), side, bound, measure=measure, reading=reading)]


def question(
    problem: str, sides: dict[str, Array], answer: Answer, side: str, bound: float = 1.0, text: str = "", **more: str
) -> ClaimQuestion:
    """Return a question with all that the ledger shows of it; `sides` are the errors of one or two learners by name.

    `more` may name a measure other than the area, and a reading.
    """
    measure = more.get("measure", "area")
    told = [{"label": name, "mean": float(errors.mean())} for name, errors in sides.items()]  # infinite where a run is
    facts: dict[str, Any] = {
        "task": problem,
        "measure": measure,
        "runs": len(next(iter(sides.values()))),
        "ours": told[0],
        "rival": told[1] if len(told) > 1 else None,
        "text": text or f"{problem}, {' / '.join(sides)}:",
    }
    reading = more.get("reading", "default")
    return ClaimQuestion("ratio", (), side, bound, reading, tuned_for=measure, answer=answer, facts=facts)


def ratio_of(*sides: dict[str, Array]) -> Answer:
    """Return the answer to a question about a ratio; of two pairs of sides, about the growth of a ratio."""
    pairs = [(ours, theirs) for ours, theirs in (one.values() for one in sides)]
    return lambda level: ratio_interval(*pairs, level=level)


def near(problem: str, sides: dict[str, Array], known: float) -> ClaimQuestion:
    """Return the question whether a ratio of two learners is within 5 % of a known one, whichever is larger."""
    text = f"{' / '.join(sides)}, {known:.3f} before: factor between the two"

    def answer(level: float) -> Interval:
        ratio, low, high = (one / known for one in ratio_of(sides)(level))
        apart = [max(one, 1 / one) if one > 0 else np.inf for one in (ratio, low, high)]
        return Interval(apart[0], 1.0 if low <= 1 <= high else min(apart[1:]), max(apart[1:]))

    return question(problem, sides, answer, "below", NEAR, text)


def tiers(contest: Contest) -> list[ClaimQuestion]:
    """Return the questions about the three published tiers: tuned over λ, and where λ tells them apart most."""
    found: list[ClaimQuestion] = []
    for lam, reading in ((None, "first tier, λ tuned"), (0.0, "first tier, λ = 0")):
        for ours in published.FIRST_TIER:
            for rival in published.MIDDLE_TIER:
                found += compared(contest, duel("collision", ours, rival, lam), "below", reading=reading)
    for lam, reading in ((None, "last tier, λ tuned"), (0.9, "last tier, λ = 0.9")):
        for ours in published.LAST_TIER:
            for rival in published.MIDDLE_TIER:
                found += compared(contest, duel("collision", ours, rival, lam), "above", reading=reading)
    return found


def lambda_matters(contest: Contest) -> list[ClaimQuestion]:
    """Return the questions by what factor the error falls from λ = 0 to λ = 0.9."""
    found: list[ClaimQuestion] = []
    for learner in (*(one for one in published.MIDDLE_TIER if one != "pgtd2"), "etd"):
        side = "below" if learner == "etd" else "above"
        at_both = Duel("collision", Entrant(learner, 0.0), Entrant(learner, 0.9))
        found += compared(contest, at_both, side, SENSITIVE)
    return found


def again(contest: Contest) -> list[ClaimQuestion]:
    """Return the questions whether tuned errors on Collision, over that of TD, are those of an independent run."""
    entrants = {key: Entrant(*key) for key in independent_run.MEANS}
    here = {key: one for key, one in entrants.items() if contest.has("collision", one)}
    errors = {key: contest.shown("collision", one) for key, one in here.items()}
    return ratios_again(independent_run.MEANS, {key: (here[key].label, some) for key, some in errors.items()})


def fixed_points_again(contest: Contest) -> list[ClaimQuestion]:
    """Return the same questions about the exact errors of fixed points, means over draws of the features."""
    found = [trial.shown for trial in contest.trials if trial.name == "fixed points"]
    known = independent_run.FIXED_POINTS
    named = {key: fixed_point_name(*key) for key in known}
    return [
        one
        for shown in found
        for one in ratios_again(known, {key: (name, shown[name]) for key, name in named.items() if name in shown})
    ]


def ratios_again(known: dict[LearnerAt, float], found: dict[LearnerAt, tuple[str, Array]]) -> list[ClaimQuestion]:
    """Return the questions whether errors over TD's are the known ones; `found` has names and errors of a learner."""
    rival = independent_run.RIVAL
    return [
        near("collision", dict([found[key], found[rival]]), known[key] / known[rival])
        for key in found
        if key != rival and rival in found
    ]


def reuse(contest: Contest) -> list[ClaimQuestion]:
    """Return the questions whether one sample beats GTD2 and even the TD fixed point, and two samples beat neither."""
    found = compared(contest, duel("collision", "pgtd2", "gtd2", 0.0), "below")
    for trial in (one for one in contest.trials if one.name == "two samples"):
        names = {"one": "PGTD2 with one sample", "two": "PGTD2 with two samples", "rest": "the TD fixed point"}
        for ours, rival, side in (("two", "one", "above"), ("one", "rest", "below"), ("two", "rest", "above")):
            sides = {names[one]: trial.shown[one] for one in (ours, rival)}
            found.append(question("collision", sides, ratio_of(sides), side))
    return found


def high_variance(contest: Contest) -> list[ClaimQuestion]:
    """Return the questions whether the careful learners lose less from Rooms to High-Variance Rooms than the others."""
    both, found = ("rooms-high", "rooms"), []
    for ours in map(Entrant, published.LAST_TIER):
        for rival in map(Entrant, ("td", "gtd2", "tdc", "etd")):
            if all(contest.has(problem, one) for problem in both for one in (ours, rival)):
                sides = [{one.label: contest.shown(problem, one) for one in (ours, rival)} for problem in both]
                text = f"growth of {ours.label} / growth of {rival.label}:"
                found.append(question("rooms-high", sides[0], ratio_of(*sides), "below", text=text))
    return found


def limited(contest: Contest) -> list[ClaimQuestion]:
    """Return the questions whether the careful learners are behind in Rooms, tuned over λ."""
    return [
        one
        for ours in published.LAST_TIER
        for rival in published.MIDDLE_TIER
        for one in compared(contest, duel("rooms", ours, rival), "above")
    ]


def asymptotic(contest: Contest) -> list[ClaimQuestion]:
    """Return the questions whether ETD ends lower in both rooms."""
    return [
        one
        for problem in ("rooms", "rooms-high")
        for rival in ("td", "tdc", "gtd2", "vtrace")
        for one in compared(contest, duel(problem, "etd", rival, measure="last100"), "below")
    ]


def tdrc_orderings(contest: Contest) -> list[ClaimQuestion]:
    """Return the questions whether each learner is on the published side of TDRC, where that is clear of 1."""
    found = []
    for trial in (one for one in contest.trials if one.name == "projected"):
        for learner, areas in published.TDRC_AREAS.items():
            known = areas.get(trial.problem, 1.0)
            if abs(known - 1) > published.READ_OFF + 1e-9:
                sides = {LEARNERS[one].label: trial.shown[one] for one in (learner, "tdrc")}
                text = f"{trial.problem}, {' / '.join(sides)}, published {known:g}:"
                side = "above" if known > 1 else "below"
                found.append(question(trial.problem, sides, ratio_of(sides), side, text=text))
    return found


def helps(contest: Contest, dd: str, base: str) -> list[ClaimQuestion]:
    """Return the questions on every problem whether the DD term lowers the error, with λ tuned and with λ = 0.

    Asked twice where the learner without the term has more values of ζ: of all, and of those that both have.
    """
    found: list[ClaimQuestion] = []
    for same in ("", SAME_ZETAS):
        for name, lam in AT_LAMBDAS.items():
            for problem in (one.name for one in contest.problems if {dd, base} <= set(contest.learners)):
                zetas = contest.common_zetas(problem, dd, base) if same else None
                if not same or zetas:
                    both = Duel(problem, Entrant(dd, lam), Entrant(base, lam, zetas))
                    found += compared(contest, both, "below", reading=name + same)
    return found


def instead(contest: Contest) -> list[ClaimQuestion]:
    """Return the questions on every problem whether GTD2 with a trace is ahead of Gradient-DD without."""
    return [
        one
        for problem in contest.problems
        for one in compared(contest, Duel(problem.name, Entrant("gtd2"), Entrant("gradient_dd", 0.0)), "below")
    ]


def claim(
    name: str, where: str, statement: str, criterion: str, questions: Callable[[Contest], list[ClaimQuestion]]
) -> Claim:
    """Return a claim of others, or of this project."""
    source = "ours" if where in (published.OURS, independent_run.WHERE) else "paper"
    return Claim(name, where, statement, Ask(criterion, (), questions), source=source)


CLAIMS = (
    claim(
        "collision-tiers",
        published.COLLISION,
        "ETD and ETD(β) are best; V-trace, Tree Backup and ABTD last",
        RATIO,
        tiers,
    ),
    claim(
        "collision-lambda",
        published.COLLISION,
        "TD and the gradient learners are sensitive to λ, ETD is not",
        f"error at λ = 0 over that at λ = 0.9: above {SENSITIVE:g}, for ETD below",
        lambda_matters,
    ),
    claim(
        "collision-again",
        independent_run.WHERE,
        "Tuned errors stand to that of TD as in an independent run of ours",
        AGAIN,
        again,
    ),
    claim(
        "fixed-points-again",
        independent_run.WHERE,
        "Fixed points of TD(λ) and ETD(λ) stand to that of TD as in an independent run of ours",
        AGAIN,
        fixed_points_again,
    ),
    claim(
        "rooms-variance",
        published.ROOMS,
        "Tree Backup, V-trace and ABTD suffer less from high variance",
        "growth from Rooms to High-Variance Rooms over that of a rival: below 1",
        high_variance,
    ),
    claim(
        "rooms-limit",
        published.ROOMS,
        "Tree Backup, V-trace and ABTD bootstrap too much where variance is not high",
        "ratio of mean errors in Rooms to those of a rival: above 1",
        limited,
    ),
    claim(
        "rooms-end",
        published.ROOMS,
        "ETD ends with a lower error than others",
        "ratio of mean errors at the end: below 1",
        asymptotic,
    ),
    claim(
        "tdrc-orderings",
        published.REGULARISED,
        "TDRC is ahead of GTD2, TDC and sometimes TD, as published",
        "area under the RMSPBE over that of TDRC, on the published side of 1",
        tdrc_orderings,
    ),
    claim("pgtd2-reuse", published.OURS, "PGTD2 beats GTD2 at λ = 0 because it uses its sample twice", RATIO, reuse),
    *(
        claim(
            f"dd-{base}",
            published.OURS,
            f"The DD term lowers the error of {LEARNERS[base].label}",
            RATIO,
            partial(helps, dd=dd, base=base),
        )
        for dd, base in WITH_DD.items()
    ),
    claim(
        "trace-instead",
        published.OURS,
        "A trace lowers the error of GTD2 more than the DD term does",
        "error of GTD2 with λ tuned over that of Gradient-DD with λ = 0: below 1",
        instead,
    ),
)


def judge(contest: Contest) -> list[ClaimVerdict]:
    """Return the verdicts on every statement whose problems and learners are at hand."""
    asked = [(claim, claim.ask(contest)) for claim in CLAIMS]
    return [claim.judge(questions) for claim, questions in asked if questions]
