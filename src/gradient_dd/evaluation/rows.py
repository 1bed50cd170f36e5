"""The rows of a log in pieces of whole episodes: read once, kept in memory if they fit, read again otherwise.

An evaluation computes only sums over pieces, in order, so a long log needs no more memory than a short one. Episodes
are randomly assigned to 20 groups; solutions without a group check the rows of that group.
With fewer than 20 episodes, the log is cut into about 200 stretches, which are assigned instead.

Sums are computed in this process with one BLAS thread, or by workers of a Dask cluster. A log on a cluster is a folder
of Parquet files that workers can read too. A worker reads the files of a part, and returns sums. The process that asked
adds them in the order of the parts, so the bits of a result do not depend on the workers.

Matrices of an evaluation are small. Threads of OpenBLAS wait for each other by spinning, so on a busy machine two of
them took six times the processor time of one (`python -m trials.policy_speed`). The number of threads also
changes the bits of products.
"""

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from gradient_dd.arrays import Integers
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.evaluation.pieces import (
    GROUPS,
    HOLE,
    EpisodeSample,
    Piece,
    dealt_groups,
    joined,
    merged,
    numbered,
    parts_of,
)
from gradient_dd.progress import Told
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.rows import LogRows, ReadCounts
from gradient_dd.stream.log.sources import Source
from gradient_dd.studies.cluster import dask_executor, send_by_value
from gradient_dd.studies.intervals import Bounds

BLAS = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_")
MOST_WAITING = 64  # parts that are computed by workers or wait for their turn: their sums are in memory

STRETCHES = 200  # of a log with few episodes
SMALLEST_PIECE = 2048  # rows: an episode is cut only after more steps than ratios ever cover
KEPT_NUMBERS = 32_000_000  # entries of all columns, up to which a log is kept in memory
LARGEST_PIECE = 65_536  # rows
MOST_UNITS = 20_000  # most units; more episodes share units


@dataclass
class Survey:
    """What a pass over a part of a log found.

    n, episodes, ended, cut   rows, episodes, how many terminated and how many were cut
    longest, discount         steps of the longest episode, and the largest discount
    lowest, highest           (signals,) the smallest and the largest reward
    numbers                   entries of all columns;  held  the pieces, if they fit in memory
    read, words               counts of the reader, and the texts of its columns of text
    names                     of episodes, as numbers below 2⁶⁴ that are the same in all processes
    """

    n: int = 0
    episodes: int = 0
    ended: int = 0
    cut: int = 0
    longest: int = 0
    discount: float = 0.0
    lowest: Any = np.inf
    highest: Any = -np.inf
    numbers: int = 0
    held: list[Piece] = field(default_factory=list)
    sample: EpisodeSample = field(default_factory=EpisodeSample)
    read: ReadCounts = field(default_factory=ReadCounts)
    words: dict[str, dict[str, int]] = field(default_factory=dict)
    names: Any = ()


def survey(rows: "EvaluationRows", pieces: Iterator[Piece]) -> Survey:
    """Return what the pieces of a part contain."""
    found = Survey(words=rows.reader.words)
    for piece in pieces:
        found.n, found.episodes = found.n + len(piece), int(piece.episode[-1]) + 1
        found.ended, found.cut = found.ended + int(piece.ended.sum()), found.cut + int(piece.cut.sum())
        found.longest = max(found.longest, int((piece.step % HOLE).max()) + 1)
        found.discount = max(found.discount, float(piece.discount.max()))
        found.lowest = np.minimum(found.lowest, piece.signals.min(axis=0))
        found.highest = np.maximum(found.highest, piece.signals.max(axis=0))
        found.numbers += piece.seen.size * 2 + piece.action.size + piece.carried.size * 2 + 8 * len(piece)
        found.sample.add(piece)
        found.held = [*found.held, piece] if found.numbers <= KEPT_NUMBERS and rows.parts == 1 else []
    read = rows.reader.last
    found.read = replace(read, names=set())
    if rows.parts > 1:
        hashes = (blake2b(repr(one).encode(errors="surrogatepass"), digest_size=8).digest() for one in read.names)
        found.names = np.array([int.from_bytes(one) for one in hashes], np.uint64)
    return found


class RowProgress:
    """Tells how many rows were processed: `told(done, total)`, where the total is 0 as long as it is unknown."""

    def __init__(self, told: Told | None = None) -> None:
        self.told, self.done, self.total = told or (lambda done, total: None), 0, 0

    def plan(self, rows: int) -> None:
        """Add rows to the total."""
        self.total = (self.total or self.done) + rows

    def add(self, rows: int) -> None:
        """Add processed rows."""
        self.done += rows
        self.told(self.done, self.total)


Work = Callable[["EvaluationRows", Iterator[Piece]], Any]  # a function of the pieces of a part


class EvaluationRows:
    """A log: its size, and its pieces, which can be read repeatedly.

    A log in several files has parts, and no episode spans two of them. Sums over the pieces of a part are added in the
    order of the parts, whether this process or a worker made them, so both give the same bits.

    tables  yields the rows of a part instead of the reader;  signals  number of rewards
    n, episodes, ended, cut, longest, discount, lowest, highest   as in `Survey`
    few    whether the episodes are too few for a sample;  kept  whether the pieces are in memory
    sample whole episodes, at most SAMPLE_ROWS rows
    units  number of units over which influences are summed: episodes, or groups if episodes are few
    """

    def __init__(
        self,
        reader: LogReader,
        *,
        signals: int = 1,
        tables: Callable[[int], Iterator[LogRows]] | None = None,
        seed: int = 0,
        workers: Any = None,
        told: Told | None = None,
    ) -> None:
        self.reader, self.seed, self.workers, self.progress = reader, seed, workers, RowProgress(told)
        self._tables = tables or reader.tables
        self.parts = 1 if tables else reader.parts
        self._width, self._signals = reader.first_rows().shape[1], signals
        self.n, self.sizes, self._offsets = 0, reader.sizes, [0] * self.parts
        self.kept = self.few = False
        surveys: list[Survey] = list(self.each(survey))
        self.read = sum((one.read for one in surveys), ReadCounts())
        self.sizes = [one.n for one in surveys]
        counts = ("n", "episodes", "ended", "cut")
        self.n, self.episodes, self.ended, self.cut = (sum(getattr(one, name) for one in surveys) for name in counts)
        if not self.n:
            got = Unquoted(f"none in {self.read.rows} rows")
            raise bad_request(reader.source.name, "have at least one transition", got)
        names = [one.names for one in surveys]
        if self.parts > 1 and len(np.unique(np.concatenate(names))) < sum(map(len, names)):
            got = Unquoted("an episode that returns in a later file")
            rule = "have the rows of an episode together"
            raise bad_request("The files of a log", rule, got, "Sort the rows by episode.")
        self.longest, self.discount = max(one.longest for one in surveys), max(one.discount for one in surveys)
        self.lowest = np.min([one.lowest for one in surveys if one.n], axis=0)
        self.highest = np.max([one.highest for one in surveys if one.n], axis=0)
        self._offsets = np.cumsum([0, *(one.episodes for one in surveys)])[:-1].tolist()
        self.few = self.episodes < 20  # fewer initial states are not a sample
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
        return self.__dict__ | {"_held": [], "sample": [], "workers": None, "progress": None}

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
        in_memory = self.kept or self.few
        if self.workers is None or in_memory:
            for part in [None] if in_memory else range(self.parts):
                yield work(self, self._counted(self.pieces(most, part), times))
            return
        waiting = deque[Future[Any]]()
        for part in range(self.parts):
            arguments = self, self.reader.files(part), work, most, part
            waiting.append(self.workers.submit_pickled(sums_of_part, *arguments))
            while len(waiting) > MOST_WAITING or (waiting and part == self.parts - 1):
                found = waiting.popleft().result()
                self.progress.add(times * self.sizes[part - len(waiting)])
                yield found

    def _counted(self, pieces: Iterator[Piece], times: int) -> Iterator[Piece]:
        for piece in pieces:
            yield piece
            self.progress.add(times * len(piece))

    def pieces(self, most: int = LARGEST_PIECE, part: int | None = None) -> Iterator[Piece]:
        """Yield the pieces of the log or of a part in order, with at most `most` rows unless an episode is longer."""
        parts = range(self.parts) if part is None else [part]
        read = (self._moved(k, piece) for k in parts for piece in self._whole_episodes(k))
        for whole in self._held if self.kept else self._dealt(read):
            yield from parts_of(whole, most)

    def on_sample(self) -> "EvaluationRows":
        """Return the sample as a log in memory, with the groups and the possible values of the whole log."""
        found = copy(self)
        found.kept, found._held, found.progress = True, self.sample, RowProgress()
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
        for piece in numbered(self._as_piece(table) for table in self._tables(part) if len(table)):
            whole = joined([*held, piece])
            begun = whole.starts
            cut = int(begun[-1]) if len(begun) else 0
            cut = len(whole) if len(whole) - cut >= SMALLEST_PIECE else cut
            if cut:
                yield whole.part(slice(0, cut))
            held = [whole.part(slice(cut, None))] if cut < len(whole) else []
        yield from held

    def _as_piece(self, table: LogRows) -> Piece:
        d, m = self._width, self._width + self._signals - 1
        return Piece(
            seen=table.observation[:, :d],
            after=table.following[:, :d],
            carried=table.observation[:, m:],
            carried_after=table.following[:, m:],
            signals=np.column_stack([table.reward, table.observation[:, d:m]]),
            step=table.row,
            group=np.zeros(len(table), np.int64),
            **{name: getattr(table, name) for name in ("action", "discount", "rho", "behaviour", "episode", "cut")},
        )


# Workers and threads ----------------------------------------------------------------------------------------


def sums_of_part(rows: EvaluationRows, files: list[Source], work: Work, most: int, part: int) -> Any:
    """Return what `work` returns for the pieces of a part, on a worker."""
    rows.reader.take(part, files)
    with one_thread():
        return work(rows, rows.pieces(most, part))


@contextmanager
def workers_at(address: str | None, log: Any, functions: Iterable[Any]) -> Iterator[Any]:
    """Yield the executor at an address, None without one; the modules of the user's functions are sent to them."""
    if address is None:
        yield None
        return
    if not isinstance(log, str | PathLike) or not Path(log).is_dir():
        rule = "be omitted unless the log is a folder of Parquet files, which workers can read"
        raise bad_request("'dask'", rule, address)
    with dask_executor(address) as executor:
        for one in functions:
            send_by_value(one)
        yield executor


@cache
def libraries() -> list[tuple[Callable[[], int], Callable[[int], Any]]]:
    """Return functions that get and set the number of threads of each OpenBLAS of NumPy and SciPy; [] without one."""
    found = []
    for package in (np, scipy):
        root = Path(str(package.__file__)).parent
        for file in [*root.parent.glob(f"{root.name}.libs/*openblas*"), *root.glob(".dylibs/*openblas*")]:
            library = ctypes.CDLL(str(file))
            for name in BLAS:
                if hasattr(library, name.format("set")):
                    found.append((getattr(library, name.format("get")), getattr(library, name.format("set"))))
                    break
    return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread; without a known BLAS this does nothing."""
    before = [(get(), put) for get, put in libraries()]
    for _, put in before:
        put(1)
    try:
        yield
    finally:
        for count, put in before:
            put(count)
