"""The rows of a log in pieces of whole episodes: read once, kept in memory if they fit, read again otherwise.

An evaluation computes only sums over pieces, in order, so a long log needs no more memory than a short one. Episodes
are randomly assigned to 20 groups; the solution without a group is checked on the rows of that group.
With fewer than 20 episodes, the log is cut into about 200 stretches, which are assigned to groups instead of episodes.

A folder of Parquet files consists of parts that share no episode. Sums over a part are computed in this process or by a
worker of a Dask cluster that can also read the folder, and added in part order, so workers do not change the bits.

Sums are computed with one BLAS thread. Matrices of an evaluation are small, and threads of OpenBLAS wait for each other
by spinning: on a busy machine two threads took six times the processor time of one (`python -m trials.policy_speed`).
The number of threads also changes the bits of products.
"""

import ctypes
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from gradient_dd.arrays import Integers
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.evaluation.pieces import HOLE, Piece, joined, numbered, parts_of
from gradient_dd.progress import Told
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.rows import LogRows, ReadCounts
from gradient_dd.stream.log.sources import Source
from gradient_dd.studies.cluster import dask_executor, send_by_value
from gradient_dd.studies.intervals import Bounds

GROUPS = 20
SAMPLE_ROWS = 200_000  # rows used to choose features and to check the rows
BLAS = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads64_")
STRETCHES = 200  # number of stretches of a log with few episodes
SMALLEST_PIECE = 2048  # rows: an episode is cut only after more steps than ratios ever cover
KEPT_NUMBERS = 32_000_000  # entries of all columns, up to which a log is kept in memory
LARGEST_PIECE = 65_536  # rows
MOST_UNITS = 20_000  # largest number of units; if there are more episodes, several share a unit
MOST_WAITING = 64  # most parts submitted to workers at a time


def dealt_groups(unit: Integers, seed: int) -> Integers:
    """Return the group of each unit, (n,): every GROUPS successive units are assigned to all groups in random order."""
    if not len(unit):
        return unit
    low = int(unit.min()) // GROUPS * GROUPS
    high = (int(unit.max()) // GROUPS + 1) * GROUPS
    keys = mix(np.arange(low, high).astype(np.uint64) ^ mix(np.array([seed + 1], np.uint64)))
    ranks = keys.reshape(-1, GROUPS).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    return np.asarray(ranks.ravel()[unit - low])


def mix(values: Any) -> Any:
    """Return integers hashed to 64 bits."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))


class EpisodeSample:
    """Whole episodes spread over the log; whenever there are too many rows, every second episode is dropped."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._stride, self._closed = 1, False

    def add(self, piece: Piece) -> None:
        """Add the sampled episodes of a piece: the episodes whose number is divisible by the stride."""
        if self._closed:
            return
        self.pieces += self._thinned([piece])
        while sum(map(len, self.pieces)) > SAMPLE_ROWS and not self._closed:
            self._stride *= 2
            self.pieces = self._thinned(self.pieces)
            if self._stride > int(piece.episode[-1]):  # a single episode is too long
                self._closed, self.pieces = True, [joined(self.pieces).part(slice(SAMPLE_ROWS))]

    def _thinned(self, pieces: list[Piece]) -> list[Piece]:
        parts = [one if self._stride == 1 else one.part(one.episode % self._stride == 0) for one in pieces]
        return [one for one in parts if len(one)]


class RowProgress:
    """Counter of processed rows, which calls `told(done, total)`; the total is 0 while unknown."""

    def __init__(self, told: Told | None = None) -> None:
        self.told, self.done, self.total = told or (lambda done, total: None), 0, 0

    def plan(self, rows: int) -> None:
        """Add rows to the total."""
        self.total = (self.total or self.done) + rows

    def add(self, rows: int) -> None:
        """Add processed rows."""
        self.done += rows
        self.told(self.done, self.total)


Work = Callable[[Iterator[Piece]], Any]  # a function of the pieces of a part


class EvaluationRows:
    """A log: its size, and its pieces, which can be read repeatedly.

    tables  function that yields the rows of a part, replacing the reader;  signals  number of rewards
    workers executor of a Dask cluster, or None
    n, episodes, ended, cut   numbers of rows, of episodes, of terminated and of cut episodes
    longest, discount         steps of the longest episode, and the largest discount
    lowest, highest           (signals,) the smallest and the largest reward;  read  counts of the reader
    few    whether the episodes are too few for a sample;  kept  whether the pieces are in memory
    sample whole episodes, at most SAMPLE_ROWS rows
    units  number of units whose influences are summed: episodes, or groups if there are few episodes
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
        self.parts = 1 if tables else len(reader.files)
        self._width, self._signals = reader.first_rows().shape[1], signals
        self.n = self.episodes = self.ended = self.cut = self.longest = 0
        self.discount, self.lowest, self.highest = 0.0, np.full(signals, np.inf), np.full(signals, -np.inf)
        self.kept = self.few = False
        self._ends, self._episodes = [0], [0]  # rows and episodes up to the end of each part
        self.read, names = ReadCounts(), set[Any]()
        held, sample, numbers, most = list[Piece](), EpisodeSample(), 0, KEPT_NUMBERS if self.parts == 1 else -1
        for part in range(self.parts):
            for piece in self.counted(part=part):
                self.n, self.episodes = self.n + len(piece), int(piece.episode[-1]) + 1
                self.ended, self.cut = self.ended + int(piece.ended.sum()), self.cut + int(piece.cut.sum())
                self.longest = max(self.longest, int((piece.step % HOLE).max()) + 1)
                self.discount = max(self.discount, float(piece.discount.max()))
                self.lowest = np.minimum(self.lowest, piece.signals.min(axis=0))
                self.highest = np.maximum(self.highest, piece.signals.max(axis=0))
                numbers += piece.seen.size * 2 + piece.action.size + piece.carried.size * 2 + 8 * len(piece)
                sample.add(piece)
                held = [*held, piece] if numbers <= most else []
            self._ends.append(self.n)
            self._episodes.append(self.episodes)
            self.read += reader.last
            if not names.isdisjoint(reader.last.names):
                what, got = "The files of a log", Unquoted("an episode that returns in a later file")
                raise bad_request(what, "have the rows of an episode together", got, "Sort the rows by episode.")
            names |= reader.last.names
        if not self.n:
            got = Unquoted(f"none in {self.read.rows} rows")
            raise bad_request(reader.source.name, "have at least one transition", got)
        self.few = self.episodes < 20  # fewer initial states are not a sample
        self.kept = numbers <= most
        self._held, self.sample = list(self._dealt(held)), list(self._dealt(sample.pieces))
        self.groups = GROUPS
        if self.few and self.kept:
            self.groups = max(2, max(int(one.group.max()) for one in self._held) + 1)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that a worker needs."""
        return self.__dict__ | {"_held": [], "sample": [], "workers": None, "progress": RowProgress()}

    @property
    def units(self) -> int:
        """Number of units whose influences are summed."""
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

    def pieces(self, most: int = LARGEST_PIECE, part: int | None = None) -> Iterator[Piece]:
        """Yield the pieces of the log or of a part in order, with at most `most` rows."""
        read = (piece for k in (range(self.parts) if part is None else [part]) for piece in self._whole_episodes(k))
        for whole in self._held if self.kept else self._dealt(read):
            yield from parts_of(whole, most)

    def counted(self, most: int = LARGEST_PIECE, times: int = 1, part: int | None = None) -> Iterator[Piece]:
        """Yield the pieces of `pieces`, and count each row as processed `times` times."""
        for piece in self.pieces(most, part):
            yield piece
            self.progress.add(times * len(piece))

    def sums(self, work: Work, most: int, times: int) -> Iterator[Any]:
        """Yield the result of `work` for the pieces of each part, in order, computed by workers if there are any.

        A log in memory, or with few episodes, is summed in this process as a whole.
        """
        whole = self.kept or self.few
        if self.workers is None or whole:
            yield from (work(self.counted(most, times, part)) for part in ([None] if whole else range(self.parts)))
            return
        waiting = deque[Future[Any]]()
        for part in range(self.parts):
            arguments = self, self.reader.files[part], work, most, part
            waiting.append(self.workers.submit_pickled(sums_of_part, *arguments))
            while len(waiting) > MOST_WAITING or (waiting and part == self.parts - 1):
                found, done = waiting.popleft().result(), part - len(waiting)
                self.progress.add(times * (self._ends[done + 1] - self._ends[done]))
                yield found

    def on_sample(self) -> "EvaluationRows":
        """Return the sample as a log in memory, with the groups and the possible values of the whole log."""
        found = copy(self)
        found.kept, found._held, found.progress = True, self.sample, RowProgress()
        found.n, found.episodes = sum(map(len, self.sample)), sum(len(one.starts) for one in self.sample)
        return found

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
        read = (self._as_piece(table) for table in self._tables(part) if len(table))
        for piece in numbered(read, self._episodes[part]):
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


def sums_of_part(rows: EvaluationRows, files: list[Source], work: Work, most: int, part: int) -> Any:
    """Return the result of `work` for the pieces of a part; runs on a worker."""
    rows.reader.files[part] = files
    with one_thread():
        return work(rows.pieces(most, part))


@contextmanager
def workers_at(address: str | None, log: Any, functions: Iterable[Any]) -> Iterator[Any]:
    """Yield the executor at an address, or None without an address; modules of user functions are sent to workers."""
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
    """Return functions that get and set the number of threads of each OpenBLAS of NumPy and SciPy; [] if none."""
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
