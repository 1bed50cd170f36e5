"""Logs of tasks whose values are known, for the trials of `gradient-dd evaluate`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradient_dd.engine.trajectories import Stream
from gradient_dd.evaluation import Transitions, transitions_of
from gradient_dd.tasks import Task, random_walk
from gradient_dd.tasks.boyan_chain import boyan_chain
from gradient_dd.tasks.from_tables import from_tables
from gradient_dd.tasks.random_mdp import random_mdp


def log_of(task: Task, n: int, seed: int, **changes: Any) -> Transitions:
    """Return n transitions of a task, some columns changed."""
    row, next_row, reward, discount, rho, _ = task.transitions
    outcome = Stream(task, seed=seed).take(n)
    X = task.row_features.toarray()
    columns = {"x": X[row[outcome]], "reward": reward[outcome], "discount": discount[outcome]}
    columns |= {"x_next": X[next_row[outcome]], "rho": rho[outcome]}
    return transitions_of(**columns | changes)


def collision(seed: int) -> Task:
    """Return a walk towards a wall that the behaviour may leave and the target may not; random binary features.

    Eight states, starts in the first four, forward or, in the last four, retreat. Only the wall pays.
    """
    P, R = np.zeros((9, 2, 9)), np.zeros((9, 2, 9))
    for s in range(8):
        P[s, 0, s + 1] = 1.0
        P[s, 1, 8 if s >= 4 else s + 1] = 1.0
    R[7, 0, 8], P[8, :, 8] = 1.0, 1.0
    behaviour, target = np.tile([1.0, 0.0], (9, 1)), np.tile([1.0, 0.0], (9, 1))
    behaviour[4:8] = 0.5
    rng = np.random.default_rng(seed)
    X = np.zeros((8, 6))
    for s in range(8):
        X[s, rng.choice(6, size=3, replace=False)] = 1.0
    start = np.array([0.25] * 4 + [0.0] * 5)
    return from_tables(P, R, 0.9, behaviour, target, start, X, name="collision")


def realisable(seed: int, n_states: int = 8) -> Task:
    """Return a random off-policy task with an end whose values its features can represent: one feature a state."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(n_states + 1, 0.5), size=(n_states + 1, 2))
    P[n_states], R = np.eye(n_states + 1)[n_states], rng.standard_normal((n_states + 1, 2, n_states + 1))
    R[n_states] = 0.0
    behaviour = rng.dirichlet([3.0, 3.0], size=n_states + 1)
    target = rng.dirichlet([3.0, 3.0], size=n_states + 1)
    return from_tables(P, R, 0.9, behaviour, target, name="realisable")


def suite(mdps: int) -> dict[str, Callable[[int], Task]]:
    """Return the tasks of the trial of "auto" as functions of the run; only the features of Collision depend on it."""
    walk, boyan = random_walk(20), boyan_chain(20)
    found: dict[str, Callable[[int], Task]] = {"walk": always(walk), "boyan": always(boyan), "collision": collision}
    return found | {f"mdp {k}": always(random_mdp(seed=1000 + k, episodic=bool(k % 2))) for k in range(mdps)}


def always(task: Task) -> Callable[[int], Task]:
    """Return a function that gives a task whatever the run."""
    return lambda run: task
