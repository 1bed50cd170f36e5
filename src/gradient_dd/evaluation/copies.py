"""Episodes that stand in a log more than once, and how many would be the same by chance.

What follows a state does not depend on what came before. So pairs of episodes that are the same up to their middle
should go on alike as often as pairs that are not, but meet in the same state in the middle.
"""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.rows import Piece, mix

FEWEST_TWINS = 20  # episodes
OF_A_LENGTH = 100.0  # times as likely a path may be among those of its own length
UNLIKELY = 0.1  # a path that is likelier tells nothing where no episode with another past meets it
UNIQUE = 0.9  # of the different episodes: with so many different states none comes back by chance


class Twins(NamedTuple):
    """Episodes that are the same in every row: their share, and how many pairs there are beyond chance."""

    share: float
    pairs: float
    beyond: float


def twins_of(batch: Piece, reward: Array) -> Twins | None:
    """Return how many episodes are the same, beyond chance; None where chance is not known."""
    first = np.flatnonzero(np.diff(batch.episode, prepend=batch.episode[:1] - 1))
    length = np.diff([*first, len(batch)])
    if len(first) < FEWEST_TWINS:
        return None
    state = bits_of(key_of(batch.seen))
    step = np.arange(len(batch)) - np.repeat(first, length)
    early = step < np.repeat(length // 2, length)
    place = np.where(early, step, step - np.repeat(length // 2, length))
    mixed = mix(state ^ mix(bits_of(reward)) ^ mix(place.astype(np.uint64)))
    single = length == 1
    before, after = (np.zeros(len(first), np.uint64) for _ in range(2))
    episode = np.repeat(np.arange(len(first)), length)
    np.add.at(before, episode[early], mixed[early])
    np.add.at(after, episode[~early], mixed[~early])
    middle = mix(state[first + length // 2] ^ mix((length - length // 2).astype(np.uint64)))
    before = np.where(single, state[first], before)  # a single row: what it paid follows its state
    past, whole = mix(before ^ mix(middle)), mix(mix(before ^ mix(middle)) ^ mix(after))
    _, each, counts = np.unique(whole, return_inverse=True, return_counts=True)
    unique = len(np.unique(middle)) >= UNIQUE * len(counts)
    if single.mean() > 0.5 and (not unique or len(np.unique(before)) < UNIQUE * len(counts)):
        return None
    _, stratum = np.unique(middle, return_inverse=True)
    met, known, alike, same = (pairs_in(stratum, kind) for kind in (middle, past, mix(middle ^ mix(after)), whole))
    others = met - known
    by_chance = np.zeros(len(first))  # log probability of what follows the middle, from the frequencies of steps
    np.add.at(by_chance, episode[~early], np.log(step_shares(batch, state, reward))[~early])
    likely = np.zeros(len(met)) if unique else np.exp(np.bincount(stratum, by_chance) / np.bincount(stratum))
    rate = np.where(others > 0, (alike - same) / np.maximum(others, 1), OF_A_LENGTH * likely)
    told = (others > 0) | (rate < UNLIKELY)
    expected = float((known * rate)[told].sum())
    beyond, share = float(same[told].sum()) - expected, float((counts[each] > 1).mean())
    return Twins(share, beyond, float(beyond / np.sqrt(expected * counts[each].mean() + 1)))


def step_shares(batch: Piece, state: Any, reward: Array) -> Array:
    """Return how often a state is followed by what follows it in each row: the next state and the reward, (n,)."""
    after = np.where(batch.ended, np.uint64(1), bits_of(key_of(batch.after)))
    _, here, visits = np.unique(state, return_inverse=True, return_counts=True)
    step = mix(state ^ mix(after ^ mix(bits_of(reward))))
    _, both, times = np.unique(step, return_inverse=True, return_counts=True)
    return np.asarray(times[both] / visits[here])


def pairs_in(stratum: Integers, kind: Any) -> Array:
    """Return how many pairs of one kind each stratum has; all of a kind are in one stratum."""
    _, where, counts = np.unique(kind, return_index=True, return_counts=True)
    return np.asarray(np.bincount(stratum[where], counts * (counts - 1) / 2, minlength=int(stratum.max()) + 1), float)


def bits_of(values: Array) -> Any:
    """Return numbers as whole numbers that are equal where the numbers are."""
    return np.ascontiguousarray(values + 0.0).view(np.uint64)


def key_of(observations: Array) -> Array:
    """Return one number for each observation; equal ones have equal numbers."""
    return np.asarray((observations * np.random.default_rng(7).standard_normal(observations.shape[1])).sum(axis=1))
