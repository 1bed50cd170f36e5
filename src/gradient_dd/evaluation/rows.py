"""The rows of a log in pieces of whole episodes: read once, kept in memory if they fit, read again otherwise.

An evaluation computes only sums over pieces, in order, so a long log needs no more memory than a short one. Episodes
are randomly assigned to 20 groups; solutions without a group check the rows of that group.
With fewer than 20 episodes, the log is cut into about 200 stretches, which are assigned instead.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from gradient_dd.arrays import Integers
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.evaluation.pieces import GROUPS, HOLE, Piece, StepNumbers, dealt_groups, joined, parts_of
from gradient_dd.progress import Told
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.rows import LogRows, ReadCounts
from gradient_dd.studies.intervals import Bounds

FEW_EPISODES = 20  # fewer initial states are not a sample
STRETCHES = 200  # of a log with few episodes
SMALLEST_PIECE = 2048  # rows: an episode is cut only after more steps than ratios ever cover
KEPT_NUMBERS = 32_000_000  # entries of all columns, up to which a log is kept in memory
LARGEST_PIECE = 65_536  # rows
MOST_UNITS = 20_000  # most units; more episodes share units
SAMPLE_ROWS = 200_000  # rows used to choose features and to check the rows


def quiet(done: int, total: int) -> None:
    """Tell nobody."""


class RowProgress:
    """Tells how many rows were processed: `told(done, total)`, where the total is 0 as long as it is unknown."""

    def __init__(self, told: Told) -> None:
        self.told, self.done, self.total = told, 0, 0

    def plan(self, rows: int) -> None:
        """Add rows to the total."""
        self.total = (self.total or self.done) + rows

    def add(self, rows: int) -> None:
        """Add processed rows."""
        self.done += rows
        self.told(self.done, self.total)

    def __call__(self, pieces: Iterator["Piece"], times: int) -> Iterator["Piece"]:
        """Yield pieces; each counts so many times when it has been processed."""
        for piece in pieces:
            yield piece
            self.add(len(piece) * times)


@dataclass
class Survey:
    """What a pass over a part of a log found.

    n, episodes, ended, cut   rows, episodes, how many terminated and how many were cut
    longest, discount         steps of the longest episode, and the largest discount
    lowest, highest           (signals,) the smallest and the largest reward
    numbers                   entries of all columns;  held  the pieces, if they fit in memory
    read, words               counts of the reader, and the texts of its columns of text
    names                     of episodes as numbers, if the log has parts
    """

    lowest: Any = np.inf
    highest: Any = -np.inf
    n: int = 0
    episodes: int = 0
    ended: int = 0
    cut: int = 0
    longest: int = 0
    discount: float = 0.0
    numbers: int = 0
    held: list[Piece] = field(default_factory=list)
    sample: "EpisodeSample" = field(default_factory=lambda: EpisodeSample())
    read: ReadCounts = field(default_factory=ReadCounts)
    words: dict[str, dict[str, int]] = field(default_factory=dict)
    names: Any = ()

    def add(self, piece: Piece) -> None:
        """Add the rows of a piece."""
        self.n, self.episodes = self.n + len(piece), int(piece.episode[-1]) + 1
        self.ended, self.cut = self.ended + int(piece.ended.sum()), self.cut + int(piece.cut.sum())
        self.longest = max(self.longest, int((piece.step % HOLE).max()) + 1)
        self.discount = max(self.discount, float(piece.discount.max()))
        self.lowest = np.minimum(self.lowest, piece.signals.min(axis=0))
        self.highest = np.maximum(self.highest, piece.signals.max(axis=0))
        self.numbers += piece.seen.size * 2 + piece.action.size + piece.carried.size * 2 + 8 * len(piece)
        self.sample.add(piece)
        if self.numbers <= KEPT_NUMBERS:
            self.held.append(piece)
        else:
            self.held.clear()


Work = Callable[["EvaluationRows", Iterator[Piece]], Any]  # a function of the pieces of a part


class EvaluationRows:
    """A log: its size, and its pieces, which can be read repeatedly.

    A log in several files has parts, and no episode spans two of them. Sums over the pieces of a part are added in the
    order of the parts, whether this process or a worker made them, so both give the same bits.

    n, episodes, ended, cut, longest, discount, lowest, highest   as in `Survey`
    few    whether the episodes are too few for a sample;  kept  whether the pieces are in memory
    sample whole episodes, at most SAMPLE_ROWS rows
    units  number of units over which influences are summed: episodes, or groups if episodes are few
    """

    def __init__(
        self,
        reader: LogReader,
        *,
        tables: Callable[[int], Iterator[LogRows]] | None = None,
        seed: int = 0,
        workers: Any = None,
        told: Told = quiet,
    ) -> None:
        self.reader, self.seed, self.workers, self.progress = reader, seed, workers, RowProgress(told)
        self._tables = tables or reader.tables
        self.parts = 1 if tables else reader.parts
        self._width, self._signals = reader.first_rows().shape[1], 0 if tables else len(reader.signals)
        self.n, self.sizes = 0, reader.sizes
        self.kept = self.few = False
        self._offsets = [0] * self.parts
        surveys = list(self.each(survey))
        self.read = sum((one.read for one in surveys), ReadCounts())
        check_names([one.names for one in surveys])
        self.sizes = [one.n for one in surveys]
        self.n, self.episodes = sum(self.sizes), sum(one.episodes for one in surveys)
        self.ended, self.cut = sum(one.ended for one in surveys), sum(one.cut for one in surveys)
        self.longest = max((one.longest for one in surveys), default=0)
        self.discount = max((one.discount for one in surveys), default=0.0)
        if not self.n:
            got = Unquoted(f"none in {self.read.rows} rows")
            raise bad_request(reader.source.name, "have at least one transition", got)
        self.lowest = np.min([one.lowest for one in surveys if one.n], axis=0)
        self.highest = np.max([one.highest for one in surveys if one.n], axis=0)
        self._offsets = np.cumsum([0, *(one.episodes for one in surveys)])[:-1].tolist()
        self.few = self.episodes < FEW_EPISODES
        self.kept = self.parts == 1 and surveys[0].numbers <= KEPT_NUMBERS
        for one in surveys:
            self._take_words(one)
        self._held = list(self._dealt(surveys[0].held if self.kept else []))
        self.sample = list(self._dealt([self._moved(k, piece) for k, piece in merged([one.sample for one in surveys])]))
        self.groups = GROUPS
        if self.few and self.kept:
            self.groups = max(2, int(max((one.group.max() for one in self._held), default=0)) + 1)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker needs."""
        return self.__dict__ | {"_held": [], "sample": [], "workers": None, "progress": RowProgress(quiet)}

    @property
    def units(self) -> int:
        """Number of units over which influences are summed."""
        return self.groups if self.few else min(self.episodes, MOST_UNITS)

    def unit_of(self, piece: Piece) -> Integers:
        """Return the unit of each row of a piece, (n,)."""
        return piece.group if self.few else piece.episode % self.units

    def bounds(self, signal: int) -> Bounds:
        """Return the smallest and the largest value that the rewards allow."""
        steps = 1 / (1 - self.discount) if self.discount < 1 - 1e-9 else float(self.longest)
        low, high = float(self.lowest[signal]), float(self.highest[signal])
        if self.ended:  # an episode may end after one step or continue
            return Bounds(min(low, low * steps), max(high, high * steps))
        return Bounds(low * steps, high * steps)

    def each(self, work: Work, most: int = LARGEST_PIECE, times: int = 1) -> Iterator[Any]:
        """Yield what `work` returns for the pieces of each part, in order; workers compute if the log is large.

        A row counts `times` in the progress.
        """
        if self.kept or self.few:
            yield work(self, self.progress(self.pieces(most), times))
        elif self.workers is None:
            for part in range(self.parts):
                yield work(self, self.progress(self.pieces(most, part), times))
        else:
            for part, found in enumerate(self.workers.each(self, work, most)):
                self.progress.add(times * self.sizes[part])
                yield found

    def pieces(self, most: int = LARGEST_PIECE, part: int | None = None) -> Iterator[Piece]:
        """Yield the pieces of the log or of a part in order, with at most `most` rows unless an episode is longer."""
        parts = range(self.parts) if part is None else [part]
        read = (self._moved(k, piece) for k in parts for piece in self._whole_episodes(k))
        for whole in self._held if self.kept else self._dealt(read):
            yield from parts_of(whole, most)

    def on_sample(self) -> "EvaluationRows":
        """Return the sample as a log in memory, with the groups and the possible values of the whole log."""
        found = copy(self)
        found.kept, found._held = True, self.sample
        found.n, found.episodes = sum(map(len, self.sample)), sum(len(one.starts) for one in self.sample)
        return found

    def _take_words(self, found: Survey) -> None:
        """Add the texts that a worker found, and number them as this process does."""
        for i, name in enumerate(self.reader.columns.observation):
            mine, theirs = self.reader.words.get(name), found.words.get(name)
            if mine is None or theirs is None or mine is theirs:
                continue
            place = np.array([mine.setdefault(text, len(mine)) for text in theirs] + [-1], float)
            for piece in found.sample.pieces:
                for seen in (piece.seen, piece.after):
                    seen[:, i] = place[seen[:, i].astype(np.int64)]

    def _moved(self, part: int, piece: Piece) -> Piece:
        """Return a piece with its episodes numbered over all parts."""
        return replace(piece, episode=piece.episode + self._offsets[part]) if self._offsets[part] else piece

    def _dealt(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Yield pieces with the group of each row."""
        stretch, rows = max(1, -(-self.n // STRETCHES)), 0
        for piece in pieces:
            unit = piece.episode
            if self.few:
                place = unit * (STRETCHES + 1) + (piece.step % HOLE) // stretch
                unit = rows + np.unique(place, return_inverse=True)[1]
                rows = int(unit[-1]) + 1
            yield replace(piece, group=dealt_groups(unit, self.seed))

    def _whole_episodes(self, part: int) -> Iterator[Piece]:
        """Yield the rows of a part in pieces that end at the end of an episode, unless the episode is very long."""
        held: list[Piece] = []
        steps = StepNumbers()
        for table in self._tables(part):
            if not len(table):
                continue
            whole = joined([*held, steps.numbered(self._as_piece(table))])
            last = np.flatnonzero(whole.step == 0)
            cut = int(last[-1]) if len(last) else 0
            cut = len(whole) if len(whole) - cut >= SMALLEST_PIECE else cut
            if cut:
                yield whole.part(slice(0, cut))
            held = [whole.part(slice(cut, None))] if cut < len(whole) else []
        yield from held

    def _as_piece(self, table: LogRows) -> Piece:
        d, m = self._width, self._signals
        return Piece(
            seen=table.observation[:, :d],
            after=table.following[:, :d],
            carried=table.observation[:, d + m :],
            carried_after=table.following[:, d + m :],
            action=table.action,
            signals=np.column_stack([table.reward, table.observation[:, d : d + m]]),
            discount=table.discount,
            rho=table.rho,
            behaviour=table.behaviour,
            episode=table.episode,
            step=table.row,
            cut=table.cut,
            group=np.zeros(len(table), np.int64),
        )


def survey(rows: EvaluationRows, pieces: Iterator[Piece]) -> Survey:
    """Return what the pieces of a part contain."""
    found = Survey()
    for piece in pieces:
        found.add(piece)
        if rows.parts > 1:
            found.held.clear()
    read = rows.reader.last
    names = np.array(list(map(as_number, read.names)), np.uint64) if rows.parts > 1 else ()
    return replace(found, read=replace(read, names=set()), words=rows.reader.words, names=names)


def as_number(name: Any) -> int:
    """Return the name of an episode as a number below 2⁶⁴ that is the same in all processes."""
    if isinstance(name, int):
        return name % 2**64
    return int.from_bytes(blake2b(repr(name).encode(errors="surrogatepass"), digest_size=8).digest())


def check_names(names: list[Any]) -> None:
    """Raise if an episode returns in another part of a log."""
    if len(names) > 1 and len(np.unique(np.concatenate(names))) < sum(map(len, names)):
        got = Unquoted("an episode that returns in a later file")
        raise bad_request(
            "The files of a log", "have the rows of an episode together", got, "Sort the rows by episode."
        )


class EpisodeSample:
    """Whole episodes spread over the log: every second one is dropped whenever there are too many rows."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.stride, self.episodes, self.closed = 1, 0, False

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(map(len, self.pieces))

    def add(self, piece: Piece) -> None:
        """Add the episodes of a piece that belong to the sample."""
        if self.closed:
            return
        self.pieces += self._thinned([piece])
        self.episodes = int(piece.episode[-1]) + 1
        while self.rows > SAMPLE_ROWS and not self.closed:
            self.thin(self.stride * 2)

    def thin(self, stride: int) -> None:
        """Keep every episode whose number is divisible; if a single one is too long, keep its first rows."""
        self.stride, self.closed = stride, stride >= max(2, self.episodes)
        self.pieces = self._thinned(self.pieces)
        if self.closed:
            self.pieces = [joined(self.pieces).part(slice(SAMPLE_ROWS))]

    def _thinned(self, pieces: list[Piece]) -> list[Piece]:
        parts = [one if self.stride == 1 else one.part(one.episode % self.stride == 0) for one in pieces]
        return [one for one in parts if len(one)]


def merged(samples: list[EpisodeSample]) -> list[tuple[int, Piece]]:
    """Return the samples of all parts as one sample: its pieces, with the number of their part."""
    used = [(part, one) for part, one in enumerate(samples) if one.pieces]
    stride = max((one.stride for _, one in used), default=1)
    while True:
        for _, one in used:
            one.thin(stride)
        if sum(one.rows for _, one in used) <= SAMPLE_ROWS:
            return [(part, piece) for part, one in used for piece in one.pieces]
        if all(one.closed for _, one in used):
            used = used[::2]
        stride *= 2
