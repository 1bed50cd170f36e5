"""What a figure shows, as one sentence made from its numbers, so that a new run cannot make it false."""

import numpy as np

from gradient_dd.report.figure import NAMES, STRONG, Figure
from gradient_dd.report.panels import LineData, Panel
from gradient_dd.report.study_figure import title_of


def figure_finding(figure: Figure, panels: list[Panel]) -> str:
    """Return the finding of a figure: Gradient-DD against each rival, or the best line against the worst."""
    strong = [line.line.label for line in panels[0].lines if line.line.colour == STRONG and not line.line.dashed]
    learners = {line.learner for line in figure.lines}
    if len(strong) == 1 and len(learners) > 1:
        return against_rivals(panels, strong[0])
    return spread(panels)


def against_rivals(panels: list[Panel], ours: str) -> str:
    """Return the errors of one line over those of the best line of every other learner, on the largest task."""
    panel = max(panels, key=lambda one: one.task.n_states)
    (mine,) = (line for line in panel.lines if line.line.label == ours)
    rivals: dict[str, LineData] = {}
    for line in panel.lines:
        name = line.line.learner
        if name != mine.line.learner and (name not in rivals or line.error < rivals[name].error):
            rivals[name] = line
    gone = [NAMES.get(name, name) for name, line in rivals.items() if panel.beyond(np.array(line.error))]
    parts = [
        f"{ratio(mine.error, line.error)} × that of {NAMES.get(name, name)}"
        for name, line in rivals.items()
        if NAMES.get(name, name) not in gone
    ]
    clauses = [f"the error of {ours} is {joined(parts)}"] if parts else []
    clauses += [f"every step size of {joined(gone)} explodes"] if gone else []
    return f"At {title_of(panel.task)} {'; '.join(clauses)}"


def spread(panels: list[Panel]) -> str:
    """Return the best line and how far the worst is from it, in every panel."""
    parts = []
    for panel in panels:
        ordered = sorted(panel.lines, key=lambda line: line.error)
        best, worst = ordered[0], ordered[-1]
        parts.append(
            f"{title_of(panel.task)}: {best.line.label} is lowest"
            + (f", {worst.line.label} has {ratio(worst.error, best.error)} × its error" if worst is not best else "")
        )
    return "; ".join(parts)


def ratio(ours: float, theirs: float) -> str:
    """Return a ratio with three digits, in words where it has no value."""
    return f"{ours / theirs:.3g}" if theirs > 0 else "infinitely many"


def joined(parts: list[str]) -> str:
    """Return parts as they stand in a sentence."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
