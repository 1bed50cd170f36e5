"""The questions that claims on the walk and on the Boyan chain ask, each under several ways of tuning.

as the paper has it       Gradient-DD with κ = 1, TD and TDRC choose a step size; GTD2 and TDC choose ζ besides
ζ = 1 for GTD2 and TDC    every learner chooses a step size only
tuned alike               every learner chooses among as many settings: a step size and ζ, or κ
tuned fully               every learner spends the same budget of a search over all parameters it has (`studies`)

lower        ratio of mean errors below 1
as good      below 1.25
much faster  below 0.8, by the mean error and by the episodes to a tenth of the initial error
insensitive  worst over best value of a parameter below 2; both are found on the runs to select on
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.claims import Ask
from gradient_dd.experiments.paper.figures import PLAIN_DD
from gradient_dd.experiments.tuning import StudyEvidence, TunedSetting
from gradient_dd.experiments.verdicts import ALIKE, FULLY, MAIN, ClaimQuestion, Pair
from gradient_dd.report.figure import NAMES, Line
from gradient_dd.studies.intervals import DRAWS, Interval, ratio_interval, resamples
from gradient_dd.studies.store import Store

AS_GOOD, INSENSITIVE = 1.25, 2.0  # bounds of ratios
WITHIN = 2.0  # times the best error: what counts as a good step size
MUCH = 1 / AS_GOOD  # below it "much faster": beyond what counts as as good
CONVERGED = 0.1  # of the initial error: below it a run has converged as far as a finite one can show
NEGLIGIBLE = 1.1  # times the cost of GTD2
SPEED = "mean_error", ("mean_error", "last100")  # the measure of speed; tuned for it, and for the end


class Criterion(NamedTuple):
    """What must hold of the ratio of two learners' errors: on which side of a bound, by which measure, tuned for what.

    `together` names one judgement for all that is tuned for; without a name each goal has a judgement of its own.
    """

    words: str
    side: str = "below"
    bound: float = 1.0
    measure: str = "last100"
    tuned_for: tuple[str, ...] = ("last100",)
    together: str = ""


LOWER = Criterion("lower: ratio of errors below 1")
AS_GOOD_AS = Criterion("as good: ratio of errors below 1.25", bound=AS_GOOD)
AS_GOOD_OVER_ALL = AS_GOOD_AS._replace(measure="mean_error", tuned_for=("mean_error",))
BEST_KAPPA = Criterion("as good as the best κ: ratio below 1.25", bound=AS_GOOD)
GROWS = Criterion("the ratio grows from each size to the next", "above")
ENDS_GROW = Criterion("the ratio grows from the smallest size to the largest", "above")
SPEED_GROWS = Criterion("the ratio of mean errors grows from each size to the next", "above", 1.0, *SPEED)
FASTER = Criterion("lower mean error, tuned for it and for the final error", "below", 1.0, *SPEED)
MUCH_FASTER = Criterion(
    "mean error, and episodes to a tenth of the initial error, below 0.8 of theirs, tuned for the mean "
    "and for the final error",
    "below",
    MUCH,
    *SPEED,
)
AS_FAST_AS = Criterion("as good in the mean error, tuned for it and for the final error", "below", AS_GOOD, *SPEED)
SLOWER_AT_FIRST = FASTER._replace(
    words="higher error over the first twentieth, tuned for the mean and for the final error",
    side="above",
    measure="early",
)

WHOLE = {learner: Line(label, learner) for learner, label in NAMES.items()}
AS_PRINTED = WHOLE | {"gradient_dd": Line("Gradient-DD", "gradient_dd", PLAIN_DD)}
ONE_ZETA = AS_PRINTED | {
    learner: Line(f"{NAMES[learner]}, ζ = 1", learner, (("zeta", 1.0),)) for learner in ("gtd2", "tdc")
}

PLAIN = "ζ = 1 for GTD2 and TDC"
TUNINGS = {  # what is appended to the name of the study, and the line of each learner
    MAIN: ("", AS_PRINTED),
    PLAIN: ("", ONE_ZETA),
    ALIKE: ("-alike", WHOLE),
    FULLY: ("-fully", WHOLE),
}
WAYS = (MAIN, ALIKE, FULLY)
WITH_ONE_ZETA = (MAIN, PLAIN, ALIKE, FULLY)

ByStudy = dict[str, StudyEvidence]


def tuned_ways(
    evidence: ByStudy, tunings: Iterable[str], *studies: str
) -> Iterator[tuple[str, dict[str, Line], list[StudyEvidence]]]:
    """Yield for each way of tuning its name, the line of each learner, and the evidence of the studies.

    That is their companions with this tuning; a study that has none stands for itself. A way that none of them has, as
    in a first look, is left out.
    """
    for tuning in tunings:
        suffix, lines = TUNINGS[tuning]
        if any(study + suffix in evidence for study in studies):
            yield tuning, lines, [evidence.get(study + suffix) or evidence[study] for study in studies]


class Side(NamedTuple):
    """A learner of a study, by the line that a way of tuning has for it, or by a line of its own."""

    study: str
    learner: str = "gradient_dd"
    line: Line | None = None
    label: str = ""

    def choose(self, one: StudyEvidence, lines: dict[str, Line], case: str, goal: str) -> TunedSetting:
        """Return what the line selects on a case."""
        line = self.line or lines[self.learner]
        return one.choose(case, replace(line, label=self.label or line.label), goal)


def against(ours: Side, rivals: Sequence[Side], criterion: Criterion, tunings: tuple[str, ...] = WAYS) -> Ask:
    """Return the questions whether ours over each rival meets a criterion, on every case of the rivals' study."""
    studies = tuple(dict.fromkeys((ours.study, rivals[0].study)))

    def questions(evidence: ByStudy) -> list[ClaimQuestion]:
        return [
            ratio(Pair(left, rival.choose(second, lines, case, goal), criterion.measure), criterion, tuning, goal)
            for tuning, lines, (first, second) in tuned_ways(evidence, tunings, ours.study, rivals[0].study)
            for goal in criterion.tuned_for
            for case in second.cases
            for left in [ours.choose(first, lines, case, goal)]
            for rival in rivals
        ]

    return Ask(criterion.words, studies, questions)


def versus(study: str, rivals: tuple[str, ...], criterion: Criterion, tunings: tuple[str, ...] = WAYS) -> Ask:
    """Return the questions whether Gradient-DD over each rival meets a criterion, on every case of a study."""
    return against(Side(study), [Side(study, rival) for rival in rivals], criterion, tunings)


def much_faster(study: str, rivals: tuple[str, ...]) -> Ask:
    """Ask whether Gradient-DD is much faster: by its mean error, and by the episodes it needs."""
    by_episodes = MUCH_FASTER._replace(measure="episodes")
    return together(*(versus(study, rivals, criterion) for criterion in (MUCH_FASTER, by_episodes)))


def on_cases(words: str, studies: tuple[str, ...], asked: Callable[[StudyEvidence, str], list[ClaimQuestion]]) -> Ask:
    """Return the questions that are asked of every case of studies."""

    def questions(evidence: ByStudy) -> list[ClaimQuestion]:
        found = [evidence[study] for study in studies]
        return [question for one in found for case in one.cases for question in asked(one, case)]

    return Ask(words, studies, questions)


def converges(*studies: str) -> Ask:
    """Ask whether Gradient-DD ends below a tenth of the initial error, tuned as the paper has it."""

    def asked(found: StudyEvidence, case: str) -> list[ClaimQuestion]:
        pair = Pair(found.choose(case, AS_PRINTED["gradient_dd"]), None, "last100")
        return [ClaimQuestion("share", (pair,), "below", CONVERGED)]

    return on_cases("ends below a tenth of the initial error", studies, asked)


def ratio(pair: Pair, criterion: Criterion, tuning: str = MAIN, goal: str = "last100") -> ClaimQuestion:
    """Return the question whether the ratio of a pair meets a criterion."""
    tuned_for = criterion.together or goal
    return ClaimQuestion("ratio", (pair,), criterion.side, criterion.bound, tuning=tuning, tuned_for=tuned_for)


def grows(study: str, rivals: tuple[str, ...], criterion: Criterion = GROWS) -> Ask:
    """Return the questions whether rival / Gradient-DD grows from each size to the next, or from first to last."""
    ours, others = Side(study), [Side(study, rival) for rival in rivals]

    def questions(evidence: ByStudy) -> list[ClaimQuestion]:
        found = []
        for tuning, lines, (one,) in tuned_ways(evidence, WAYS, study):
            cases = sorted(one.cases, key=one.size)
            steps = [(cases[0], cases[-1])] if criterion is ENDS_GROW else list(pairwise(cases))
            for goal, other in product(criterion.tuned_for, others):
                pairs = {
                    case: Pair(
                        ours.choose(one, lines, case, goal), other.choose(one, lines, case, goal), criterion.measure
                    )
                    for case in cases
                }
                found += [
                    ClaimQuestion("growth", (pairs[a], pairs[b]), "above", 1.0, tuning=tuning, tuned_for=goal)
                    for a, b in steps
                ]
        return found

    return Ask(criterion.words, (study,), questions)


def together(*asks: Ask) -> Ask:
    """Return all the questions of several, with the criterion of the first."""
    studies = tuple(dict.fromkeys(study for ask in asks for study in ask.studies))
    return Ask(asks[0].criterion, studies, lambda evidence: [one for ask in asks for one in ask.questions(evidence)])


def values_of(parameter: str, values: tuple[float, ...], rho_mode: str = "R") -> tuple[Line, ...]:
    """Return a line of Gradient-DD for each value of κ, u or ζ; the other is 1."""
    symbol, other = {"kappa": ("κ", "zeta"), "u": ("u", "zeta"), "zeta": ("ζ", "kappa")}[parameter]
    return tuple(
        Line(f"Gradient-DD, {symbol} = {value:g}", "gradient_dd", ((other, 1.0), (parameter, value)), rho_mode)
        for value in values
    )


def ordered(found: StudyEvidence, case: str, lines: tuple[Line, ...], tuned_for: str = "last100") -> list[TunedSetting]:
    """Return what each line selects, from the best mean on the selection runs to the worst."""
    chosen = [found.choose(case, line, tuned_for) for line in lines]
    return sorted(chosen, key=lambda one: one.selection_mean(tuned_for))


def insensitive(study: str, lines: tuple[Line, ...]) -> Ask:
    """Ask whether the tuned error hardly depends on what the lines differ in, in the final and the mean error."""

    def asked(found: StudyEvidence, case: str) -> list[ClaimQuestion]:
        sorted_by = {goal: ordered(found, case, lines, goal) for goal in ("last100", "mean_error")}
        return [
            ClaimQuestion("ratio", (Pair(some[-1], some[0], goal),), "below", INSENSITIVE, tuned_for=goal)
            for goal, some in sorted_by.items()
        ]

    return on_cases("worst over best value below 2", (study,), asked)


def one_is_good(study: str, lines: tuple[Line, ...]) -> Ask:
    """Ask whether κ = 1 is as good as the best κ."""
    return on_cases(
        BEST_KAPPA.words, (study,), lambda found, case: [ratio(one_over_best(found, case, lines), BEST_KAPPA)]
    )


def one_over_best(found: StudyEvidence, case: str, lines: tuple[Line, ...]) -> Pair:
    """Return κ = 1 against the κ that is best on the selection runs."""
    (one,) = (line for line in lines if dict(line.held)["kappa"] == 1.0)
    return Pair(found.choose(case, one), ordered(found, case, lines)[0], "last100")


def narrower_than(study: str, *rivals: str) -> Ask:
    """Ask whether fewer step sizes are within twice the best error than for rivals, on the selection runs."""

    def asked(found: StudyEvidence, case: str) -> list[ClaimQuestion]:
        return [counted(found, case, AS_PRINTED["gradient_dd"], AS_PRINTED[rival]) for rival in rivals]

    return on_cases("fewer step sizes within twice the best error", (study,), asked)


def counted(found: StudyEvidence, case: str, ours: Line, theirs: Line) -> ClaimQuestion:
    """Return the question whether a line has fewer good step sizes than another."""
    tables = [
        np.stack([found.errors(case, one, "last100", fresh=False) for one in found.among(case, line.has, "last100")])
        for line in (ours, theirs)
    ]
    runs = tables[0].shape[1]

    def answer(level: float) -> Interval:
        weights = resamples(runs, 0, DRAWS // 10)
        gaps = good_step_sizes(tables[0], weights) - good_step_sizes(tables[1], weights)
        low, high = np.quantile(gaps, [(1 - level) / 2, (1 + level) / 2])
        return Interval(float(counts[0] - counts[1]), float(low), float(high))

    counts = [int(good_step_sizes(table, np.full((1, runs), 1 / runs))[0]) for table in tables]
    sides = [
        {"label": line.label, "learner": line.learner, "held": dict(line.held), "step_sizes": count}
        for line, count in zip((ours, theirs), counts, strict=True)
    ]
    text = f"step sizes within twice the best error, {ours.label} − {theirs.label}:"
    facts = {"measure": "last100", "runs": runs, "ours": sides[0], "rival": sides[1], "text": text}
    return ClaimQuestion("count", (), "below", 0.0, answer=answer, facts=found.place(case) | facts)


def good_step_sizes(errors: Array, weights: Array) -> Array:
    """Return how many step sizes are within twice the best mean, (draws,).

    errors: (alphas, runs); weights: (draws, runs), how much each run weighs.
    """
    finite = np.isfinite(errors).all(axis=1)
    means = weights @ errors[finite].T
    return (means <= WITHIN * means.min(axis=1, keepdims=True)).sum(axis=1)


def tapered_over_constant(tapered: str, constant: str) -> Ask:
    """Ask whether Gradient-DD with tapered steps is lower than with constant ones, on the tasks that have both."""
    ours, theirs = Side(tapered, label="Gradient-DD, tapered"), Side(constant, label="Gradient-DD, constant")
    return against(ours, [theirs], LOWER)


def as_good_as_natural(walk: str, natural: str) -> Ask:
    """Ask whether Gradient-DD is as good as natural GTD2 and natural TDC on the same walk."""
    rivals = [Side(natural, learner, WHOLE[learner]) for learner in ("natural_gtd2", "natural_tdc")]
    return against(Side(walk), rivals, AS_GOOD_AS)


def as_good_as_all(study: str, rivals: tuple[str, ...]) -> Ask:
    """Ask whether Gradient-DD tuned by search is as good as every rival, in the final and the mean error."""
    return together(*(versus(study, rivals, criterion, (FULLY,)) for criterion in (AS_GOOD_AS, AS_GOOD_OVER_ALL)))


def as_tuned(*studies: str) -> Ask:
    """Ask whether κ = ζ = 1 is as good as tuning both by search, in the final and the mean error."""
    one = Line("Gradient-DD, κ = ζ = 1", "gradient_dd", PLAIN_DD)
    asks = [
        against(Side(f"{study}-one", line=one), [Side(study)], criterion, (FULLY,))
        for criterion in (AS_GOOD_AS, AS_GOOD_OVER_ALL)
        for study in studies
    ]
    return replace(together(*asks), studies=studies)


def lower_than_td_somewhere(*studies: str, words: str) -> Ask:
    """Ask whether Gradient-DD is lower than TD in what is tuned for, and in the mean error if the final error is."""
    same = "what is measured"
    criteria = [Criterion(words, measure=goal, tuned_for=(goal,), together=same) for goal in ("last100", "mean_error")]
    asks = [versus(study, ("td",), criterion) for study in studies for criterion in criteria]
    return together(*asks, *(versus(study, ("td",), Criterion(words, measure="mean_error")) for study in studies))


def costs_as_much(*studies: str) -> Ask:
    """Ask whether an update of Gradient-DD takes at most a tenth more than one of GTD2, on the largest task of each.

    These numbers are times of the study's own runs: they differ from machine to machine and from call to call.
    """
    words = f"time of an update below {NEGLIGIBLE:g} times"
    return Ask(words, studies, lambda evidence: [one for study in studies for one in cost(evidence[study])])


def cost(found: StudyEvidence) -> list[ClaimQuestion]:
    """Return the question for one study, or none where its runs took no times."""
    case = max(found.cases, key=found.size)
    times: dict[str, dict[int, float]] = {"gradient_dd": {}, "gtd2": {}}  # nanoseconds of an update by unit
    with Store(found.results.path) as store:
        for unit in store.units([found.results.tasks[case]], found.study.run_numbers):
            for learner, (seconds, updates) in unit.facts["costs"].items():
                times.setdefault(learner, {})[unit.id] = seconds / updates * 1e9
    common = sorted(set(times["gradient_dd"]) & set(times["gtd2"]))  # what ran at the same time
    if not common:
        return []
    sides = []
    for learner in ("gradient_dd", "gtd2"):
        found.times[case, learner] = np.array([times[learner][unit] for unit in common])  # for the tables too
        mean = float(found.times[case, learner].mean())
        sides.append({"label": NAMES[learner], "learner": learner, "mean": mean})
    pair = found.times[case, "gradient_dd"], found.times[case, "gtd2"]
    text = f"time of an update over GTD2's, {found.study.name}"
    facts = {"measure": "nanoseconds", "runs": len(common), "ours": sides[0], "rival": sides[1], "text": text}

    def answer(level: float) -> Interval:
        return ratio_interval(pair, level=level)

    return [
        ClaimQuestion("time", (), "below", NEGLIGIBLE, tuned_for="", answer=answer, facts=found.place(case) | facts)
    ]
