"""The tests that judge claims: each takes the evidence of a study (or of several) and says what it saw."""

from gradient_dd import summary
from gradient_dd.claims.evidence import (
    AS_GOOD,
    DD,
    INSENSITIVE,
    LINES,
    TD,
    TDRC,
    ZERO,
    Evidence,
    Judged,
    Test,
    mean,
    short,
)
from gradient_dd.panels import matches
from gradient_dd.studies.figures import BY_KAPPA, NATURAL, Line


def lower_than(*others: str, measure: str = "last100") -> Test:
    """Return the test that Gradient-DD is lower than others on every task."""
    return lambda e: [e.lower(task, DD, other, measure) for task in e.tasks for other in others]


def as_good_as(*others: str, measure: str = "last100") -> Test:
    """Return the test that Gradient-DD is as good as others on every task."""
    return lambda e: [e.as_good(task, DD, other, measure) for task in e.tasks for other in others]


def grows(other: str, measure: str = "last100") -> Test:
    """Return the test that the advantage over another learner grows from each size to the next."""

    def test(e: Evidence) -> Judged:
        ratios = [e.ratio(task, other, DD, measure) for task in e.tasks]
        steps = zip(e.tasks, e.tasks[1:], ratios, ratios[1:], strict=False)
        return [(b > a, f"{other} / {DD}: {a:.2f} at {short(s)}, {b:.2f} at {short(t)}") for s, t, a, b in steps]

    return test


def insensitive(lines: tuple[Line, ...]) -> Test:
    """Return the test that the tuned error hardly depends on what the lines differ in."""

    def test(e: Evidence) -> Judged:
        judged = []
        for task in e.tasks:
            errors = e.tuned(task, lines)
            told = ", ".join(f"{line.label} {error:.3g}" for line, error in zip(lines, errors, strict=True))
            spread = max(errors) / min(errors)
            judged.append((spread <= INSENSITIVE, f"{short(task)}: {told}; largest / smallest {spread:.2f}"))
        return judged

    return test


def kappa_one_is_good(e: Evidence) -> Judged:
    """κ = 1 is as good as the best κ."""
    judged = []
    for task in e.tasks:
        errors = dict(zip([line.label for line in BY_KAPPA], e.tuned(task, BY_KAPPA), strict=True))
        best = min(errors, key=errors.__getitem__)
        one = errors["κ = 1"]
        judged.append(
            (one <= AS_GOOD * errors[best], f"{short(task)}: κ = 1 {one:.3g}, best {best} {errors[best]:.3g}")
        )
    return judged


def narrower(e: Evidence) -> Judged:
    """Fewer step sizes of the grid are within twice the best error than for TD and TDRC."""
    judged = []
    for task in e.tasks:
        settings, errors = e.results.errors(task)
        wide = {}
        for label in (DD, TD, TDRC):
            ours = [i for i, setting in enumerate(settings) if matches(LINES[label], setting)]
            means = errors[ours].mean(axis=1)
            wide[label] = int((means <= 2 * means.min()).sum())
        told = f"{short(task)}: " + ", ".join(f"{label} {count}" for label, count in wide.items()) + " step sizes"
        judged += [(wide[DD] < wide[other], f"{told} (against {other})") for other in (TD, TDRC)]
    return judged


def slower_at_first(e: Evidence) -> Judged:
    """Over the first twentieth of the episodes its curve lies above TD's and TDRC's."""
    judged = []
    early = max(1, e.results.study.horizon.bins // 20)
    for task in e.tasks:
        for other in (TDRC, TD):
            chosen = [e.selected(task, LINES[label], "last100") for label in (DD, other)]
            ours, theirs = e.results.curves(task, chosen)[:, :, :early].mean(axis=(1, 2))
            judged.append((bool(ours > theirs), f"{short(task)}: {DD} {ours:.3g}, {other} {theirs:.3g}"))
    return judged


def as_good_as_natural(walk: Evidence, natural: Evidence) -> Judged:
    """Gradient-DD of the walk against each natural learner, ζ tuned, on the same walk."""
    (task,) = natural.tasks
    ours = float(walk.errors(task, DD).mean())
    judged = []
    for learner in ("natural_gtd2", "natural_tdc"):
        lines = tuple(line for line in NATURAL if line.learner == learner)
        best, line = min(zip(natural.tuned(task, lines), lines, strict=True), key=lambda pair: pair[0])
        judged.append((ours <= AS_GOOD * best, f"{short(task)}: {DD} {ours:.4g}, {line.label} {best:.4g}"))
    return judged


def tapered_is_better(tapered: Evidence, constant: Evidence) -> Judged:
    """Gradient-DD with tapered steps against constant ones, on the same runs."""
    judged = []
    for task in tapered.tasks:
        a, b = tapered.errors(task, DD), constant.errors(task, DD)
        interval = summary.paired_bootstrap(a, b)
        judged.append((bool(interval.high < 0), f"{short(task)}: tapered {mean(a)}, constant {mean(b)}"))
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


def on_baird(ratios: str, mode: str) -> dict[str, Test]:
    """Return the tests of one reading, by what they say."""
    suffix = ", ρ placed T" if mode == "T" else ""
    ours, gtd2, others = f"Gradient-DD, κ tuned{suffix}", f"GTD2, ζ tuned{suffix}", ("TDC, ζ tuned", "TDRC")

    def tasks(e: Evidence) -> list[str]:
        return [task for task in e.tasks if ("ratios=paper" in task) == (ratios == "paper")]

    def first_error(e: Evidence, task: str) -> float:
        return e.results.tasks[task].rmsve(e.results.tasks[task].initial_weights)

    def td_diverges(e: Evidence) -> Judged:
        judged = []
        for task in tasks(e):
            best = float(e.errors(task, TD).mean())
            judged.append(
                (best > first_error(e, task), f"{short(task)}: best TD {best:.3g}, at first {first_error(e, task):.3g}")
            )
        return judged

    def better(e: Evidence) -> Judged:
        return [e.lower(task, ours, other) for task in tasks(e) for other in (gtd2, *others)]

    def tdrc_unstable(e: Evidence) -> Judged:
        judged = []
        for task in tasks(e)[-1:]:
            best = float(e.errors(task, TDRC).mean())
            told = f"{short(task)}: best TDRC {best:.3g}, at first {first_error(e, task):.3g}"
            judged.append((best > first_error(e, task) / 2, told))
        return judged

    def reach(e: Evidence, label: str, wanted: bool) -> Judged:
        judged = []
        for task in tasks(e):
            share = float(e.errors(task, label).mean()) / first_error(e, task)
            judged.append(((share < ZERO) == wanted, f"{short(task)}: {label} ends at {share:.2g} of the first error"))
        return judged

    return {
        "TD diverges": td_diverges,
        "Gradient-DD is better than GTD2, TDC and TDRC": better,
        "TDRC is unstable at N = 20": tdrc_unstable,
        "GTD2, TDC and TDRC do not reach zero": lambda e: [
            j for o in (gtd2, *others) for j in reach(e, o, wanted=False)
        ],
        "Gradient-DD reaches zero": lambda e: reach(e, ours, wanted=True),
    }


BAIRD_CRITERIA = {
    "TD diverges": "no step size ends below the first error",
    "Gradient-DD is better than GTD2, TDC and TDRC": "lower",
    "TDRC is unstable at N = 20": "no step size halves the first error",
    "GTD2, TDC and TDRC do not reach zero": "end above 1/1000 of the first error",
    "Gradient-DD reaches zero": "ends below 1/1000 of the first error",
}
