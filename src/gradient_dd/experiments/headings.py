"""The heading of a figure, from the same fresh runs as the verdicts: which task, which measure, and what came out."""

from collections.abc import Iterable, Sequence

from gradient_dd.experiments.verdicts import MAIN, ClaimVerdict, Comparison
from gradient_dd.report.figure import NAMES, SYMBOLS, Figure, joined
from gradient_dd.tasks import Task

OURS = "gradient_dd"
MEASURED = {"last100": "at the end", "area": "over the whole run"}
WORLDS = {"random_walk": "Random walk", "boyan_chain": "Boyan chain", "baird": "Baird's counterexample"}
READING = "usual ratios, ρ placed R, the paper's first weights"  # whose numbers stand for a task with several readings


def heading(figure: Figure, tasks: Iterable[Task], verdicts: Sequence[ClaimVerdict]) -> str:
    """Return what fresh runs say of a figure: Gradient-DD against its rivals, or the best value against the worst.

    Empty where no claim compares the lines of the figure.
    """
    some = [one for verdict in verdicts for one in verdict.comparisons if is_shown(one, figure)]
    if not some:
        return ""
    name = some[0].task.partition("(")[0]
    policies = next(one.policies for one in tasks if one.name == name)
    place = f"{WORLDS.get(name, name)}, {policies}, {MEASURED[figure.measure]}"
    if len({line.learner for line in figure.lines}) == 1:
        return f"{place}: {spread(some, figure)}"
    largest = [one for one in some if one.size == max(other.size for other in some)]
    rivals = {rival_label(one): f"{one.estimate:.3g} × that of {rival_label(one)}" for one in largest}
    reading = "" if largest[0].reading == "default" else f" ({largest[0].reading})"
    told = f"the error of Gradient-DD is {joined(list(rivals.values()))}"
    return f"{place}: at {SYMBOLS.get(name, 'size')} = {largest[0].size}{reading} {told}"


def is_shown(one: Comparison, figure: Figure) -> bool:
    """Return whether a comparison is of lines that a figure shows, tuned as the paper has it for what it shows."""
    if one.kind != "ratio" or not one.ours or not one.rival or figure.study not in one.study.split(", "):
        return False
    if one.tuning != MAIN or one.measure != figure.measure or one.tuned_for != figure.measure:
        return False
    learners = {line.learner for line in figure.lines}
    alone = learners == {OURS}
    if one.ours["learner"] != OURS or (one.rival["learner"] == OURS) != alone:
        return False
    if alone:
        return all(short(side["label"])[0] == figure.lines[0].label[0] for side in (one.ours, one.rival))
    return one.rival["learner"] in learners and one.reading in ("default", READING)


def rival_label(one: Comparison) -> str:
    """Return the name of the rival of a comparison."""
    learner = (one.rival or {})["learner"]
    return NAMES.get(learner, learner)


def short(label: str) -> str:
    """Return the parameter of a label such as "Gradient-DD, κ = 4"."""
    return label.partition(", ")[2] or label


def spread(some: list[Comparison], figure: Figure) -> str:
    """Return for each size the best value of a parameter, and how far the worst is from it."""
    parts = []
    for size in sorted({one.size for one in some}):
        worst = max((one for one in some if one.size == size), key=lambda one: one.estimate)
        ours, rival = (short((side or {})["label"]) for side in (worst.ours, worst.rival))
        symbol = SYMBOLS.get(worst.task.partition("(")[0], "size")
        parts.append(f"{symbol} = {size}, {ours} has {worst.estimate:.3g} × the error of {rival}")
    return "; ".join(parts)
