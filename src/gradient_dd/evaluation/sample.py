"""A sample of whole episodes of a stream, for what needs episodes again once the values are known.

A stream that fits is kept whole. Of a longer one every second episode is kept, then every fourth, and so on, so that
the sample is spread over all of it. A single episode that does not fit is kept from its beginning on.
"""

import numpy as np

from gradient_dd.arrays import Booleans, Integers
from gradient_dd.evaluation.diagnosis import key_of
from gradient_dd.evaluation.transitions import Transitions, joined

MOST_NUMBERS = 4_000_000  # entries of feature rows that are kept


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
