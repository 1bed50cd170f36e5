"""Rooms as eight questions about one stream: the weights of eight tasks, and of a plain loop."""

import numpy as np
import pytest

from gradient_dd import BadRequestError, Questions, reference, tasks
from gradient_dd.stream.question import question_of, questions_of, transitions_of

STEPS, ALPHA, LAM = 1_500, 0.05, 0.6


def plain_loop(task, given):
    """TDRC(λ) on one question, as one writes it first: dense vectors, one line of the equations after the other."""
    w, eta, z, before = np.zeros(task.n_features), np.zeros(task.n_features), np.zeros(task.n_features), 0.0
    rows = task.feature_rows.toarray()
    for s, a, after in zip(given["observations"], given["actions"], given["next_observations"], strict=True):
        if not task.interest[s]:
            continue
        x, x_next, gamma, rho = rows[s], rows[after], task.discount[after], task.target[s, a] / task.behaviour[s, a]
        (outcome,) = np.flatnonzero((task.outcomes.state == s) & (task.outcomes.action == a))
        delta = task.cumulant[outcome] + gamma * (x_next @ w) - x @ w
        z, before = rho * (before * LAM * z + x), gamma
        z_eta, x_eta = z @ eta, x @ eta
        w = w + ALPHA * (delta * z - gamma * (1 - LAM) * z_eta * x_next)
        eta = eta + ALPHA * (delta * z - x_eta * x - eta)
    return w


@pytest.mark.parametrize("variance", ["low", "high"])
def test_the_eight_questions_of_rooms(variance):
    eight = [tasks.rooms(question, variance) for question in range(8)]
    given = transitions_of(eight[0], STEPS)
    horde = Questions(questions_of(eight), n_features=12, learner="tdrc", alpha=ALPHA, lam=LAM)
    horde.update_many(**given)
    for k, task in enumerate(eight):
        same = reference.run(task, "tdrc", steps=STEPS, every=STEPS, alpha=ALPHA, lam=LAM)
        assert np.allclose(horde.w[k], same.w, rtol=1e-10, atol=1e-13)
        assert np.allclose(horde.w[k], plain_loop(task, given), rtol=1e-10, atol=1e-13)
        assert np.abs(horde.w[k]).max() > 1e-3


def test_tasks_of_one_stream_share_it():
    with pytest.raises(BadRequestError, match="Tasks of one stream must have the same dynamics and features"):
        questions_of([tasks.rooms(0), tasks.rooms(0, "high")])
    with pytest.raises(BadRequestError, match="must be the ratios of its policies"):
        question_of(tasks.baird(ratios="paper"))
