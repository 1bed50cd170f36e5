"""Opening and closing a results file, so that nothing is left beside it and anyone may look on.

A sweep writes with a write-ahead log (NAME-wal, NAME-shm), so that readers need not wait. Whoever closes last removes
these two files. The sweep leaves a file that needs no log, so that it can be read on a read-only file system.
"""

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from gradient_dd.errors import GradientDDError
from gradient_dd.studies.schema import APPLICATION, SCHEMA, VERSION

DAMAGED = "must be whole. Got a damaged file: nothing was changed. Take it from a backup, or start another."


class StoreError(GradientDDError):
    """The store cannot be used as asked; what it holds is as it was."""


def connect(file: Path, options: str) -> sqlite3.Connection:
    """Return a connection to a file."""
    return sqlite3.connect(f"{file.resolve().as_uri()}?{options}", uri=True, timeout=20, isolation_level=None)


def open_to_read(file: Path) -> tuple[sqlite3.Connection, int]:
    """Return a connection that cannot change a results file, and the version of the file."""
    interrupted = beside(file, "-journal").exists()  # a first write was cut off: SQLite takes it back when it may write
    db = connect(file, "mode=rw" if interrupted and can_write(file) else "mode=ro")
    try:
        version = checked_version(db, file)
        if version == 0:
            raise StoreError(f"{str(file)!r} must be a results file of gradient-dd. Got an empty database.")
        (mode,) = db.execute("PRAGMA journal_mode").fetchone()
        if mode == "wal" and can_write(file):  # only a connection that may write removes the log
            db.close()
            db = connect(file, "mode=rw")
    except sqlite3.OperationalError:
        db.close()
        log = beside(file, "-wal")
        if can_write(file) or (log.exists() and log.stat().st_size):
            raise
        db = connect(file, "mode=ro&immutable=1")  # it expects a log, has none, and none can be made here
        version = checked_version(db, file)
    except BaseException:
        db.close()
        raise
    db.execute("PRAGMA query_only = ON")
    return db, version


def open_to_write(file: Path) -> tuple[sqlite3.Connection, int, bool]:
    """Return a connection that can change a results file, its version, and whether its indexes were sound.

    A file that is not there is made. The structure of the file is checked first, in 1.5 seconds for each gigabyte:
    nothing is built on a damaged one.
    """
    if file.exists() and not beside(file, "-journal").exists():
        with closing(connect(file, "mode=ro")) as db:  # another program's file is not even opened for writing
            checked_version(db, file)
    db = connect(file, "mode=rwc")
    try:
        version = checked_version(db, file)
        if version == 0:
            db.execute("PRAGMA page_size = 16384")  # a curve is 1.6 kB
            script = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
            db.executescript(f"BEGIN IMMEDIATE;{SCHEMA}{script}COMMIT;")
            version = VERSION
        is_sound = db.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",)
        if not is_sound and db.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("malformed")
        db.execute(
            "PRAGMA busy_timeout = 120000"
        )  # whoever is reading now may finish; later readers are not waited for
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA busy_timeout = 20000")
        db.execute("PRAGMA synchronous = FULL")
        if not is_sound:
            db.execute("REINDEX")  # an index differs from its table, and things would not be found by it
    except BaseException:
        db.close()
        raise
    return db, version, is_sound


def close_after_writing(db: sqlite3.Connection) -> None:
    """Close a connection; unless somebody reads at this moment, the file then needs no log any more."""
    with suppress(sqlite3.Error):
        db.execute("PRAGMA busy_timeout = 0")
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()


def checked_version(db: sqlite3.Connection, file: Path) -> int:
    """Return the version of a results file, 0 of an empty database; raise if it is another kind of file."""
    queries = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    (application,), (version,), (tables,) = (db.execute(query).fetchone() for query in queries)
    if tables == 0 and application == 0:
        return 0
    if application != APPLICATION:
        raise StoreError(
            f"{str(file)!r} must be a results file of gradient-dd. Got another program's database: nothing was changed."
        )
    if version > VERSION:
        raise StoreError(
            f"{str(file)!r} must be of version {VERSION} or older. Got {version}. "
            "A newer gradient-dd wrote it: please update."
        )
    return version


def can_write(file: Path) -> bool:
    """Return whether a file can be changed, and files be made beside it."""
    return os.access(file, os.W_OK) and os.access(file.resolve().parent, os.W_OK)


def beside(file: Path, ending: str) -> Path:
    """Return the path of a file that stands beside another, links followed, and has its name with an ending."""
    target = file.resolve()
    return target.with_name(target.name + ending)


def explained(message: str) -> str:
    """Return the rest of a sentence that begins with the file's name, for what SQLite says."""
    for sign, text in (
        (
            "disk is full",
            "must be on a disk with room. Got a full one: what was committed is kept; make room and run it again.",
        ),
        *(
            (sign, DAMAGED)
            for sign in ("malformed", "no such column", "no such table", "no column named", "constraint")
        ),
        ("not a database", "must be a results file. Got another kind of file: nothing was changed."),
        ("unable to open", "must be in a folder that exists and can be written. Got one that does not, or cannot."),
        ("readonly", "must be writable. Got a file or folder that is read-only."),
        ("locked", "must be free. Got one that another program is reading or writing: try again when it is done."),
    ):
        if sign in message:
            return text
    return f"could not be used. SQLite says: {message}."
