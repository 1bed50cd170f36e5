"""The answer in a few sentences, made from the verdicts: who should take Gradient-DD, and with which settings.

Every number is a ratio of errors on fresh runs, with its task; where a sentence names no measure it is the error at the
end. All learners are tuned fully, unless it says otherwise.
"""

from collections.abc import Sequence

from gradient_dd.experiments.by_study import rival_of
from gradient_dd.experiments.paper.fully import PREFIX, WORDS
from gradient_dd.experiments.verdicts import FULLY, MAIN, ClaimVerdict, Comparison
from gradient_dd.report.figure import NAMES, SYMBOLS

WORLDS = {"random_walk": "random walk", "boyan_chain": "Boyan chain", "baird": "Baird's counterexample"}
OURS, KNOB = "gradient_dd", "gtd2_to_td"


def found(verdicts: Sequence[ClaimVerdict], claim: str, tuning: str = MAIN) -> list[Comparison]:
    """Return the comparisons of a claim under a way of tuning, tuned for what is measured."""
    judgements = [one for verdict in verdicts if verdict.claim == claim for one in verdict.judgements]
    some = [one for judgement in judgements if judgement.tuning == tuning for one in judgement.comparisons]
    return [one for one in some if one.tuned_for in (one.measure, "what is measured")]


def largest(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return those of the largest size."""
    return [one for one in comparisons if one.size == max(other.size for other in comparisons)]


def word(comparisons: Sequence[Comparison]) -> str:
    """Return on which side of 1 the intervals lie, with the names of the rivals."""
    rivals = list(dict.fromkeys(NAMES.get(rival_of(one), "") for one in comparisons))
    named = " and ".join(rivals)
    if all(one.high < 1 for one in comparisons):
        return f"a lower error than {named}"
    if all(one.low > 1 for one in comparisons):
        return f"a higher error than {named}"
    if all(one.high >= 1 for one in comparisons):
        return f"no lower error than {named}"
    return f"an error that is not always lower than that of {named}"


def ratios(comparisons: Sequence[Comparison], over: str = "") -> str:
    """Return the ratios, by task: "0.204 × GTD2 and 0.451 × TDC (random walk, m = 40)"; `over` names another rival."""
    groups: dict[tuple[str, int], list[str]] = {}
    for one in comparisons:
        label = over or NAMES.get(rival_of(one), "")
        groups.setdefault((one.task, one.size), []).append(f"{one.estimate:.3g} × {label}")
    return "; ".join(f"{' and '.join(parts)} ({place(*key)})" for key, parts in groups.items())


def place(task: str, size: int) -> str:
    """Return a task and its size in words."""
    name = task.partition("(")[0]
    return f"{WORLDS.get(name, name)}, {SYMBOLS.get(name, 'size')} = {size}"


def headline(verdicts: Sequence[ClaimVerdict]) -> list[str]:
    """Return the answer: on-policy, what the defaults cost, which learner to tune, and off-policy."""
    sentences = [on_policy(verdicts), defaults(verdicts), knob(verdicts), off_policy(verdicts), alone(verdicts)]
    return [one for one in sentences if one]


def fully(verdicts: Sequence[ClaimVerdict], study: str, measure: str, *rivals: str) -> list[Comparison]:
    """Return the comparisons of a study, tuned fully for a measure, with these rivals or all."""
    some = found(verdicts, f"{PREFIX}{study}", FULLY)
    return [one for one in some if one.measure == measure and (not rivals or rival_of(one) in rivals)]


def on_policy(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return Gradient-DD against TD and TDRC on the largest walk and the longest Boyan chain."""
    end, mean_error = (
        [one for study in ("walk", "boyan") for one in largest(fully(verdicts, study, measure, "td", "tdrc"))]
        for measure in ("last100", "mean_error")
    )
    if not end:
        return ""
    settings = (end[0].ours or {})["settings"]
    lead = f"On-policy, with {settings} settings for every learner over all its parameters, Gradient-DD ends with"
    more = f" Over all episodes it has {word(mean_error)}: {ratios(mean_error)}." if mean_error else ""
    return f"{lead} {word(end)}: {ratios(end)}.{more}"


def defaults(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return what κ = ζ = 1 costs."""
    some = [one for one in found(verdicts, "kappa-zeta-one", FULLY) if one.measure == "last100"]
    plain = [one for one in some if one.study in ("walk-fully", "boyan-fully")]
    if not plain:
        return ""
    return (
        "With the paper's κ = ζ = 1 it ends with a multiple of the error that it has tuned fully: "
        f"{ratios(plain, 'that of Gradient-DD tuned fully')}."
    )


def knob(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return how Gradient-DD stands to gtd2_to_td, on-policy and tuned fully, in counts."""
    some = [one for study in WORDS for m in ("last100", "mean_error") for one in fully(verdicts, study, m, KNOB)]
    if not some:
        return ""
    lower, higher = sum(one.high < 1 for one in some), sum(one.low > 1 for one in some)
    return (
        f"{NAMES[KNOB]} has the share that κ takes back as a parameter: on-policy Gradient-DD has a higher error than "
        f"it in {higher} comparisons, a lower one in {lower}, and {len(some) - lower - higher} are open."
    )


def off_policy(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return how Gradient-DD stands to each rival on Baird's counterexample, over all readings, in counts."""
    some = found(verdicts, f"{PREFIX}baird", FULLY)
    if not some:
        return ""
    by_rival: dict[str, list[Comparison]] = {}
    for one in some:
        by_rival.setdefault(NAMES[rival_of(one)], []).append(one)
    told = [
        f"{name} {sum(one.high < 1 for one in mine)} / {sum(not (one.high < 1 or one.low > 1) for one in mine)} / "
        f"{sum(one.low > 1 for one in mine)}"
        for name, mine in by_rival.items()
    ]
    lead = "Off-policy, on Baird's counterexample, it ends lower / no different / higher than its rivals so often"
    return f"{lead}: {', '.join(told)}."


def alone(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return how it stands to GTD2 on independent transitions."""
    some = [one for s in ("walk-iid", "boyan-iid") for one in fully(verdicts, s, "mean_error", "gtd2")]
    if not some:
        return ""
    lead = "On independent transitions, which the theorem assumes, it has"
    return f"{lead} {word(some)} over all episodes: {ratios(some)}."
