"""Blocks of a stream: stretches of whole episodes, dealt out to groups that are as good as independent.

Intervals and held-out errors rest on groups: a bootstrap sample takes some groups several times and leaves others out.
An episode is never cut, unless it is longer than a block may be; a stream without episodes is cut into stretches.
Blocks grow with the stream, so that a short one has a block for each episode and a long one has not too many.
"""

import numpy as np

from gradient_dd.arrays import Integers

GROUPS = 200
BLOCKS = 200  # the stream so far has about so many blocks of the present size
LONGEST = 4  # a block with so many times its wanted rows is cut inside an episode
FEWEST_ROWS = 25  # of a block that is cut inside an episode, times LONGEST


class Blocks:
    """Numbers the blocks of a stream, batch after batch."""

    saved = ("rows", "block", "filled", "episode")

    def __init__(self) -> None:
        self.rows = 0
        self.block = -1
        self.filled = 0  # rows of the present block
        self.episode: int | None = None

    def number(self, episode: Integers) -> Integers:
        """Return the block of each row of the next batch."""
        n = len(episode)
        new = np.diff(episode, prepend=-1 if self.episode is None else self.episode) != 0
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


def groups_of(blocks: Integers) -> Integers:
    """Return the group of each block."""
    return blocks % GROUPS
