"""The batch that every source of transitions yields: a log, a data frame, an environment.

A batch keeps what a learner needs, and to which episode each transition belongs. Batches follow each other in time.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradient_dd.arrays import LARGEST, Array, Booleans, Integers, numbers
from gradient_dd.errors import Words, must
from gradient_dd.stream.features import Rows


@dataclass(frozen=True, eq=False)
class Transitions:
    """n transitions in the order in which they happened.

    x, x_next   feature rows of both states: dense (n, p), or (indices, values) of (n, k)
    reward      (n,)
    discount    (n,) into the next state, 0 where the episode ended; x_next is not looked at there
    rho         (n,) importance ratio π(a|s) / μ(a|s) of the action taken
    episode     (n,) number of the episode: it grows by 1 where one begins, whether the last one ended or was cut
    cut         (n,) whether the episode was cut after this transition, by a time limit or by the end of the log
    """

    x: Rows
    x_next: Rows
    reward: Array
    discount: Array
    rho: Array
    episode: Integers
    cut: Booleans

    def __len__(self) -> int:
        return len(self.reward)

    @property
    def ended(self) -> Booleans:
        """(n,) whether the episode ended here: it went no further, and was not cut."""
        return self.discount == 0

    def part(self, chosen: Any) -> "Transitions":
        """Return the transitions with these numbers, or where a mask is true."""
        columns = (column[chosen] for column in (self.reward, self.discount, self.rho, self.episode, self.cut))
        return Transitions(rows_of(self.x, chosen), rows_of(self.x_next, chosen), *columns)


def rows_of(rows: Rows, chosen: Any) -> Rows:
    """Return some of the rows."""
    return Rows(None if rows.indices is None else rows.indices[chosen], rows.values[chosen])


def joined(batches: list[Transitions]) -> Transitions:
    """Return several batches as one."""
    if len(batches) == 1:
        return batches[0]

    def stacked(parts: list[Rows]) -> Rows:
        indices = [rows.indices for rows in parts]
        whole = None if indices[0] is None else np.concatenate([one for one in indices if one is not None])
        return Rows(whole, np.concatenate([rows.values for rows in parts]))

    names = ("reward", "discount", "rho", "episode", "cut")
    columns = (np.concatenate([getattr(batch, name) for batch in batches]) for name in names)
    return Transitions(stacked([batch.x for batch in batches]), stacked([batch.x_next for batch in batches]), *columns)


def transitions_of(
    x: Any, reward: Any, discount: Any, x_next: Any, rho: Any = 1.0, episode: Any = None, cut: Any = None
) -> Transitions:
    """Return checked transitions; x and x_next are (n, p), pairs (indices, values) of (n, k), or `Rows`.

    Without `episode`, a new one begins after each transition that ended or was cut.
    """
    here, there = as_rows("x", x), as_rows("x_next", x_next)
    n = len(here.values)
    if there.values.shape != here.values.shape or (there.indices is None) != (here.indices is None):
        raise must("'x_next'", f"have the form of 'x', {here.values.shape}", there.values.shape)
    columns = [column(name, one, n) for name, one in (("reward", reward), ("discount", discount), ("rho", rho))]
    reward, discount, rho = columns
    check_each("'discount'", (discount < 0) | (discount > 1), discount, "be in [0, 1]")
    check_each("'rho'", rho < 0, rho, "be a number that is zero or more")
    was_cut = np.zeros(n, bool) if cut is None else np.asarray(cut, bool)
    if episode is None:
        over = (discount == 0) | was_cut
        episode = np.cumsum(over) - over
    episode = np.asarray(episode, np.int64)
    for name, array in (("episode", episode), ("cut", was_cut)):
        if array.shape != (n,):
            raise must(f"The shape of {name!r}", f"be ({n},): one for each transition", array.shape)
    if (wrong := np.diff(episode) < 0).any():
        row = int(np.argmax(wrong)) + 1
        raise must(f"'episode' in row {row}", f"be {episode[row - 1]} or more, as in the row before", int(episode[row]))
    return Transitions(here, there, reward, discount, rho, episode, was_cut)


def as_rows(name: str, x: Any) -> Rows:
    """Return feature rows of finite numbers."""
    indices, values = x if isinstance(x, tuple) else (None, x)
    values = numbers(f"The values of {name!r}", values, LARGEST)
    if values.ndim != 2 or (indices is not None and np.shape(indices) != values.shape):
        got = Words(f"{np.shape(indices)} and {values.shape}") if indices is not None else values.shape
        raise must(f"The shape of {name!r}", "be (n, p), or (n, k) for both indices and values", got)
    if indices is None:
        return Rows(None, values)
    indices = np.asarray(indices)
    if indices.dtype.kind not in "iu":
        raise must(f"The indices of {name!r}", "be whole numbers", indices.dtype)
    return Rows(indices.astype(np.int64, copy=False), values)


def column(name: str, value: Any, n: int) -> Array:
    """Return one finite number for each of n transitions."""
    array = numbers(f"{name!r}", value, LARGEST)
    if array.shape not in ((), (n,)):
        raise must(f"The shape of {name!r}", f"be ({n},): one number for each transition", array.shape)
    return np.ascontiguousarray(np.broadcast_to(array, n))


def check_each(what: str, wrong: Booleans, values: Array, rule: str) -> None:
    """Raise with the first value that is wrong, and its row."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise must(f"{what} in row {row}", rule, float(values[row]))


def check_width(x: Rows, p: int) -> None:
    """Raise unless the feature rows are of p features."""
    if x.indices is None and x.values.shape[1] != p:
        raise must("The shape of 'x'", f"be (n, {p})", x.values.shape)
    if x.indices is not None and x.indices.size and not (x.indices.min() >= 0 and x.indices.max() < p):
        row = int(np.argmax(((x.indices < 0) | (x.indices >= p)).any(axis=1)))
        raise must(f"The indices in row {row} of 'x'", f"be from 0 to {p - 1}", x.indices[row])


def distinct(parts: list[Rows]) -> Rows:
    """Return several feature rows as one, each row once."""
    values = np.concatenate([rows.values for rows in parts])
    if parts[0].indices is None:
        return Rows(None, np.unique(values, axis=0))
    indices = np.concatenate([np.asarray(rows.indices) for rows in parts])
    both = np.unique(np.concatenate([indices.astype(float), values], axis=1), axis=0)
    k = values.shape[1]
    return Rows(both[:, :k].astype(np.int64), both[:, k:])
