"""What can be seen in the data before anything is learnt: counts over the stream, and a look at its first rows."""

import numpy as np

from gradient_dd.arrays import Array, Booleans
from gradient_dd.evaluation.episodes import key_of
from gradient_dd.evaluation.moments import MOST_FEATURES
from gradient_dd.evaluation.returns import returns_of
from gradient_dd.evaluation.transitions import Transitions

FEWEST_EPISODES, SHORTEST_LIMIT = 20, 10  # that have ended, and steps of the longest, to tell a time limit
HEAP = 5  # times as many episodes of the longest length as would be expected there
NEAR = 0.2  # lengths within this share of the longest tell how many would be expected
FEWEST_VALUES = 10  # a feature with so many different values is taken for a number, not for a kind
UNKNOWN = 0.01  # share of the variance of the steps that features with a clock leave
LEFT, OPEN = 0.2, 0.1  # a leak leaves less than this share of a variance of which the others leave more than this


class Diagnosis:
    """Counts over a stream; `examine` looks at its first rows.

    lowest, highest the smallest and the largest reward;  discount  the largest one;  longest  steps of an episode
    largest_ratio   the largest ratio;  largest_at  its row;  with_ratios  whether a ratio is not 1
    pairs           pairs of successive rows of one episode among the first rows
    next_is_next    pairs in which the next state of the first row is the state of the second
    next_is_last    pairs in which the state of the first row is the next state of the second
    lengths         of the episodes that ended among the first rows
    clock           whether the features tell how many steps an episode has made, where that was asked
    constant        features that never change;  twins  pairs of features that are equal up to a factor
    leaks           features that tell the return of the rest of the episode, and how well (a share of variance)
    """

    saved = (
        *("rows", "episodes", "ended", "cut", "lowest", "highest", "discount", "longest", "_steps"),
        *("largest_ratio", "largest_at", "with_ratios", "pairs"),
        *("next_is_next", "next_is_last", "lengths", "clock", "constant", "twins", "leaks"),
    )

    def __init__(self, n_features: int) -> None:
        self.p = n_features
        self.rows = self.episodes = self.ended = self.cut = 0
        self.lowest, self.highest, self.discount = np.inf, -np.inf, 0.0
        self.longest = self._steps = 0  # of all episodes so far, and of the present one
        self.largest_ratio, self.largest_at = 0.0, 0
        self.with_ratios = False
        self.next_is_next = self.next_is_last = self.pairs = 0
        self.lengths: Array = np.empty(0)
        self.clock = False
        self.constant: list[int] = []
        self.twins: list[tuple[int, int]] = []
        self.leaks: list[tuple[int, float]] = []

    def add(self, batch: Transitions, begins: Booleans) -> None:
        """Count a batch; `begins` (n,) says which rows begin an episode."""
        if not len(batch):
            return
        self.lowest, self.highest = min(self.lowest, batch.reward.min()), max(self.highest, batch.reward.max())
        self.discount = max(self.discount, float(batch.discount.max()))
        lengths = np.diff([0, *np.flatnonzero(begins), len(batch)])
        lengths[0] += self._steps
        self.longest, self._steps = max(self.longest, int(lengths.max())), int(lengths[-1])
        most = int(batch.rho.argmax())
        if batch.rho[most] > self.largest_ratio:
            self.largest_ratio, self.largest_at = float(batch.rho[most]), self.rows + most
        self.rows += len(batch)
        self.episodes += int(begins.sum())
        self.ended += int(batch.ended.sum())
        self.cut += int(batch.cut.sum())
        self.with_ratios = self.with_ratios or bool((batch.rho != 1.0).any())

    def examine(self, batch: Transitions) -> None:
        """Look at the first rows of the stream: continuity, lengths of episodes, features."""
        follows = batch.episode[1:] == batch.episode[:-1]
        here, there = (key_of(rows) for rows in (batch.x, batch.x_next))
        self.pairs = int(follows.sum())
        self.next_is_next = int((follows & (there[:-1] == here[1:])).sum())
        self.next_is_last = int((follows & (here[:-1] == there[1:])).sum())
        _, first, counts = np.unique(batch.episode, return_index=True, return_counts=True)
        whole = batch.ended[first + counts - 1]
        self.lengths = counts[whole].astype(float)
        if self.p <= MOST_FEATURES:
            x = batch.x.dense(self.p)
            self.constant = np.flatnonzero(np.ptp(x, axis=0) == 0).tolist()
            self.twins = twins_of(x)
            if self.time_limit:
                step = np.arange(len(x)) - np.repeat(first, counts)
                self.clock = unexplained(x - x.mean(axis=0), step.astype(float)) < UNKNOWN
            returns, _, _ = returns_of(batch, np.ones(len(batch)))
            self.leaks = leaks_of(x, returns, np.repeat(whole, counts))

    @property
    def time_limit(self) -> tuple[int, float] | None:
        """The length at which suspiciously many episodes end, the longest one, and their share; None if there is none.

        Where episodes end by themselves, the longest are rare. A time limit that was recorded as an end makes a heap.
        Where the state has the time, a fixed horizon is an end like any other.
        """
        if len(self.lengths) < FEWEST_EPISODES or self.clock:
            return None
        longest = int(self.lengths.max())
        heap = int((self.lengths == longest).sum())
        close = (self.lengths < longest) & (self.lengths >= (1 - NEAR) * longest)
        expected = 1 + int(close.sum()) / (NEAR * longest)
        if longest >= SHORTEST_LIMIT and heap > HEAP * expected:
            return longest, heap / len(self.lengths)
        return None


def twins_of(x: Array) -> list[tuple[int, int]]:
    """Return pairs of features that are equal in every row, up to a factor."""
    size = np.sqrt((x**2).sum(axis=0))
    alike = np.abs(x.T @ x) >= (1 - 1e-12) * np.outer(size, size)
    alike &= np.outer(size > 0, size > 0)
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(alike, 1))]


def leaks_of(x: Array, returns: Array, known: Booleans) -> list[tuple[int, float]]:
    """Return features that alone tell the return of the rest of the episode, beyond what the others tell, and how well.

    Rows count whose return is known. A feature with few different values is left out.
    """
    if known.sum() < 10 * x.shape[1] + 50 or np.ptp(returns[known]) == 0:
        return []
    x, y = x[known], returns[known]
    centred = x - x.mean(axis=0)
    found = []
    full = unexplained(centred, y)
    for j in range(x.shape[1]):
        if len(np.unique(x[:, j])) < FEWEST_VALUES:
            continue
        without = unexplained(np.delete(centred, j, axis=1), y)
        if without > OPEN and full / without < LEFT:
            found.append((j, 1 - full / without))
    return found


def unexplained(x: Array, y: Array) -> float:
    """Return the share of the variance of y that a linear function of x leaves."""
    y = y - y.mean()
    rest = y - x @ np.linalg.lstsq(x, y, rcond=1e-10)[0] if x.shape[1] else y
    return float((rest**2).sum() / max(1e-300, (y**2).sum()))
