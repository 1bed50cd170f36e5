"""Statements that need no run: what `gradient_dd.theory` computes of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradient_dd import tasks
from gradient_dd.engine.schedules import Schedule, constant, tapered
from gradient_dd.experiments.paper.claims.evidence import Evidence
from gradient_dd.experiments.paper.claims.verdict import Ask, Question
from gradient_dd.learners import LEARNERS
from gradient_dd.studies.intervals import Interval
from gradient_dd.studies.study import task_size
from gradient_dd.tasks import Task
from gradient_dd.theory import check_assumptions, expected_run, natural_relation, recursion_eigenvalues

STEPS = 1000  # over which changes of the values are followed
NEAR = 0.05  # radians: what counts as the same direction
LESS = 0.9  # of the largest change that GTD2 makes: what counts as preventing drastic ones


def exactly(compute: Callable[[], list[Question]]) -> Ask:
    """Return questions that no evidence is needed for."""

    def ask(evidence: dict[str, Evidence]) -> list[Question]:
        return compute()

    return ask


def exact(task: Task, value: float, side: str, bound: float, text: str, reading: str = "default") -> Question:
    """Return the question on which side of a bound a computed number is."""

    def answer(level: float) -> Interval:
        return Interval(value, value, value)

    facts: dict[str, Any] = {"task": str(task), "size": task_size(task), "text": text}
    return Question("exact", (), side, bound, reading, tuned_for="", answer=answer, facts=facts)


def gradient_dd(alpha: float, kappa: float = 1.0) -> Any:
    """Return a setting of Gradient-DD."""
    return LEARNERS["gradient_dd"].setting(alpha=alpha, kappa=kappa)


def mean_flow_is_stable() -> list[Question]:
    """Where (A0) to (A4) hold, the mean of the combined recursion goes to the fixed point."""
    covered = [*(tasks.random_walk(m) for m in (10, 20, 40)), *(tasks.boyan_chain(p) for p in (20, 50, 100))]
    text = "smallest real part of the eigenvalues of G"
    return [
        exact(task, float(recursion_eigenvalues(task, gradient_dd(0.3)).real.min()), "above", 0.0, text)
        for task in covered
    ]


def assumptions_hold_in_the_experiments() -> list[Question]:
    """How many of (A0) to (A4) fail in each kind of experiment, at a step size in the middle of its grid."""
    experiments: list[tuple[Task, float, Schedule, str]] = [
        (tasks.random_walk(10), 0.3, tapered(1000), "tapered steps"),
        (tasks.random_walk(10), 0.3, constant, "constant steps"),
        (tasks.boyan_chain(20), 0.3, tapered(2000), "tapered steps"),
        (tasks.baird(7), 0.01, constant, "constant steps"),
    ]
    questions = []
    for task, alpha, schedule, named in experiments:
        failing = [one.name for one in check_assumptions(task, gradient_dd(alpha), schedule) if not one.holds]
        text = f"assumptions that fail on {task.name}, {named} ({', '.join(failing) or 'none'}):"
        questions.append(exact(task, float(len(failing)), "below", 1.0, text))
    return questions


def follows_the_natural_gradient() -> list[Question]:
    """The angle between the natural gradient and the constrained problem, Gradient-DD's first and its settled step."""
    walk = tasks.random_walk(10)
    relation = natural_relation(walk, walk.initial_weights, mu=1e-9, alpha=0.3, kappa=1.0)
    names = (
        "angle of the constrained problem as its region shrinks",
        "angle of Gradient-DD's first step",
        "angle of Gradient-DD once settled",
    )
    return [exact(walk, value, "below", NEAR, text) for value, text in zip(relation, names, strict=True)]


def largest_change(task: Task, learner: str, alpha: float, sampling: str) -> float:
    """Return the largest change of the expected values in one step, in the norm of D."""
    run = expected_run(
        task, LEARNERS[learner].setting(alpha=alpha), STEPS, sampling=sampling, points=np.arange(STEPS + 1)
    )
    changes = np.diff(run.weights, axis=0) @ task.features.T
    return float(np.sqrt((changes**2 @ task.visits).max()))


def changes_are_less_drastic() -> list[Question]:
    """The largest change of the values in one step, over that of GTD2 with the same step size."""
    questions = []
    for task, alpha in ((tasks.random_walk(10), 0.3), (tasks.boyan_chain(20), 0.3), (tasks.baird(7), 0.01)):
        for sampling, named in (("iid", "independent draws"), ("trajectory", "trajectories")):
            ours, theirs = (largest_change(task, learner, alpha, sampling) for learner in ("gradient_dd", "gtd2"))
            text = f"largest change of the values over GTD2's, {task.name}, {named}"
            questions.append(exact(task, ours / theirs, "below", LESS, text))
    return questions
