"""The tasks of the trials in docs/shadows.md: the paper's, Baird's, random MDPs, and MDPs on which TD diverges.

Random tasks are named by the first of their seeds, so that a design suite and a trial never share one.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, cycle, islice
from typing import NamedTuple

import numpy as np

from gradient_dd.tasks import Task, from_tables, random_mdp

SIZES = ((8, 3, 4, 0.9), (20, 3, 8, 0.95), (12, 2, 6, 0.99), (30, 3, 8, 0.9))  # states, actions, features, discount


class Case(NamedTuple):
    """A task of the trial, and the group it is counted in."""

    group: str
    name: str
    task: Task


def aimed_at_the_fixed_point(task: Task) -> Task:
    """Return the same task with the values of the TD fixed point for true values: errors are then distances to it."""
    return replace(task, goal=task.features @ task.fixed_point)


def td_is_stable(task: Task) -> bool:
    """Return whether no eigenvalue of A has a negative real part, up to rounding."""
    return bool(np.linalg.eigvals(task.moments.A).real.min() > -1e-10)


def with_random_start(task: Task, draw: int) -> Task:
    """Return the task with initial weights drawn from the standard normal distribution."""
    return replace(task, initial_weights=np.random.default_rng(draw).standard_normal(task.n_features))


def random_cases(target: str, number: int, first: int) -> Iterator[Case]:
    """Random MDPs of four sizes in turn; on policy the target is the behaviour policy."""
    for i in range(number):
        n, actions, p, discount = SIZES[i % len(SIZES)]
        seed = first + i + (1_000_000 if target == "off" else 0)
        task = random_mdp(n, actions, p, discount, seed=seed)
        if target == "on":
            task = replace(task, target=np.array(task.behaviour))
        yield Case(
            f"random, {target} policy", f"random_mdp({n}, {actions}, {p}, {discount}, seed={seed}), {target}", task
        )


def diverging_cases(number: int, first: int) -> Iterator[Case]:
    """Random MDPs of 3 states and 2 features on which TD diverges, from seeds that nothing else uses."""
    made = ((seed, random_mdp(3, 2, 2, 0.99, seed=seed)) for seed in count(first))
    diverging = ((seed, task) for seed, task in made if not td_is_stable(task))
    for seed, task in islice(diverging, number):
        yield Case("diverging", f"random_mdp(3, 2, 2, 0.99, seed={seed})", task)


def greedy_cases(number: int, first: int) -> Iterator[Case]:
    """MDPs of 8 to 15 states and 4 or 6 features whose target policy goes to large features: TD is unstable there."""
    sizes = cycle(((8, 3, 4, 0.95), (15, 4, 6, 0.97)))
    made = ((seed, size, greedy_mdp(*size, seed)) for seed, size in zip(count(first), sizes, strict=False))
    unstable = (one for one in made if np.linalg.eigvals(one[2].moments.A).real.min() < -0.01)
    for seed, size, task in islice(unstable, number):
        yield Case("greedy target", f"greedy_mdp{size}, seed {seed}", task)


def greedy_mdp(n: int, actions: int, p: int, discount: float, seed: int) -> Task:
    """Return an MDP with few likely transitions, uniform behaviour, and a target that nearly maximises a sum of x."""
    rng = np.random.default_rng(seed)
    P = 0.98 * rng.dirichlet(np.full(n, 0.1), size=(n, actions)) + 0.02 / n
    X = rng.random((n, p))
    wanted = X @ rng.random(p)
    R = rng.standard_normal((n, actions, n))
    target = np.full((n, actions), 0.05 / actions)
    target[np.arange(n), (P @ wanted).argmax(axis=1)] += 0.95
    return from_tables(P, R, discount, np.full((n, actions), 1 / actions), target, features=X, name="greedy_mdp")
