"""Tasks as questions: what a table asks, and its trajectories as `Questions` take them.

Tasks that share their dynamics, such as the eight of Rooms, are eight questions about one stream.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.stream.question import Question
from gradient_dd.tasks import Task


def question_of(task: Task) -> Question:
    """Return what a task asks. Observations are the numbers of its states."""
    if task.ratios is not None:
        raise bad_request(f"The ratios of {task}", "be those of its policies", Unquoted("others"))
    outcome, n, actions = task.outcomes, len(task.start), task.n_actions

    def place(state: Any, action: Any, after: Any) -> Any:
        return (np.asarray(state, np.int64) * actions + action) * n + after

    places = place(outcome.state, outcome.action, outcome.next_state)
    order = np.argsort(places, kind="stable")
    found, signal = places[order], task.rewards[order]
    everywhere = task.interest is None

    return Question(
        str(task),
        cumulant=lambda state, action, after: signal[np.searchsorted(found, place(state, action, after))],
        discount=lambda batch: task.discount[batch.next_observations],
        target=lambda state, action: task.target[state, action],
        interest=None if everywhere else lambda batch: np.asarray(task.interest)[batch.observations] > 0,
    )


def questions_of(tasks: Sequence[Task]) -> list[Question]:
    """Return what several tasks ask about one stream; they must have the same dynamics and features."""
    for task in tasks:
        if task.digest != tasks[0].digest or (task.feature_rows != tasks[0].feature_rows).nnz:
            raise bad_request(
                "Tasks of one stream", "have the same dynamics and features", Unquoted(f"{tasks[0]} and {task}")
            )
    return [question_of(task) for task in tasks]


def transitions_of(task: Task, steps: int, seed: int = 0, run: int = 0) -> dict[str, Any]:
    """Return the first steps of a trajectory as the arguments of `Questions.update_many`."""
    outcomes = OutcomeSampler(task, seed, run).take(steps)
    outcome = task.outcomes
    state, action, after = outcome.state[outcomes], outcome.action[outcomes], outcome.next_state[outcomes]
    return {
        "x": task.feature_rows[state],
        "actions": action,
        "x_next": task.feature_rows[after],
        "behaviour_probability": task.behaviour[state, action],
        "observations": state,
        "next_observations": after,
    }
