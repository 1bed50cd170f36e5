"""Trajectories: the outcome of every step, as one integer column for a task, a seed and a run.

An outcome is a row of the task's table, so it determines state, action, next state, reward, ratio, and whether the
episode ended. The column depends only on seed, task dynamics, sampling and run, not on learners or piece lengths.

Every step uses exactly one random word. The word selects an outcome of the state just entered or, after the end of an
episode, one of a new episode's first outcomes, drawn with its start state. With sampling="iid", every step
draws from d(s) μ(a|s) P(s'|s,a), as the paper's theorem assumes (A1); an episode ends, as along a trajectory, with a
transition into a terminal state. Probabilities are exact to 2⁻³², and rounded up if they would vanish.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.errors import one_of, whole_number
from gradient_dd.tasks import Task

SAMPLINGS = ("trajectory", "iid")


class Alias(NamedTuple):
    """Alias tables, which sample an outcome of a group in constant time from one random word, without a branch.

    first, size    (groups,) where each group's entries begin, and their number
    keep           (entries,) 2³² times the probability of the first of an entry's two outcomes
    outcome        (entries, 2) both outcomes;  after (entries, 2) the group of the next draw
    """

    first: NDArray[np.uint64]
    size: NDArray[np.uint64]
    keep: NDArray[np.uint64]
    outcome: NDArray[np.int32]
    after: NDArray[np.uint64]


class OutcomeSampler:
    """A sampler of the outcomes of one run, in pieces of any length."""

    def __init__(self, task: Task, seed: int = 0, run: int = 0, sampling: str = "trajectory") -> None:
        seed, run = whole_number("'seed'", seed, at_least=0), whole_number("'run'", run, at_least=0)
        one_of("'sampling'", sampling, SAMPLINGS)
        self._tables = alias_tables(task, sampling)
        self._group = len(self._tables.first) - 1  # group of the next draw; the last group begins an episode
        dynamics = [int(task.digest[:8], 16), int(task.digest[8:], 16), SAMPLINGS.index(sampling)]
        self._words = np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=(*dynamics, run)))

    def take(self, steps: int) -> NDArray[np.int32]:
        """Return the next outcomes, shape (steps,)."""
        column = np.empty(steps, np.int32)
        words = np.asarray(self._words.random_raw(steps), np.uint64)
        self._group = int(compiled(draw)(words, np.uint64(self._group), self._tables, column))
        return column


def draw(words, group, tables, column):
    """Fill `column` with outcomes and return the group of the next draw (compiled).

    The upper half of a word selects an entry of the group, the lower half one of its two outcomes.
    """
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    for t in range(len(column)):
        word = words[t]
        entry = tables.first[group] + (((word >> half) * tables.size[group]) >> half)
        side = np.uint64((word & low) >= tables.keep[entry])
        column[t] = tables.outcome[entry, side]
        group = tables.after[entry, side]
    return group


def find_ends(column, ends, places):
    """Fill `places`, one longer than `column`, with the steps up to each end of an episode; return their number."""
    count = 0
    for t in range(len(column)):
        places[count] = t + 1
        count += ends[column[t]]
    return count


@cache
def compiled(function: Callable[..., Any]) -> Any:
    """Return a compiled function of this file; only the first call loads the compiler."""
    from gradient_dd.engine.kernels.compiler import kept

    return kept(nogil=True)(function)


def ends_in(column: NDArray[np.int32], ends: Booleans) -> Integers:
    """Return the numbers of steps up to each end of an episode."""
    places = np.empty(len(column) + 1, np.int64)
    return places[: compiled(find_ends)(column, ends, places)].copy()


@lru_cache(maxsize=16)
def alias_tables(task: Task, sampling: str) -> Alias:
    """Return the tables of a task: one group per state and one for the start; for "iid", only one group."""
    outcome = task.outcomes
    likely = task.behaviour[outcome.state, outcome.action] * outcome.probability
    row = task.row[outcome.state]
    if sampling == "iid":
        groups = [np.arange(len(row))]
        weights = [task.visits[row] * likely]
        after = np.zeros(len(row), np.int64)
    else:
        cuts = np.searchsorted(row, np.arange(1, task.n_states))  # outcomes are sorted by state
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


def _vose(weight: Array) -> tuple[Array, Integers]:
    """Return `keep` and `other`: entry i is kept with probability keep[i], else replaced by other[i]."""
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
    keep[small + large] = 1.0  # the remaining entries differ from 1 only by rounding
    return keep, other
