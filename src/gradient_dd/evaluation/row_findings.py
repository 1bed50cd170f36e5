"""Findings on the rows of a log: heavy tails, duplicated episodes, order, missing rows, shifted rewards, drift.

Each finding follows the function that computes its statistic; a statistic is None if the log is too short.

Copies: by the Markov property, pairs of episodes that are identical up to their middle should continue identically as
often as other pairs that meet in the same state in the middle.

Drift: rewards and next states are regressed on state and action. Without drift the residuals have mean 0 in every part
of the log, for any behaviour policy. Their cumulative sums over blocks of episodes, along each feature, are
compared with the sums of blocks in random order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.evaluation.design import PIECE_NUMBERS
from gradient_dd.evaluation.findings import Found, finding, level_of
from gradient_dd.evaluation.log_data import LogData
from gradient_dd.evaluation.maps import actions_of
from gradient_dd.evaluation.pieces import Piece
from gradient_dd.evaluation.rows import mix

MOST_ROWS = 50_000  # rows examined
SKETCH = 64  # numbers that represent a state with more features
FEWEST_ROWS = 200
SOME = 0.25  # share of the largest rewards in the sum of squared rewards, above which they are reported
UNIQUE = 0.9  # distinct states per distinct episode, above which no state recurs by chance
LONGEST_PERIOD = 20  # longest period of missing rows
SHIFT_BLOCKS = 40  # blocks of rows in order of time
BLOCKS, FEWEST_BLOCKS, DRAWS = 200, 20, 999
WIDEST = 64  # features of states and actions, above which projections are used
MOST_VALUES = 12  # most actions, and most distinct values of a column, that are treated separately


@dataclass(frozen=True, eq=False)
class RowEvidence:
    """The first rows of a log for one signal.

    piece       the sample;  reward  (n,) the signal
    here, there (n, k) features of both states, 0 after an end;  actions  (n, features of an action)
    columns, texts  names of observation columns, and their texts, None for numbers;  names  of the actions, or ()
    """

    piece: Piece
    reward: Array
    here: Array
    there: Array
    actions: Array
    columns: tuple[str, ...] = ()
    texts: Sequence[list[str] | None] = ()
    names: tuple[Any, ...] = ()

    @cached_property
    def links(self) -> tuple[float | None, "Hole | None"]:
        """The result of `links_of` for the first rows."""
        part = slice(MOST_ROWS)
        return links_of(self.here[part], self.there[part], ~self.piece.ended[part], self.piece.episode[part])


def row_evidence(data: LogData) -> list[RowEvidence]:
    """Return the evidence on the rows of a log for each signal."""
    piece, actions, columns = data.first, data.actions, data.reader.columns.observation
    here, there = (sketch(data.maps[0].matrix(one)) for one in (piece.seen, piece.legal_after))
    there = np.where(piece.ended[:, None], 0.0, there)
    words = columns if len(columns) == piece.seen.shape[1] else ()
    if actions is None or actions.n_features <= SKETCH:
        names, taken = actions.names if actions is not None else (), actions_of(actions, piece)
    else:  # random projections of the actions
        names, taken = (), np.random.default_rng(14).standard_normal((actions.n_features, SKETCH))[piece.taken]
    return [RowEvidence(piece, one, here, there, taken, words, data.reader.texts, names) for one in piece.signals.T]


def sketch(X: Any, seed: int = 11) -> Array:
    """Return feature rows as dense rows, or their random projections if there are many features."""
    if X.shape[1] <= SKETCH:
        return np.asarray(X.toarray() if sparse.issparse(X) else X)
    return np.asarray(X @ np.random.default_rng(seed).standard_normal((X.shape[1], SKETCH)))


def tail_of(reward: Array) -> tuple[float, float] | None:
    """Return the share of the largest rewards in the sum of squares, and their size relative to a typical reward."""
    size = np.abs(reward - np.median(reward))
    paid = size[size > 0]  # rewards of 0 are not typical rewards
    if len(reward) < FEWEST_ROWS or len(paid) < 2:
        return None
    top = np.sort(paid)[-max(1, round(0.001 * len(reward))) :]
    return float((top**2).sum() / (paid**2).sum()), float(top.mean() / np.median(paid))


@finding("rows", "heavy tails", "not", "Collect more data, or clip the rewards if the question allows it.")
def heavy_tails(rows: RowEvidence) -> Found:
    """0.1 % of the rows contribute half of all squared rewards, and these rewards are ten times as large as typical
    ones. Another log would contain other such rewards.
    """
    share, times = tail_of(rows.reward) or (0.0, 0.0)
    if share > SOME and times > 10.0:
        yield (
            level_of(share, SOME, 0.5),
            f"The largest 0.1% of the rewards contribute {share:.0%} of all squared rewards and are {times:.3g} times "
            "as large as typical ones. Intervals do not cover such rare rewards.",
        )


def duplicate_episodes(batch: Piece, reward: Array) -> tuple[float, float] | None:
    """Return the share of identical episodes, and their excess over chance in standard errors; None if unknown."""
    first, length = batch.spans
    if len(first) < 20:
        return None
    state = bits_of(batch.seen)
    step, half = np.arange(len(batch)) - np.repeat(first, length), np.repeat(length // 2, length)
    early = step < half
    place = np.where(early, step, step - half)
    mixed = mix(state ^ mix(bits_of(reward)) ^ mix(place.astype(np.uint64)))
    single = length == 1
    before, after = (np.zeros(len(first), np.uint64) for _ in range(2))
    episode = np.repeat(np.arange(len(first)), length)
    np.add.at(before, episode[early], mixed[early])
    np.add.at(after, episode[~early], mixed[~early])
    middle = mix(state[first + length // 2] ^ mix((length - length // 2).astype(np.uint64)))
    before = np.where(single, state[first], before)  # a single row: its reward follows its state
    past, whole = mix(before ^ mix(middle)), mix(mix(before ^ mix(middle)) ^ mix(after))
    _, each, counts = np.unique(whole, return_inverse=True, return_counts=True)
    unique = len(np.unique(middle)) >= UNIQUE * len(counts)
    if single.mean() > 0.5 and (not unique or len(np.unique(before)) < UNIQUE * len(counts)):
        return None
    _, stratum = np.unique(middle, return_inverse=True)
    met, known, alike, same = (pairs_in(stratum, kind) for kind in (middle, past, mix(middle ^ mix(after)), whole))
    others = met - known
    after_row = np.where(batch.ended, np.uint64(1), bits_of(batch.after))
    _, here, visits = np.unique(state, return_inverse=True, return_counts=True)
    rows = mix(state ^ mix(after_row ^ mix(bits_of(reward))))
    _, both, times = np.unique(rows, return_inverse=True, return_counts=True)
    by_chance = np.zeros(len(first))  # log probability of the path after the middle, from the frequencies of steps
    np.add.at(by_chance, episode[~early], np.log(times[both] / visits[here])[~early])
    likely = np.zeros(len(met)) if unique else np.exp(np.bincount(stratum, by_chance) / np.bincount(stratum))
    # a path is at most 100 times as likely among paths of its own length; likely paths met by no other are ignored
    rate = np.where(others > 0, (alike - same) / np.maximum(others, 1), 100 * likely)
    told = (others > 0) | (rate < 0.1)
    expected = float((known * rate)[told].sum())
    beyond, share = float(same[told].sum()) - expected, float((counts[each] > 1).mean())
    return share, float(beyond / np.sqrt(expected * counts[each].mean() + 1))


def pairs_in(stratum: Integers, kind: Any) -> Array:
    """Return the number of pairs of equal type in each stratum; a type occurs in one stratum only."""
    _, where, counts = np.unique(kind, return_index=True, return_counts=True)
    return np.asarray(np.bincount(stratum[where], counts * (counts - 1) / 2, minlength=int(stratum.max()) + 1), float)


def bits_of(values: Array) -> Any:
    """Return numbers (n,) or rows (n, d) as integers (n,) that are equal if the numbers are equal."""
    if values.ndim > 1:
        values = (values * np.random.default_rng(7).standard_normal(values.shape[1])).sum(axis=1)
    return np.ascontiguousarray(values + 0.0).view(np.uint64)


@finding("rows", "copied episodes", "with care", "Remove the copies.")
def copied_episodes(rows: RowEvidence) -> Found:
    """Episodes are identical in every row more often than by chance."""
    share, beyond = duplicate_episodes(rows.piece, rows.reward) or (0.0, 0.0)
    if share > 0.02 and beyond > 4.0:
        yield (
            f"{share:.0%} of the episodes are identical to another episode, more than chance allows. Copies count "
            "twice, so the interval is too narrow."
        )


class Hole(NamedTuple):
    """Rows at which the state changes unusually: their period, the relative size of changes, and its significance."""

    period: int
    times: float
    sure: float


def links_of(here: Array, there: Array, goes_on: Booleans, episode: Integers) -> tuple[float | None, Hole | None]:
    """Return the dependence of the next state on the state, in standard errors, and periodic missing rows."""
    rows = np.flatnonzero(goes_on)
    if len(rows) < FEWEST_ROWS:
        return None, None
    both = []
    for one in (here[rows], there[rows]):  # uncorrelated columns of mean 0 and variance 1
        centred = one - one.mean(axis=0)
        values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
        kept = values > 1e-9 * max(float(values[-1]), 1e-300)
        both.append(centred @ (vectors[:, kept] / np.sqrt(values[kept])))
    X, Y = both
    freedom = X.shape[1] * Y.shape[1]
    if not freedom or len(rows) < 10 * max(X.shape[1], Y.shape[1]):
        return None, None
    across = X.T @ Y / len(rows)
    linked = float((len(rows) * (across**2).sum() - freedom) / np.sqrt(2 * freedom))
    rest = Y - X @ across
    along = np.abs(rest @ np.linalg.eigh(rest.T @ rest)[1])  # uncorrelated directions
    usual = np.maximum(np.median(along, axis=0), 1e-6 * np.maximum(along.max(axis=0), 1e-300))
    away = np.asarray(np.minimum(along / usual, 10.0).mean(axis=1))
    omitted = np.append(np.diff(episode) != 0, True) & goes_on  # the reader may have omitted a row after each of these
    open_ends: Integers = np.cumsum(omitted) - omitted
    lengths = np.diff(np.flatnonzero(np.diff(episode, prepend=episode[:1] - 1)))
    found = [hole_of(away, rows, lengths)]
    if open_ends.any():
        found.append(hole_of(away, rows + open_ends[rows], lengths + 1))
    return linked, max(found, key=lambda one: one.sure)


def hole_of(away: Array, rows: Integers, lengths: Integers) -> Hole:
    """Return the period with the most significant changes of state, ignoring periods of the episodes themselves."""
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


@finding("rows", "order", "with care", "Sort the rows by episode and time, unless states are independent.")
def order(rows: RowEvidence) -> Found:
    """A state does not depend on the previous state."""
    linked, _ = rows.links
    if linked is not None and linked < 4.0:
        yield "States do not depend on the previous state. If the rows were shuffled, the values are wrong."


@finding("rows", "missing rows", "with care", "Use all rows, or a log with next observations.")
def missing_rows(rows: RowEvidence) -> Found:
    """The state changes more than elsewhere at regular intervals."""
    _, hole = rows.links
    if hole is not None and hole.sure > 6.0 and hole.times > 1.2:
        yield (
            f"Every {hole.period} rows the state changes more than elsewhere. Rows seem to be missing there, and the "
            "value lacks their rewards."
        )


def shift_of(described: Array, reward: Array) -> tuple[str, float, float] | None:
    """Return the neighbouring row that explains rewards better, its gain as a share of variance, and its t value."""
    n = len(reward)
    if np.ptp(reward) == 0 or n < 10 * described.shape[1]:
        return None
    y = reward[1 : n - 1, None]
    half = np.arange(n - 2) * SHIFT_BLOCKS // (n - 2) % 2
    own, *others = (held_out_residuals(described[1 + k : n - 1 + k], y, half)[:, 0] ** 2 for k in (0, -1, 1))
    variance, found = max(float(y.var()), 1e-300), []
    for where, other in zip(("before", "after"), others, strict=True):
        gains = np.array([part.mean() for part in np.array_split(own - other, SHIFT_BLOCKS)])
        error = max(float(gains.std(ddof=1)) / np.sqrt(SHIFT_BLOCKS), 1e-300)
        found.append((where, float(gains.mean()) / variance, float(gains.mean()) / error))
    return max(found, key=lambda one: one[1])


def held_out_residuals(X: Array, Y: Array, group: Integers) -> Array:
    """Return the residuals of Y by a linear function of X, (n, k), fitted without the group of each row."""
    groups = int(group.max()) + 1
    squares = np.stack([X[group == g].T @ X[group == g] for g in range(groups)])
    products = np.stack([X[group == g].T @ Y[group == g] for g in range(groups)])
    total, right = squares.sum(axis=0), products.sum(axis=0)
    ridge = 1e-6 * max(float(np.trace(total)) / len(total), 1e-300) * np.eye(len(total))
    rest = np.empty_like(Y)
    for g in range(groups):
        part = group == g
        rest[part] = Y[part] - X[part] @ np.linalg.solve(total - squares[g] + ridge, right - products[g])
    return rest


@finding("rows", "shifted rewards", "not", "Move each reward to the row of its step.")
def shifted_rewards(rows: RowEvidence) -> Found:
    """The previous or the following row explains the rewards far better than their own row."""
    piece, part = rows.piece, slice(MOST_ROWS)
    if len(rows.reward) < FEWEST_ROWS:
        return
    known = rows.here, rows.there, piece.ended, rows.actions, np.ones(len(piece))
    found = shift_of(np.column_stack([one[part] for one in known]), rows.reward[part])
    if found is not None and found[1] > 0.05 and found[2] > 6.0:
        yield (
            f"The row {found[0]} explains {found[1]:.0%} more of the variance of the rewards than their own row. "
            "Rewards seem to be shifted, and credited to the wrong states and actions."
        )


class Drift(NamedTuple):
    """The p-value of the cumulative sums, the signal that changed most, and the row of the change.

    what  "reward", "end" or "state";  rest  (n,) its residuals;  since  the first row after the change
    """

    chance: float
    what: str = ""
    rest: Array = np.zeros(0)
    since: int = 0


def drift_of(rows: RowEvidence) -> Drift | None:
    """Return how residuals of rewards and next states, given state and action, change over the log."""
    piece, (first, lengths) = rows.piece, rows.piece.spans
    place = np.arange(len(piece)) // max(1, len(piece) // BLOCKS)
    if len(first) >= FEWEST_BLOCKS:  # blocks of whole episodes
        place = np.repeat(place[first], lengths)
    block = np.unique(place, return_inverse=True)[1]
    blocks = int(block.max()) + 1
    if blocks < FEWEST_BLOCKS:
        return None
    wide = products_of(rows.actions, rows.here)
    outcomes = np.column_stack([rows.reward, piece.ended, rows.there])
    rest = held_out_residuals(wide, outcomes, block % 10)
    rest[:, rest.std(axis=0) <= 1e-6 * outcomes.std(axis=0)] = 0.0  # only rounding is unexplained
    deal = sparse.csr_matrix((np.ones(len(block)), (block, np.arange(len(block)))), (blocks, len(block)))
    sums = np.column_stack([deal @ (wide * rest[:, :1]), deal @ rest])
    spread = sums.std(axis=0)
    kept = spread > 1e-9 * max(float(spread.max()), 1e-300)
    if not kept.any():
        return Drift(1.0)
    sums = (sums - sums.mean(axis=0))[:, kept] / spread[kept]
    rng = np.random.default_rng(13)
    path = np.cumsum(sums, axis=0)
    size = (path**2).sum(axis=1)
    beyond = sum(
        float((np.cumsum(sums[rng.permutation(blocks)], axis=0) ** 2).sum(axis=1).max()) >= size.max()
        for _ in range(DRAWS)
    )
    at = int(np.argmax(size))
    column = max(0, int(np.flatnonzero(kept)[np.argmax(np.abs(path[at]))]) - wide.shape[1])
    what = ("reward", "end", "state")[min(column, 2)]
    return Drift((1 + beyond) / (1 + DRAWS), what, rest[:, column], int(np.searchsorted(block, at + 1)))


def products_of(actions: Array, here: Array) -> Array:
    """Return the products of features of actions and states, (n, k); if many, projections and the factors."""
    width = actions.shape[1] * here.shape[1]
    most = len(here) if width <= WIDEST else max(1, PIECE_NUMBERS // width)
    pairs = ((actions[at : at + most], here[at : at + most]) for at in range(0, len(here), most))
    parts = [sketch((a[:, :, None] * x[:, None, :]).reshape(len(x), width), 12) for a, x in pairs]
    found = np.concatenate(parts)
    return found if width <= WIDEST else np.column_stack([found, here, actions])


def moved_most(rows: RowEvidence, found: Drift) -> tuple[str, float]:
    """Return the rows, by action and column value, whose residuals change most significantly, and the change."""
    actions = [(f"after action {name!r}", rows.actions[:, k] == 1) for k, name in enumerate(rows.names[:MOST_VALUES])]
    states: list[tuple[str, Booleans]] = []
    for i, name in enumerate(rows.columns):
        column, texts = rows.piece.seen[:, i], rows.texts[i]
        values = np.unique(column)
        if len(values) > MOST_VALUES:
            values = np.quantile(column, [0.0, 0.25, 0.5, 0.75])
            place = np.searchsorted(values, column, side="right") - 1
            states += [(f"where {name!r} is in quarter {k + 1}", place == k) for k in range(4)]
        else:
            words = [repr(texts[int(one)]) if texts else f"{one:g}" for one in values]
            states += [(f"where {name!r} is {word}", column == one) for word, one in zip(words, values, strict=True)]
    several = actions if len(actions) > 1 else []
    both = ((f"{action} {state}", here & taken) for state, here in states for action, taken in several)
    after, best = np.arange(len(found.rest)) >= found.since, ("", 0.0, 0.0)
    for group, part in (("", np.ones(len(after), bool)), *actions, *states, *both):
        late, early = found.rest[part & after], found.rest[part & ~after]
        if min(len(late), len(early)) < 20:
            continue
        change = float(late.mean() - early.mean())
        error = np.sqrt(late.var() / len(late) + early.var() / len(early))
        sure = abs(change) / max(error, 1e-12 * max(1.0, abs(change)))
        if sure > best[2]:
            best = group, change, sure
    return best[:2]


@finding("rows", "drift", "with care", "Evaluate only the rows that match current conditions.")
def drift(rows: RowEvidence) -> Found:
    """Rewards or next states, given state and action, change over the log: the cumulative sums of their residuals are
    larger than for episodes in random order.
    """
    found = drift_of(rows)
    if found is None:
        return
    if found.chance > 0.002:
        yield "fine", f"Rewards and next states do not drift over the log (p = {found.chance:.2g})."
        return
    where, change = moved_most(rows, found)
    what = {"reward": "The reward", "end": "The frequency of ends", "state": "The next state"}[found.what]
    size = "" if found.what == "state" else f" by {change:+.3g}"
    since = f"episode {rows.piece.episode[found.since]:,}, " if rows.piece.episode[-1] >= FEWEST_BLOCKS else ""
    yield (
        f"{' '.join([what, *where.split()])} changes{size} after {since}{found.since / len(rows.reward):.0%} of the "
        f"log (p = {found.chance:.2g}), so the value averages over different periods."
    )
