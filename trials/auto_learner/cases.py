"""The tasks of the reduced trial of AutoLearner, whose types were not used for its design.

    ring      a random walk on a ring with cosine features; the target drifts
    queue     a queue with two service speeds and correlated features: powers of its length
    torus     a torus of two dimensions with overlapping tiles: sparse features, up to 5,000
    rooms     states in groups with one feature each; the target stays more often than the behaviour policy
    branches  few successors of each state (Garnet), binary features; on-policy and off-policy
    greedy    a target that nearly maximises a sum of features: TD is mostly unstable
    small     one or two features, more states than features: TD is often unstable
    Baird     Baird's counterexample with random sizes and initial weights

Every task depends only on its seed, so that a design suite and a trial never share a task.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array
from gradient_dd.tasks import Task, baird, from_tables

LONG, USUAL, SHORT, LONGEST = 50_000, 20_000, 2_000, 300_000
LARGE = 2_000  # with more features the error is the distance to the true values, which they can represent


class Case(NamedTuple):
    """A task of the trial, its type, and the number of steps of a run."""

    kind: str
    name: str
    task: Task
    steps: int


def aimed_at_the_fixed_point(task: Task) -> Task:
    """Return the task with the values of the TD fixed point as its true values, so that errors are distances to it."""
    return task if task.n_features > LARGE else replace(task, goal=task.features @ task.fixed_point)


def td_is_stable(task: Task) -> bool:
    """Return whether no eigenvalue of A has a negative real part, up to rounding; this always holds on-policy."""
    if task.n_features > LARGE:
        return True
    return bool(np.linalg.eigvals(task.moments.A).real.min() > -1e-10)


def first_error(task: Task) -> float:
    """Return the error of the initial weights."""
    return task.rmsve(task.initial_weights)


def mixed(policies: Array, share: float) -> Array:
    """Return policies that act at random for a given share of the time."""
    return (1 - share) * policies + share / policies.shape[1]


def ring(seed: int) -> Task:
    """Return a walk on a ring of 12 to 40 states with 3 to 9 cosines; the target goes left more often."""
    rng = np.random.default_rng(seed)
    n, waves, drift = int(rng.integers(12, 41)), int(rng.integers(1, 5)), rng.uniform(0.5, 0.9)
    P = np.zeros((n, 2, n))
    P[np.arange(n), 0, np.arange(n) - 1], P[np.arange(n), 1, (np.arange(n) + 1) % n] = 1.0, 1.0
    angles = 2 * np.pi * np.outer(np.arange(n), np.arange(1, waves + 1)) / n
    X = np.hstack([np.ones((n, 1)), np.cos(angles), np.sin(angles)])
    R = rng.standard_normal(n)[:, None, None] * np.ones((n, 2, n))
    target = np.tile([drift, 1 - drift], (n, 1))
    return from_tables(P, R, rng.choice([0.8, 0.95, 0.99]), np.full((n, 2), 0.5), target, features=X, name="ring")


def queue(seed: int) -> Task:
    """Return a queue of up to 12 or 20 jobs that is served slowly or quickly, with 4 or 5 powers of its length."""
    rng = np.random.default_rng(seed)
    n, powers, arrival = int(rng.choice([12, 20])), int(rng.choice([4, 5])), rng.uniform(0.4, 0.55)
    P = np.zeros((n, 2, n))
    for action, service in enumerate((0.4, 0.7)):
        for jobs in range(n):
            down, up = service * (1 - arrival), arrival * (1 - service)
            P[jobs, action, max(jobs - 1, 0)] += down
            P[jobs, action, min(jobs + 1, n - 1)] += up
            P[jobs, action, jobs] += 1 - down - up
    R = -(np.arange(n)[:, None] / n + 0.3 * np.array([0.0, 1.0]))[:, :, None] * np.ones((n, 2, n))
    X = (np.arange(n)[:, None] / n) ** np.arange(powers)
    target = mixed(np.tile([0.0, 1.0], (n, 1)), rng.uniform(0.1, 0.8))
    return from_tables(P, R, 0.9, np.full((n, 2), 0.5), target, features=X, name="queue")


def torus(seed: int, side: int, features: int, discount: float) -> Task:
    """Return a torus of side × side states under the uniform policy, 8 of `features` random tiles for each state."""
    rng, n = np.random.default_rng(seed), side * side
    rows, columns = np.divmod(np.arange(n), side)
    P = np.zeros((n, 4, n))
    for action, (down, right) in enumerate(((1, 0), (-1, 0), (0, 1), (0, -1))):
        P[np.arange(n), action, (rows + down) % side * side + (columns + right) % side] = 1.0
    each = features // 8
    tiles = np.hstack(
        [((rows + a) // 2 * side + (columns + b) // 2)[:, None] % each for a, b in rng.integers(0, side, (8, 2))]
    )
    where = tiles + each * np.arange(8)
    X = sp.csr_matrix((np.ones(n * 8), (np.repeat(np.arange(n), 8), where.ravel())), shape=(n, features))
    R = (rng.standard_normal(n) * (rng.random(n) < 0.2))[:, None, None] * np.ones((n, 4, n))
    uniform = np.full((n, 4), 0.25)
    drift = mixed(np.tile(rng.dirichlet(np.ones(4)), (n, 1)), 0.5)
    return from_tables(P, R, discount, uniform, drift, features=X, name="torus")


def rooms(seed: int) -> Task:
    """Return 24 to 48 states in groups of 3 to 6, one feature each; the target prefers one of three actions."""
    rng = np.random.default_rng(seed)
    n, size = int(rng.integers(4, 9)) * 6, int(rng.choice([3, 6]))
    P = 0.9 * rng.dirichlet(np.full(n, 0.08), size=(n, 3)) + 0.1 / n
    X = (np.arange(n)[:, None] // size == np.arange(n // size)).astype(float)
    target = mixed(np.tile(np.eye(3)[0], (n, 1)), 0.5)
    return from_tables(P, rng.standard_normal((n, 3, n)), 0.9, np.full((n, 3), 1 / 3), target, features=X, name="rooms")


def branches(seed: int, off: bool) -> Task:
    """Return a Garnet MDP of 20 to 60 states with 3 successors each and 6 to 16 binary features, half of them on."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(20, 61)), int(rng.integers(6, 17))
    P = np.zeros((n, 3, n))
    for state in range(n):
        for action in range(3):
            P[state, action, rng.choice(n, 3, replace=False)] = rng.dirichlet(np.ones(3))
    P = 0.98 * P + 0.02 / n
    X = np.hstack([np.ones((n, 1)), rng.random((n, p - 1)) < 0.5])
    R = rng.standard_normal((n, 3))[:, :, None] + 0.3 * rng.standard_normal((n, 3, n))
    behaviour = mixed(rng.dirichlet(np.ones(3), size=n), 0.3)
    target = mixed(rng.dirichlet(np.ones(3), size=n), 0.1) if off else behaviour
    return from_tables(P, R, rng.choice([0.9, 0.97]), behaviour, target, features=X, name="branches")


def greedy(seed: int) -> Task:
    """Return 10 states, 4 actions, 5 features, a uniform behaviour policy, and a target that prefers large features."""
    rng, n = np.random.default_rng(seed), 10
    P = 0.97 * rng.dirichlet(np.full(n, 0.15), size=(n, 4)) + 0.03 / n
    X = rng.random((n, 5)) + 0.5 * np.eye(n, 5)
    wanted = X @ rng.random(5)
    target = mixed(np.eye(4)[(P @ wanted).argmax(axis=1)], 0.08)
    return from_tables(
        P, rng.standard_normal((n, 4, n)), 0.96, np.full((n, 4), 0.25), target, features=X, name="greedy"
    )


def small(seed: int, features: int) -> Task:
    """Return 3 to 5 states with one or two positive features, and a target policy far from the behaviour policy."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    P = rng.dirichlet(np.full(n, 0.3), size=(n, 2)) * 0.95 + 0.05 / n
    target = mixed(np.eye(2)[rng.integers(0, 2, n)], 0.1)
    X = rng.random((n, features)) * 2 + 0.1
    return from_tables(
        P, rng.standard_normal((n, 2, n)), 0.97, np.full((n, 2), 0.5), target, features=X, name=f"small {features}"
    )


def baird_from(seed: int) -> Task:
    """Return Baird's counterexample with 5 to 12 states and random initial weights."""
    rng = np.random.default_rng(seed)
    task = baird(int(rng.integers(5, 13)))
    return replace(task, initial_weights=rng.standard_normal(task.n_features))


KINDS: dict[str, Callable[[int], Task]] = {
    "ring": ring,
    "queue": queue,
    "rooms": rooms,
    "branches, on policy": lambda seed: branches(seed, off=False),
    "branches, off policy": lambda seed: branches(seed, off=True),
    "greedy": greedy,
    "one feature": lambda seed: small(seed, 1),
    "two features": lambda seed: small(seed, 2),
    "Baird": baird_from,
}


def small_cases(each: int, first: int, steps: int = USUAL) -> Iterator[Case]:
    """Yield a number of tasks of every type except the torus, with seeds from `first` on."""
    for place, (kind, make) in enumerate(KINDS.items()):
        for seed in range(first + 1000 * place, first + 1000 * place + each):
            yield Case(kind, f"{kind}, seed {seed}, {steps} steps", make(seed), steps)
