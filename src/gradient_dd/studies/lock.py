"""A lock that one sweep can have on a results file; it is gone with the process, however that ends."""

import os
from errno import ENAMETOOLONG
from pathlib import Path

from gradient_dd.errors import show
from gradient_dd.studies.sqlite_file import StoreError, beside, explained


class Lock:
    """An open file NAME.lock that this process alone holds. `release` removes it."""

    def __init__(self, file: Path) -> None:
        self.place = beside(file, ".lock")
        self._handle = self._held(file)

    def _held(self, file: Path) -> int:
        """Return the handle of the locked file; raise if another sweep holds it."""
        while True:
            try:
                handle = os.open(self.place, os.O_CREAT | os.O_RDWR, 0o666)
            except OSError as error:
                if error.errno == ENAMETOOLONG:
                    raise StoreError(f"{show(str(file))} must have a shorter name. Got one that is too long.") from None
                raise StoreError(f"{str(file)!r} {explained('unable to open')}") from None
            if not take(handle):
                os.close(handle)
                raise StoreError(
                    f"{str(file)!r} must be free for a sweep. "
                    "Got one that another sweep is writing to: wait for it, or use another file."
                )
            if is_still_there(self.place, handle):
                return handle
            os.close(handle)  # its last holder has removed it in the meantime: take a new one

    def release(self) -> None:
        """Remove the file, then let go of it: whoever has opened it before will see that it is not there."""
        self.place.unlink(missing_ok=True)
        os.close(self._handle)


def take(handle: int) -> bool:
    """Return whether an open file could be locked. Where the system has no such locks, SQLite's own must do."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_still_there(place: Path, handle: int) -> bool:
    """Return whether a path still leads to the file that is open as `handle`."""
    try:
        return os.path.samestat(place.stat(), os.fstat(handle))
    except OSError:
        return False
