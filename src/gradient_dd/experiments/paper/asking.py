"""Questions of the claims about the walk and the Boyan chain, each under several ways of tuning.

as the paper has it       the step size is tuned for every learner; ζ is also tuned for GTD2 and TDC; κ = 1
ζ = 1 for GTD2 and TDC    only a step size is tuned for every learner
tuned alike               every learner has the same number of settings: a step size and ζ, or κ
tuned fully               every learner has the same search budget for all of its parameters (`studies`)

lower        ratio of mean errors below 1
as good      below 1.25
much faster  below 0.8, by the mean error and by the episodes to a tenth of the initial error
insensitive  error at the worst over error at the best value of a parameter below 2; tuning runs give both values
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.paper.figures import PLAIN_DD
from gradient_dd.experiments.tuning import ByStudy, StudyEvidence, TunedSetting
from gradient_dd.experiments.verdicts import ALIKE, FULLY, MAIN, SUFFIXES, Ask, ClaimQuestion, Pair
from gradient_dd.report.figure import NAMES, Line
from gradient_dd.studies.intervals import DRAWS, Interval, ratio_interval, resamples
from gradient_dd.studies.store import Store

AS_GOOD, INSENSITIVE = 1.25, 2.0  # bounds of ratios
WITHIN = 2.0  # a step size is good if its error is below this multiple of the best error
CONVERGED = 0.1  # share of the initial error below which a finite run counts as converged
NEGLIGIBLE = 1.1  # multiple of the cost of GTD2
GOALS = ("last100", "mean_error")  # goals of tuning: the final error, and the mean error over the run


class Criterion(NamedTuple):
    """A condition on the ratio of two learners' errors: the side of a bound, the measure, and the goals of tuning.

    `together` names one judgement for all goals of tuning; without a name, each goal has its own judgement.
    """

    words: str
    side: str = "below"
    bound: float = 1.0
    measure: str = "last100"
    tuned_for: tuple[str, ...] = ("last100",)
    together: str = ""


def of_speed(words: str, side: str = "below", bound: float = 1.0, measure: str = "mean_error") -> Criterion:
    """Return a criterion on speed, tuned for the mean error and for the final error."""
    return Criterion(words, side, bound, measure, ("mean_error", "last100"))


LOWER = Criterion("lower: ratio of errors below 1")
AS_GOOD_AS = Criterion("as good: ratio of errors below 1.25", bound=AS_GOOD)
BOTH_AS_GOOD = AS_GOOD_AS, AS_GOOD_AS._replace(measure="mean_error", tuned_for=("mean_error",))
BEST_KAPPA = Criterion("as good as the best κ: ratio below 1.25", bound=AS_GOOD)
GROWS = Criterion("the ratio grows from each size to the next", "above")
ENDS_GROW = Criterion("the ratio grows from the smallest size to the largest", "above")
SPEED_GROWS = of_speed("the ratio of mean errors grows from each size to the next", "above")
FASTER = of_speed("lower mean error, tuned for the mean and for the final error")
MUCH_FASTER = of_speed(
    "mean error, and episodes to a tenth of the initial error, below 0.8 of the rival's, tuned for the mean "
    "and for the final error",
    bound=1 / AS_GOOD,
)
AS_FAST_AS = of_speed("as good in the mean error, tuned for the mean and for the final error", bound=AS_GOOD)
SLOWER_AT_FIRST = of_speed(
    "higher error over the first twentieth, tuned for the mean and for the final error", "above", measure="early"
)

WHOLE = {learner: Line(label, learner) for learner, label in NAMES.items()}
AS_PRINTED = WHOLE | {"gradient_dd": Line("Gradient-DD", "gradient_dd", PLAIN_DD)}
ONE_ZETA = AS_PRINTED | {
    learner: Line(f"{NAMES[learner]}, ζ = 1", learner, (("zeta", 1.0),)) for learner in ("gtd2", "tdc")
}
TUNINGS = {MAIN: AS_PRINTED, "ζ = 1 for GTD2 and TDC": ONE_ZETA, ALIKE: WHOLE, FULLY: WHOLE}  # the line of each learner
WAYS = (MAIN, ALIKE, FULLY)


def tuned_ways(
    evidence: ByStudy, tunings: Iterable[str], *studies: str
) -> Iterator[tuple[str, dict[str, Line], list[StudyEvidence]]]:
    """Yield for each way of tuning its name, the line of each learner, and the evidence of the studies' companions.

    For a study without a companion, the evidence of the study itself is used. A way of tuning without any companion, as
    in a first look, is left out.
    """
    for tuning in tunings:
        suffix = SUFFIXES.get(tuning, "")
        if any(study + suffix in evidence for study in studies):
            yield tuning, TUNINGS[tuning], [evidence.get(study + suffix) or evidence[study] for study in studies]


class Side(NamedTuple):
    """A learner of a study, with the line that a way of tuning gives it, or with its own `line`."""

    study: str
    learner: str = "gradient_dd"
    line: Line | None = None
    label: str = ""

    def choose(self, one: StudyEvidence, lines: dict[str, Line], case: str, goal: str) -> TunedSetting:
        """Return the setting that the line selects on a case."""
        line = self.line or lines[self.learner]
        return one.choose(case, replace(line, label=self.label or line.label), goal)


def against(ours: Side, rivals: Sequence[Side], criterion: Criterion, tunings: Iterable[str] = WAYS) -> Ask:
    """Ask whether the ratio of our error to each rival's error meets a criterion, on all cases of the rivals' study."""
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


def ratio(pair: Pair, criterion: Criterion, tuning: str = MAIN, goal: str = "last100") -> ClaimQuestion:
    """Return the question of whether the ratio of a pair meets a criterion."""
    tuned_for = criterion.together or goal
    return ClaimQuestion("ratio", (pair,), criterion.side, criterion.bound, tuning=tuning, tuned_for=tuned_for)


def versus(study: str, rivals: Iterable[str], criterion: Criterion, tunings: Iterable[str] = WAYS) -> Ask:
    """Ask whether the ratio of Gradient-DD's error to each rival's error meets a criterion, on all cases of a study."""
    return against(Side(study), [Side(study, rival) for rival in rivals], criterion, tunings)


def together(*asks: Ask) -> Ask:
    """Ask the questions of several `asks`, with the criterion of the first `ask`."""
    studies = tuple(dict.fromkeys(study for ask in asks for study in ask.studies))
    return Ask(asks[0].criterion, studies, lambda evidence: [one for ask in asks for one in ask.questions(evidence)])


def much_faster(study: str, rivals: tuple[str, ...]) -> Ask:
    """Ask whether Gradient-DD is much faster than rivals, by its mean error and by the episodes it needs."""
    return together(*(versus(study, rivals, MUCH_FASTER._replace(measure=one)) for one in ("mean_error", "episodes")))


def as_tuned(*studies: str) -> Ask:
    """Ask whether κ = ζ = 1 is as good as tuning κ and ζ by search, in the final and the mean error."""
    one = Line("Gradient-DD, κ = ζ = 1", "gradient_dd", PLAIN_DD)
    asks = [
        against(Side(f"{study}-one", line=one), [Side(study)], criterion, (FULLY,))
        for criterion, study in product(BOTH_AS_GOOD, studies)
    ]
    return replace(together(*asks), studies=studies)


def lower_than_td_somewhere(*studies: str, words: str) -> Ask:
    """Ask whether Gradient-DD is below TD in the tuned measure, and in the mean error if tuned for the final error."""
    criteria = [Criterion(words, measure=goal, tuned_for=(goal,), together="what is measured") for goal in GOALS]
    asks = [versus(study, ("td",), criterion) for study, criterion in product(studies, criteria)]
    return together(*asks, *(versus(study, ("td",), Criterion(words, measure="mean_error")) for study in studies))


def grows(study: str, *rivals: str, criterion: Criterion = GROWS) -> Ask:
    """Ask whether the ratio rival / Gradient-DD grows from size to size, or from the smallest to the largest."""

    def questions(evidence: ByStudy) -> list[ClaimQuestion]:
        found = []
        for tuning, lines, (one,) in tuned_ways(evidence, WAYS, study):
            cases = sorted(one.cases, key=one.size)
            steps = [(cases[0], cases[-1])] if criterion is ENDS_GROW else list(pairwise(cases))
            for goal, rival in product(criterion.tuned_for, rivals):
                ours, theirs = lines["gradient_dd"], lines[rival]
                pairs = {
                    case: Pair(one.choose(case, ours, goal), one.choose(case, theirs, goal), criterion.measure)
                    for case in cases
                }
                found += [
                    ClaimQuestion("growth", (pairs[a], pairs[b]), "above", 1.0, tuning=tuning, tuned_for=goal)
                    for a, b in steps
                ]
        return found

    return Ask(criterion.words, (study,), questions)


def on_cases(words: str, asked: Callable[..., list[ClaimQuestion]], *studies: str, **how: Any) -> Ask:
    """Ask the questions that `asked` returns for every case of some studies; `how` holds keywords of `asked`."""

    def questions(evidence: ByStudy) -> list[ClaimQuestion]:
        found = [evidence[study] for study in studies]
        return [question for one in found for case in one.cases for question in asked(one, case, **how)]

    return Ask(words, studies, questions)


def ends_low(found: StudyEvidence, case: str) -> list[ClaimQuestion]:
    """Ask whether Gradient-DD ends below a tenth of the initial error, tuned as in the paper."""
    pair = Pair(found.choose(case, AS_PRINTED["gradient_dd"]), None, "last100")
    return [ClaimQuestion("share", (pair,), "below", CONVERGED)]


def values_of(parameter: str, values: tuple[float, ...], rho_mode: str = "R") -> tuple[Line, ...]:
    """Return a line of Gradient-DD for each value of κ, u or ζ; the other parameter is 1."""
    symbol, other = {"kappa": ("κ", "zeta"), "u": ("u", "zeta"), "zeta": ("ζ", "kappa")}[parameter]
    return tuple(
        Line(f"Gradient-DD, {symbol} = {value:g}", "gradient_dd", ((other, 1.0), (parameter, value)), rho_mode)
        for value in values
    )


def ordered(found: StudyEvidence, case: str, lines: tuple[Line, ...], tuned_for: str = "last100") -> list[TunedSetting]:
    """Return the setting that each line selects, from the best mean on tuning runs to the worst."""
    chosen = [found.choose(case, line, tuned_for) for line in lines]
    return sorted(chosen, key=lambda one: one.selection_mean(tuned_for))


def worst_over_best(found: StudyEvidence, case: str, among: tuple[Line, ...]) -> list[ClaimQuestion]:
    """Ask whether the tuned error hardly depends on the lines' parameter, in the final and the mean error."""
    sorted_by = {goal: ordered(found, case, among, goal) for goal in GOALS}
    return [
        ClaimQuestion("ratio", (Pair(some[-1], some[0], goal),), "below", INSENSITIVE, tuned_for=goal)
        for goal, some in sorted_by.items()
    ]


def one_over_best(found: StudyEvidence, case: str, among: tuple[Line, ...]) -> list[ClaimQuestion]:
    """Ask whether κ = 1 is as good as the κ that is best on tuning runs."""
    (one,) = (line for line in among if dict(line.held)["kappa"] == 1.0)
    return [ratio(Pair(found.choose(case, one), ordered(found, case, among)[0], "last100"), BEST_KAPPA)]


def fewer_step_sizes(found: StudyEvidence, case: str, than: tuple[str, ...]) -> list[ClaimQuestion]:
    """Ask whether Gradient-DD has fewer step sizes within twice its best error than rivals, on tuning runs."""
    return [counted(found, case, AS_PRINTED["gradient_dd"], AS_PRINTED[rival]) for rival in than]


def counted(found: StudyEvidence, case: str, *lines: Line) -> ClaimQuestion:
    """Return the question of whether the first line has fewer good step sizes than the second."""
    ours, theirs = (
        np.stack([found.errors(case, one, "last100", fresh=False) for one in found.among(case, line, "last100")])
        for line in lines
    )
    runs = ours.shape[1]
    counts = [int(good_step_sizes(table, np.full((1, runs), 1 / runs))[0]) for table in (ours, theirs)]

    def answer(level: float) -> Interval:
        weights = resamples(runs, 0, DRAWS // 10)
        gaps = good_step_sizes(ours, weights) - good_step_sizes(theirs, weights)
        low, high = np.quantile(gaps, [(1 - level) / 2, (1 + level) / 2])
        return Interval(float(counts[0] - counts[1]), float(low), float(high))

    sides = [
        {"label": line.label, "learner": line.learner, "held": dict(line.held), "step_sizes": count}
        for line, count in zip(lines, counts, strict=True)
    ]
    text = f"step sizes within twice the best error, {lines[0].label} − {lines[1].label}:"
    facts = {"measure": "last100", "runs": runs, "ours": sides[0], "rival": sides[1], "text": text}
    return ClaimQuestion("count", (), "below", 0.0, answer=answer, facts=found.place(case) | facts)


def good_step_sizes(errors: Array, weights: Array) -> Array:
    """Return the number of step sizes within twice the best mean, (draws,).

    errors: (alphas, runs); weights: (draws, runs), the weight of each run.
    """
    finite = np.isfinite(errors).all(axis=1)
    means = weights @ errors[finite].T
    return (means <= WITHIN * means.min(axis=1, keepdims=True)).sum(axis=1)


def cost(found: StudyEvidence, case: str) -> list[ClaimQuestion]:
    """Ask whether an update of Gradient-DD takes at most 10 % longer than an update of GTD2, on a study's largest task.

    The times of the study's own runs differ between machines and calls. Without times, there is no question.
    """
    sides = ("gradient_dd", "gtd2")
    if case != max(found.cases, key=found.size):
        return []
    with Store(found.results.path) as store:
        units = [unit.facts["costs"] for unit in store.units([found.results.tasks[case]], found.study.run_numbers)]
    both = [costs for costs in units if all(learner in costs for learner in sides)]  # units with both learners
    if not both:
        return []
    for learner in sides:  # nanoseconds per update, which the tables also show
        found.times[case, learner] = np.array([costs[learner][0] / costs[learner][1] * 1e9 for costs in both])
    pair = found.times[case, "gradient_dd"], found.times[case, "gtd2"]
    ours, rival = (
        {"label": NAMES[learner], "learner": learner, "mean": float(times.mean())}
        for learner, times in zip(sides, pair, strict=True)
    )
    text = f"time of an update over GTD2's, {found.study.name}"
    facts = {"measure": "nanoseconds", "runs": len(both), "ours": ours, "rival": rival, "text": text}
    return [
        ClaimQuestion(
            "time",
            (),
            "below",
            NEGLIGIBLE,
            tuned_for="",
            answer=lambda level: ratio_interval(pair, level=level),
            facts=found.place(case) | facts,
        )
    ]
