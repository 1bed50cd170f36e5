"""Questions about shown runs: a ratio of two learners on a side of a bound, or a mean that agrees with a known one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.family.contest import Contest, Zetas
from gradient_dd.experiments.paper.claims.verdict import Question
from gradient_dd.learners import LEARNERS
from gradient_dd.studies.intervals import Interval, ratio_interval

Answer = Callable[[float], Interval]

TOO_UNSURE = 0.2  # a standard error of ours beyond this share of a published mean decides nothing


def compared(
    contest: Contest,
    problem: str,
    ours: str,
    rival: str,
    side: str,
    lams: tuple[float | None, float | None] = (None, None),
    bound: float = 1.0,
    measure: str = "area",
    reading: str = "default",
    rival_zetas: Zetas = None,
) -> list[Question]:
    """Return the question whether a learner's error over a rival's is on a side of a bound; none if one is missing."""
    if not all(contest.has(problem, name, lam) for name, lam in zip((ours, rival), lams, strict=True)):
        return []
    pair = [
        contest.errors(problem, ours, lams[0], measure),
        contest.errors(problem, rival, lams[1], measure, rival_zetas),
    ]
    names = [label(name, lam) for name, lam in zip((ours, rival), lams, strict=True)]
    return [question(problem, names, pair, side, bound, measure, reading, ratio_of((pair[0], pair[1])))]


def question(
    problem: str,
    names: Sequence[str],
    pair: Sequence[Array],
    side: str,
    bound: float,
    measure: str,
    reading: str,
    answer: Answer,
    text: str = "",
) -> Question:
    """Return a question with all that the ledger shows of it."""
    facts: dict[str, Any] = {
        "task": problem,
        "measure": measure,
        "runs": len(pair[0]),
        "ours": {"label": names[0], "mean": mean(pair[0])},
        "rival": {"label": names[1], "mean": mean(pair[1])} if len(names) > 1 else None,
        "text": text or f"{problem}, {' / '.join(names)}:",
    }
    return Question("ratio", (), side, bound, reading, tuned_for=measure, answer=answer, facts=facts)


def mean(errors: Array) -> float:
    """Return the mean of errors; infinite where a run diverged."""
    return float(errors.mean())


def ratio_of(*pairs: tuple[Array, Array]) -> Answer:
    """Return what gives the interval of a ratio at a level."""
    return lambda level: ratio_interval(*pairs, level=level)


def label(learner: str, lam: float | None) -> str:
    """Return how a learner is called, with its λ where that is not tuned."""
    return LEARNERS[learner].label + ("" if lam is None else f", λ = {lam:g}")


def agreement(errors: Array, name: str, known: tuple[float, float]) -> Question:
    """Return the question whether a mean is within twice the standard error, theirs and ours, of a published one."""
    ours = float(errors.std(ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else np.inf
    distance = float(abs(errors.mean() - known[0]) / (2 * np.hypot(ours, known[1])))
    answer = exactly(distance) if ours <= TOO_UNSURE * known[0] else unknown_beyond(distance)
    text = f"{name}: ours {errors.mean():.3f}, published {known[0]:.3f}, distance"
    return question("collision", [name], [errors], "below", 1.0, "area", "default", answer, text)


def exactly(value: float) -> Answer:
    """Return a number as its own interval."""
    return lambda level: Interval(value, value, value)


def unknown_beyond(value: float) -> Answer:
    """Return a number about which nothing is known: too few runs, or one that exploded."""
    return lambda level: Interval(value, 0.0, np.inf)
