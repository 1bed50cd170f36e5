"""The questions that claims on the walk and on the Boyan chain ask, each under several ways of tuning.

as the paper has it       Gradient-DD with κ = 1, TD and TDRC choose a step size; GTD2 and TDC choose ζ besides
ζ = 1 for GTD2 and TDC    every learner chooses a step size only
tuned alike               every learner chooses among as many settings: a step size and ζ, or κ
wider …                   on the long Boyan chains: step sizes, and then ζ too, beyond the paper's grid

lower        ratio of mean errors below 1
as good      below 1.25
insensitive  worst over best value of a parameter below 2; both are found on the runs to select on
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.paper.claims.evidence import Chosen, Evidence
from gradient_dd.experiments.paper.claims.verdict import ALIKE, PAPER, Ask, Part, Question
from gradient_dd.experiments.paper.figures import PLAIN_DD
from gradient_dd.report.figure import Line
from gradient_dd.studies.intervals import DRAWS, Interval, resamples

AS_GOOD = 1.25
INSENSITIVE = 2.0
WITHIN = 2.0  # times the best error: what counts as a good step size

LABELS = {
    "td": "TD",
    "tdrc": "TDRC",
    "gtd2": "GTD2",
    "tdc": "TDC",
    "gradient_dd": "Gradient-DD",
    "natural_gtd2": "natural GTD2",
    "natural_tdc": "natural TDC",
}
WHOLE = {learner: Line(label, learner) for learner, label in LABELS.items()}
AS_PRINTED = WHOLE | {"gradient_dd": Line("Gradient-DD", "gradient_dd", PLAIN_DD)}
ONE_ZETA = AS_PRINTED | {
    learner: Line(f"{LABELS[learner]}, ζ = 1", learner, (("zeta", 1.0),)) for learner in ("gtd2", "tdc")
}

PLAIN = "ζ = 1 for GTD2 and TDC"
WIDE = "wider step sizes for GTD2 and TDC"
WIDER = "wider step sizes and ζ for all three"
TUNINGS = {  # what is appended to the name of the study, and the line of each learner
    PAPER: ("", AS_PRINTED),
    PLAIN: ("", ONE_ZETA),
    ALIKE: ("-alike", WHOLE),
    WIDE: ("-wide", AS_PRINTED),
    WIDER: ("-wider", WHOLE),
}
BOTH = (PAPER, ALIKE)
THREE = (PAPER, PLAIN, ALIKE)
FOR_SPEED = ("area", "last100")  # tuned for speed, and for the end


def versus(
    study: str,
    rivals: tuple[str, ...],
    side: str,
    bound: float,
    measure: str = "last100",
    tuned_for: tuple[str, ...] = ("last100",),
    tunings: tuple[str, ...] = BOTH,
    together: str = "",
) -> Ask:
    """Return the questions whether Gradient-DD over each rival is on a side of a bound, on every case of a study.

    `together` names one judgement for all that it is tuned for; else each has its own.
    """

    def ask(evidence: dict[str, Evidence]) -> list[Question]:
        questions = []
        for tuning in tunings:
            suffix, lines = TUNINGS[tuning]
            found = evidence[study + suffix]
            for goal in tuned_for:
                for case in found.cases:
                    ours = found.choose(case, lines["gradient_dd"], goal)
                    for rival in rivals:
                        part = Part(ours, found.choose(case, lines[rival], goal), measure)
                        questions.append(
                            Question("ratio", (part,), side, bound, tuning=tuning, tuned_for=together or goal)
                        )
        return questions

    return ask


def lower_than(study: str, *rivals: str, tunings: tuple[str, ...] = THREE) -> Ask:
    """Ask whether Gradient-DD ends lower than rivals."""
    return versus(study, rivals, "below", 1.0, tunings=tunings)


def faster_than(study: str, *rivals: str, tunings: tuple[str, ...] = BOTH) -> Ask:
    """Ask whether its error over all episodes is lower, with settings tuned for that and with those for the end."""
    return versus(study, rivals, "below", 1.0, "area", FOR_SPEED, tunings)


def as_good_as(study: str, *rivals: str) -> Ask:
    """Ask whether Gradient-DD ends as good as rivals."""
    return versus(study, rivals, "below", AS_GOOD)


def as_fast_as(study: str, *rivals: str) -> Ask:
    """Ask whether it is as good over all episodes, tuned for that and for the end."""
    return versus(study, rivals, "below", AS_GOOD, "area", FOR_SPEED)


def slower_at_first(study: str, *rivals: str) -> Ask:
    """Ask whether its error over the first twentieth is higher, tuned for speed and for the end."""
    return versus(study, rivals, "above", 1.0, "early", FOR_SPEED)


def grows(
    study: str,
    *rivals: str,
    measure: str = "last100",
    tuned_for: tuple[str, ...] = ("last100",),
    tunings: tuple[str, ...] = BOTH,
    ends_only: bool = False,
) -> Ask:
    """Ask whether rival / Gradient-DD grows from each size to the next, or from the first to the last."""

    def ask(evidence: dict[str, Evidence]) -> list[Question]:
        questions = []
        for tuning in tunings:
            suffix, lines = TUNINGS[tuning]
            found = evidence[study + suffix]
            cases = sorted(found.cases, key=found.size)
            steps = [(cases[0], cases[-1])] if ends_only else list(pairwise(cases))
            for goal in tuned_for:
                for rival in rivals:
                    parts = {
                        case: Part(
                            found.choose(case, lines["gradient_dd"], goal),
                            found.choose(case, lines[rival], goal),
                            measure,
                        )
                        for case in cases
                    }
                    questions += [
                        Question("growth", (parts[a], parts[b]), "above", 1.0, tuning=tuning, tuned_for=goal)
                        for a, b in steps
                    ]
        return questions

    return ask


def together(*asks: Ask) -> Ask:
    """Return all the questions of several."""
    return lambda evidence: [question for ask in asks for question in ask(evidence)]


def values_of(parameter: str, values: tuple[float, ...], rho_mode: str = "R") -> tuple[Line, ...]:
    """Return a line of Gradient-DD for each value of κ or ζ; the other is 1."""
    symbol, other = {"kappa": ("κ", "zeta"), "zeta": ("ζ", "kappa")}[parameter]
    return tuple(
        Line(f"Gradient-DD, {symbol} = {value:g}", "gradient_dd", ((other, 1.0), (parameter, value)), rho_mode)
        for value in values
    )


def ordered(found: Evidence, case: str, lines: tuple[Line, ...], tuned_for: str = "last100") -> list[Chosen]:
    """Return what each line selects, from the best mean on the selection runs to the worst."""
    chosen = [found.choose(case, line, tuned_for) for line in lines]
    return sorted(chosen, key=lambda one: one.selection_mean(tuned_for))


def insensitive(study: str, lines: tuple[Line, ...]) -> Ask:
    """Ask whether the tuned error hardly depends on what the lines differ in, at the end and over all episodes."""

    def ask(evidence: dict[str, Evidence]) -> list[Question]:
        found = evidence[study]
        questions = []
        for goal in ("last100", "area"):
            for case in found.cases:
                best, *_, worst = ordered(found, case, lines, goal)
                questions.append(Question("ratio", (Part(worst, best, goal),), "below", INSENSITIVE, tuned_for=goal))
        return questions

    return ask


def one_is_good(study: str, lines: tuple[Line, ...]) -> Ask:
    """Ask whether κ = 1 is as good as the best κ."""

    def ask(evidence: dict[str, Evidence]) -> list[Question]:
        found = evidence[study]
        return [Question("ratio", (one_over_best(found, case, lines),), "below", AS_GOOD) for case in found.cases]

    return ask


def one_over_best(found: Evidence, case: str, lines: tuple[Line, ...]) -> Part:
    """Return κ = 1 against the κ that is best on the selection runs."""
    (one,) = (line for line in lines if dict(line.held)["kappa"] == 1.0)
    return Part(found.choose(case, one), ordered(found, case, lines)[0], "last100")


def narrower_than(study: str, *rivals: str) -> Ask:
    """Ask whether fewer step sizes are within twice the best error than for rivals, on the selection runs."""

    def ask(evidence: dict[str, Evidence]) -> list[Question]:
        found = evidence[study]
        return [
            counted(found, case, AS_PRINTED["gradient_dd"], AS_PRINTED[rival])
            for case in found.cases
            for rival in rivals
        ]

    return ask


def counted(found: Evidence, case: str, ours: Line, theirs: Line) -> Question:
    """Return the question whether a line has fewer good step sizes than another."""
    tables = [
        np.stack([found.errors(case, one, "last100", fresh=False) for one in found.of_line(case, line)])
        for line in (ours, theirs)
    ]

    def answer(level: float) -> Interval:
        weights = resamples(tables[0].shape[1], 0, DRAWS // 10)
        gaps = good_step_sizes(tables[0], weights) - good_step_sizes(tables[1], weights)
        low, high = np.quantile(gaps, [(1 - level) / 2, (1 + level) / 2])
        return Interval(float(counts[0] - counts[1]), float(low), float(high))

    everything = np.full((1, tables[0].shape[1]), 1 / tables[0].shape[1])
    counts = [int(good_step_sizes(table, everything)[0]) for table in tables]
    facts = {
        "study": found.study.name,
        "task": case,
        "size": found.size(case),
        "measure": "last100",
        "runs": tables[0].shape[1],
        "ours": {"label": ours.label, "learner": ours.learner, "held": dict(ours.held), "step_sizes": counts[0]},
        "rival": {"label": theirs.label, "learner": theirs.learner, "held": dict(theirs.held), "step_sizes": counts[1]},
        "text": f"step sizes within twice the best error, {ours.label} − {theirs.label}:",
    }
    return Question("count", (), "below", 0.0, answer=answer, facts=facts)


def good_step_sizes(errors: Array, weights: Array) -> Array:
    """Return how many step sizes are within twice the best mean, (draws,).

    errors: (alphas, runs); weights: (draws, runs), how much each run weighs.
    """
    finite = np.isfinite(errors).all(axis=1)
    means = weights @ errors[finite].T
    return (means <= WITHIN * means.min(axis=1, keepdims=True)).sum(axis=1)


def tapered_over_constant(tapered: str, constant: str) -> Ask:
    """Ask whether Gradient-DD with tapered steps is lower than with constant ones, on the tasks that have both."""

    def ask(evidence: dict[str, Evidence]) -> list[Question]:
        questions = []
        for tuning in BOTH:
            suffix, lines = TUNINGS[tuning]
            first, second = evidence[tapered + suffix], evidence[constant + suffix]
            for case in second.cases:
                ours = first.choose(case, replace(lines["gradient_dd"], label="Gradient-DD, tapered"))
                theirs = second.choose(case, replace(lines["gradient_dd"], label="Gradient-DD, constant"))
                questions.append(Question("ratio", (Part(ours, theirs, "last100"),), "below", 1.0, tuning=tuning))
        return questions

    return ask


def as_good_as_natural(walk: str, natural: str) -> Ask:
    """Ask whether Gradient-DD is as good as natural GTD2 and natural TDC on the same walk."""

    def ask(evidence: dict[str, Evidence]) -> list[Question]:
        questions = []
        for tuning in BOTH:
            suffix, lines = TUNINGS[tuning]
            found, other = evidence[walk + suffix], evidence[natural]
            for case in other.cases:
                ours = found.choose(case, lines["gradient_dd"])
                for learner in ("natural_gtd2", "natural_tdc"):
                    part = Part(ours, other.choose(case, WHOLE[learner]), "last100")
                    questions.append(Question("ratio", (part,), "below", AS_GOOD, tuning=tuning))
        return questions

    return ask


def lower_than_td_somewhere(*studies: str) -> Ask:
    """Ask whether Gradient-DD is lower than TD, by what is tuned for, and over all episodes if tuned for the end."""
    tuned_for_it = [
        versus(study, ("td",), "below", 1.0, measure, (measure,), together="what is measured")
        for study in studies
        for measure in ("last100", "area")
    ]
    return together(*tuned_for_it, *(versus(study, ("td",), "below", 1.0, "area") for study in studies))
