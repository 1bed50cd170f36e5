"""Signs that the rows of a log are not what they should be: drift, heavy tails, copies, another order, holes, shifts.

Every function takes arrays and returns numbers; `row_findings.py` says from where on they speak against trust.
"""

from math import gcd
from typing import NamedTuple

import numpy as np
from scipy import stats

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.evaluation.copies import Twins, twins_of
from gradient_dd.evaluation.moments import lane_values
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.stream.features import Rows

MOST_ROWS = 50_000  # that are looked at
SKETCH = 64  # numbers that stand for a state with more features
BLOCKS = 40  # of rows, in the order of time, from which chance is known
FEWEST_ROWS = 200
LONGEST_PERIOD = 20  # rows after which one may be missing, again and again
TOP = 0.001  # share of the rows that are the largest
CLIP = 10.0


class Drift(NamedTuple):
    """How the value differs from one part of the log to another, and how likely that is by chance.

    halves   the difference between the second and the first half;  quarters  the largest between two quarters
    chance   probability of such halves;  chance_of_quarters  of such quarters
    """

    halves: float
    quarters: float
    chance: float
    chance_of_quarters: float


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


def row_signs(batch: Transitions, influence: Array | None, action: Array | None = None) -> RowSigns:
    """Return the signs of whole episodes in their order.

    influence  (n,) how much each row pulls the value, times n; None where that is not known
    action     (n, k) features of the actions taken, where they are known
    """
    drift = None if influence is None else drift_of(influence)
    tail, twins = tail_of(batch.reward), twins_of(batch)
    part = batch.part(slice(MOST_ROWS))
    if len(part) < FEWEST_ROWS:
        return RowSigns(drift, tail, twins, None, None, None)
    here, there = sketch(part.x), sketch(part.x_next)
    open_rows = ~part.ended
    linked, hole = links_of(here, there, open_rows, part.episode)
    more = np.empty((len(part), 0)) if action is None else action[:MOST_ROWS]
    ahead = np.where(open_rows[:, None], there, 0.0)
    described = np.column_stack([here, ahead, part.ended, more, np.ones(len(part))])
    return RowSigns(drift, tail, twins, linked, hole, shift_of(described, part.reward))


def sketch(rows: Rows) -> Array:
    """Return feature rows as dense ones; as random sums of them where there are many."""
    if rows.indices is None and rows.values.shape[1] <= SKETCH:
        return rows.values
    p = rows.values.shape[1] if rows.indices is None else int(rows.indices.max(initial=0)) + 1
    if p <= SKETCH:
        return rows.dense(p)
    return lane_values(rows, np.random.default_rng(11).standard_normal((max(p, 1), SKETCH)))


def influences(batch: Transitions, w: Array, u: Array) -> Array:
    """Return how much each row pulls the mean first value of weights w, times the rows, (n,): ρ δ x·u, and its start.

    u solves Aᵀ u = mean first features, A being the mean of ρ x (x − γx')ᵀ.
    """
    both = np.column_stack([w, u])
    value, pull = lane_values(batch.x, both).T
    ahead = np.where(batch.ended, 0.0, lane_values(batch.x_next, both)[:, 0])
    first = np.diff(batch.episode, prepend=batch.episode[:1] - 1) != 0
    start = np.where(first, value - value[first].mean(), 0.0) * len(batch) / max(1, first.sum())
    return np.asarray(pull * batch.rho * (batch.reward + batch.discount * ahead - value) + start)


# Drift ------------------------------------------------------------------------------------------------------


def drift_of(influence: Array) -> Drift | None:
    """Return how the mean influence changes over the log; blocks of rows tell what chance does."""
    if len(influence) < 10 * BLOCKS:
        return None
    blocks = np.array([part.mean() for part in np.array_split(influence, BLOCKS)])
    if np.ptp(blocks) <= 1e-12 * max(1e-300, float(np.abs(influence).max())):
        return Drift(0.0, 0.0, 1.0, 1.0)
    halves, quarters = blocks.reshape(2, -1), blocks.reshape(4, -1)
    means = quarters.mean(axis=1)
    return Drift(
        float(halves[1].mean() - halves[0].mean()),
        float(np.ptp(means)),
        float(stats.ttest_ind(*halves).pvalue),
        float(stats.f_oneway(*quarters).pvalue),
    )


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
