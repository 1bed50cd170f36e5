"""Logs of tasks whose values are known, for the trials of `gradient-dd evaluate`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import extra
from gradient_dd.tasks import Task, random_walk
from gradient_dd.tasks.boyan_chain import boyan_chain
from gradient_dd.tasks.collision import collision
from gradient_dd.tasks.from_tables import from_tables
from gradient_dd.tasks.random_mdp import random_mdp


def log_of(task: Task, n: int, seed: int, **changes: Any) -> dict[str, Any]:
    """Return n transitions of a task as columns, some of them changed: x and x_next (n, p), the others (n,)."""
    row, next_row, reward, discount, rho, _ = task.transitions
    outcome = OutcomeSampler(task, seed=seed).take(n)
    X = task.row_features.toarray()
    columns = {"x": X[row[outcome]], "reward": reward[outcome], "discount": discount[outcome]}
    return columns | {"x_next": X[next_row[outcome]], "rho": rho[outcome]} | changes


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


def cartpole(seed: int, episodes: int = 100) -> dict[str, Array]:
    """Return a log of CartPole as columns: the pole is pushed back in 7 of 10 cases, the target does so in 9."""
    with extra("environments"):
        import gymnasium

    rng, env, rows = np.random.default_rng(seed), gymnasium.make("CartPole-v1"), []
    for episode in range(episodes):
        seen, over = env.reset(seed=seed * episodes + episode)[0], False
        while not over:
            leans_right = seen[2] >= 0
            action = int(leans_right) if rng.random() < 0.7 else 1 - int(leans_right)
            back = action == leans_right
            after, reward, ended, cut, _ = env.step(action)
            chances = (0.7, 0.9) if back else (0.3, 0.1)
            rows.append((episode, *seen, action, reward, ended, cut, *chances))
            seen, over = after, ended or cut
    names = ("episode", "x", "v", "th", "om", "action", "reward", "terminated", "truncated", "propensity", "pi")
    return dict(zip(names, np.array(rows, dtype=float).T, strict=True))


def shop_visits(seed: int, visits: int = 500) -> dict[str, Array]:
    """Return a log of visits to a shop as columns: who buys, and who leaves, depends on the interest."""
    rng, rows = np.random.default_rng(seed), []
    for visit in range(visits):
        left = False
        while not left:
            interest = rng.random()
            bought, left = rng.random() < 0.3 * interest, rng.random() < 0.3 - 0.2 * interest
            rows.append((visit, interest, bought, left))
    return dict(zip(("visit", "interest", "bought", "left"), np.array(rows, dtype=float).T, strict=True))
