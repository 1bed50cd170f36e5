"""The ledger: what others have published, and what we ask about the DD term, each with a verdict from shown runs.

A statement holds where the whole interval lies on the side that it says; `paper.claims.verdict` has the words.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gradient_dd.experiments.family import published
from gradient_dd.experiments.family.contest import Contest
from gradient_dd.experiments.family.grids import WITH_DD
from gradient_dd.experiments.family.questions import agreement, compared, label, question, ratio_of
from gradient_dd.experiments.family.trials import Trial, fixed_point_name
from gradient_dd.experiments.paper.claims.claim import Claim
from gradient_dd.experiments.paper.claims.verdict import Question, Verdict
from gradient_dd.learners import LEARNERS

OURS = "this project"
SENSITIVE = 2.0  # error at λ = 0 over that at λ = 0.9
AT_LAMBDAS = {"λ tuned": None, "λ = 0": 0.0}  # the two ways in which the DD term is judged
SAME_ZETAS = " and the same ζ"  # and again, with the values of ζ that both learners have
RATIO, WITHIN = "ratio of mean errors on shown runs", "difference over twice its standard error below 1"


class Statement(NamedTuple):
    """A statement, where it stands, what would make it true, and the questions that decide it."""

    name: str
    where: str
    text: str
    criterion: str
    questions: list[Question]


def judge(contest: Contest, trials: Sequence[Trial]) -> list[Verdict]:
    """Return the verdicts on every statement whose problems and learners are at hand."""
    return [
        Claim(one.name, one.where, one.text, one.criterion, (), lambda evidence: [], source=source_of(one.where)).judge(
            one.questions
        )
        for one in (*of_others(contest, trials), *of_ours(contest, trials))
        if one.questions
    ]


def of_others(contest: Contest, trials: Sequence[Trial]) -> list[Statement]:
    """Return what others have published."""
    return [
        Statement(
            "collision-tiers",
            published.COLLISION,
            "ETD and ETD(β) are best; V-trace, Tree Backup and ABTD last",
            RATIO,
            tiers(contest),
        ),
        Statement(
            "collision-lambda",
            published.COLLISION,
            "TD and the gradient learners are sensitive to λ, ETD is not",
            f"error at λ = 0 over that at λ = 0.9: above {SENSITIVE:g}, for ETD below",
            lambda_matters(contest),
        ),
        Statement(
            "collision-means", published.COLLISION, "Tuned errors are the published ones", WITHIN, means(contest)
        ),
        Statement(
            "collision-fixed-points",
            published.COLLISION,
            "TD(λ) and ETD(λ) rest where they are known to rest, exactly",
            WITHIN,
            fixed_points(trials),
        ),
        Statement(
            "rooms-variance",
            published.ROOMS,
            "Tree Backup, V-trace and ABTD suffer less from high variance",
            "growth from Rooms to High-Variance Rooms over that of a rival: below 1",
            high_variance(contest),
        ),
        Statement(
            "rooms-limit",
            published.ROOMS,
            "Tree Backup, V-trace and ABTD bootstrap too much where variance is not high",
            "ratio of mean errors in Rooms to those of a rival: above 1",
            limited(contest),
        ),
        Statement(
            "rooms-end",
            published.ROOMS,
            "ETD ends with a lower error than others",
            "ratio of mean errors at the end: below 1",
            asymptotic(contest),
        ),
        Statement(
            "tdrc-orderings",
            published.REGULARISED,
            "TDRC is ahead of GTD2, TDC and sometimes TD, as published",
            "area under the RMSPBE over that of TDRC, on the published side of 1",
            tdrc_orderings(trials),
        ),
    ]


def of_ours(contest: Contest, trials: Sequence[Trial]) -> list[Statement]:
    """Return what we ask."""
    text = "PGTD2 beats GTD2 at λ = 0 because it uses its sample twice"
    return [
        Statement("pgtd2-reuse", OURS, text, RATIO, reuse(contest, trials)),
        *(
            Statement(
                f"dd-{base}",
                OURS,
                f"The DD term lowers the error of {LEARNERS[base].label}",
                RATIO,
                helps(contest, dd, base),
            )
            for dd, base in WITH_DD.items()
        ),
        Statement(
            "trace-instead",
            OURS,
            "A trace lowers the error of GTD2 more than the DD term does",
            "error of GTD2 with λ tuned over that of Gradient-DD with λ = 0: below 1",
            instead(contest),
        ),
    ]


def source_of(where: str) -> str:
    """Return whether a statement is ours or published."""
    return "ours" if where == OURS else "paper"


def tiers(contest: Contest) -> list[Question]:
    """Ask whether the three tiers are as published: tuned over λ, and where λ tells them apart most."""
    found: list[Question] = []
    for lam, reading in ((None, "first tier, λ tuned"), (0.0, "first tier, λ = 0")):
        for ours in published.FIRST_TIER:
            for rival in published.MIDDLE_TIER:
                found += compared(contest, "collision", ours, rival, "below", (lam, lam), reading=reading)
    for lam, reading in ((None, "last tier, λ tuned"), (0.9, "last tier, λ = 0.9")):
        for ours in published.LAST_TIER:
            for rival in published.MIDDLE_TIER:
                found += compared(contest, "collision", ours, rival, "above", (lam, lam), reading=reading)
    return found


def lambda_matters(contest: Contest) -> list[Question]:
    """Ask by what factor the error falls from λ = 0 to λ = 0.9."""
    found: list[Question] = []
    for learner in (*(one for one in published.MIDDLE_TIER if one != "pgtd2"), "etd"):
        side = "below" if learner == "etd" else "above"
        found += compared(contest, "collision", learner, learner, side, (0.0, 0.9), SENSITIVE)
    return found


def means(contest: Contest) -> list[Question]:
    """Ask whether tuned means are within twice the standard error of the published ones."""
    return [
        agreement(contest.errors("collision", learner, lam), label(learner, lam), known)
        for (learner, lam), known in published.COLLISION_MEANS.items()
        if contest.has("collision", learner, lam)
    ]


def fixed_points(trials: Sequence[Trial]) -> list[Question]:
    """Ask whether the exact errors of fixed points, averaged over draws of the features, are the known ones."""
    return [
        agreement(trial.shown[name], name, (known, published.ROUNDED))
        for trial in trials
        if trial.name == "fixed points"
        for (learner, lam), known in published.FIXED_POINTS.items()
        if (name := fixed_point_name(learner, lam)) in trial.shown
    ]


def reuse(contest: Contest, trials: Sequence[Trial]) -> list[Question]:
    """Ask whether one sample beats GTD2, and the TD fixed point itself, and whether two samples beat neither."""
    found = compared(contest, "collision", "pgtd2", "gtd2", "below", (0.0, 0.0))
    for trial in (one for one in trials if one.name == "two samples"):
        names = {"one": "PGTD2 with one sample", "two": "PGTD2 with two samples", "rest": "the TD fixed point"}
        for ours, rival, side in (("two", "one", "above"), ("one", "rest", "below"), ("two", "rest", "above")):
            pair = trial.shown[ours], trial.shown[rival]
            both = [names[ours], names[rival]]
            found.append(question("collision", both, pair, side, 1.0, "area", "default", ratio_of(pair)))
        found.append(agreement(trial.shown["two"], names["two"], published.TWO_SAMPLES))
    return found


def high_variance(contest: Contest) -> list[Question]:
    """Ask whether the careful learners lose less from Rooms to High-Variance Rooms than the others."""
    both = "rooms-high", "rooms"
    found = []
    for ours in (one for one in published.LAST_TIER if all(contest.has(problem, one) for problem in both)):
        for rival in (one for one in ("td", "gtd2", "tdc", "etd") if one in contest.learners):
            pairs = [(contest.errors(problem, ours), contest.errors(problem, rival)) for problem in both]
            names = [label(ours, None), label(rival, None)]
            text = f"growth of {names[0]} / growth of {names[1]}:"
            found.append(
                question("rooms-high", names, pairs[0], "below", 1.0, "area", "default", ratio_of(*pairs), text)
            )
    return found


def limited(contest: Contest) -> list[Question]:
    """Ask whether the careful learners are behind in Rooms, tuned over λ."""
    return [
        one
        for ours in published.LAST_TIER
        for rival in published.MIDDLE_TIER
        for one in compared(contest, "rooms", ours, rival, "above")
    ]


def asymptotic(contest: Contest) -> list[Question]:
    """Ask whether ETD ends lower in both rooms."""
    return [
        one
        for problem in ("rooms", "rooms-high")
        for rival in ("td", "tdc", "gtd2", "vtrace")
        for one in compared(contest, problem, "etd", rival, "below", measure="last100")
    ]


def tdrc_orderings(trials: Sequence[Trial]) -> list[Question]:
    """Ask whether each learner is on the published side of TDRC, where the published number is clear of 1."""
    found = []
    for trial in (one for one in trials if one.name == "projected"):
        for learner, areas in published.TDRC_AREAS.items():
            known = areas.get(trial.problem, 1.0)
            if abs(known - 1) > published.READ_OFF + 1e-9:
                pair = trial.shown[learner], trial.shown["tdrc"]
                side = "above" if known > 1 else "below"
                text = f"{trial.problem}, {LEARNERS[learner].label} / TDRC, published {known:g}:"
                names = [LEARNERS[learner].label, "TDRC"]
                found.append(question(trial.problem, names, pair, side, 1.0, "area", "default", ratio_of(pair), text))
    return found


def helps(contest: Contest, dd: str, base: str) -> list[Question]:
    """Ask on every problem whether the DD term lowers the error, with λ tuned and with λ = 0.

    Asked twice where the learner without the term has more values of ζ: of all, and of those that both have.
    """
    found: list[Question] = []
    for same in ("", SAME_ZETAS):
        for name, lam in AT_LAMBDAS.items():
            for problem in (one.name for one in contest.problems if {dd, base} <= set(contest.learners)):
                zetas = contest.common_zetas(problem, dd, base) if same else None
                if not same or zetas:
                    found += compared(
                        contest, problem, dd, base, "below", (lam, lam), reading=name + same, rival_zetas=zetas
                    )
    return found


def instead(contest: Contest) -> list[Question]:
    """Ask on every problem whether GTD2 with a trace is ahead of Gradient-DD without."""
    return [
        one
        for problem in contest.problems
        for one in compared(contest, problem.name, "gtd2", "gradient_dd", "below", (None, 0.0))
    ]
