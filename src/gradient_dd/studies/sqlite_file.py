"""The results file: its tables, opening and closing, and the lock of the sweep that writes to it.

A sweep writes with a write-ahead log (NAME-wal, NAME-shm), so that readers need not wait. The last process to close
the results file removes both files of the log. A finished results file can be read on a read-only file system.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from errno import ENAMETOOLONG
from pathlib import Path
from typing import Any, Self

from gradient_dd.errors import GradientDDError, bad_request, show
from gradient_dd.files import check_regular

try:
    import fcntl
except ImportError:  # on Windows only SQLite's own locks protect the file
    fcntl = None  # type: ignore[assignment]

APPLICATION = 0x67644444  # "gdDD"
VERSION = 5
SCHEMA = """
CREATE TABLE study (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE setting (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, description TEXT NOT NULL, facts TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE INDEX setting_description ON setting (description);
CREATE TABLE task (key TEXT PRIMARY KEY, units INTEGER NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE unit (
    id INTEGER PRIMARY KEY, task_key TEXT NOT NULL, run INTEGER NOT NULL, facts TEXT NOT NULL, settings TEXT NOT NULL,
    curves_checksum INTEGER NOT NULL, checksum INTEGER NOT NULL, numbers BLOB NOT NULL, curves BLOB NOT NULL
);
CREATE INDEX unit_task ON unit (task_key);
"""  # docs/reference/results-file.md explains every column
DAMAGED = "is damaged. Nothing was changed. Restore it from a backup, or use a new file."
EXPLAINED = {  # by SQLite's message: the rest of a sentence that starts with the name of the file
    "disk is full": "cannot be written: the disk is full. Committed results are kept; free some space and run the same "
    "command again.",
    **dict.fromkeys(("malformed", "decode", "no such", "constraint"), DAMAGED),
    "not a database": "is not a results file. Nothing was changed.",
    "unable to open": "cannot be opened: its folder does not exist or is not writable.",
    "readonly": "cannot be written: the file or its folder is read-only.",
    "locked": "is in use by another program. Try again when that program is done.",
}


class StoreError(GradientDDError):
    """The store cannot be used as requested; its contents are unchanged."""


def connect(file: Path, mode: str) -> sqlite3.Connection:
    """Return a connection to a file; invalid UTF-8 is read as replacement characters."""
    address = f"{file.resolve().as_uri()}?mode={mode}"
    db = sqlite3.connect(address, uri=True, timeout=20, isolation_level=None)
    db.text_factory = lambda raw: raw.decode(errors="replace")
    return db


def open_results(file: Path, write: bool) -> sqlite3.Connection:
    """Return a connection to a results file; a connection for writing creates a missing file.

    The file is first opened read-only, because opening a file of another program for writing could change that file.
    A journal beside the file means that a write was interrupted; SQLite undoes this write, which only a writer may do.

    Before writing, this function checks the structure of the file (1.5 seconds per gigabyte), so that nothing is added
    to a damaged file, and rebuilds indexes that differ from their tables.
    """
    if file.exists() and not beside(file, "-journal").exists():
        with closing(connect(file, "ro")) as db:
            is_empty(db, file)
    can_write = os.access(file, os.W_OK) and os.access(file.resolve().parent, os.W_OK)
    db = connect(file, "rwc" if write else "rw" if can_write else "ro")  # a read-only connection would leave the log
    try:
        empty = is_empty(db, file)
        if not write:
            if empty:
                raise StoreError(f"{str(file)!r} is not a results file: it is an empty database.")
            db.execute("PRAGMA query_only = ON")
            return db
        if empty:
            db.execute("PRAGMA page_size = 16384")  # so that a unit usually fits in a few pages
            script = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
            db.executescript(f"BEGIN IMMEDIATE;{SCHEMA}{script}COMMIT;")
        is_sound = db.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",)
        if not is_sound and db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("malformed")
        db.execute("PRAGMA busy_timeout = 120000")  # wait for current readers; later readers do not wait
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA busy_timeout = 20000")
        db.execute("PRAGMA synchronous = FULL")
        if not is_sound:
            db.execute("REINDEX")
    except BaseException:
        db.close()
        raise
    return db


def is_empty(db: sqlite3.Connection, file: Path) -> bool:
    """Return whether a database has no tables yet; raise if the file is not a results file of this version."""
    (application,), (version,) = (db.execute(f"PRAGMA {of}").fetchone() for of in ("application_id", "user_version"))
    definitions = {definition for (definition,) in db.execute("SELECT sql FROM sqlite_master")}
    if application == 0 and not definitions:
        return True
    if application != APPLICATION:
        raise StoreError(
            f"{str(file)!r} is not a results file: it is a database of another program. Nothing was changed."
        )
    if version != VERSION:
        earlier = "An earlier version of gradient-dd wrote it. Nothing was changed. Repeat the command with a new file."
        newer = "A newer version of gradient-dd wrote it. Please update."
        raise StoreError(
            f"{str(file)!r} must be a results file of version {VERSION}. Got version {version}. "
            f"{earlier if version < VERSION else newer}"
        )
    if not definitions.issuperset(filter(None, map(str.strip, SCHEMA.split(";")))):
        raise sqlite3.DatabaseError("malformed")
    return False


def beside(file: Path, ending: str) -> Path:
    """Return the path of a file with links resolved and `ending` appended to the name."""
    target = file.resolve()
    return target.with_name(target.name + ending)


class ResultsFile:
    """An open results file for many readers and one writer. Use the object as a context manager, or close it."""

    def __init__(self, path: str | Path, write: bool = False) -> None:
        if not isinstance(path, str | os.PathLike):
            raise bad_request("The results file", "be the path of a file", path)
        self.path = Path(path)
        try:
            found, is_folder = self.path.is_file(), self.path.is_dir()
            self.path.resolve()
        except (OSError, ValueError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StoreError(f"Cannot use {show(str(self.path))} as a results file: {reason}.") from None
        if is_folder:
            raise StoreError(f"{str(self.path)!r} is not a results file: it is a folder.")
        if not write and not found:
            raise StoreError(f"Results file {str(self.path)!r} does not exist.")
        check_regular(self.path)
        with ExitStack() as opened:
            if write:
                opened.enter_context(locked(self.path))
            with self._translated():
                self.db = open_results(self.path, write)
            opened.callback(self.db.close)
            if write:
                opened.callback(self._remove_log)
            self._opened = self.path.stat()
            self._closing = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a writer also removes the log, unless another process is reading the file."""
        self._closing.close()

    def _remove_log(self) -> None:
        with suppress(sqlite3.Error):
            self.db.execute("PRAGMA busy_timeout = 0")
            self.db.execute("PRAGMA journal_mode = DELETE")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction; raise if the file has been removed or replaced."""
        if not is_same(self.path, self._opened):
            raise StoreError(
                f"The sweep stopped because {str(self.path)!r} was removed or replaced. "
                "Restore it, or run the same command to start again."
            )
        with self._translated(), self.db:
            self.db.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Run all queries of the block on one snapshot of the store, even while a sweep writes."""
        if self.db.in_transaction:
            yield
            return
        with self._translated(), self.db:
            self.db.execute("BEGIN")
            yield

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Convert an SQLite error to a StoreError of one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            other = f"cannot be used. SQLite says: {error}."
            rest = next((text for sign, text in EXPLAINED.items() if sign in str(error)), other)
            raise StoreError(f"{str(self.path)!r} {rest}") from None
        except UnicodeDecodeError:  # SQLite reports a damaged text, and Python cannot decode the report
            raise StoreError(f"{str(self.path)!r} {DAMAGED}") from None

    def rows(self, query: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._translated():
            return self.db.execute(query, tuple(parameters)).fetchall()


@contextmanager
def locked(file: Path) -> Iterator[Path]:
    """Lock a results file with a file NAME.lock that only this process holds open; yield the path of the lock."""
    place = beside(file, ".lock")
    while True:
        try:
            handle = os.open(place, os.O_CREAT | os.O_RDWR, 0o666)
        except OSError as error:
            too_long = "cannot be used: its name is too long."
            rest = too_long if error.errno == ENAMETOOLONG else EXPLAINED["unable to open"]
            raise StoreError(f"{show(str(file))} {rest}") from None
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise StoreError(
                f"{str(file)!r} is in use by another sweep. Wait for that sweep, or use another file."
            ) from None
        if is_same(place, os.fstat(handle)):
            break
        os.close(handle)  # the previous holder has removed this file: open a new one
    try:
        yield place
    finally:  # remove the file before closing it, so that a process that opened it earlier notices
        place.unlink(missing_ok=True)
        os.close(handle)


def is_same(place: Path, known: os.stat_result) -> bool:
    """Return whether a path still leads to a previously opened file."""
    try:
        return os.path.samestat(place.stat(), known)
    except OSError:
        return False
