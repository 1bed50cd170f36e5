"""The rows of a log as transitions: ratios, discounts, next observations, episodes, and what is wrong with a row.

Rows are numbered from 0, the first row of data. A row that is wrong is refused with its number, or skipped where that
is asked for: it is then counted, and the transition that would lead into it is left out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradient_dd.arrays import LARGEST, Array, Booleans, Integers, as_floats
from gradient_dd.errors import Words, must
from gradient_dd.evaluation.log.columns import Columns
from gradient_dd.evaluation.log.findings import Rewards
from gradient_dd.evaluation.log.sources import Chunk
from gradient_dd.evaluation.policies import called, checked

Target = Callable[[Any, Any], Any]


@dataclass
class Table:
    """Checked columns of some rows of a log."""

    row: Integers
    observation: Array
    following: Array | None
    reward: Array
    discount: Array
    cut: Booleans
    rho: Array
    episode: Integers

    def __len__(self) -> int:
        return len(self.row)

    def part(self, chosen: Any) -> "Table":
        """Return the rows where a mask is true, or a slice of them."""
        following = None if self.following is None else self.following[chosen]
        rest = (getattr(self, name)[chosen] for name in ("reward", "discount", "cut", "rho", "episode"))
        return Table(self.row[chosen], self.observation[chosen], following, *rest)


@dataclass
class RowReader:
    """Turns chunks of columns into `Table`s whose next observation is known.

    discount  γ, where the log has no column of discounts
    target    π: a function (observations, actions) -> probabilities of the actions taken (n,) or of all actions (n, k)
    """

    columns: Columns
    discount: float | None
    target: Target | None
    skip: bool
    skipped: list[tuple[int, str]] = field(default_factory=list)  # the first ones
    n_skipped: int = 0
    dropped: Rewards = field(default_factory=Rewards)  # of rows whose next observation is not known
    used: Rewards = field(default_factory=Rewards)
    ends_inside: int = 0  # rows after which the same episode goes on, though it ended
    first_inside: int = 0
    rows: int = 0
    _waiting: Table | None = None
    _episode: int = -1
    _id: Any = None
    _ids: set[Any] = field(default_factory=set)
    _over: bool = True
    _ended: bool = False

    def read(self, chunks: Iterator[Chunk]) -> Iterator[Table]:
        """Yield the transitions of all chunks."""
        for chunk in chunks:
            table = self._checked(chunk)
            if table is not None and len(table):
                ready = table if table.following is not None else self._joined(table)
                if len(ready):
                    self.used.add(ready.reward)
                    yield ready
        if self._waiting is not None:
            rest, self._waiting = self._waiting, None
            yield from self._last(rest)

    def _checked(self, chunk: Chunk) -> Table | None:
        """Return the good rows of a chunk."""
        first, columns = self.rows, self.columns
        n = len(chunk[columns.needed[0]])
        if n == 0:
            return None
        self.rows += n
        bad = np.zeros(n, bool)

        def column(
            name: str,
            low: float = -LARGEST,
            high: float = LARGEST,
            rule: str = "be a finite number",
            needed: Booleans | None = None,
        ) -> Array:
            """Return a column as numbers; note or refuse the rows where they are needed and out of bounds."""
            values = as_numbers(name, chunk[name], first)
            outside: Any = ~((values >= low) & (values <= high))
            outside = np.asarray(outside.reshape(n, -1).any(axis=1) & (True if needed is None else needed))
            if outside.any():
                self._refuse(outside, name, rule, values, first)
                np.logical_or(bad, outside, out=bad)
            return values

        observation = stacked([column(name) for name in columns.observation])
        assert columns.reward is not None
        reward = column(columns.reward)
        ended, cut, discount = self._ends(chunk, column, n)
        rho = self._ratios(chunk, column, observation, n)
        following = None
        if columns.next:  # where an episode ended, the next observation may be anything
            following = stacked([column(name, needed=~ended) for name in columns.next])
            following = np.where(ended[:, None], 0.0, following)
            if following.shape != observation.shape:
                rule = f"have the width of the observation, {observation.shape[1]}"
                raise must("The next observation", rule, following.shape[1])
        episode = self._episodes(chunk, ended, cut, first)
        row = np.arange(first, first + n)
        table = Table(row, observation, following, reward, discount, cut, rho, episode)
        if bad.any():
            self.n_skipped += int(bad.sum())
            table = table.part(~bad)
        return table

    def _refuse(self, bad: Booleans, name: str, rule: str, values: Array, first: int) -> None:
        """Raise with the first bad row, or note it where bad rows are skipped."""
        at = int(np.argmax(bad))
        value = values[at] if values.ndim == 1 else values[at][~np.isfinite(values[at])][:1]
        shown = float(value) if np.size(value) == 1 else Words("numbers out of range")
        if not self.skip:
            count = int(bad.sum())
            more = f"{count:,} rows of these {len(bad):,} are like that. " if count > 1 else ""
            hint = f"{more}Skip such rows with skip_bad_rows=True, or --skip-bad-rows."
            raise must(f"Column {name!r} in row {first + at:,}", rule, shown, hint)
        if len(self.skipped) < 3:
            self.skipped = sorted([*self.skipped, (first + at, name)])

    def _ends(self, chunk: Chunk, column: Any, n: int) -> tuple[Booleans, Booleans, Array]:
        """Return where episodes ended, where they were cut, and the discounts."""
        columns, flags = self.columns, {}
        for role in ("terminated", "truncated", "done"):
            name = getattr(columns, role)
            if name is None:
                flags[role] = np.zeros(n, bool)
            else:
                values = column(name, 0.0, 1.0, "be 0 or 1, or true or false")
                flags[role] = values == 1.0
        ended = flags["terminated"] | (flags["done"] & ~flags["truncated"])
        cut = flags["truncated"] & ~ended
        if columns.discount is not None:
            discount = column(columns.discount, 0.0, 1.0, "be from 0 to 1")
            discount = np.where(ended, 0.0, discount)
            return discount == 0.0, cut, discount
        assert self.discount is not None
        return ended, cut, np.where(ended, 0.0, self.discount)

    def _ratios(self, chunk: Chunk, column: Any, observation: Array, n: int) -> Array:
        """Return the importance ratios."""
        columns, rule = self.columns, "be a number that is zero or more"
        if columns.rho is not None and self.target is None:
            return np.asarray(column(columns.rho, 0.0, LARGEST, rule))
        if columns.behaviour_probability is None:
            return np.ones(n)
        tiny = float(np.finfo(float).tiny)
        below = column(columns.behaviour_probability, tiny, LARGEST, "be above 0, for this action was taken")
        if self.target is not None:
            assert columns.action is not None
            above = self._target_of(observation, chunk[columns.action], n)
        elif columns.target_probability is not None:
            above = column(columns.target_probability, 0.0, LARGEST, rule)
        else:
            return np.ones(n)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            ratio = above / below
        if (high := ratio > LARGEST).any():
            self._refuse(
                high, columns.behaviour_probability, "not be so small that the ratio overflows", below, self.rows - n
            )
            ratio = np.where(high, 0.0, ratio)
        return np.asarray(ratio)

    def _target_of(self, observation: Array, action: Any, n: int) -> Array:
        """Return what the target policy says of the actions taken, (n,)."""
        assert self.target is not None
        found = as_floats("What the target policy gives", called("target", self.target, observation, action))
        if found.ndim == 2 and len(found) == n:
            checked("target", found, n, found.shape[1])
            taken = np.asarray(action)
            if taken.dtype.kind == "f" and (taken == np.floor(taken)).all():
                taken = taken.astype(int)
            if taken.dtype.kind not in "iu" or taken.min() < 0 or taken.max() >= found.shape[1]:
                rule = f"be whole numbers from 0 to {found.shape[1] - 1}, for the target gives so many probabilities"
                raise must("Actions", rule, taken[:3])
            found = found[np.arange(n), taken]
        if found.shape != (n,):
            rule = "return a probability for each row, (n,), or one for each action, (n, actions)"
            raise must("The target policy", rule, Words(f"an array {found.shape}"))
        if (low := ~(found >= 0)).any():
            row = int(np.argmax(low))
            what = f"What the target policy gives for row {self.rows - n + row:,}"
            raise must(what, "be a probability", float(found[row]))
        return found

    def _episodes(self, chunk: Chunk, ended: Booleans, cut: Booleans, first: int) -> Integers:
        """Return the number of the episode of each row; an identity that comes back is refused."""
        over = ended | cut
        n = len(over)
        begins = np.concatenate([[self._over], over[:-1]])
        if self.columns.episode is not None:
            ids = np.asarray(chunk[self.columns.episode])
            changes = np.concatenate([[self._id is None or ids[0] != self._id], ids[1:] != ids[:-1]])
            for at in np.flatnonzero(changes):
                one = ids[at].item() if hasattr(ids[at], "item") else ids[at]
                if one in self._ids:
                    what = f"Column {self.columns.episode!r} in row {first + at:,}"
                    raise must(what, "not return to an episode that another one followed", one, "Sort the rows first.")
                self._ids.add(one)
            inside = np.concatenate([[self._ended], ended[:-1]]) & ~changes
            if inside.any() and not self.ends_inside:
                self.first_inside = first + int(np.argmax(inside)) - 1
            self.ends_inside += int(inside.sum())
            begins |= changes
            self._id = ids[-1]
        self._over, self._ended = bool(over[-1]), bool(ended[-1])
        episode = self._episode + np.cumsum(begins)
        self._episode = int(episode[-1])
        return episode if n else np.empty(0, np.int64)

    def _joined(self, table: Table) -> Table:
        """Return the rows whose next observation is that of the row after; the last row waits for the next chunk."""
        if self._waiting is not None:
            table = concatenated(self._waiting, table)
        self._waiting = table.part(slice(len(table) - 1, len(table)))
        here = table.part(slice(0, len(table) - 1))
        if not len(here):
            return here
        here.following = table.observation[1:].copy()
        ended = here.discount == 0
        follows = (table.episode[1:] == table.episode[:-1]) & (table.row[1:] == table.row[:-1] + 1)
        here.following[ended] = 0.0
        good = ended | follows
        self.dropped.add(here.reward[~good])
        return here.part(good)

    def _last(self, table: Table) -> Iterator[Table]:
        """Yield the last row of the log if it ended an episode; its next observation is not known otherwise."""
        if table.discount[0] == 0:
            table.following = np.zeros_like(table.observation)
            self.used.add(table.reward)
            yield table
        else:
            self.dropped.add(table.reward)


def as_numbers(name: str, values: Any, first: int) -> Array:
    """Return a column as floats; text that is no number is refused with its row."""
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        return array.astype(float)
    try:
        if array.dtype.kind == "O" and len(array) and isinstance(array[0], list | tuple | np.ndarray):
            return np.array([np.asarray(one, dtype=float) for one in array])
        return array.astype(float)
    except (TypeError, ValueError):
        for at, one in enumerate(array):
            try:
                np.asarray(one, dtype=float)
            except (TypeError, ValueError):
                raise must(f"Column {name!r} in row {first + at:,}", "be a number", one) from None
        raise must(f"The lists of column {name!r}", "have the same length", Words("several lengths")) from None


def stacked(columns: list[Array]) -> Array:
    """Return columns, (n,) or (n, d) each, as one matrix."""
    if len(columns) == 1 and columns[0].ndim == 2:
        return columns[0]
    return np.column_stack(columns)


def concatenated(one: Table, other: Table) -> Table:
    """Return two tables, one after the other."""
    names = ("row", "observation", "reward", "discount", "cut", "rho", "episode")
    parts = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in names}
    return Table(following=None, **parts)
