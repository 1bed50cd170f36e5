"""The rows of a log as transitions: ratios, discounts, next observations, episodes, and errors of single rows.

Rows are numbered from 0, the first row of data. A bad row raises an error that names it. With `skip`, the row and the
transition that leads to it are omitted and counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from gradient_dd.arrays import LARGEST, Array, Booleans, Integers
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.stream.features.sparse import MOST_WORDS
from gradient_dd.stream.log import sources
from gradient_dd.stream.log.cells import as_matrix, as_names, as_numbers, is_text, text_of
from gradient_dd.stream.log.columns import Actions, LogColumns
from gradient_dd.stream.log.sources import Chunk

TINY = float(np.finfo(float).tiny)
FINITE = "be a finite number"
FLAG = "be 0 or 1, or true or false"
DISCOUNT = "be from 0 to 1"
RATIO = "be a number that is zero or more"
TAKEN = "be above 0, because this action was taken"
BOUNDS = {FINITE: (-LARGEST, LARGEST), FLAG: (0, 1), DISCOUNT: (0, 1), RATIO: (0, LARGEST), TAKEN: (TINY, LARGEST)}


@dataclass
class LogRows:
    """Checked columns of some rows of a log: observations (n, d), everything else (n,).

    action     (n, k) the numbers of the actions taken, (n, 0) unless read
    behaviour  (n,) probability of the action taken, NaN if unknown or not read
    """

    row: Integers
    observation: Array
    following: Array
    reward: Array
    discount: Array
    cut: Booleans
    rho: Array
    episode: Integers
    action: Array
    behaviour: Array

    def __len__(self) -> int:
        return len(self.row)

    def part(self, chosen: Any) -> "LogRows":
        """Return the rows where a mask is true, or a slice of the rows."""
        return LogRows(*(getattr(self, one.name)[chosen] for one in fields(self)))


def joined_rows(parts: list[LogRows]) -> LogRows:
    """Return the parts joined in their order."""
    if len(parts) == 1:
        return parts[0]
    return LogRows(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(LogRows)))


@dataclass
class RewardSums:
    """Count, sum and sum of squares of some rewards."""

    count: int = 0
    total: float = 0.0
    square: float = 0.0

    def __add__(self, other: "RewardSums") -> "RewardSums":
        return RewardSums(self.count + other.count, self.total + other.total, self.square + other.square)

    def add(self, rewards: Array) -> None:
        """Add rewards."""
        self.count += len(rewards)
        self.total += float(rewards.sum())
        self.square += float((rewards**2).sum())

    @property
    def mean(self) -> float:
        """The mean of the rewards."""
        return self.total / max(1, self.count)

    @property
    def variance(self) -> float:
        """The squared standard error of the mean; above 0 even for a few equal rewards."""
        spread = max(0.0, self.square / max(1, self.count) - self.mean**2)
        return (spread + 1e-12) / max(1, self.count - 1)


@dataclass
class ReadCounts:
    """The counts of a pass over a log or a part of it.

    rows     number of rows read;  skipped  the first bad rows and their columns;  n_skipped  number of bad rows
    dropped  rewards of rows whose next observation is unknown;  used  rewards of all other rows
    ends_inside, first_inside  number of rows after which an ended episode continues, and the first such row
    names    names of episodes, which a sum of counts omits
    """

    rows: int = 0
    skipped: list[tuple[int, str]] = field(default_factory=list)
    n_skipped: int = 0
    dropped: RewardSums = field(default_factory=RewardSums)
    used: RewardSums = field(default_factory=RewardSums)
    ends_inside: int = 0
    first_inside: int = 0
    names: set[Any] = field(default_factory=set)

    def __add__(self, other: "ReadCounts") -> "ReadCounts":
        plain = ("rows", "skipped", "n_skipped", "dropped", "used", "ends_inside")
        found = {name: getattr(self, name) + getattr(other, name) for name in plain}
        first = self.first_inside if self.ends_inside else other.first_inside
        return ReadCounts(**found, first_inside=first)


@dataclass
class RowReader:
    """A reader that turns the pieces of a source into `LogRows` with known next observations, in one pass.

    discount  γ, unless the log has a column of discounts
    actions   the actions of the log, if rows need them instead of ratios
    words     the texts of each column of text, and their numbers
    ratios    whether rows need the ratios of the log's own columns
    first     number of the first row
    """

    columns: LogColumns
    discount: float
    skip: bool
    actions: Actions | None = None
    words: dict[str, dict[str, int]] = field(default_factory=dict)
    ratios: bool = True
    first: int = 0
    counts: ReadCounts = field(default_factory=ReadCounts)
    _bad: Booleans = field(default_factory=lambda: np.zeros(0, bool))  # rows of the current piece
    _widths: dict[str, int] = field(default_factory=dict)
    _name: Any = None
    _kind: str = ""  # of the names of episodes
    _episode: int = -1
    _over: bool = True
    _ended: bool = False

    @property
    def row(self) -> int:
        """The number of the next row."""
        return self.first + self.counts.rows

    @property
    def needed(self) -> list[str]:
        """The columns to read."""
        columns, own = self.columns, [self.columns.rho, self.columns.target_probability]
        unread = own if self.actions else [columns.action] if self.ratios else [*own, columns.action]
        unread += [] if self.actions or self.ratios else [columns.behaviour_probability]
        needed = {*columns.observation, *columns.next, columns.reward}
        return [name for name in columns.used if name in needed or name not in unread]

    def read(self, chunks: Iterator[Chunk]) -> Iterator[LogRows]:
        """Yield the transitions of a log from the `needed` columns in pieces."""
        pieces = even_pieces(self._checked(chunk) for chunk in chunks if len(chunk[self.columns.reward]))
        for ready in pieces if self.columns.next else self._followed(pieces):
            if len(ready):
                self.counts.used.add(ready.reward)
                yield ready

    def _checked(self, chunk: Chunk) -> LogRows:
        """Return the valid rows of a piece; `following` is a placeholder if the log has no next observations."""
        columns, n = self.columns, len(chunk[self.columns.reward])
        self._bad = np.zeros(n, bool)
        row = np.arange(self.row, self.row + n)
        observation = self._matrix(chunk, columns.observation, np.ones(n, bool))
        reward = self._column(chunk, columns.reward, FINITE)
        ended, cut, discount = self._ends(chunk, n)
        rho = np.ones(n) if self.actions or not self.ratios else self._ratios(chunk, n)
        action, behaviour = self._actions(chunk, n)
        following = observation
        if columns.next:  # where an episode ended, the next observation may be anything
            following = self._matrix(chunk, columns.next, ~ended)
            if following.shape != observation.shape:
                rule = f"have the width of the observation, {observation.shape[1]}"
                raise bad_request("The next observation", rule, following.shape[1])
            following = np.where(ended[:, None], 0.0, following)
        episode = self._episodes(chunk, ended, cut)
        self.counts.rows += n
        self.counts.n_skipped += int(self._bad.sum())
        found = LogRows(row, observation, following, reward, discount, cut, rho, episode, action, behaviour)
        return found.part(~self._bad) if self._bad.any() else found

    def _matrix(self, chunk: Chunk, names: tuple[str, ...], needed: Booleans) -> Array:
        """Return columns of numbers or lists side by side, (n, d); a column keeps the width of earlier rows."""
        parts = []
        for name, first in zip(names, self.columns.observation, strict=True):
            if self.row == 0 and first == name and first not in self.words and is_text(chunk[name]):
                self.words[first] = {}
            if first in self.words:
                parts.append(self._places(chunk, name, self.words[first], needed))
                continue
            values, sizes = as_matrix(name, chunk[name], self.row, self._widths.get(name))
            if (sizes >= 0).any():
                self._widths.setdefault(name, values.shape[1])
            odd = needed & (sizes >= 0) & (sizes != values.shape[1])
            self._refuse(name, odd, f"have {values.shape[1]} numbers, as in the rows before", sizes)
            outside = ~(np.abs(values) <= LARGEST)
            at = np.argmax(outside, axis=1)
            self._refuse(name, needed & ~odd & outside.any(axis=1), FINITE, values[np.arange(len(values)), at])
            parts.append(values)
        return np.ascontiguousarray(np.hstack(parts))

    def _places(self, chunk: Chunk, name: str, words: dict[str, int], needed: Booleans) -> Array:
        """Return a column of text as the places of its texts among all texts so far, (n, 1)."""
        texts = [text_of(cell) for cell in chunk[name].tolist()]
        missing = np.array([text is None for text in texts])
        self._refuse(name, needed & missing, "contain text, as in the rows before", chunk[name])
        found = [-1 if text is None else words.setdefault(text, len(words)) for text in texts]
        if len(words) > MOST_WORDS:
            rule, hint = f"have at most {MOST_WORDS:,} different texts", "A different text in each row is not a state."
            raise bad_request(f"Column {name!r}", rule, Unquoted(f"{len(words):,}"), hint)
        return np.array(found, float)[:, None]

    def _column(self, chunk: Chunk, name: str, rule: str) -> Array:
        """Return a column of numbers, (n,); rows that break the rule are bad."""
        if chunk[name].ndim != 1:
            got = Unquoted(f"an array {chunk[name].shape}")
            raise bad_request(f"Column {name!r}", "have one number in each row", got)
        values = as_numbers(name, chunk[name], self.row, FLAG if rule == FLAG else "be a number")
        low, high = BOUNDS[rule]
        good = (values >= low) & (values <= high)
        self._refuse(name, ~(good & (values == values.round())) if rule == FLAG else ~good, rule, values)
        return values

    def _refuse(self, name: str, bad: Booleans, rule: str, values: Any) -> None:
        """Raise an error that names the first bad row, or record the bad rows in order to skip them."""
        if not bad.any():
            return
        at = int(np.argmax(bad))
        if not self.skip:
            count = int(bad.sum())
            more = f"{count:,} of these {len(bad):,} rows have this problem. " if count > 1 else ""
            hint = f"{more}Skip such rows with skip_bad_rows=True, or --skip-bad-rows."
            raise bad_request(f"Column {name!r} in row {self.row + at:,}", rule, values[at], hint)
        self.counts.skipped = sorted([*self.counts.skipped, (self.row + at, name)])[:3]
        self._bad |= bad

    def _ends(self, chunk: Chunk, n: int) -> tuple[Booleans, Booleans, Array]:
        """Return masks of the rows where episodes ended and where they were truncated, and the discounts."""
        flags = {
            role: np.zeros(n, bool) if name is None else self._column(chunk, name, FLAG) == 1.0
            for role in ("terminated", "truncated", "done")
            for name in [getattr(self.columns, role)]
        }
        columns = self.columns
        marks = columns.discount, columns.terminated, columns.truncated, columns.done, columns.episode
        ended = flags["terminated"] | (flags["done"] & ~flags["truncated"])
        ended |= self.discount == 0.0 and not any(marks)  # each row is an episode
        cut = flags["truncated"] & ~ended
        if columns.discount is None:
            return ended, cut, np.where(ended, 0.0, self.discount)
        discount = np.where(ended, 0.0, self._column(chunk, columns.discount, DISCOUNT))
        return discount == 0.0, cut, discount

    def _ratios(self, chunk: Chunk, n: int) -> Array:
        """Return the importance ratios, (n,)."""
        columns = self.columns
        if columns.rho is not None:
            return self._column(chunk, columns.rho, RATIO)
        if columns.behaviour_probability is None or columns.target_probability is None:
            return np.ones(n)
        below = self._column(chunk, columns.behaviour_probability, TAKEN)
        above = self._column(chunk, columns.target_probability, RATIO)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            ratio = above / below
        high = ratio > LARGEST
        self._refuse(columns.behaviour_probability, high, "not be so small that the ratio overflows", below)
        return np.where(high, 0.0, ratio)

    def _actions(self, chunk: Chunk, n: int) -> tuple[Array, Array]:
        """Return the actions taken and their probabilities, if they are read."""
        unknown = np.full(n, np.nan)
        if self.actions is None:
            return np.empty((n, 0)), unknown
        name, below = str(self.columns.action), self.columns.behaviour_probability
        found = self.actions.numbers(f"Column {name!r}", chunk[name])
        self._refuse(name, np.asarray(np.isnan(found).any(axis=1)), "have an action", chunk[name])
        return found, unknown if below is None else self._column(chunk, below, TAKEN)

    def _episodes(self, chunk: Chunk, ended: Booleans, cut: Booleans) -> Integers:
        """Return the number of the episode of each row."""
        over = ended | cut
        begins = np.concatenate([[self._over], over[:-1]])
        if self.columns.episode is not None:
            changes = self._changes(chunk, self.columns.episode)
            inside = np.concatenate([[self._ended], ended[:-1]]) & ~changes
            if inside.any() and not self.counts.ends_inside:
                self.counts.first_inside = self.row + int(np.argmax(inside)) - 1
            self.counts.ends_inside += int(inside.sum())
            begins |= changes
        self._over, self._ended = bool(over[-1]), bool(ended[-1])
        episode = self._episode + np.cumsum(begins)
        self._episode = int(episode[-1])
        return episode

    def joins(self, chunk: Chunk) -> bool:
        """Return whether two rows, the last of a file and the first of the next file, belong to one episode."""
        self._bad = np.zeros(2, bool)
        ended, cut, _ = self._ends(chunk, 2)
        first, second = self._episodes(chunk, ended, cut)
        return bool(first == second)

    def _changes(self, chunk: Chunk, name: str) -> Booleans:
        """Return where the name of the episode differs from the previous row, (n,); raise if an earlier name returns.

        A row without a name belongs to the episode of the previous row.
        """
        names, missing, self._kind = as_names(name, chunk[name], self.row, self._kind)
        self._refuse(name, missing, "have the name or the number of the episode", names)
        there = np.flatnonzero(~missing)
        changes = np.zeros(len(names), bool)
        if there.size:
            given = names[there]
            changes[there] = np.concatenate([[self._name is None or given[0] != self._name], given[1:] != given[:-1]])
            self._name = given[-1]
        places, known = np.flatnonzero(changes), self.counts.names
        found = list(names[places]) if names.dtype.kind == "M" else names[places].tolist()
        if len(set(found)) < len(found) or not known.isdisjoint(found):
            for at, one in zip(places, found, strict=True):
                if one in known:
                    rule = "not return to an earlier episode"
                    raise bad_request(f"Column {name!r} in row {self.row + at:,}", rule, one, "Sort the rows first.")
                known.add(one)
        known.update(found)
        return changes

    def _followed(self, pieces: Iterator[LogRows]) -> Iterator[LogRows]:
        """Yield rows with the observation of the following row as next observation, which may be in the next piece.

        The last row of the log is a transition only if its episode ended.
        """
        waiting: list[LogRows] = []
        for piece in pieces:
            rows = joined_rows([*waiting, piece])
            here, waiting = rows.part(slice(0, -1)), [rows.part(slice(-1, None))]
            ended = here.discount == 0
            follows = (np.diff(rows.episode) == 0) & (np.diff(rows.row) == 1)
            here.cut = here.cut | (follows & rows.cut[1:])  # a cut row is no transition: the episode ends before it
            here.following = np.where(ended[:, None], 0.0, rows.observation[1:])
            self.counts.dropped.add(here.reward[~(ended | follows)])
            yield here.part(ended | follows)
        for last in waiting:
            ended = last.discount == 0
            last.following = np.zeros_like(last.observation)
            self.counts.dropped.add(last.reward[~ended])
            yield last.part(ended)


def even_pieces(parts: Iterator[LogRows]) -> Iterator[LogRows]:
    """Yield the same rows in pieces that end where the number of a row is a multiple of CHUNK.

    The results then do not depend on the size of a source's pieces.
    """
    held: list[LogRows] = []
    for part in parts:
        rest = part
        while len(rest):
            end = (int((held or [rest])[0].row[0]) // sources.CHUNK + 1) * sources.CHUNK
            count = int(np.searchsorted(rest.row, end))
            if count:
                held.append(rest.part(slice(0, count)))
            rest = rest.part(slice(count, None))
            if len(rest):
                yield joined_rows(held)
                held = []
    if held:
        yield joined_rows(held)
