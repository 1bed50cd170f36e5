"""The rows of a log in pieces of whole episodes: read once, kept if they fit, read again if they do not.

Everything that an evaluation computes is a sum over pieces, in their order, so that a long log needs no more memory
than a short one. Episodes are dealt at random to 20 groups; solutions without one group check the rows of that group.
Fewer than 20 episodes are no sample: the log is then cut into about 200 stretches, which are dealt out instead.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.stream.log import LogReader
from gradient_dd.stream.log.rows import LogRows
from gradient_dd.studies.intervals import Bounds

GROUPS = 20
FEW_EPISODES = 20  # fewer first states are no sample of others
STRETCHES = 200  # of a log with few episodes
SMALLEST_PIECE = 2048  # rows: an episode is cut only after more steps than ratios are ever followed
KEPT_NUMBERS = 16_000_000  # entries of all columns, up to which a log is kept in memory
LARGEST_PIECE = 65_536  # rows
MOST_UNITS = 20_000  # episodes are dealt to so many units, if there are more
SAMPLE_ROWS = 200_000  # rows from which features are chosen and the signs of the rows are read


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows of a log.

    seen, after       (n, d) the observation and the next one, texts as numbers
    carried           (n, m) columns of policies in the log;  carried_after  the same at the next observation
    action            (n, k) the numbers of the actions taken, or the actions themselves where they are measured
    signals           (n, signals) the rewards of every signal
    discount          (n,) into the next state, 0 where the episode ended
    rho               (n,) ratios of the log's own columns, 1 where it has none
    behaviour         (n,) probability of the action taken, NaN where the log does not tell
    episode, step     (n,) the episode, and the steps since it began; a step after a missing row is beyond all limits
    cut               (n,) whether the episode was cut after this row
    group             (n,) the group that the row belongs to
    number            of the piece
    """

    seen: Array
    after: Array
    carried: Array
    carried_after: Array
    action: Array
    signals: Array
    discount: Array
    rho: Array
    behaviour: Array
    episode: Integers
    step: Integers
    cut: Booleans
    group: Integers
    number: int = 0

    def __len__(self) -> int:
        return len(self.discount)

    @property
    def ended(self) -> Booleans:
        """(n,) whether the episode ended here."""
        return self.discount == 0

    @property
    def starts(self) -> Integers:
        """The rows in which episodes begin."""
        return np.flatnonzero(self.step == 0)

    def part(self, chosen: Any) -> "Piece":
        """Return some of the rows."""
        columns = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "number"}
        return Piece(**{name: column[chosen] for name, column in columns.items()}, number=self.number)


HOLE = np.int64(1) << 40  # added to the steps after a missing row


class EvaluationRows:
    """A log that was read: how much there is of it, and its pieces as often as asked.

    n, episodes  rows and episodes;  few  whether the episodes are too few to be a sample
    longest      steps of the longest episode;  lowest, highest  (signals,) the smallest and the largest reward
    any_end      whether an episode ended;  kept  whether the pieces are in memory
    units        how many units influences are summed over: episodes, or groups where episodes are few
    """

    def __init__(
        self,
        tables: Callable[[], Iterator[LogRows]],
        width: int,
        signals: int,
        *,
        seed: int = 0,
        on_progress: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._tables, self._width, self._signals, self.seed = tables, width, signals, seed
        self.n = self.episodes = self.longest = 0
        self.lowest, self.highest = np.full(1 + signals, np.inf), np.full(1 + signals, -np.inf)
        self.discount, self.any_end, self.ended, self.cut = 0.0, False, 0, 0
        held: list[Piece] = []
        numbers, sample = 0, EpisodeSample()
        for piece in self._whole_episodes():
            self._count(piece)
            numbers += piece.seen.size * 2 + piece.action.size + piece.carried.size * 2 + 8 * len(piece)
            held = [*held, piece] if numbers <= KEPT_NUMBERS else []
            sample.add(piece)
            on_progress(self.n)
        self.kept = numbers <= KEPT_NUMBERS
        self.few = self.episodes < FEW_EPISODES
        self.groups = GROUPS
        self._first = list(self._dealt(held))
        self.sample = list(self._dealt(sample.pieces))
        if self.few and self.kept:
            self.groups = max(2, int(max((one.group.max() for one in self._first), default=0)) + 1)

    @property
    def units(self) -> int:
        """How many units influences are summed over."""
        return self.groups if self.few else min(self.episodes, MOST_UNITS)

    def unit_of(self, piece: Piece) -> Integers:
        """Return the unit of each row of a piece, (n,)."""
        return piece.group if self.few else piece.episode % MOST_UNITS

    def bounds(self, signal: int) -> Bounds:
        """Return the smallest and the largest value that the rewards of the log allow."""
        steps = 1 / (1 - self.discount) if self.discount < 1 - 1e-9 else float(self.longest)
        low, high = float(self.lowest[signal]), float(self.highest[signal])
        if self.any_end:  # an episode may end after one step, or go on
            return Bounds(min(low, low * steps), max(high, high * steps))
        return Bounds(low * steps, high * steps)

    def _count(self, piece: Piece) -> None:
        self.n += len(piece)
        self.episodes = int(piece.episode[-1]) + 1
        self.longest = max(self.longest, int((piece.step % HOLE).max()) + 1)
        self.lowest = np.minimum(self.lowest, piece.signals.min(axis=0))
        self.highest = np.maximum(self.highest, piece.signals.max(axis=0))
        self.discount = max(self.discount, float(piece.discount.max()))
        self.ended, self.cut = self.ended + int(piece.ended.sum()), self.cut + int(piece.cut.sum())
        self.any_end = self.ended > 0

    def pieces(self, most: int = LARGEST_PIECE) -> Iterator[Piece]:
        """Yield all pieces in their order, with at most so many rows unless an episode is longer."""
        number = 0
        for whole in self._first if self.kept else self._dealt(self._whole_episodes()):
            for part in parts_of(whole, most):
                yield replace(part, number=number)
                number += 1

    def _dealt(self, pieces: Iterator[Piece] | Sequence[Piece]) -> Iterator[Piece]:
        """Yield pieces whose rows have their group."""
        stretch, rows = max(1, -(-self.n // STRETCHES)), 0
        for piece in pieces:
            if self.few:
                place = piece.episode * (STRETCHES + 1) + (piece.step % HOLE) // stretch
                _, unit = np.unique(place, return_inverse=True)
                unit = unit + rows
                rows = int(unit[-1]) + 1
            else:
                unit = piece.episode
            yield replace(piece, group=dealt_groups(unit, self.seed))

    def _whole_episodes(self) -> Iterator[Piece]:
        """Yield the rows in pieces that end where an episode ends, unless the episode is very long."""
        held: list[Piece] = []
        number, steps = 0, StepNumbers()
        for table in self._tables():
            if not len(table):
                continue
            whole = joined([*held, steps.numbered(self._as_piece(table))])
            last = np.flatnonzero(whole.step == 0)
            cut = int(last[-1]) if len(last) else 0
            cut = len(whole) if len(whole) - cut >= SMALLEST_PIECE else cut
            if cut:
                yield replace(whole.part(slice(0, cut)), number=number)
                number += 1
            held = [whole.part(slice(cut, None))] if cut < len(whole) else []
        if held:
            yield replace(held[0], number=number)

    def _as_piece(self, table: LogRows) -> Piece:
        d, m = self._width, self._signals
        n = len(table)
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
            group=np.zeros(n, np.int64),
        )


class EpisodeSample:
    """Whole episodes spread over all of a log: every second is left out whenever there are too many rows."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.rows, self.stride, self.closed = 0, 1, False

    def add(self, piece: Piece) -> None:
        """Take the episodes of a piece that belong to the sample."""
        if self.closed:
            return
        self._append(piece)
        while self.rows > SAMPLE_ROWS and not self.closed:
            before, self.pieces, self.rows = self.pieces, [], 0
            self.stride *= 2
            for one in before:
                self._append(one)
            self.closed = self.stride > int(piece.episode[-1])  # one episode is left, and it is too long

    def _append(self, piece: Piece) -> None:
        part = piece if self.stride == 1 else piece.part(piece.episode % self.stride == 0)
        part = part.part(slice(SAMPLE_ROWS - self.rows)) if self.closed else part
        if len(part):
            self.pieces.append(replace(part, number=-1))
            self.rows += len(part)


class StepNumbers:
    """Numbers the episodes of a log without gaps, and the steps of each; `step` holds row numbers before."""

    def __init__(self) -> None:
        self.name, self.episode, self.row, self.step = -1, -1, -2, np.int64(0)

    def numbered(self, piece: Piece) -> Piece:
        """Return the next rows with their episodes and steps."""
        names, row = piece.episode, piece.step
        begins = np.diff(names, prepend=self.name) != 0
        hole = ~begins & (np.diff(row, prepend=self.row) != 1)
        episode = self.episode + np.cumsum(begins)
        one = np.where(hole, HOLE + 1, 1)
        first = np.flatnonzero(begins)
        run = np.cumsum(np.where(begins, 0, one))
        lead = int(first[0]) if len(first) else len(row)
        base = np.zeros(len(row), np.int64)
        if len(first):
            base[first] = np.diff(run[first], prepend=0)
            base = np.cumsum(base)
        step = run - base
        step[:lead] += self.step
        self.name, self.episode, self.row, self.step = int(names[-1]), int(episode[-1]), int(row[-1]), step[-1]
        return replace(piece, episode=episode, step=step)


def joined(pieces: list[Piece]) -> Piece:
    """Return several pieces as one."""
    if len(pieces) == 1:
        return pieces[0]
    names = [one.name for one in fields(Piece) if one.name != "number"]
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in pieces]) for name in names}
    return Piece(**columns)


def parts_of(piece: Piece, most: int) -> Iterator[Piece]:
    """Yield the episodes of a piece in parts of at most so many rows; a longer episode is cut."""
    begins, at = np.append(piece.starts, len(piece)), 0
    while at < len(piece):
        fits = begins[(begins > at) & (begins <= at + most)]
        end = int(fits[-1]) if len(fits) else min(at + most, len(piece))
        yield piece if end - at == len(piece) else piece.part(slice(at, end))
        at = end


def dealt_groups(unit: Integers, seed: int) -> Integers:
    """Return the group of each unit, (n,): every GROUPS successive units are dealt to all groups in random order."""
    if not len(unit):
        return unit
    low = int(unit.min()) // GROUPS * GROUPS
    high = (int(unit.max()) // GROUPS + 1) * GROUPS
    keys = mix(np.arange(low, high).astype(np.uint64) ^ mix(np.array([seed + 1], np.uint64)))
    ranks = keys.reshape(-1, GROUPS).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
    return np.asarray(ranks.ravel()[unit - low])


def mix(values: Any) -> Any:
    """Return whole numbers scattered over all of 64 bits."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))


def read_rows(
    reader: LogReader, *, seed: int = 0, on_progress: Callable[[int], None] = lambda rows: None
) -> EvaluationRows:
    """Return the rows of a log."""
    width = reader.first_rows().shape[1]
    rows = EvaluationRows(reader.tables, width, len(reader.signals), seed=seed, on_progress=on_progress)
    if not rows.n:
        name = reader.source.name
        raise bad_request(name, "have at least one transition", Unquoted(f"none in {reader.last.rows} rows"))
    return rows
