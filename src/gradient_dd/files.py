"""The one form of saved files: a .npz of plain arrays, one of them a JSON header with the checksum of all of it.

Learners, questions and networks are saved with `write_file` and read with `open_saved`. A flipped bit is never read as
another number, nothing is unpickled, and nothing is allocated before the sizes in the headers are compared with the
size of the file.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import BytesIO
from math import prod
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, NamedTuple
from zipfile import ZIP_STORED, ZipFile

import numpy as np

from gradient_dd.arrays import check_memory
from gradient_dd.errors import GradientDDError, Unquoted, bad_request, file_path

LONGEST_HEADER = 4096  # bytes of the header of an array; NumPy writes 118 for an array of numbers
MOST_PACKED = 1032  # bytes that one compressed byte can stand for
ODD = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError  # what odd content raises


class FileKind(NamedTuple):
    """The content of a file: a short name, the words for error messages, and a version."""

    name: str
    words: str
    version: int


class DamagedFileError(ValueError):
    """The file is not a .npz file of plain arrays, or it is damaged; the text says why."""


def write_file(path: Any, kind: FileKind, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a header of JSON values and arrays to a new file, then move it to `path` in one step."""
    target = file_path(f"The path of the {kind.name}", path)
    plain = {name: np.asanyarray(array) for name, array in arrays.items()}
    facts = {"kind": kind.name, "version": kind.version, **header}
    text = json.dumps(facts | {"checksum": checksum(facts, plain)})
    try:
        with replaced(target) as part, part.open("xb") as file:
            np.savez(file, header=np.array(text), **plain)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise bad_request(
            f"{str(path)!r}", "be a file that can be written", Unquoted(error.strerror or "an error")
        ) from None


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Yield the path of a new file that replaces `target` in one step; if writing it fails, remove it."""
    check_regular(target)  # a device would be replaced too
    part = target.with_name(f"gradient-dd-{token_hex(8)}.part")  # threads, and containers with one pid, share no name
    try:
        yield part
        part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def check_regular(file: Path) -> None:
    """Raise if a path names a pipe or a device: opening one could wait forever, and SQLite would leave a journal."""
    try:
        odd = file.exists() and not (file.is_file() or file.is_dir())
    except (OSError, ValueError):  # opening the file will report the problem
        odd = False
    if odd:
        raise bad_request(f"{str(file)!r}", "be a regular file", Unquoted("a pipe or a device"))


def checksum(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a header and of the name, type, shape and bytes of every array."""
    found = sha256(json.dumps(header).encode())
    for name, array in sorted(arrays.items()):
        found.update(ascii((name, array.dtype.str, array.shape)).encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


@contextmanager
def open_saved(path: Any, kind: FileKind) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the header and the arrays of a saved file; any problem is reported in one sentence.

    This includes the body of the `with` statement: an ordinary error that odd content raises there means that the file
    is damaged.
    """
    place = file_path(f"The path of the {kind.name}", path)
    try:
        arrays = read_arrays(place)
        header = json.loads(str(arrays.pop("header")))
        if header["kind"] != kind.name:
            raise DamagedFileError(f"a file of kind {header['kind']!r}")
        if header["version"] != kind.version:
            rule, hint = f"be of version {kind.version}", "Another gradient-dd wrote it: please make it again."
            raise bad_request(f"{str(path)!r}", rule, header["version"], hint)
        if header.pop("checksum") != checksum(header, arrays):
            raise DamagedFileError("another checksum")
        yield header, arrays
    except GradientDDError:
        raise
    except OSError as error:
        raise bad_request(
            f"{str(path)!r}", "be a file that can be read", Unquoted(error.strerror or "a damaged one")
        ) from None
    except ODD:
        got = Unquoted("another file, a damaged one, or one of an older version")
        raise bad_request(f"{str(path)!r}", f"be {kind.words}", got) from None


def read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the arrays of a .npz file by name, all or some; the others are not unpacked.

    Raise OSError if the file cannot be opened, DamagedFileError if it is damaged.
    """
    with opened_npz(path) as file:
        shapes = check_sizes(file, names)
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:  # it checks the checksum of every array
            return {name: archive[name] for name in (shapes if names is None else names)}


def array_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of a .npz file by name, from their headers; raise like `read_arrays`."""
    with opened_npz(path) as file:
        return check_sizes(file, ())


@contextmanager
def opened_npz(path: Path) -> Iterator[IO[bytes]]:
    """Yield an open .npz file; any error in the body becomes a DamagedFileError."""
    check_regular(path)
    with path.open("rb") as file:
        try:
            yield file
        except (DamagedFileError, GradientDDError):
            raise
        except Exception as error:  # `zipfile`, `zlib` and NumPy raise errors without a common class
            words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise DamagedFileError(words) from None


def check_sizes(file: IO[bytes], names: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all arrays of an open .npz file; raise unless they are numbers or text and fit in the file.

    The arrays with `names` (None: all) must also fit in memory.
    """
    size, shapes, wanted = os.fstat(file.fileno()).st_size, {}, 0
    with ZipFile(file) as archive:
        for member in archive.infolist():
            with archive.open(member) as opened:
                begin = BytesIO(opened.read(LONGEST_HEADER))
            first = np.lib.format.read_magic(begin) == (1, 0)
            read_header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
            shape, _, kind = read_header(begin, max_header_size=LONGEST_HEADER)
            if kind.kind not in "biufU" or any(length < 0 for length in shape):
                raise DamagedFileError(f"an array of {kind} of shape {shape}")
            content = prod(shape) * kind.itemsize
            most = size if member.compress_type == ZIP_STORED else size * MOST_PACKED
            if member.file_size > most or member.file_size != begin.tell() + content:
                raise DamagedFileError(f"an array of shape {shape} in {member.file_size} bytes")
            name = member.filename.removesuffix(".npy")
            shapes[name] = shape
            wanted += content if names is None or name in names else 0
            check_memory(f"The array {member.filename!r}, with those before it,", wanted, "Use fewer rows or columns.")
    return shapes
