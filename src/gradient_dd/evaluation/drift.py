"""Changes over a log: whether rewards or next states drift, what changed most, and since when.

Rewards and next states are regressed on state and action. Without drift the residuals have mean 0 in every part
of the log, for any behaviour policy. Their cumulative sums over blocks of episodes, along each feature, are
compared with the sums of blocks in random order. What changed is then described by actions and observations: the
group of rows whose residuals differ most significantly before and after.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.evaluation.design import PIECE_NUMBERS
from gradient_dd.evaluation.findings import Found, finding
from gradient_dd.evaluation.pieces import Piece
from gradient_dd.evaluation.row_findings import RowEvidence, held_out_residuals, sketch

BLOCKS, FEWEST_BLOCKS, DRAWS, FOLDS = 200, 20, 999, 10
WIDEST = 64  # features of states and actions, above which projections are used
DRIFTS = 0.002  # p-value of the cumulative sums
MOST_VALUES, FEWEST_ROWS = 12, 20  # distinct values of a column that are treated separately; rows of a group


class Drift(NamedTuple):
    """The p-value of the cumulative sums, what changed most, and where in the log.

    what  "reward", "end" or "state";  rest  (n,) its residuals;  since  the first row after the change
    """

    chance: float
    what: str = ""
    rest: Array = np.zeros(0)
    since: int = 0


def drift_of(rows: RowEvidence) -> Drift | None:
    """Return how residuals of rewards and next states, given state and action, change over the log."""
    piece, here, there, actions = rows.piece, rows.here, rows.there, rows.actions
    block = blocks_of(piece)
    blocks = int(block.max()) + 1
    if blocks < FEWEST_BLOCKS:
        return None
    wide = products_of(actions, here)
    outcomes = np.column_stack([rows.reward, piece.ended, there])
    rest = held_out_residuals(wide, outcomes, block % FOLDS)
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
    """Return the products of features of actions and states, (n, k); many are projected, a few rows at a time."""
    width = actions.shape[1] * here.shape[1]
    most = len(here) if width <= WIDEST else max(1, PIECE_NUMBERS // width)
    pairs = ((actions[at : at + most], here[at : at + most]) for at in range(0, len(here), most))
    parts = [sketch((a[:, :, None] * x[:, None, :]).reshape(len(x), width), 12) for a, x in pairs]
    found = np.concatenate(parts)
    return found if width <= WIDEST else np.column_stack([found, here, actions])


def blocks_of(piece: Piece) -> Integers:
    """Return the block of each row in order of time, (n,): whole episodes, or stretches of long ones."""
    place, (first, rows) = np.arange(len(piece)) // max(1, len(piece) // BLOCKS), piece.spans
    if len(first) >= FEWEST_BLOCKS:
        place = np.repeat(place[first], rows)
    return np.unique(place, return_inverse=True)[1]


def groups_of_rows(rows: RowEvidence) -> Iterator[tuple[str, Booleans]]:
    """Yield groups of rows with a description: by action, by the value of a column, and by both."""
    actions = [(f"after action {name!r}", rows.actions[:, k] == 1) for k, name in enumerate(rows.names[:MOST_VALUES])]
    states = []
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
    yield "", np.ones(len(rows.reward), bool)
    yield from (*actions, *states)
    for state, here in states:
        yield from ((f"{action} {state}", here & taken) for action, taken in actions if len(actions) > 1)


def moved_most(rows: RowEvidence, found: Drift) -> tuple[str, float]:
    """Return the group of rows whose residuals change most significantly, in words, and the change."""
    after, best = np.arange(len(found.rest)) >= found.since, ("", 0.0, 0.0)
    for words, part in groups_of_rows(rows):
        late, early = found.rest[part & after], found.rest[part & ~after]
        if min(len(late), len(early)) < FEWEST_ROWS:
            continue
        change = float(late.mean() - early.mean())
        error = np.sqrt(late.var() / len(late) + early.var() / len(early))
        sure = abs(change) / max(error, 1e-12 * max(1.0, abs(change)))
        if sure > best[2]:
            best = words, change, sure
    return best[:2]


@finding("rows", "drift", "with care", "Evaluate only the rows that match current conditions.")
def drift(rows: RowEvidence) -> Found:
    """Rewards or next states, given state and action, change over the log: the cumulative sums of their residuals are
    larger than for episodes in random order.
    """
    found = drift_of(rows)
    if found is None:
        return
    if found.chance > DRIFTS:
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
