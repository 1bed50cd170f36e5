"""The prediction problems: streams of transitions, and the states and values of the error measure."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.tasks import Task, baird, collision, random_walk
from trials.networks.environments import MOUNTAIN_CAR, many_steps
from trials.networks.lanes import LaneMeasure, Streams

SEED = 9127  # seed of all streams
CAR_DISCOUNT, CAR_LONGEST, CAR_STATES, CAR_ROLLOUTS = 0.99, 500, 60, 200


@dataclass(frozen=True)
class NetworkProblem:
    """A problem: its name in tables, the source of its streams, its measure, and whether TD is known to diverge."""

    name: str
    words: str
    inputs: int
    streams: Callable[[int, range], Streams]
    measure: Callable[[], LaneMeasure]
    chain: Callable[[], tuple[Array, Array, float]] | None = None  # inputs, P of the target policy, discount


def task_streams(task: Task, X: Array, steps: int, runs: range) -> Streams:
    """Return the trajectories that every engine draws for a task, one per run, with inputs X (states, d)."""
    outcome, column = task.outcomes, task.transitions
    taken = np.stack([OutcomeSampler(task, seed=SEED, run=run).take(steps) for run in runs])
    ends = task.terminal[outcome.next_state]
    there = np.where(ends, 0, task.row[outcome.next_state])
    return Streams(
        s=X[task.row[outcome.state]][taken],
        reward=task.rewards[taken],
        discount=column.discount[taken],
        s_next=X[there][taken],
        rho=column.rho[taken],
    )


def task_measure(task: Task, X: Array) -> LaneMeasure:
    """Return the RMSVE: the true value of every state, weighted by its visits."""
    return LaneMeasure(X, np.asarray(task.true_values), np.asarray(task.visits))


def of_task(name: str, words: str, task: Task, X: Array) -> NetworkProblem:
    """Return the problem of a task with inputs X (states, d)."""
    return NetworkProblem(
        name,
        words,
        X.shape[1],
        lambda steps, runs: task_streams(task, X, steps, runs),
        lambda: task_measure(task, X),
        lambda: (X, np.asarray(task.P), float(np.max(task.discount))),
    )


def position(n: int) -> Array:
    """Return raw positions of n states in a row, from −1 to 1, (n, 1)."""
    return np.linspace(-1.0, 1.0, n)[:, None]


def tilted(task: Task) -> Task:
    """Return a walk whose target policy goes right with probability 0.65; the behaviour policy is unchanged."""
    target = np.array(task.target)
    target[:] = [0.35, 0.65]
    return replace(task, target=target)


class CarLog(NamedTuple):
    """A log of Mountain Car: states before and after, the ratio, and whether the episode ended."""

    s: Array
    s_next: Array
    rho: Array
    ended: Any


def car_policy(velocity: Array) -> Array:
    """Return the target policy (n, 3): push along the velocity with probability 0.9, else a random action."""
    probabilities = np.full((len(velocity), 3), 0.1 / 3)
    probabilities[np.arange(len(velocity)), np.where(velocity < 0, 0, 2)] += 0.9
    return probabilities


def car_inputs(state: Array) -> Array:
    """Return states (…, 2) scaled to [−1, 1]."""
    return np.stack([(state[..., 0] + 0.3) / 0.9, state[..., 1] / 0.07], axis=-1)


def car_log(steps: int, runs: range) -> CarLog:
    """Return the logs of all runs as arrays; the behaviour policy is half the target policy and half uniform."""
    rng = np.random.default_rng([SEED, runs.start, len(runs)])
    n, found = len(runs), []
    state = np.stack([rng.uniform(-0.6, -0.4, n), np.zeros(n)], axis=1)
    clock = np.zeros(n, int)
    for _ in range(steps):
        target = car_policy(state[:, 1])
        behaviour = 0.5 * target + 0.5 / 3
        action = (rng.random(n)[:, None] > behaviour.cumsum(axis=1)).sum(axis=1)
        rho = target[np.arange(n), action] / behaviour[np.arange(n), action]
        after, _, ended = many_steps(MOUNTAIN_CAR, state, action)
        found.append((state, after, rho, ended))
        clock = np.where(ended, 0, clock + 1)
        fresh = np.stack([rng.uniform(-0.6, -0.4, n), np.zeros(n)], axis=1)
        over = ended | (clock >= CAR_LONGEST)
        state, clock = np.where(over[:, None], fresh, after), np.where(over, 0, clock)
    return CarLog(*(np.stack(column, axis=1) for column in zip(*found, strict=True)))


def car_streams(steps: int, runs: range) -> Streams:
    """Return the logs as streams; rewards of −0.01 per step keep values in [−1, 0]."""
    log = car_log(steps, runs)
    discount = np.where(log.ended, 0.0, CAR_DISCOUNT)
    return Streams(car_inputs(log.s), np.full(log.rho.shape, -0.01), discount, car_inputs(log.s_next), log.rho)


@cache
def car_measure() -> LaneMeasure:
    """Return states of a separate log, and their values from rollouts of the target policy."""
    rng = np.random.default_rng(SEED + 1)
    log = car_log(2000, range(1_000_000, 1_000_004))
    states = log.s.reshape(-1, 2)[rng.choice(log.s.size // 2, CAR_STATES, replace=False)]
    state = np.repeat(states, CAR_ROLLOUTS, axis=0)
    going, total, factor = np.ones(len(state), bool), np.zeros(len(state)), 1.0
    for _ in range(700):
        action = (rng.random(len(state))[:, None] > car_policy(state[:, 1]).cumsum(axis=1)).sum(axis=1)
        state, _, arrived = many_steps(MOUNTAIN_CAR, state, action)
        total -= 0.01 * factor * going
        going &= ~arrived
        factor *= CAR_DISCOUNT
    values = total.reshape(CAR_STATES, CAR_ROLLOUTS).mean(axis=1)
    return LaneMeasure(car_inputs(states), values, np.full(CAR_STATES, 1 / CAR_STATES))


@cache
def problems() -> dict[str, NetworkProblem]:
    """Return the problems by name."""
    walk, states = random_walk(n_states=10), 10
    far = collision(seed=0)
    counter = baird()
    made = (
        of_task("collision", "Collision, its six binary features", far, np.asarray(far.features)),
        of_task("walk", "walk of 10 states, on-policy, raw position", walk, position(states)),
        of_task("tilted-walk", "the same walk, off-policy, raw position", tilted(walk), position(states)),
        of_task("one-hot-walk", "the same walk, on-policy, one input for each state", walk, np.eye(states)),
        of_task("one-hot-tilted", "the same walk, off-policy, one input for each state", tilted(walk), np.eye(states)),
        of_task("baird", "Baird's counterexample, its eight features", counter, np.asarray(counter.features)),
        NetworkProblem("mountain-car", "Mountain Car, an off-policy log", 2, car_streams, car_measure),
    )
    return {one.name: one for one in made}
