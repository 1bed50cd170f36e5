"""Trajectories: task + seed + run -> one integer column, the outcome of every step.

An outcome is a row of the task's table, so it says everything: state, action, next state, reward, ratio,
whether the episode ended. The column depends on (seed, the task's dynamics, run) alone: not on the
learner, nor on how it is cut into pieces.

Every step spends exactly one random word. The next draw is from the outcomes of the state just entered
or, where the episode ended, from the first outcomes of a new one, start distribution included. With
sampling="iid" every draw is from d(s) μ(a|s) P(s'|s,a), as the paper's theorem assumes (A1); an episode then ends,
as along a trajectory, with a transition into a terminal. Probabilities are met to 2⁻³², rounded up where they
would vanish.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.errors import one_of, whole_number
from gradient_dd.tasks import Task

SAMPLINGS = ("trajectory", "iid")


class Position(NamedTuple):
    """Where a stream stands: words spent, and the group of outcomes to draw from next."""

    steps: int
    group: int


class Alias(NamedTuple):
    """Alias tables: a group of outcomes is sampled in constant time from one random word, without a branch.

    first, size    (groups,) where each group's entries begin, and how many there are
    keep           (entries,) 2³² times the probability of taking the first of an entry's two outcomes
    outcome        (entries, 2) those outcomes;  after (entries, 2) the group to draw from next
    """

    first: NDArray[np.uint64]
    size: NDArray[np.uint64]
    keep: NDArray[np.uint64]
    outcome: NDArray[np.int32]
    after: NDArray[np.uint64]


class Stream:
    """The outcomes of one run, taken in pieces of any length."""

    def __init__(
        self,
        task: Task,
        seed: int = 0,
        run: int = 0,
        sampling: str = "trajectory",
        position: Position | None = None,
    ) -> None:
        seed, run = whole_number("'seed'", seed, at_least=0), whole_number("'run'", run, at_least=0)
        one_of("'sampling'", sampling, SAMPLINGS)
        self._tables = alias_tables(task, sampling)
        start = len(self._tables.first) - 1  # the last group begins an episode
        self.position = Position(0, start) if position is None else position
        dynamics = [int(task.digest[:8], 16), int(task.digest[8:], 16), SAMPLINGS.index(sampling)]
        self._words = np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=(*dynamics, run)))
        self._words.advance(self.position.steps)

    def take(self, steps: int) -> NDArray[np.int32]:
        """Return the next outcomes, shape (steps,)."""
        from gradient_dd.engine.kernels.draw import draw  # here, so that the names of this file load no compiler

        column = np.empty(steps, np.int32)
        words = np.asarray(self._words.random_raw(steps), np.uint64)
        group = draw(words, np.uint64(self.position.group), *self._tables, column)
        self.position = Position(self.position.steps + steps, int(group))
        return column


@lru_cache(maxsize=16)
def alias_tables(task: Task, sampling: str) -> Alias:
    """Return the tables of a task: for "trajectory" a group per state and one for the start, for "iid" one."""
    outcome = task.outcomes
    likely = task.behaviour[outcome.state, outcome.action] * outcome.probability
    row = task.row[outcome.state]
    if sampling == "iid":
        groups = [np.arange(len(row))]
        weights = [task.visits[row] * likely]
        after = np.zeros(len(row), np.int64)
    else:
        cuts = np.searchsorted(row, np.arange(1, task.n_states))  # outcomes stand in the order of their states
        groups = [*np.split(np.arange(len(row)), cuts), np.flatnonzero(task.start[outcome.state])]
        weights = [*np.split(likely, cuts), (task.start[outcome.state] * likely)[groups[-1]]]
        after = task.transitions.next_row
    size = [len(group) for group in groups]
    first = np.cumsum([0, *size[:-1]])
    tables = [_vose(weight) for weight in weights]
    outcome_of = np.concatenate(groups)
    other = np.concatenate([other + begin for (_, other), begin in zip(tables, first, strict=True)])
    pair = np.column_stack([outcome_of, outcome_of[other]])
    return Alias(
        first=first.astype(np.uint64),
        size=np.array(size, np.uint64),
        keep=np.ceil(np.concatenate([keep for keep, _ in tables]) * 2.0**32).astype(np.uint64),
        outcome=pair.astype(np.int32),
        after=after[pair].astype(np.uint64),
    )


def _vose(weight: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return thresholds and aliases so that entry i is kept with keep[i], else replaced by other[i]."""
    keep = weight * (len(weight) / weight.sum())
    other = np.arange(len(weight))
    small = list(np.flatnonzero(keep < 1))
    large = list(np.flatnonzero(keep >= 1))
    while small and large:
        low, high = small.pop(), large[-1]
        other[low] = high
        keep[high] -= 1 - keep[low]
        if keep[high] < 1:
            small.append(large.pop())
    keep[small + large] = 1.0  # what is left differs from 1 by rounding alone
    return keep, other
