"""The tests that judge claims: each takes the evidence of a study (or of several) and says what it saw."""

import numpy as np

from gradient_dd.paper.claims.evidence import (
    AS_GOOD,
    DD,
    INSENSITIVE,
    TD,
    TDRC,
    ZERO,
    Evidence,
    Judged,
    Test,
    mean,
    short,
    told_interval,
)
from gradient_dd.paper.figures import BY_KAPPA, NATURAL, ON_BAIRD
from gradient_dd.report.figure import Line
from gradient_dd.studies import statistics
from gradient_dd.studies.selection import tuned

EARLY = 20  # the first twentieth of a run


def lower_than(*others: Line, measure: str = "last100") -> Test:
    """Return the test that Gradient-DD is lower than others on every task."""
    return lambda e: [e.lower(task, DD, other, measure) for task in e.tasks for other in others]


def as_good_as(*others: Line, measure: str = "last100") -> Test:
    """Return the test that Gradient-DD is as good as others on every task."""
    return lambda e: [e.as_good(task, DD, other, measure) for task in e.tasks for other in others]


def grows(other: Line, measure: str = "last100") -> Test:
    """Return the test that the advantage over another learner grows from each size to the next."""

    def test(e: Evidence) -> Judged:
        ratios = [e.ratio(task, other, DD, measure) for task in e.tasks]
        steps = zip(e.tasks, e.tasks[1:], ratios, ratios[1:], strict=False)
        what = f"{other.label} / {DD.label}"
        return [(b > a, f"{what}: {a:.2f} at {short(s)}, {b:.2f} at {short(t)}") for s, t, a, b in steps]

    return test


def insensitive(lines: tuple[Line, ...], measure: str = "last100") -> Test:
    """Return the test that the tuned error hardly depends on what the lines differ in."""

    def test(e: Evidence) -> Judged:
        judged = []
        for task in e.tasks:
            errors = [e.errors(task, line, measure).mean() for line in lines]
            told = ", ".join(e.told(task, line, measure) for line in lines)
            spread = max(errors) / min(errors)
            judged.append((bool(spread <= INSENSITIVE), f"{short(task)}: {told}; largest / smallest {spread:.2f}"))
        return judged

    return test


def kappa_one_is_good(e: Evidence) -> Judged:
    """κ = 1 is as good as the best κ."""
    (one,) = (line for line in BY_KAPPA if line.label == "κ = 1")
    return [e.as_good(task, one, best_of(e, task, BY_KAPPA)) for task in e.tasks]


def best_of(e: Evidence, task: str, lines: tuple[Line, ...]) -> Line:
    """Return the line with the smallest error on the selection runs."""
    settings, errors = e.table(task, "last100")
    winner = settings[tuned(settings, errors, lambda setting: any(line.has(setting) for line in lines))]
    return next(line for line in lines if line.has(winner))


def narrower(e: Evidence) -> Judged:
    """Fewer step sizes of the grid are within twice the best error than for TD and TDRC."""
    judged = []
    for task in e.tasks:
        wide = {}
        for line in (DD, TD, TDRC):
            means = e.of_line(task, line)[1].mean(axis=1)
            wide[line.label] = int((np.isfinite(means) & (means <= 2 * means.min())).sum())
        told = f"{short(task)}: " + ", ".join(f"{label} {count}" for label, count in wide.items()) + " step sizes"
        judged += [(wide[DD.label] < wide[o.label], f"{told} (against {o.label})") for o in (TD, TDRC)]
    return judged


def slower_at_first(e: Evidence) -> Judged:
    """Over the first twentieth of the episodes its curve lies above TD's and TDRC's."""
    judged = []
    for task in e.tasks:
        for other in (TDRC, TD):
            ours, theirs = (e.early(task, line, EARLY) for line in (DD, other))
            judged.append((ours > theirs, f"{short(task)}: {DD.label} {ours:.3g}, {other.label} {theirs:.3g}"))
    return judged


def as_good_as_natural(walk: Evidence, natural: Evidence) -> Judged:
    """Gradient-DD of the walk against each natural learner, ζ tuned, on the same walk."""
    (task,) = natural.tasks
    ours = float(walk.errors(task, DD).mean())
    judged = []
    for learner in ("natural_gtd2", "natural_tdc"):
        best = best_of(natural, task, tuple(line for line in NATURAL if line.learner == learner))
        holds = ours <= AS_GOOD * natural.errors(task, best).mean()
        judged.append((bool(holds), f"{short(task)}: {walk.told(task, DD)}, {natural.told(task, best)}"))
    return judged


def tapered_is_better(tapered: Evidence, constant: Evidence) -> Judged:
    """Gradient-DD with tapered steps against constant ones, on the same runs of the tasks that have both."""
    judged = []
    for task in constant.tasks:
        a, b = tapered.errors(task, DD), constant.errors(task, DD)
        interval = statistics.paired_bootstrap(a, b)
        told = f"{short(task)}: tapered {mean(a)}, constant {mean(b)}, {told_interval(interval)}"
        judged.append((bool(interval.high < 0), told))
    return judged


def better_than_td(*all_evidence: Evidence) -> Judged:
    """Gradient-DD is lower than TD, by either measure."""
    return [
        (holds, f"{evidence.results.study.name} {text} ({measure})")
        for evidence in all_evidence
        for task in evidence.tasks
        for measure in ("last100", "area")
        for holds, text in [evidence.lower(task, DD, TD, measure)]
    ]


# Baird: each claim is judged under each reading of the ratios and each placement of ρ.

BAIRD_TD, BAIRD_TDRC, BAIRD_GTD2, BAIRD_GTD2_T, BAIRD_TDC, BAIRD_DD, BAIRD_DD_T = ON_BAIRD


def on_baird(ratios: str, mode: str) -> dict[str, Test]:
    """Return the tests of one reading, by what they say."""
    ours, gtd2 = (BAIRD_DD, BAIRD_GTD2) if mode == "R" else (BAIRD_DD_T, BAIRD_GTD2_T)
    others = gtd2, BAIRD_TDC, BAIRD_TDRC

    def tasks(e: Evidence) -> list[str]:
        return [task for task in e.tasks if ("ratios=paper" in task) == (ratios == "paper")]

    def first_error(e: Evidence, task: str) -> float:
        return e.results.tasks[task].rmsve(e.results.tasks[task].initial_weights)

    def stays_above(e: Evidence, task: str, line: Line, share: float) -> tuple[bool, str]:
        best, first = e.errors(task, line).mean(), first_error(e, task)
        return bool(best > share * first), f"{short(task)}: best {e.told(task, line)}, at first {first:.3g}"

    def reach(e: Evidence, line: Line, wanted: bool) -> Judged:
        judged = []
        for task in tasks(e):
            share = float(e.errors(task, line).mean()) / first_error(e, task)
            told = f"{short(task)}: {line.label} ends at {share:.2g} of the first error"
            judged.append(((share < ZERO) == wanted, told))
        return judged

    return {
        "TD diverges": lambda e: [stays_above(e, task, BAIRD_TD, 1.0) for task in tasks(e)],
        "Gradient-DD is better than GTD2, TDC and TDRC": lambda e: [
            e.lower(task, ours, other) for task in tasks(e) for other in others
        ],
        "TDRC is unstable at N = 20": lambda e: [stays_above(e, task, BAIRD_TDRC, 0.5) for task in tasks(e)[-1:]],
        "GTD2, TDC and TDRC do not reach zero": lambda e: [j for o in others for j in reach(e, o, wanted=False)],
        "Gradient-DD reaches zero": lambda e: reach(e, ours, wanted=True),
    }


BAIRD_CRITERIA = {
    "TD diverges": "no step size ends below the first error",
    "Gradient-DD is better than GTD2, TDC and TDRC": "lower",
    "TDRC is unstable at N = 20": "no step size halves the first error",
    "GTD2, TDC and TDRC do not reach zero": "end above 1/1000 of the first error",
    "Gradient-DD reaches zero": "ends below 1/1000 of the first error",
}
