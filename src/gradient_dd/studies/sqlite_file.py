"""The results file as a file: its tables, its opening and closing, the lock of the sweep that writes to it.

A sweep writes with a write-ahead log (NAME-wal, NAME-shm), so that readers need not wait. Whoever closes last removes
these two files. The sweep leaves a file that needs no log, so that it can be read on a read-only file system.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from errno import ENAMETOOLONG
from pathlib import Path
from typing import Any, Self

from gradient_dd.errors import GradientDDError, bad_request, show

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
DAMAGED = "must be whole. Got a damaged file: nothing was changed. Take it from a backup, or start another."
EXPLAINED = {  # what SQLite says, and the rest of a sentence that begins with the name of the file
    "disk is full": "must be on a disk with room. Got a full one: what was committed is kept; make room and run it "
    "again.",
    **dict.fromkeys(("malformed", "decode", "no such", "constraint"), DAMAGED),
    "not a database": "must be a results file. Got another kind of file: nothing was changed.",
    "unable to open": "must be in a folder that exists and can be written. Got one that does not, or cannot.",
    "readonly": "must be writable. Got a file or folder that is read-only.",
    "locked": "must be free. Got one that another program is reading or writing: try again when it is done.",
}


class StoreError(GradientDDError):
    """The store cannot be used as asked; what it holds is as it was."""


def connect(file: Path, mode: str) -> sqlite3.Connection:
    """Return a connection to a file."""
    address = f"{file.resolve().as_uri()}?mode={mode}"
    db = sqlite3.connect(address, uri=True, timeout=20, isolation_level=None)
    db.text_factory = marked_text
    return db


def marked_text(raw: bytes) -> str:
    """Return a text with marks in place of bytes that are not text."""
    return raw.decode(errors="replace")


def open_to_read(file: Path) -> sqlite3.Connection:
    """Return a connection that cannot change a results file."""
    writable = can_write(file)
    if writable:
        check_owner(file)
    db = connect(file, "rw" if writable else "ro")  # only a connection that may write removes a log
    try:
        try:
            empty = is_empty(db, file)
        except sqlite3.OperationalError:
            log = beside(file, "-wal")
            if writable or (log.exists() and log.stat().st_size):
                raise
            db.close()
            db = connect(file, "ro&immutable=1")  # the file expects a log, has none, and none can be made here
            empty = is_empty(db, file)
        if empty:
            raise StoreError(f"{str(file)!r} must be a results file of gradient-dd. Got an empty database.")
        db.execute("PRAGMA query_only = ON")
    except BaseException:
        db.close()
        raise
    return db


def open_to_write(file: Path) -> sqlite3.Connection:
    """Return a connection that can change a results file; a file that does not exist is made.

    The structure of the file is checked first, in 1.5 seconds for each gigabyte: nothing is built on a damaged one.
    Indexes that differ from their tables are made anew.
    """
    if file.exists():
        check_owner(file)
    db = connect(file, "rwc")
    try:
        if is_empty(db, file):
            db.execute("PRAGMA page_size = 16384")  # a unit is a few pages, most often
            script = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
            db.executescript(f"BEGIN IMMEDIATE;{SCHEMA}{script}COMMIT;")
        is_sound = db.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",)
        if not is_sound and db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("malformed")
        db.execute("PRAGMA busy_timeout = 120000")  # those who read now may finish; later readers are not waited for
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA busy_timeout = 20000")
        db.execute("PRAGMA synchronous = FULL")
        if not is_sound:
            db.execute("REINDEX")
    except BaseException:
        db.close()
        raise
    return db


def check_owner(file: Path) -> None:
    """Raise if a file is another program's, before it is opened for writing.

    A journal beside it means that a first write was cut off: SQLite undoes it, which only a writer may do.
    """
    if not beside(file, "-journal").exists():
        with closing(connect(file, "ro")) as db:
            is_empty(db, file)


def is_empty(db: sqlite3.Connection, file: Path) -> bool:
    """Return whether a database has no tables yet; raise if its tables are not those of a results file."""
    (application,), (version,) = (db.execute(f"PRAGMA {of}").fetchone() for of in ("application_id", "user_version"))
    definitions = {definition for (definition,) in db.execute("SELECT sql FROM sqlite_master")}
    if application == 0 and not definitions:
        return True
    if application != APPLICATION:
        raise StoreError(
            f"{str(file)!r} must be a results file of gradient-dd. Got another program's database: nothing was changed."
        )
    if version != VERSION:
        earlier = "An earlier gradient-dd wrote it, and nothing was changed: run the same command into a new file."
        newer = "A newer gradient-dd wrote it: please update."
        raise StoreError(
            f"{str(file)!r} must be a results file of version {VERSION}. Got version {version}. "
            f"{earlier if version < VERSION else newer}"
        )
    if not definitions.issuperset(filter(None, map(str.strip, SCHEMA.split(";")))):
        raise sqlite3.DatabaseError("malformed")
    return False


def can_write(file: Path) -> bool:
    """Return whether a file can be changed, and files be made beside it."""
    return os.access(file, os.W_OK) and os.access(file.resolve().parent, os.W_OK)


def beside(file: Path, ending: str) -> Path:
    """Return the path of a file that stands beside another, links followed, and has its name with an ending."""
    target = file.resolve()
    return target.with_name(target.name + ending)


class ResultsFile:
    """An open results file: any number may read it, one sweep may write to it. Use it as a context, or close it."""

    def __init__(self, path: str | Path, write: bool = False) -> None:
        if not isinstance(path, str | os.PathLike):
            raise bad_request("The results file", "be the path of a file", path)
        self.path = Path(path)
        self._check_path(write)
        self._lock = Lock(self.path) if write else None
        try:
            with self._translated():
                self.db = open_to_write(self.path) if write else open_to_read(self.path)
            self._opened = self.path.stat()
        except BaseException:
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; after a sweep it needs no log any more, unless somebody reads at this moment."""
        if self._lock is not None:
            with suppress(sqlite3.Error):
                self.db.execute("PRAGMA busy_timeout = 0")
                self.db.execute("PRAGMA journal_mode = DELETE")
        self.db.close()
        if self._lock is not None:
            self._lock.release()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing; raise if the path leads to another file now, or to none."""
        if not is_same(self.path, self._opened):
            raise StoreError(
                f"{str(self.path)!r} must stay where it is while a sweep writes to it. Got a file that was removed or "
                "replaced: the sweep has stopped. Put it back, or run the same command to start another."
            )
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
        """Turn an error of SQLite into one sentence."""
        try:
            yield
        except sqlite3.Error as error:
            other = f"could not be used. SQLite says: {error}."
            rest = next((text for sign, text in EXPLAINED.items() if sign in str(error)), other)
            raise StoreError(f"{str(self.path)!r} {rest}") from None
        except UnicodeDecodeError:  # SQLite complains of a damaged text, and Python cannot read the complaint
            raise StoreError(f"{str(self.path)!r} {DAMAGED}") from None

    def rows(self, query: str, parameters: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._translated():
            return self.db.execute(query, tuple(parameters)).fetchall()


class Lock:
    """An open file NAME.lock that this process alone holds, until `release` removes it or the process ends."""

    def __init__(self, file: Path) -> None:
        self.place = beside(file, ".lock")
        while True:
            try:
                self._handle = os.open(self.place, os.O_CREAT | os.O_RDWR, 0o666)
            except OSError as error:
                rest = EXPLAINED["unable to open"]
                if error.errno == ENAMETOOLONG:
                    rest = "must have a shorter name. Got one that is too long."
                raise StoreError(f"{show(str(file))} {rest}") from None
            if not take(self._handle):
                os.close(self._handle)
                raise StoreError(
                    f"{str(file)!r} must be free for a sweep. "
                    "Got one that another sweep is writing to: wait for it, or use another file."
                )
            if is_same(self.place, os.fstat(self._handle)):
                return
            os.close(self._handle)  # its last holder has removed it in the meantime: take a new one

    def release(self) -> None:
        """Remove the lock file, then close it: whoever opened the file before will see that it is gone."""
        self.place.unlink(missing_ok=True)
        os.close(self._handle)


def take(handle: int) -> bool:
    """Return whether an open file could be locked. Where the system has no such locks, SQLite's own must do."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return True
    except OSError:
        return False
    return True


def is_same(place: Path, known: os.stat_result) -> bool:
    """Return whether a path still leads to a file that was opened before."""
    try:
        return os.path.samestat(place.stat(), known)
    except OSError:
        return False
