"""The store: one SQLite file with every result, its study and where it came from.

Schema (also in docs/store.md):

    setting     one lane under given conditions: key, task, size, reading, learner, its values, schedule, horizon, seed
    result      (setting, run): last100, area, diverged_step, diverged_episode
    curve       (setting, run): the learning curve, little-endian float64; apart, so that results are quick to read
    unit        (task, run) as it was worked off: settings, steps, seconds, when, provenance
    cost        what the kernels of each learner took of a unit: seconds, updates
    study       every study that was started: name, its text, when
    provenance  versions, processor, commit

A unit is written in one transaction: all of its results or none. Readers may look while a sweep writes (WAL); a second
sweep on the same file is refused.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.engine.records import LaneResults
from gradient_dd.errors import GradientDDError

APPLICATION = 0x67644444  # "gdDD"
VERSION = 2

COST = """
CREATE TABLE cost (
    unit INTEGER NOT NULL REFERENCES unit (id), learner TEXT NOT NULL, seconds REAL NOT NULL, updates INTEGER NOT NULL,
    PRIMARY KEY (unit, learner)
)
"""  # since version 2
SCHEMA = f"""{COST};
CREATE TABLE setting (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, said TEXT NOT NULL,
    task TEXT NOT NULL, size INTEGER NOT NULL, reading TEXT NOT NULL, learner TEXT NOT NULL,
    alpha REAL, zeta REAL, kappa REAL, rho_mode TEXT NOT NULL, "values" TEXT NOT NULL,
    schedule TEXT NOT NULL, episodes INTEGER, steps INTEGER, every INTEGER NOT NULL,
    sampling TEXT NOT NULL, seed INTEGER NOT NULL
);
CREATE INDEX setting_said ON setting (said);
CREATE TABLE result (
    setting INTEGER NOT NULL REFERENCES setting (id), run INTEGER NOT NULL,
    last100 REAL NOT NULL, area REAL NOT NULL, diverged_step INTEGER NOT NULL, diverged_episode INTEGER NOT NULL,
    PRIMARY KEY (setting, run)
) WITHOUT ROWID;
CREATE TABLE curve (
    setting INTEGER NOT NULL REFERENCES setting (id), run INTEGER NOT NULL, points BLOB NOT NULL,
    PRIMARY KEY (setting, run)
);
CREATE TABLE unit (
    id INTEGER PRIMARY KEY, task TEXT NOT NULL, run INTEGER NOT NULL, settings INTEGER NOT NULL,
    steps INTEGER NOT NULL, seconds REAL NOT NULL, at TEXT NOT NULL, provenance INTEGER REFERENCES provenance (id)
);
CREATE TABLE study (id INTEGER PRIMARY KEY, name TEXT NOT NULL, text TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE provenance (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
"""

PARAMETERS_WITH_A_COLUMN = ("alpha", "zeta", "kappa")


class Work(NamedTuple):
    """What a unit took: seconds, and for each learner the seconds and updates of its kernels."""

    seconds: float
    costs: dict[str, tuple[float, int]]


class StoreError(GradientDDError):
    """The store cannot be used as asked; what it holds is as it was."""


class Store:
    """One results file. Use it as a context, or close it."""

    def __init__(self, path: str | Path, write: bool = False) -> None:
        self.path = Path(path)
        self._lock = hold(self.path) if write else None
        try:
            with self._translated():
                if not write and not self.path.is_file():
                    raise StoreError(f"{str(path)!r} must be a results file. Got no such file.")
                mode = "rwc" if write else "ro"
                self.db = sqlite3.connect(
                    f"{self.path.absolute().as_uri()}?mode={mode}", uri=True, timeout=20, isolation_level=None
                )
                try:
                    self._check_or_make(write)
                except BaseException:
                    self.db.close()
                    raise
        except BaseException:
            self._unlock()
            raise

    def _check_or_make(self, write: bool) -> None:
        (application,), (version,) = (
            self.db.execute(f"PRAGMA {p}").fetchone() for p in ("application_id", "user_version")
        )
        (tables,) = self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables == 0 and application == 0 and write:
            self.db.execute("PRAGMA page_size = 16384")  # a curve is 1.6 kB
            self.db.execute("PRAGMA journal_mode = WAL")
            with self.transaction():
                for statement in SCHEMA.split(";"):
                    self.db.execute(statement)
                self.db.execute(f"PRAGMA application_id = {APPLICATION}")
                self.db.execute(f"PRAGMA user_version = {VERSION}")
        elif application != APPLICATION:
            raise StoreError(
                f"{str(self.path)!r} must be a results file of gradient-dd. "
                "Got another program's database: nothing was changed."
            )
        elif version > VERSION:
            raise StoreError(
                f"{str(self.path)!r} must be of version {VERSION} or older. Got {version}. "
                "A newer gradient-dd wrote it: please update."
            )
        elif version < VERSION and write:
            with self.transaction():
                self.db.execute(COST)
                self.db.execute(f"PRAGMA user_version = {VERSION}")
        if write:
            self.db.execute("PRAGMA synchronous = FULL")
        if self.path.stat().st_size < 2**26 and self.db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("malformed")

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.db.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        with self._translated():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn what SQLite says into one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{str(self.path)!r} {explained(str(error))}") from None

    # Writing ------------------------------------------------------------------------------------------------------

    def add_study(self, name: str, text: str) -> None:
        """Note that a study was started."""
        with self.transaction():
            self.db.execute("INSERT INTO study (name, text, at) VALUES (?, ?, ?)", (name, text, now()))

    def add_settings(self, lanes: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, int]:
        """Make sure that each (key, facts) has a row; return the row of each key."""
        rows = []
        for key, f in lanes:
            values = [f["values"].get(name) for name in PARAMETERS_WITH_A_COLUMN]
            first = [f[name] for name in ("said", "task", "size", "reading", "learner")]
            last = [f[name] for name in ("schedule", "episodes", "steps", "every", "sampling", "seed")]
            rows.append((key, *first, *values, f["rho_mode"], json.dumps(f["values"]), *last))
        columns = (
            'key, said, task, size, reading, learner, alpha, zeta, kappa, rho_mode, "values", '
            "schedule, episodes, steps, every, sampling, seed"
        )
        with self.transaction():
            marks = ", ".join("?" * 17)
            self.db.executemany(f"INSERT OR IGNORE INTO setting ({columns}) VALUES ({marks})", rows)
        return self.setting_rows(row[0] for row in rows)

    def add_unit(
        self, task: str, run: int, settings: list[int], results: LaneResults, work: Work, facts: dict[str, Any]
    ) -> None:
        """Write the results of one (task, run), `settings` being the rows of its lanes: all, or none."""
        measured = (results.last100, results.area, results.diverged_step, results.diverged_episode)
        rows = zip(settings, [run] * len(settings), *(array[0].tolist() for array in measured), strict=True)
        curves = np.ascontiguousarray(results.curve[0], "<f8")
        points = ((setting, run, curve.tobytes()) for setting, curve in zip(settings, curves, strict=True))
        text = json.dumps(facts, sort_keys=True)
        with self.transaction():
            self.db.executemany("INSERT INTO result VALUES (?, ?, ?, ?, ?, ?)", rows)
            self.db.executemany("INSERT INTO curve VALUES (?, ?, ?)", points)
            self.db.execute("INSERT OR IGNORE INTO provenance (facts) VALUES (?)", (text,))
            made = self.db.execute(
                "INSERT INTO unit (task, run, settings, steps, seconds, at, provenance) "
                "VALUES (?, ?, ?, ?, ?, ?, (SELECT id FROM provenance WHERE facts = ?))",
                (task, run, len(settings), int(results.steps[0]), work.seconds, now(), text),
            )
            costs = ((made.lastrowid, learner, *cost) for learner, cost in work.costs.items())
            self.db.executemany("INSERT INTO cost VALUES (?, ?, ?, ?)", costs)

    # Reading ------------------------------------------------------------------------------------------------------

    def rows(self, query: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._translated():
            return self.db.execute(query, tuple(parameters)).fetchall()

    def each(self, query: str, parameters: Iterable[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query one by one."""
        with self._translated():
            yield from self.db.execute(query, tuple(parameters))

    def setting_rows(self, keys: Iterable[str]) -> dict[str, int]:
        """Return the row of each key that has one."""
        found: dict[str, int] = {}
        for piece in pieces(list(keys)):
            query = f"SELECT key, id FROM setting WHERE key IN ({', '.join('?' * len(piece))})"
            found |= dict(self.rows(query, piece))
        return found

    def count_other_definitions(self, descriptions: Iterable[str], keys: Iterable[str]) -> int:
        """Return how many stored settings have one of these descriptions, but come from another definition."""
        known, ours, count = set(keys), list(descriptions), 0
        for piece in pieces(ours):
            query = f"SELECT key FROM setting WHERE said IN ({', '.join('?' * len(piece))})"
            count += sum(key not in known for (key,) in self.rows(query, piece))
        return count

    def done(self, settings: Iterable[int], run: int) -> set[int]:
        """Return which of these settings have a result of a run."""
        found: set[int] = set()
        for piece in pieces(list(settings)):
            query = f"SELECT setting FROM result WHERE run = ? AND setting IN ({', '.join('?' * len(piece))})"
            found |= {setting for (setting,) in self.rows(query, [run, *piece])}
        return found


def pieces(values: list[Any], size: int = 5000) -> Iterator[list[Any]]:
    """Yield a list in pieces short enough for one query."""
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]


def now() -> str:
    """Return the time, for the record."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def explained(message: str) -> str:
    """Return the rest of a sentence that begins with the file's name."""
    for sign, text in (
        (
            "disk is full",
            "must be on a disk with room. Got a full one: what was committed is kept; make room and run it again.",
        ),
        ("not a database", "must be a results file. Got another kind of file: nothing was changed."),
        (
            "malformed",
            "must be whole. Got a damaged file: nothing was changed. Take it from a backup, or start another.",
        ),
        ("unable to open", "must be in a folder that exists and can be written. Got one that does not, or cannot."),
        ("readonly", "must be writable. Got a file or folder that is read-only."),
        ("locked", "must be free. Got one that another program is writing to: try again when it is done."),
    ):
        if sign in message:
            return text
    return f"could not be used. SQLite says: {message}."


def hold(path: Path) -> int | None:
    """Return a lock that only one sweep can have on a file; it is gone with the process, however that ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system; SQLite's own still keep the file whole
        return None
    place = path.with_name(path.name + ".lock")
    try:
        handle = os.open(place, os.O_CREAT | os.O_RDWR, 0o666)
    except OSError:
        raise StoreError(f"{str(path)!r} {explained('unable to open')}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise StoreError(
            f"{str(path)!r} must be free for a sweep. "
            "Got one that another sweep is writing to: wait for it, or use another file."
        ) from None
    return handle
