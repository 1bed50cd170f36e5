"""The store: one SQLite file with every result, its study and where it came from.

A unit is written in one transaction: all of its results or none. Readers may look while a sweep writes; a second sweep
on the same file is refused. What is read is compared with its checksums in `checked`.
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

from gradient_dd.engine.horizon import LaneResults
from gradient_dd.errors import must, show
from gradient_dd.studies.lock import Lock
from gradient_dd.studies.ranges import as_ranges, ranges_of
from gradient_dd.studies.schema import SETTING_COLUMNS, UNIT_COLUMNS, VERSION
from gradient_dd.studies.seals import INSERT as INSERT_SEAL
from gradient_dd.studies.seals import unit_seal
from gradient_dd.studies.setting_row import restored_key, setting_cells
from gradient_dd.studies.sqlite_file import StoreError, close_after_writing, explained, open_to_read, open_to_write
from gradient_dd.studies.upgrade import unit_checksum, upgrade


class Work(NamedTuple):
    """What a unit took: seconds, and for each learner the seconds and updates of its kernels."""

    seconds: float
    costs: dict[str, tuple[float, int]]


class Store:
    """One results file. Use it as a context, or close it.

    notices    sentences worth reading about its opening
    is_sound   whether its indexes agreed with its tables when it was opened for writing; they do now
    """

    def __init__(self, path: str | Path, write: bool = False) -> None:
        if not isinstance(path, str | os.PathLike):
            raise must("The results file", "be the path of a file", path)
        self.path = Path(path)
        self.notices: list[str] = []
        self.is_sound = True
        self._check_path(write)
        self._lock = Lock(self.path) if write else None
        try:
            with self._translated():
                if write:
                    self.db, self.version, self.is_sound = open_to_write(self.path)
                else:
                    self.db, self.version = open_to_read(self.path)
                self.db.text_factory = marked_text
            self._opened = self.path.stat()
            if write and self.version < VERSION:
                self._upgrade()
        except BaseException:
            if hasattr(self, "db"):
                self.db.close()
            if self._lock is not None:
                self._lock.release()
            raise

    def _check_path(self, write: bool) -> None:
        """Raise unless a file can be at the path."""
        try:
            found, folder = self.path.is_file(), self.path.is_dir()
            self.path.resolve()
        except (OSError, ValueError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StoreError(f"{show(str(self.path))} must be the name of a file. Got an error: {reason}.") from None
        if folder:
            raise StoreError(f"{str(self.path)!r} must be a results file. Got a folder.")
        if not write and not found:
            raise StoreError(f"{str(self.path)!r} must be a results file. Got no such file.")

    def _upgrade(self) -> None:
        """Bring a file of an earlier version to this one."""
        with self.transaction():
            sealed = upgrade(self.db, self.version)
        self.version = VERSION
        self.notices.append(
            f"{self.path} was written by an earlier version, without checksums. The {sealed:,} results that it holds "
            "have got theirs now. Damage from before cannot be noticed."
        )

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._lock is None:
            self.db.close()
            return
        close_after_writing(self.db)
        self._lock.release()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing."""
        self._check_still_there()
        with self._translated():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    def _check_still_there(self) -> None:
        """Raise if the path leads to another file now, or to none: what is written would be lost."""
        try:
            same = os.path.samestat(self.path.stat(), self._opened)
        except OSError:
            same = False
        if not same:
            raise StoreError(
                f"{str(self.path)!r} must stay where it is while a sweep writes to it. Got a file that was removed or "
                "replaced: the sweep has stopped. Put it back, or run the same command to start another."
            )

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all queries inside see the store at one moment, whatever a sweep writes meanwhile."""
        if self.db.in_transaction:
            yield
            return
        with self._translated():
            self.db.execute("BEGIN")
            try:
                yield
            finally:
                self.db.execute("COMMIT")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn what SQLite says into one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(f"{str(self.path)!r} {explained(str(error))}") from None
        except UnicodeDecodeError:  # SQLite complains of a damaged text, and Python cannot read the complaint
            raise StoreError(f"{str(self.path)!r} {explained('malformed')}") from None

    # Writing ------------------------------------------------------------------------------------------------------

    def add_study(self, name: str, text: str, runs: range, total: int) -> int:
        """Note that a study was started, with these runs and `total` results in all; return its row."""
        with self.transaction():
            made = self.db.execute(
                "INSERT INTO study (name, text, at, first_run, runs, total, settings) VALUES (?, ?, ?, ?, ?, ?, '')",
                (name, text, now(), runs.start, len(runs), total),
            )
            return int(made.lastrowid or 0)

    def _add_to_study(self, study: int, settings: Iterable[int]) -> None:
        """Note which settings belong to a study, by their rows; those noted before stay."""
        ((before,),) = self.rows("SELECT settings FROM study WHERE id = ?", (study,))
        known = {row for first, last in ranges_of(before) for row in range(first, last + 1)}
        self.db.execute("UPDATE study SET settings = ? WHERE id = ?", (as_ranges(known.union(settings)), study))

    def add_settings(self, lanes: Iterable[tuple[str, dict[str, Any]]], study: int | None = None) -> dict[str, int]:
        """Make sure that each (key, facts) has a row, as it should be; return the row of each key.

        `study` is the row of the study that the settings belong to, if that is to be noted.
        """
        wanted = {key: setting_cells(key, facts) for key, facts in lanes}
        columns = (*SETTING_COLUMNS, "checksum")
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        changed = ", ".join(f"{name} = ?" for name in columns)
        with self.transaction():
            for piece in pieces(list(wanted)):
                described = {wanted[key][1]: key for key in piece}
                listed = ", ".join("?" * len(piece))
                query = f"SELECT id, {names} FROM setting WHERE key IN ({listed}) OR description IN ({listed})"
                stored: dict[str, int] = {}
                for row, *cells in self.rows(query, [*piece, *described]):
                    key = restored_key(cells, described)
                    if key in wanted:
                        stored[key] = row
                        if tuple(cells) != wanted[key]:  # it was damaged
                            self.db.execute(f"UPDATE setting SET {changed} WHERE id = ?", (*wanted[key], row))
                new = (wanted[key] for key in piece if key not in stored)
                self.db.executemany(f"INSERT INTO setting ({names}) VALUES ({marks})", new)
            rows = self.setting_rows(wanted)
            if study is not None:
                self._add_to_study(study, rows.values())
        return rows

    def add_unit(
        self, task: str, run: int, settings: list[int], results: LaneResults, work: Work, facts: dict[str, Any]
    ) -> None:
        """Write the results of one (task, run), `settings` being the rows of its lanes: all, or none."""
        measured = [a[0] for a in (results.last100, results.area, results.diverged_step, results.diverged_episode)]
        rows = zip(settings, [run] * len(settings), *(array.tolist() for array in measured), strict=True)
        points = [curve.tobytes() for curve in np.ascontiguousarray(results.curve[0], "<f8")]
        curves = ((setting, run, blob) for setting, blob in zip(settings, points, strict=True))
        text = json.dumps(facts, sort_keys=True)
        costs = [(learner, *work.costs[learner]) for learner in sorted(work.costs)]
        with self.transaction():
            self.db.executemany("INSERT INTO result VALUES (?, ?, ?, ?, ?, ?)", rows)
            self.db.executemany("INSERT INTO curve VALUES (?, ?, ?)", curves)
            self.db.execute(INSERT_SEAL, unit_seal(run, self.keys(settings), settings, measured, points))
            self.db.execute("INSERT OR IGNORE INTO provenance (facts) VALUES (?)", (text,))
            ((provenance,),) = self.rows("SELECT id FROM provenance WHERE facts = ?", (text,))
            unit = (task, run, len(settings), int(results.steps[0]), work.seconds, now(), provenance)
            made = self.db.execute(
                f"INSERT INTO unit ({', '.join(UNIT_COLUMNS)}, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (*unit, unit_checksum(unit, costs)),
            )
            self.db.executemany("INSERT INTO cost VALUES (?, ?, ?, ?)", ((made.lastrowid, *cost) for cost in costs))

    # Reading ------------------------------------------------------------------------------------------------------

    def rows(self, query: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._translated():
            try:
                self.db.text_factory = str  # a third faster, for the many texts of settings
                return self.db.execute(query, tuple(parameters)).fetchall()
            except sqlite3.OperationalError as error:
                if "decode" not in str(error):
                    raise
                self.db.text_factory = marked_text
                return self.db.execute(query, tuple(parameters)).fetchall()
            finally:
                self.db.text_factory = marked_text

    def each(self, query: str, parameters: Iterable[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query one by one."""
        with self._translated():
            yield from self.db.execute(query, tuple(parameters))

    @property
    def has_seals(self) -> bool:
        """Whether the file has checksums."""
        return self.version >= 3

    @property
    def setting_columns(self) -> tuple[str, ...]:
        """The columns of a setting's row after its id, the checksum last; empty in a file that has none."""
        if self.has_seals:
            return *SETTING_COLUMNS, "checksum"
        return *("said" if name == "description" else name for name in SETTING_COLUMNS), "NULL"

    def setting_rows(self, keys: Iterable[str]) -> dict[str, int]:
        """Return the row of each key that has one; what the index does not find may still be in the table."""
        found: dict[str, int] = {}
        for piece in pieces(list(keys)):
            for table in ("setting", "setting NOT INDEXED"):
                absent = [key for key in piece if key not in found]
                query = f"SELECT key, id FROM {table} WHERE key IN ({', '.join('?' * len(absent))})"
                found |= dict(self.rows(query, absent)) if absent else {}
        return found

    def keys(self, settings: Iterable[int]) -> dict[int, str]:
        """Return the key of each of these settings."""
        found: dict[int, str] = {}
        for piece in pieces(list(settings)):
            found |= dict(self.rows(f"SELECT id, key FROM setting WHERE id IN ({', '.join('?' * len(piece))})", piece))
        return found

    def count_other_definitions(self, descriptions: Iterable[str], keys: Iterable[str]) -> int:
        """Return how many stored settings have one of these descriptions, but come from another definition."""
        known, ours, count = set(keys), list(descriptions), 0
        for piece in pieces(ours):
            query = f"SELECT key FROM setting WHERE description IN ({', '.join('?' * len(piece))})"
            count += sum(key not in known for (key,) in self.rows(query, piece))
        return count


def marked_text(raw: bytes) -> str:
    """Return a text with marks in place of bytes that are none."""
    return raw.decode(errors="replace")


def pieces(values: list[Any], size: int = 5000) -> Iterator[list[Any]]:
    """Yield a list in pieces short enough for one query."""
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]


def now() -> str:
    """Return the time, for the record."""
    return datetime.now(UTC).isoformat(timespec="seconds")
