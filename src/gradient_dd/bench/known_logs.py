"""Logs of tasks whose values are known, for the trials of `gradient-dd evaluate`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradient_dd.engine.trajectories import Stream
from gradient_dd.evaluation import Transitions, transitions_of
from gradient_dd.tasks import Task, random_walk
from gradient_dd.tasks.boyan_chain import boyan_chain
from gradient_dd.tasks.collision import collision
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
