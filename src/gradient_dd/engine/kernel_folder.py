"""The folder in which compiled kernels are kept between processes: files under a key, checked when they are read.

    GRADIENT_DD_CACHE=/some/folder     keep them there instead of in the user's own cache folder
    GRADIENT_DD_CACHE=off              keep nothing

A kernel is machine code that will be run, so the folder must belong to the user and be open to nobody else; it is made
so, and refused otherwise. Every entry carries its own key and a checksum: a damaged or foreign one is not used, and the
kernel is compiled anew. Entries are written beside their place and moved there, so that processes do not meet half of
one. Beyond `LIMIT` the entries that were not used for the longest time go first.
"""

import os
import stat
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import time

VARIABLE = "GRADIENT_DD_CACHE"
LIMIT = 256 * 2**20  # bytes
SUFFIX, UNFINISHED = ".kernel", ".unfinished"
ABANDONED = 3600.0  # seconds after which an unfinished file is taken for one whose process died


class KernelFolderWarning(UserWarning):
    """A kernel on disk could not be used; it is compiled anew."""


def folder() -> Path | None:
    """Return where kernels are kept, whether it exists or not; None where keeping is switched off."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() == "off":
        return None
    return Path(chosen).expanduser() if chosen else user_cache() / "gradient-dd" / "kernels"


def user_cache() -> Path:
    """Return the folder for caches of this user, as the system has it."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def usable_folder(make: bool = False) -> Path | None:
    """Return the folder if it is there and safe to use; `make` makes it where it is missing."""
    place = folder()
    if place is None:
        return None
    try:
        if make:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = place.stat()
    except OSError:
        return None
    if not is_private(facts) or not stat.S_ISDIR(facts.st_mode):
        warn_once(
            "folder",
            f"Compiled kernels are not kept: the folder {place} must belong to you and be open to nobody else. "
            f"Try: chmod 700 {place}",
        )
        return None
    return place


def is_private(facts: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user, who alone may read and write it."""
    return os.name == "nt" or (facts.st_uid == os.getuid() and not facts.st_mode & 0o077)


def read(key: str) -> bytes | None:
    """Return what was written under a key; None where there is nothing, or nothing that may be used."""
    place = usable_folder()
    if place is None:
        return None
    try:
        with (place / f"{key}{SUFFIX}").open("rb") as file:
            private, text = is_private(os.fstat(file.fileno())), file.read()
            with suppress(OSError):
                os.utime(file.name)  # it was used now
    except OSError:
        return None
    head, content = text[: len(heading(key, b""))], text[len(heading(key, b"")) :]
    if private and head == heading(key, content):
        return content
    report_damage(key)
    return None


def report_damage(key: str) -> None:
    """Say, once in a process, that an entry could not be used."""
    warn_once("damage", f"The kernel {key} in {folder()} is damaged or not ours. It is compiled anew.")


def write(key: str, content: bytes) -> None:
    """Keep content under a key; where that cannot be, keep nothing."""
    place = usable_folder(make=True)
    if place is None:
        return
    with suppress(OSError):
        with NamedTemporaryFile(dir=place, suffix=UNFINISHED, delete=False) as file:  # readable by its owner alone
            file.write(heading(key, content) + content)
        Path(file.name).replace(place / f"{key}{SUFFIX}")
        trim(place)


def heading(key: str, content: bytes) -> bytes:
    """Return the first lines of an entry: its kind, its key and its checksum."""
    return f"gradient-dd kernel 1\n{key}\n{sha256(content).hexdigest()}\n".encode()


def trim(place: Path) -> None:
    """Remove entries, least recently used first, until the rest fits the limit; and what dead processes left."""
    size = 0
    for facts, path in sorted(entries(place), key=lambda entry: -entry[0].st_mtime):
        size += facts.st_size
        if size > LIMIT:
            path.unlink(missing_ok=True)
    for path in place.glob(f"*{UNFINISHED}"):
        with suppress(OSError):
            if time() - path.stat().st_mtime > ABANDONED:
                path.unlink()


def entries(place: Path) -> Iterator[tuple[os.stat_result, Path]]:
    """Yield the facts and the path of every entry."""
    for path in place.glob(f"*{SUFFIX}"):
        with suppress(OSError):  # another process may remove one meanwhile
            yield path.stat(), path


def summary() -> tuple[int, int]:
    """Return how many kernels are kept, and their bytes."""
    place = folder()
    sizes = [facts.st_size for facts, _ in entries(place)] if place else []
    return len(sizes), sum(sizes)


def clear() -> int:
    """Remove all kernels and return how many there were."""
    place = folder()
    paths = [path for _, path in entries(place)] if place else []
    for path in [*paths, *(place.glob(f"*{UNFINISHED}") if place else ())]:
        path.unlink(missing_ok=True)
    return len(paths)


WARNED: set[str] = set()  # what this process has warned of


def warn_once(what: str, sentence: str) -> None:
    """Warn, unless this process has warned of the same thing."""
    if what not in WARNED:
        WARNED.add(what)
        warnings.warn(sentence, KernelFolderWarning, stacklevel=2)
