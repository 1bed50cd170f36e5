"""Pieces of a log: consecutive rows, and products of ratios and discounts along their episodes.

R_t = ρ_0 ⋯ ρ_t        D_t = γ_0 ⋯ γ_{t−1}
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers

HOLE = np.int64(1) << 40  # added to the steps after a missing row
LARGEST_LOG = 300.0  # largest logarithm of a product of ratios


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows of a log.

    seen, after       (n, d) the observation and the next one, texts as numbers
    carried           (n, m) columns of policies in the log;  carried_after  the same columns at the next observation
    action            (n, k) the indices of the actions taken, or continuous actions
    signals           (n, signals) the rewards of every signal
    discount          (n,) discounts of the transitions, 0 where the episode ended
    rho               (n,) ratios of the log's own columns, 1 where it has none
    behaviour         (n,) probability of the action taken, NaN if unknown
    episode, step     (n,) the episode, and the steps since its start; a step after a missing row is beyond all limits
    cut               (n,) whether the episode was cut after this row
    group             (n,) the group of the row
    """

    seen: Array
    after: Array
    carried: Array
    carried_after: Array
    action: Array
    signals: Array
    discount: Array
    rho: Array
    behaviour: Array
    episode: Integers
    step: Integers
    cut: Booleans
    group: Integers

    def __len__(self) -> int:
        return len(self.discount)

    @property
    def ended(self) -> Booleans:
        """(n,) whether the episode terminated here."""
        return self.discount == 0

    @property
    def starts(self) -> Integers:
        """The initial rows of episodes."""
        return np.flatnonzero(self.step == 0)

    @property
    def legal_after(self) -> Array:
        """(n, d) the next observations; after an end, the current observation as a legal placeholder."""
        return np.where(self.ended[:, None], self.seen, self.after)

    @cached_property
    def taken(self) -> Integers:
        """(n,) the indices of the actions taken, which must have names."""
        return self.action[:, 0].astype(np.int64)

    @property
    def follows(self) -> Booleans:
        """(n,) whether the next row is the next step of the episode."""
        return np.append((np.diff(self.episode) == 0) & (np.diff(self.step) == 1), False)

    @cached_property
    def spans(self) -> tuple[Integers, Integers]:
        """The first row and the number of rows of each episode."""
        first = np.flatnonzero(np.diff(self.episode, prepend=self.episode[:1] - 1))
        return first, np.diff([*first, len(self)])

    @cached_property
    def key(self) -> tuple[int, ...]:
        """An identifier of the piece among all pieces of a log and of its sample."""
        ends = (int(column[at]) for column in (self.episode, self.step) for at in (0, -1))
        return *ends, len(self)

    def part(self, chosen: Any) -> "Piece":
        """Return some of the rows."""
        return Piece(*(getattr(self, one.name)[chosen] for one in fields(self)))


def numbered(pieces: Iterable[Piece], first_episode: int = 0) -> Iterator[Piece]:
    """Yield pieces with numbered episodes and steps; in the input, `episode` has names and `step` has row numbers."""
    name, last, row, before = -1, first_episode - 1, -2, np.int64(0)
    for piece in pieces:
        begins = np.diff(piece.episode, prepend=name) != 0
        hole = ~begins & (np.diff(piece.step, prepend=row) != 1)
        episode = last + np.cumsum(begins)
        total = before + np.cumsum(np.where(hole, HOLE + 1, 1))  # as if all rows were one episode
        first = np.maximum.accumulate(np.where(begins, np.arange(len(piece)), -1))
        step = total - np.where(first < 0, 0, total[first])
        name, last, row, before = int(piece.episode[-1]), int(episode[-1]), int(piece.step[-1]), step[-1]
        yield replace(piece, episode=episode, step=step)


def joined(pieces: list[Piece]) -> Piece:
    """Return several pieces as one."""
    columns = (np.concatenate([getattr(one, each.name) for one in pieces]) for each in fields(Piece))
    return pieces[0] if len(pieces) == 1 else Piece(*columns)


def parts_of(piece: Piece, most: int) -> Iterator[Piece]:
    """Yield the episodes of a piece in parts of at most `most` rows; a longer episode is cut."""
    begins, at = np.append(piece.starts, len(piece)), 0
    while at < len(piece):
        fits = begins[(begins > at) & (begins <= at + most)]
        end = int(fits[-1]) if len(fits) else min(at + most, len(piece))
        yield piece if end - at == len(piece) else piece.part(slice(at, end))
        at = end


class RatioProducts(NamedTuple):
    """Products along the episodes of a piece.

    product   (n,) R_t;  discount  (n,) D_t
    last      the last row of each episode within the limit of steps;  lengths  number of its rows up to the last row
    """

    product: Array
    discount: Array
    last: Integers
    lengths: Integers


def ratio_products(piece: Piece, ratio: Array, most: int) -> RatioProducts:
    """Return the products of ratios and discounts along the episodes of a piece, for at most `most` steps."""
    first, rows = piece.spans
    lengths = np.add.reduceat((piece.step < most).astype(np.int64), first)
    known = lengths > 0

    def along(values: Array) -> Array:
        total = np.cumsum(np.log(np.maximum(values, 1e-300)))
        return total - np.repeat(np.concatenate([[0.0], total[first[1:] - 1]]), rows)

    product = np.exp(np.clip(along(ratio), -700.0, LARGEST_LOG))
    ahead = np.concatenate([[1.0], piece.discount[:-1]])
    ahead[first] = 1.0
    discount = np.exp(np.maximum(along(ahead), -700.0))
    return RatioProducts(product, discount, (first + lengths - 1)[known], lengths[known])


def step_sums(piece: Piece, seen: RatioProducts, most: int) -> Array:
    """Return Σ R_t and Σ R_t² of each step over the episodes of a piece, including ended ones, (2, steps)."""
    found, live = np.zeros((2, most)), piece.step < most
    for k, values in enumerate((seen.product, seen.product**2)):
        found[k] = np.bincount(piece.step[live], values[live], minlength=most)
        after = np.zeros(most + 1)
        np.add.at(after, seen.lengths, values[seen.last])
        found[k] += np.cumsum(after)[:most]
    return found
