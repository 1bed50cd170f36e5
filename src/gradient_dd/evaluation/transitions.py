"""Batches of transitions: what every source of an evaluation yields, a log, a data frame or an environment.

A batch keeps what a learner needs, and to which episode each transition belongs. Batches follow each other in time.
"""

from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

import numpy as np

from gradient_dd.arrays import LARGEST, Array, Booleans, Integers, numbers
from gradient_dd.errors import bad_request
from gradient_dd.stream.features import Rows
from gradient_dd.stream.transitions import ANY, checked_columns, first_wrong, pair_rows


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

    @property
    def starts(self) -> Rows:
        """Feature rows whose values are wanted where episodes begin."""
        return self.x

    def part(self, chosen: Any) -> Self:
        """Return the transitions with these numbers, or where a mask is true."""
        columns: list[Any] = [getattr(self, one.name) for one in fields(self)]
        chosen_rows: list[Any] = [rows_of(one, chosen) if isinstance(one, Rows) else one[chosen] for one in columns]
        return type(self)(*chosen_rows)


@dataclass(frozen=True, eq=False)
class StateActions(Transitions):
    """Transitions with features of states and actions: x of the action taken, x_next the mean over a policy's actions.

    first  feature rows of the state and the policy's mean action: values are wanted for them
    """

    first: Rows

    @property
    def starts(self) -> Rows:
        """Feature rows whose values are wanted where episodes begin."""
        return self.first


Batch = TypeVar("Batch", bound=Transitions)


def rows_of(rows: Rows, chosen: Any) -> Rows:
    """Return some of the rows."""
    return Rows(None if rows.indices is None else rows.indices[chosen], rows.values[chosen])


def joined(batches: list[Batch]) -> Batch:
    """Return several batches as one."""
    if len(batches) == 1:
        return batches[0]

    def stacked(parts: list[Any]) -> Any:
        if not isinstance(parts[0], Rows):
            return np.concatenate(parts)
        indices = [rows.indices for rows in parts]
        whole = None if indices[0] is None else np.concatenate([one for one in indices if one is not None])
        return Rows(whole, np.concatenate([rows.values for rows in parts]))

    names = [one.name for one in fields(batches[0])]
    return type(batches[0])(*(stacked([getattr(batch, name) for batch in batches]) for name in names))


def transitions_of(
    x: Any, reward: Any, discount: Any, x_next: Any, rho: Any = 1.0, episode: Any = None, cut: Any = None
) -> Transitions:
    """Return checked transitions; x and x_next are (n, p), pairs (indices, values) of (n, k), or `Rows`.

    Without `episode`, a new one begins after each transition that ended or was cut.
    """
    here, there = as_rows("x", x), as_rows("x_next", x_next)
    n = len(here.values)
    if there.values.shape != here.values.shape or (there.indices is None) != (here.indices is None):
        raise bad_request("'x_next'", f"have the form of 'x', {here.values.shape}", there.values.shape)
    reward, discount, rho = checked_columns(reward, discount, rho, n)
    for name, values in (("reward", reward), ("rho", rho)):
        numbers(f"{name!r}", values, LARGEST)
    was_cut = np.zeros(n, bool) if cut is None else np.asarray(cut, bool)
    if episode is None:
        over = (discount == 0) | was_cut
        episode = np.cumsum(over) - over
    episode = np.asarray(episode, np.int64)
    for name, array in (("episode", episode), ("cut", was_cut)):
        if array.shape != (n,):
            raise bad_request(f"The shape of {name!r}", f"be ({n},): one for each transition", array.shape)
    if (wrong := np.diff(episode) < 0).any():
        row = int(np.argmax(wrong)) + 1
        raise bad_request(
            f"'episode' in row {row}", f"be {episode[row - 1]} or more, as in the row before", int(episode[row])
        )
    return Transitions(here, there, reward, discount, rho, episode, was_cut)


def as_rows(name: str, x: Any) -> Rows:
    """Return feature rows of finite numbers, their indices in order; `check_width` compares them with p."""
    indices, values = x if isinstance(x, tuple) and len(x) == 2 else (None, x)
    values = numbers(f"The values of {name!r}", values, LARGEST)
    if indices is None:
        if values.ndim != 2:
            raise bad_request(
                f"The shape of {name!r}", "be (n, p), or (n, k) for both indices and values", values.shape
            )
        return Rows(None, values)
    n, _, flat = pair_rows(name, (indices, values), ANY, None)
    shape = n, flat.width
    return Rows(flat.indices.astype(np.int64, copy=False).reshape(shape), flat.values.reshape(shape))


def check_width(batch: Transitions, p: int) -> None:
    """Raise unless the feature rows of a batch are of p features."""
    for name, rows in (("x", batch.x), ("x_next", batch.x_next)):
        if rows.indices is None and rows.values.shape[1] != p:
            raise bad_request(f"The shape of {name!r}", f"be (n, {p})", rows.values.shape)
        if rows.indices is not None and rows.indices.size and not (rows.indices.min() >= 0 and rows.indices.max() < p):
            raise first_wrong(name, rows.indices, rows.values, p, np.ones(len(batch), bool))


def distinct(parts: list[Rows]) -> Rows:
    """Return several feature rows as one, each row once."""
    values = np.concatenate([rows.values for rows in parts])
    if parts[0].indices is None:
        return Rows(None, np.unique(values, axis=0))
    indices = np.concatenate([np.asarray(rows.indices) for rows in parts])
    both = np.unique(np.concatenate([indices.astype(float), values], axis=1), axis=0)
    k = values.shape[1]
    return Rows(both[:, :k].astype(np.int64), both[:, k:])
