"""What can be seen in the data before anything is learnt: counts over the stream, and a look at its first rows."""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans
from gradient_dd.evaluation.moments import MOST_FEATURES
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.stream.features import Rows

FEWEST_VALUES = 10  # a feature with so many different values is taken for a number, not for a kind


class Leak(NamedTuple):
    """A feature that says too well what comes later: its number, what it says, and how well (a share of variance)."""

    feature: int
    what: str
    share: float


class Diagnosis:
    """Counts over a stream; `examine` looks at its first rows."""

    saved = (
        *("rows", "episodes", "ended", "cut", "largest_ratio", "largest_at", "with_ratios", "pairs"),
        *("next_is_next", "next_is_last", "lengths", "ends_sign", "constant", "twins", "leaks"),
    )

    def __init__(self, n_features: int) -> None:
        self.p = n_features
        self.rows = self.episodes = self.ended = self.cut = 0
        self.largest_ratio, self.largest_at = 0.0, 0
        self.with_ratios = False
        self.next_is_next = self.next_is_last = self.pairs = 0
        self.lengths: Array = np.empty(0)
        self.ends_sign: float | None = None
        self.constant: list[int] = []
        self.twins: list[tuple[int, int]] = []
        self.leaks: list[Leak] = []

    def add(self, batch: Transitions, begins: Booleans, first_row: int) -> None:
        """Count a batch whose first row has this number."""
        self.rows += len(batch)
        self.episodes += int(begins.sum())
        self.ended += int(batch.ended.sum())
        self.cut += int(batch.cut.sum())
        self.with_ratios = self.with_ratios or bool((batch.rho != 1.0).any())
        most = int(batch.rho.argmax())
        if batch.rho[most] > self.largest_ratio:
            self.largest_ratio, self.largest_at = float(batch.rho[most]), first_row + most

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
            self.leaks = leaks_of(batch, x)

    @property
    def time_limit(self) -> tuple[int, float] | None:
        """The length at which suspiciously many episodes end, the longest one, and their share; None if there is none.

        Where episodes end by themselves, the longest are rare. A time limit that was recorded as an end makes a heap.
        """
        if len(self.lengths) < 20:
            return None
        longest = int(self.lengths.max())
        heap = int((self.lengths == longest).sum())
        near = int(((self.lengths < longest) & (self.lengths >= 0.8 * longest)).sum()) / max(1.0, 0.2 * longest)
        if longest >= 10 and heap >= 5 and heap > 5 * (near + 1):
            return longest, heap / len(self.lengths)
        return None


def key_of(rows: Rows) -> Array:
    """Return one number for each feature row; equal rows have equal ones."""
    indices, values = rows
    rng = np.random.default_rng(7)
    if indices is None:
        return np.asarray(values @ rng.standard_normal(values.shape[1]))
    mixed = np.sin(indices * 12.9898 + 1.0) * 43758.5453
    return np.asarray((values * (mixed - np.floor(mixed))).sum(axis=1))


def twins_of(x: Array) -> list[tuple[int, int]]:
    """Return pairs of features that are equal in every row, up to a factor."""
    size = np.sqrt((x**2).sum(axis=0))
    alike = np.abs(x.T @ x) >= (1 - 1e-12) * np.outer(size, size)
    alike &= np.outer(size > 0, size > 0)
    return [(int(i), int(j)) for i, j in np.argwhere(np.triu(alike, 1))]


def leaks_of(batch: Transitions, x: Array) -> list[Leak]:
    """Return features that alone tell the return of the rest of the episode, beyond what the others tell.

    A feature is left out that has few different values, and so is a stream without an end.
    """
    returns, known = returns_of(batch)
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
        if without > 1e-9 and full / without < 0.2 and without > 0.1:
            found.append(Leak(j, "the return of the rest of the episode", 1 - full / without))
    return found


def unexplained(x: Array, y: Array) -> float:
    """Return the share of the variance of y that a linear function of x leaves."""
    y = y - y.mean()
    rest = y - x @ np.linalg.lstsq(x, y, rcond=1e-10)[0] if x.shape[1] else y
    return float((rest**2).sum() / max(1e-300, (y**2).sum()))


def returns_of(batch: Transitions) -> tuple[Array, Booleans]:
    """Return the discounted return from each row on, without ratios, and whether its episode ended in these rows."""
    returns, known = np.zeros(len(batch)), np.zeros(len(batch), bool)
    total, goes_on = 0.0, False
    for row in range(len(batch) - 1, -1, -1):
        last = row == len(batch) - 1 or batch.episode[row + 1] != batch.episode[row]
        if last:
            total, goes_on = 0.0, bool(batch.ended[row])
        total = batch.reward[row] + batch.discount[row] * total
        returns[row], known[row] = total, goes_on
    return returns, known
