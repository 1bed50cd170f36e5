"""Episodes of a stream: dealt out to groups that are as good as independent, and a sample of whole ones that is kept.

Intervals and held-out errors rest on groups: a bootstrap sample takes some groups several times and leaves others out.
A group is made of blocks. A block holds whole episodes, unless an episode is longer than a block may be; a stream
without episodes is cut into stretches. Blocks grow with the stream, so that a short stream has a block for each episode
and a long stream has not too many.

The sample is for what needs episodes again once the values are known. A stream that fits is kept whole. Of a longer
stream every second episode is kept, then every fourth, and so on, so that the sample is spread over all of it. A single
episode that does not fit is kept from its beginning on.
"""

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.evaluation.transitions import Transitions, joined
from gradient_dd.stream.features import Rows

GROUPS = 200
BLOCKS = 200  # the stream so far has about so many blocks of the present size
LONGEST = 4  # a block with so many times its wanted rows is cut inside an episode
FEWEST_ROWS = 25  # of a block that is cut inside an episode, times LONGEST
MOST_NUMBERS = 4_000_000  # entries of feature rows that are kept


class Blocks:
    """Numbers the blocks of a stream, batch after batch."""

    saved = ("rows", "block", "filled", "episode")

    def __init__(self) -> None:
        self.rows = 0
        self.block = -1
        self.filled = 0  # rows of the present block
        self.episode = -1  # the last one so far

    def begins(self, episode: Integers) -> Booleans:
        """Return which rows of the next batch begin an episode."""
        return np.diff(episode, prepend=self.episode) != 0

    def number(self, episode: Integers) -> Integers:
        """Return the block of each row of the next batch."""
        n = len(episode)
        new = self.begins(episode)
        begins, blocks, at = np.flatnonzero(new), np.empty(n, np.int64), 0
        while at < n:
            size = max(1, self.rows // BLOCKS)
            most = LONGEST * max(size, FEWEST_ROWS)
            if self.block < 0 or self.filled >= most or (self.filled >= size and new[at]):
                self.block, self.filled = self.block + 1, 0
            coming = np.searchsorted(begins, at + max(1, size - self.filled))
            end = min(n, at + most - self.filled, int(begins[coming]) if coming < len(begins) else n)
            blocks[at:end] = self.block
            self.filled, self.rows, at = self.filled + end - at, self.rows + end - at, end
        if n:
            self.episode = int(episode[-1])
        return blocks

    def groups(self, episode: Integers) -> Integers:
        """Return the group of each row of the next batch: blocks are dealt out in turn."""
        return self.number(episode) % GROUPS


class EpisodeSample:
    """Keeps whole episodes of the batches that are added to it."""

    saved = ("parts", "rows", "stride", "closed")

    def __init__(self, most_numbers: int = MOST_NUMBERS) -> None:
        self.most_numbers = most_numbers
        self.parts: list[tuple[Transitions, Integers]] = []
        self.rows, self.stride, self.closed = 0, 1, False

    @property
    def whole(self) -> bool:
        """Whether the sample is the stream itself."""
        return self.stride == 1 and not self.closed

    def add(self, batch: Transitions, group: Integers) -> None:
        """Keep those episodes of a batch that belong to the sample; `group` (n,) is kept with them."""
        if self.closed or not len(batch):
            return
        self._append(batch, group)
        most = max(1, self.most_numbers // max(1, batch.x.values.shape[1]))
        while self.rows > most and not self.closed:
            everything, groups = self.joined()
            before, self.parts, self.rows = self.rows, [], 0
            self.stride *= 2
            self._append(everything, groups)
            if self.rows == before:  # one episode is left, and it is too long
                self.parts, self.rows, self.closed = [(everything.part(slice(most)), groups[:most])], most, True

    def _append(self, batch: Transitions, group: Integers) -> None:
        kept = batch.episode % self.stride == 0
        if kept.any():
            part = (batch, group) if kept.all() else (batch.part(kept), group[kept])
            self.parts.append(part)
            self.rows += len(part[1])

    def joined(self) -> tuple[Transitions, Integers]:
        """Return the sample as one batch, and the group of each row."""
        self.parts = [(joined([batch for batch, _ in self.parts]), np.concatenate([group for _, group in self.parts]))]
        return self.parts[0]


def goes_on(batch: Transitions) -> Booleans:
    """Return for each row whether the row after it is the next step of the same episode, (n,).

    A row that was skipped leaves a hole: the state of the row after is then not the next state.
    """
    found = np.zeros(len(batch), bool)
    here, there = key_of(batch.x), key_of(batch.x_next)
    found[:-1] = (batch.episode[1:] == batch.episode[:-1]) & (here[1:] == there[:-1])
    return found & ~batch.cut & ~batch.ended


def key_of(rows: Rows) -> Array:
    """Return one number for each feature row; equal rows have equal ones."""
    indices, values = rows
    rng = np.random.default_rng(7)
    if indices is None:
        return np.asarray(values @ rng.standard_normal(values.shape[1]))
    mixed = np.sin(indices * 12.9898 + 1.0) * 43758.5453
    return np.asarray((values * (mixed - np.floor(mixed))).sum(axis=1))
