"""The format of saved files: a .npz of plain arrays and a JSON header with a checksum of all contents.

`write_file` saves learners, questions and networks, and `open_saved` reads them. The checksum detects flipped bits,
nothing is unpickled, and the sizes in the headers are compared with the size of the file before memory is allocated.
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
from gradient_dd.errors import BadRequestError, GradientDDError, Unquoted, bad_request, file_path

LONGEST_HEADER = 4096  # maximum bytes of an array's header; NumPy writes 118 for an array of numbers
MOST_PACKED = 1032  # maximum compression ratio of a .npz file
ODD = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError  # errors of malformed content


class FileKind(NamedTuple):
    """A type of file: its short name, its description in error messages, and its version."""

    name: str
    words: str
    version: int


class DamagedFileError(ValueError):
    """The file is damaged, or not a .npz file of plain arrays; the message says why."""


def write_file(path: Any, kind: FileKind, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a JSON header and arrays to a temporary file, then move it to `path` atomically."""
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
        raise BadRequestError(f"Cannot write {str(path)!r}: {error.strerror or error}.") from None


@contextmanager
def replaced(target: Path) -> Iterator[Path]:
    """Yield the path of a temporary file that replaces `target` atomically; remove it if the block fails."""
    check_regular(target)  # the replacement would also replace a device
    part = target.with_name(f"gradient-dd-{token_hex(8)}.part")  # unique across threads and containers
    try:
        yield part
        part.replace(target)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def check_regular(file: Path) -> None:
    """Raise for a pipe or a device, because opening either could block forever, and SQLite would leave a journal."""
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
    """Yield the header and the arrays of a saved file; raise an error of one sentence if the file is not valid.

    Errors that malformed content raises in the body of the `with` statement are also reported as a damaged file.
    """
    place = file_path(f"The path of the {kind.name}", path)
    try:
        arrays = read_arrays(place)
        header = json.loads(str(arrays.pop("header")))
        if header["kind"] != kind.name:
            raise DamagedFileError(f"a file of kind {header['kind']!r}")
        if header["version"] != kind.version:
            rule, hint = f"be of version {kind.version}", "Another version of gradient-dd wrote it. Create it again."
            raise bad_request(f"{str(path)!r}", rule, header["version"], hint)
        if header.pop("checksum") != checksum(header, arrays):
            raise DamagedFileError("another checksum")
        yield header, arrays
    except GradientDDError:
        raise
    except OSError as error:
        raise BadRequestError(f"Cannot read {str(path)!r}: {error.strerror or error}.") from None
    except ODD:
        got = Unquoted("a damaged file, a file of another type, or a file of an older version")
        raise bad_request(f"{str(path)!r}", f"be {kind.words}", got) from None


def read_arrays(path: Path, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Return all arrays of a .npz file by name, or only the arrays in `names`; other arrays are not unpacked.

    Raise OSError if the file cannot be opened, and DamagedFileError if it is damaged.
    """
    with opened_npz(path) as file:
        shapes = check_sizes(file, names)
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:  # this verifies the checksum of every array
            return {name: archive[name] for name in (shapes if names is None else names)}


def array_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of a .npz file by name, read from the headers; raise like `read_arrays`."""
    with opened_npz(path) as file:
        return check_sizes(file, ())


@contextmanager
def opened_npz(path: Path) -> Iterator[IO[bytes]]:
    """Yield an open .npz file; an unexpected error in the body becomes a DamagedFileError."""
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
    """Return the shapes of all arrays in an open .npz file; raise if a type or a size is not valid.

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
            check_memory(f"All arrays up to {member.filename!r}", wanted, "Use fewer rows or columns.")
    return shapes
