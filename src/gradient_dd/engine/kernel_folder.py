"""The folder in which compiled kernels are kept between processes: files under a key, checked when they are read.

    GRADIENT_DD_CACHE=/some/folder     keep them there instead of in the user's own cache folder
    GRADIENT_DD_CACHE=off              keep nothing

A kernel is machine code that will be run, so the folder must belong to the user and be open to nobody else, and no
other user may replace it; it is made so, and refused otherwise. Without a usable folder kernels are compiled in every
process, and one warning says why. Every entry carries its own key and a checksum: a damaged or foreign one is not used,
and the kernel is compiled again. Entries are written beside their place and moved there, so that processes do not meet
half of one. Beyond `LIMIT` the entries that were not used for the longest time go first.
"""

import os
import stat
import sys
import warnings
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import time

VARIABLE = "GRADIENT_DD_CACHE"
LIMIT = 256 * 2**20  # bytes
SUFFIX, UNFINISHED = ".kernel", ".unfinished"
NETWORKS = "networks"  # the folder in it where JAX keeps the programs of networks, in a form of its own
ABANDONED = 3600.0  # seconds after which an unfinished file is taken for one whose process died


class KernelFolderWarning(UserWarning):
    """A kernel on disk could not be used; it is compiled again."""


def folder() -> Path | None:
    """Return where kernels are kept, whether it exists or not; None if keeping is switched off, or nobody's home."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() == "off":
        return None
    try:
        return Path(chosen).expanduser() if chosen else user_cache() / "gradient-dd" / "kernels"
    except RuntimeError:  # a container whose user has no home, or the home of a user who does not exist
        refuse(f"there is no home folder for {chosen or 'this user'}. Set {VARIABLE} to a folder of yours, or to off.")
        return None


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
        facts, above = place.stat(), [parent.stat() for parent in place.resolve().parents]
    except FileNotFoundError:  # nothing has been kept yet
        return None
    except (OSError, RuntimeError) as error:
        refuse(f"the folder {place} cannot be used ({error}). Set {VARIABLE} to another one, or to off.")
        return None
    if not is_private(facts) or not stat.S_ISDIR(facts.st_mode):
        refuse(f"the folder {place} must belong to you and be open to nobody else. Try: chmod 700 {place}")
    elif any(map(lets_others_replace, above)):
        refuse(f"the folder {place} must not be below one that every user may write.")
    else:
        return place
    return None


def refuse(why: str) -> None:
    """Warn, once in a process, that kernels are not kept."""
    warn_once("folder", f"Compiled kernels are not kept: {why}")


def is_private(facts: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user, who alone may read and write it."""
    return os.name == "nt" or (facts.st_uid == os.getuid() and not facts.st_mode & 0o077)


def lets_others_replace(facts: os.stat_result) -> bool:
    """Return whether every user may rename what a folder holds, as they may not in /tmp."""
    return os.name != "nt" and bool(facts.st_mode & 0o002) and not facts.st_mode & stat.S_ISVTX


def read(key: str) -> bytes | None:
    """Return what was written under a key; None where there is nothing, or nothing that may be used."""
    place = usable_folder()
    if place is None:
        return None
    try:
        with open(place / f"{key}{SUFFIX}", "rb", opener=open_at_once) as file:
            facts = os.fstat(file.fileno())
            usable = is_private(facts) and stat.S_ISREG(facts.st_mode)
            text = file.read() if usable else b""
            with suppress(OSError):
                os.utime(file.name)  # it was used now
    except FileNotFoundError:
        return None
    except OSError:  # a folder of this name, or one that may not be read
        text = b""
    head, content = text[: len(heading(key, b""))], text[len(heading(key, b"")) :]
    if head == heading(key, content):
        return content
    report_damage(key)
    return None


def open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting: a FIFO of this name would wait for ever."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def report_damage(key: str) -> None:
    """Say, once in a process, that an entry could not be used."""
    warn_once("damage", f"The kernel {key} in {folder()} is damaged or not ours. It is compiled again.")


def write(key: str, content: bytes) -> None:
    """Keep content under a key; where that cannot be, keep nothing."""
    place = usable_folder(make=True)
    if place is None:
        return
    with suppress(OSError):
        with NamedTemporaryFile(dir=place, suffix=UNFINISHED, delete=False) as file:  # readable by its owner alone
            file.write(heading(key, content) + content)
        try:
            Path(file.name).replace(place / f"{key}{SUFFIX}")
        finally:
            Path(file.name).unlink(missing_ok=True)  # where it could not be moved
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
    for facts, path in entries(place, UNFINISHED):
        if time() - facts.st_mtime > ABANDONED:
            path.unlink(missing_ok=True)


def entries(place: Path | None, suffix: str = SUFFIX) -> list[tuple[os.stat_result, Path]]:
    """Return the facts and the path of every entry; what is no file is none."""
    found = []
    with suppress(OSError):
        kept = [*place.glob(f"*{suffix}"), *(place.glob(f"{NETWORKS}/*") if suffix == SUFFIX else ())] if place else []
        for path in kept:
            with suppress(OSError):  # another process may remove one meanwhile
                found.append((path.lstat(), path))
    return [(facts, path) for facts, path in found if stat.S_ISREG(facts.st_mode)]


def summary() -> tuple[int, int]:
    """Return how many kernels are kept, and their bytes."""
    sizes = [facts.st_size for facts, _ in entries(folder())]
    return len(sizes), sum(sizes)


def clear() -> int:
    """Remove all kernels and return how many there were."""
    place = folder()
    kernels = entries(place)
    for _, path in [*kernels, *entries(place, UNFINISHED)]:
        path.unlink(missing_ok=True)
    return len(kernels)


WARNED: set[str] = set()  # what this process has warned of


def warn_once(what: str, sentence: str) -> None:
    """Warn, unless this process has warned of the same thing."""
    if what not in WARNED:
        WARNED.add(what)
        warnings.warn(sentence, KernelFolderWarning, stacklevel=2)
