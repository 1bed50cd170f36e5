"""The folder that stores compiled kernels between processes: one file per key, which is checked when it is read.

    GRADIENT_DD_CACHE=/some/folder     store kernels there instead of in the user's cache folder
    GRADIENT_DD_CACHE=off              store nothing

Kernels are machine code. So the folder must belong to the user, nobody else may have access to it, and no other user
may be able to replace it; a new folder gets these permissions; without them, a folder is refused. If none is usable,
every process compiles its kernels, and one warning gives the reason. Every entry contains its key and a checksum: a
damaged or foreign entry is ignored, and the kernel is compiled again. Entries are written to a temporary file and then
moved, so no process reads half an entry. Beyond `LIMIT`, the least recently used entries are removed.
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
LIMIT = 256 * 2**20  # maximum size in bytes
SUFFIX, UNFINISHED = ".kernel", ".unfinished"
NETWORKS = "networks"  # the subfolder in which JAX stores compiled networks, in its own format
ABANDONED = 3600.0  # age in seconds at which an unfinished file counts as abandoned


class KernelFolderWarning(UserWarning):
    """A warning that compiled kernels cannot be stored, or that a stored kernel cannot be used."""


def folder() -> Path | None:
    """Return the kernel folder, which need not exist; None if storage is off or a required home folder is missing."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() == "off":
        return None
    try:
        if chosen:
            return Path(chosen).expanduser()
        if sys.platform == "win32":
            cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            cache = Path.home() / "Library" / "Caches"
        else:
            cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "gradient-dd" / "kernels"
    except RuntimeError:  # e.g. a container whose user has no home folder, or ~name of an unknown user
        refuse(f"there is no home folder for {chosen or 'this user'}. Set {VARIABLE} to your own folder, or to off.")
        return None


def usable_folder(make: bool = False) -> Path | None:
    """Return the folder if it exists and is safe to use, else None; `make` creates it."""
    place = folder()
    if place is None:
        return None
    try:
        if make:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts, above = place.stat(), [parent.stat() for parent in place.resolve().parents]
    except FileNotFoundError:  # no kernel has been stored yet
        return None
    except (OSError, RuntimeError) as error:
        refuse(f"the folder {place} cannot be used ({error}). Set {VARIABLE} to another folder, or to off.")
        return None
    if not is_private(facts) or not stat.S_ISDIR(facts.st_mode):
        refuse(f"the folder {place} must belong to you, and nobody else may have access to it. Try: chmod 700 {place}")
    elif any(map(lets_others_replace, above)):
        refuse(f"the folder {place} must not be inside a folder that every user can write to.")
    else:
        return place
    return None


def refuse(why: str) -> None:
    """Warn, once per process, that kernels are not stored."""
    warn_once("folder", f"Compiled kernels are not stored: {why}")


def is_private(facts: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user and is closed to others; always true on Windows."""
    return os.name == "nt" or (facts.st_uid == os.getuid() and not facts.st_mode & 0o077)


def lets_others_replace(facts: os.stat_result) -> bool:
    """Return whether every user may rename the contents of a folder; a sticky bit, as on /tmp, prevents this."""
    return os.name != "nt" and bool(facts.st_mode & 0o002) and not facts.st_mode & stat.S_ISVTX


def read(key: str) -> bytes | None:
    """Return the content that is stored under a key; None if there is no usable content."""
    place = usable_folder()
    if place is None:
        return None

    def open_at_once(path: str, flags: int) -> int:
        """Open a file without blocking: a FIFO of this name would block forever."""
        return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))

    try:
        with open(place / f"{key}{SUFFIX}", "rb", opener=open_at_once) as file:
            facts = os.fstat(file.fileno())
            text = file.read() if is_private(facts) and stat.S_ISREG(facts.st_mode) else b""
            with suppress(OSError):
                os.utime(file.name)  # marks the entry as recently used
    except FileNotFoundError:
        return None
    except OSError:  # a folder of this name, or an unreadable file
        text = b""
    content = text[len(heading(key, b"")) :]
    if text == heading(key, content) + content:
        return content
    report_damage(key)
    return None


def report_damage(key: str) -> None:
    """Warn, once per process, that an entry could not be used."""
    warn_once("damage", f"The kernel {key} in {folder()} is damaged or foreign. It is compiled again.")


def write(key: str, content: bytes) -> None:
    """Store content under a key if possible, and remove the least recently used entries beyond the limit."""
    place = usable_folder(make=True)
    if place is None:
        return
    with suppress(OSError):
        with NamedTemporaryFile(dir=place, suffix=UNFINISHED, delete=False) as file:  # only its owner may read it
            file.write(heading(key, content) + content)
        try:
            Path(file.name).replace(place / f"{key}{SUFFIX}")
        finally:
            Path(file.name).unlink(missing_ok=True)  # if the file could not be moved
        size = 0
        for facts, path in sorted(entries(place), key=lambda entry: -entry[0].st_mtime):
            size += facts.st_size
            if size > LIMIT:
                path.unlink(missing_ok=True)
        for facts, path in entries(place, UNFINISHED):
            if time() - facts.st_mtime > ABANDONED:
                path.unlink(missing_ok=True)


def heading(key: str, content: bytes) -> bytes:
    """Return the first lines of an entry: its type, its key and its checksum."""
    return f"gradient-dd kernel 1\n{key}\n{sha256(content).hexdigest()}\n".encode()


def entries(place: Path | None, suffix: str = SUFFIX) -> list[tuple[os.stat_result, Path]]:
    """Return the file status and the path of every entry that is a regular file."""
    found = []
    with suppress(OSError):
        kept = [*place.glob(f"*{suffix}"), *(place.glob(f"{NETWORKS}/*") if suffix == SUFFIX else ())] if place else []
        for path in kept:
            with suppress(OSError):  # another process may remove it in the meantime
                found.append((path.lstat(), path))
    return [(facts, path) for facts, path in found if stat.S_ISREG(facts.st_mode)]


def summary() -> tuple[int, int]:
    """Return the number of stored kernels and their total size in bytes."""
    sizes = [facts.st_size for facts, _ in entries(folder())]
    return len(sizes), sum(sizes)


def clear() -> int:
    """Remove all kernels and return their number."""
    place = folder()
    kernels = entries(place)
    for _, path in [*kernels, *entries(place, UNFINISHED)]:
        path.unlink(missing_ok=True)
    return len(kernels)


WARNED: set[str] = set()  # the topics of this process's warnings


def warn_once(topic: str, sentence: str) -> None:
    """Warn, unless this process has warned about the same topic."""
    if topic not in WARNED:
        WARNED.add(topic)
        warnings.warn(sentence, KernelFolderWarning, stacklevel=2)
