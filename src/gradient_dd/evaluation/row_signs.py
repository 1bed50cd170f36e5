"""Signs that the rows of a log are not what they should be: drift, heavy tails, copies, another order, holes, shifts.

Every function takes arrays and returns numbers; `row_findings.py` says from where on they speak against trust.

Drift: rewards and next states are regressed on state and action. The residuals of a log that does not drift have mean 0
in every part of it, whatever policy acted. Their cumulative sums over blocks of episodes, along each feature, are
compared with those of blocks in random order.

Copies: what follows a state does not depend on what came before. So pairs of episodes that are the same up to their
middle should continue alike as often as pairs that are not, but meet in the same state in the middle.
"""

from math import gcd
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.evaluation.log_data import LogData
from gradient_dd.evaluation.maps import actions_of
from gradient_dd.evaluation.rows import Piece, joined, mix

MOST_ROWS = 50_000  # that are looked at
SKETCH = 64  # numbers that stand for a state with more features
BLOCKS = 40  # of rows, in the order of time, from which chance is known
FEWEST_ROWS = 200
LONGEST_PERIOD = 20  # rows after which one may be missing, again and again
TOP = 0.001  # share of the rows that are the largest
CLIP = 10.0
DRIFT_BLOCKS, FEWEST_BLOCKS, DRAWS, FOLDS = 200, 20, 999, 10
FEWEST_TWINS = 20  # episodes
OF_A_LENGTH = 100.0  # times as likely a path may be among those of its own length
UNLIKELY = 0.1  # a path that is likelier tells nothing where no episode with another past meets it
UNIQUE = 0.9  # of the different episodes: with so many different states none comes back by chance


class Twins(NamedTuple):
    """Episodes that are the same in every row: their share, and how many pairs there are beyond chance."""

    share: float
    pairs: float
    beyond: float


class Drift(NamedTuple):
    """How likely chance makes such cumulative sums, what moved most, and since which share of the log."""

    chance: float
    reward: bool
    feature: int
    since: float
    size: float


class Tail(NamedTuple):
    """The largest rewards: their share of all squared rewards, and how many times as large as a usual one they are."""

    share: float
    times: float


class Hole(NamedTuple):
    """Rows after which the state changes otherwise than after the rest: every `period` rows, by `times`, surely."""

    period: int
    times: float
    sure: float


class Shift(NamedTuple):
    """How much more of the rewards another row explains than their own: `rows` is -1 for the row before."""

    rows: int
    gain: float
    sure: float


class RowSigns(NamedTuple):
    """All signs; None where the log is too short to tell.

    linked    how surely a state depends on the state before, in standard errors
    """

    drift: Drift | None
    tail: Tail | None
    twins: Twins | None
    linked: float | None
    hole: Hole | None
    shift: Shift | None


def row_signs(data: LogData, signal: int) -> RowSigns:
    """Return the signs of the sample of a log, by one signal."""
    whole = joined(data.rows.sample)
    reward = whole.signals[:, signal]
    actions = actions_of(data.actions, whole)
    X = data.maps[0].matrix(whole.seen)
    here, there = (
        sketch(one) for one in (X, data.maps[0].matrix(np.where(whole.ended[:, None], whole.seen, whole.after)))
    )
    there = np.where(whole.ended[:, None], 0.0, there)
    drift, tail, twins = drift_of(whole, here, there, actions, reward), tail_of(reward), twins_of(whole, reward)
    part = slice(MOST_ROWS)
    if len(whole) < FEWEST_ROWS:
        return RowSigns(drift, tail, twins, None, None, None)
    piece, here, there = whole.part(part), here[part], there[part]
    linked, hole = links_of(here, there, ~piece.ended, piece.episode)
    described = np.column_stack([here, there, piece.ended, actions[part], np.ones(len(here))])
    return RowSigns(drift, tail, twins, linked, hole, shift_of(described, reward[part]))


def sketch(X: Any) -> Array:
    """Return feature rows as dense ones; as random sums of them where there are many."""
    if X.shape[1] <= SKETCH:
        return np.asarray(X.toarray() if sparse.issparse(X) else X)
    return np.asarray(X @ np.random.default_rng(11).standard_normal((X.shape[1], SKETCH)))


# Drift ------------------------------------------------------------------------------------------------------


def drift_of(piece: Piece, here: Array, there: Array, actions: Array, reward: Array) -> Drift | None:
    """Return how residuals of rewards and next states, given state and action, move over the log."""
    block = blocks_of(piece)
    blocks = int(block.max()) + 1
    if blocks < FEWEST_BLOCKS:
        return None
    wide = (actions[:, :, None] * here[:, None, :]).reshape(len(here), -1)
    if wide.shape[1] > SKETCH:
        wide = np.column_stack(
            [wide @ np.random.default_rng(12).standard_normal((wide.shape[1], SKETCH)), here, actions]
        )
    open_rows = ~piece.ended[:, None]
    outcomes = np.column_stack([reward, piece.ended, np.where(open_rows, there, 0.0)])
    rest = left_open_by_block(wide, outcomes, block)
    rest[:, rest.std(axis=0) <= 1e-6 * outcomes.std(axis=0)] = 0.0  # nothing is left open but rounding
    scores = np.column_stack([wide * rest[:, :1], rest])
    deal = sparse.csr_matrix((np.ones(len(block)), (block, np.arange(len(block)))), (blocks, len(block)))
    sums = np.asarray(deal @ scores)
    spread = sums.std(axis=0)
    kept = spread > 1e-9 * max(float(spread.max()), 1e-300)
    if not kept.any():
        return Drift(1.0, False, 0, 0.0, 0.0)
    sums = (sums - sums.mean(axis=0))[:, kept] / spread[kept]
    rng = np.random.default_rng(13)
    path = np.cumsum(sums, axis=0)
    found = float((path**2).sum(axis=1).max())
    beyond = sum(
        float((np.cumsum(sums[rng.permutation(blocks)], axis=0) ** 2).sum(axis=1).max()) >= found for _ in range(DRAWS)
    )
    at = int(np.argmax((path**2).sum(axis=1)))
    worst = int(np.flatnonzero(kept)[np.argmax(np.abs(path[at]))])
    of_reward = worst < wide.shape[1] or worst == wide.shape[1]
    before, after = block <= at, block > at
    moved = abs(float(rest[after, 0].mean() - rest[before, 0].mean())) if after.any() else 0.0
    size = moved / max(float(np.abs(reward).mean()), 1e-300)
    return Drift((1 + beyond) / (1 + DRAWS), of_reward, worst, (at + 1) / blocks, size)


def blocks_of(piece: Piece) -> Integers:
    """Return the block of each row in the order of time, (n,): whole episodes, or stretches of long ones."""
    n = len(piece)
    most = max(1, n // DRIFT_BLOCKS)
    begins = np.diff(piece.episode, prepend=-1) != 0
    place = np.arange(n) // most
    if begins.sum() >= FEWEST_BLOCKS:
        first = np.flatnonzero(begins)
        place = np.repeat(place[first], np.diff([*first, n]))
    return np.unique(place, return_inverse=True)[1]


def left_open_by_block(X: Array, Y: Array, block: Integers) -> Array:
    """Return what a linear function of X leaves of Y, (n, k), fitted without the group of blocks of each row."""
    group = block % FOLDS
    squares = np.stack([X[group == g].T @ X[group == g] for g in range(FOLDS)])
    products = np.stack([X[group == g].T @ Y[group == g] for g in range(FOLDS)])
    total, right = squares.sum(axis=0), products.sum(axis=0)
    ridge = 1e-6 * max(float(np.trace(total)) / len(total), 1e-300) * np.eye(len(total))
    rest = np.empty_like(Y)
    for g in range(FOLDS):
        part = group == g
        rest[part] = Y[part] - X[part] @ np.linalg.solve(total - squares[g] + ridge, right - products[g])
    return rest


# Tails ------------------------------------------------------------------------------------------------------


def tail_of(reward: Array) -> Tail | None:
    """Return the share of the largest rewards in the sum of squares; rewards that are 0 are no usual ones."""
    size = np.abs(reward - np.median(reward))
    paid = size[size > 0]
    if len(reward) < FEWEST_ROWS or len(paid) < 2:
        return None
    count = max(1, round(TOP * len(reward)))
    top = np.sort(paid)[-count:]
    return Tail(float((top**2).sum() / (paid**2).sum()), float(top.mean() / np.median(paid)))


# Order and holes --------------------------------------------------------------------------------------------


def links_of(here: Array, there: Array, goes_on: Booleans, episode: Integers) -> tuple[float | None, Hole | None]:
    """Return how surely the next state depends on the state, in standard errors, and holes at regular distances."""
    rows = np.flatnonzero(goes_on)
    if len(rows) < FEWEST_ROWS:
        return None, None
    X, Y = (whitened(one[rows]) for one in (here, there))
    freedom = X.shape[1] * Y.shape[1]
    if not freedom or len(rows) < 10 * max(X.shape[1], Y.shape[1]):
        return None, None
    across = X.T @ Y / len(rows)
    linked = float((len(rows) * (across**2).sum() - freedom) / np.sqrt(2 * freedom))
    away = far_from_usual(Y - X @ across)
    last = np.append(np.diff(episode) != 0, True)
    open_ends: Integers = np.cumsum(last & goes_on) - (
        last & goes_on
    )  # before each row; the reader may have left out one of each
    lengths = np.diff(np.flatnonzero(np.diff(episode, prepend=episode[:1] - 1)))
    found = [hole_of(away, rows, lengths)]
    if open_ends.any():
        found.append(hole_of(away, rows + open_ends[rows], lengths + 1))
    return linked, max(found, key=lambda one: one.sure)


def far_from_usual(rest: Array) -> Array:
    """Return how far each row is from what is usual, (n,), along uncorrelated directions; none counts beyond CLIP."""
    _, vectors = np.linalg.eigh(rest.T @ rest)
    along = np.abs(rest @ vectors)
    usual = np.maximum(np.median(along, axis=0), 1e-6 * np.maximum(along.max(axis=0), 1e-300))
    return np.asarray(np.minimum(along / usual, CLIP).mean(axis=1))


def whitened(X: Array) -> Array:
    """Return columns of mean 0 that are uncorrelated, with spread 1; directions without spread are left out."""
    X = X - X.mean(axis=0)
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    kept = values > 1e-9 * max(float(values[-1]), 1e-300)
    return np.asarray(X @ (vectors[:, kept] / np.sqrt(values[kept])))


def hole_of(away: Array, rows: Integers, lengths: Integers) -> Hole:
    """Return the period at which states change most surely otherwise; a period of the episodes themselves is none."""
    usual = int(np.median(lengths)) if len(lengths) else 0
    fixed = 0 < usual <= LONGEST_PERIOD and float((lengths == usual).mean()) > 0.5
    total, spread = away.sum(), away.std()
    best = Hole(0, 1.0, 0.0)
    for period in range(2, LONGEST_PERIOD + 1):
        if fixed and gcd(usual, period) > 1:
            continue
        place = rows % period
        sums, counts = np.bincount(place, away, minlength=period), np.bincount(place, minlength=period)
        rest = (total - sums) / np.maximum(1, len(away) - counts)
        means = sums / np.maximum(1, counts)
        sure = (means - rest) / np.maximum(1e-300, spread * np.sqrt(1 / np.maximum(1, counts)))
        at = int(np.argmax(sure))
        if sure[at] > best.sure:
            best = Hole(period, float(means[at] / max(rest[at], 1e-300)), float(sure[at]))
    return best


# Shifted rewards --------------------------------------------------------------------------------------------


def shift_of(described: Array, reward: Array) -> Shift | None:
    """Return whether the row before or the row after explains the rewards better than their own row does."""
    n = len(reward)
    if np.ptp(reward) == 0 or n < 10 * described.shape[1]:
        return None
    inner = slice(1, n - 1)
    y = reward[inner]
    own, before, after = (left_open(described[1 + k : n - 1 + k], y) for k in (0, -1, 1))
    variance = max(float(y.var()), 1e-300)
    found = []
    for rows, other in ((-1, before), (1, after)):
        gains = np.array([part.mean() for part in np.array_split(own - other, BLOCKS)])
        error = max(float(gains.std(ddof=1)) / np.sqrt(BLOCKS), 1e-300)
        found.append(Shift(rows, float(gains.mean()) / variance, float(gains.mean()) / error))
    return max(found, key=lambda one: one.gain)


def left_open(X: Array, y: Array) -> Array:
    """Return the squared errors of y from a linear function of X that was fitted to the other half of the rows."""
    even = np.arange(len(y)) * BLOCKS // len(y) % 2 == 0
    errors = np.empty(len(y))
    for part in (even, ~even):
        square = X[part].T @ X[part]
        square[np.diag_indices_from(square)] += 1e-6 * max(float(np.trace(square)) / len(square), 1e-300)
        w = np.linalg.solve(square, X[part].T @ y[part])
        errors[~part] = (y[~part] - X[~part] @ w) ** 2
    return errors


# Copies -----------------------------------------------------------------------------------------------------


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
