"""The one form of saved files: a JSON header and plain arrays in one .npz, written whole and read only if unchanged.

Learners, feature maps and evaluations are saved with `write_file` and read with `open_saved`. The last bytes of a file
are the SHA-256 of all bytes before them, so that no flipped bit is read as another number. Nothing is unpickled, and
sizes are compared with what the file has before anything is allocated.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZipFile, ZipInfo

import numpy as np

from gradient_dd.arrays import check_memory
from gradient_dd.errors import BadRequestError, GradientDDError, Unquoted, bad_request, file_path

LONGEST_HEADER = 4096  # bytes of the header of an array; NumPy writes 118 for an array of numbers
CHECKSUM = 64  # hexadecimal digits, kept as the comment of the .zip archive, which are its last bytes
PIECE = 2**20  # bytes that are read at a time for the checksum
ODD = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError  # what odd content raises


class FileKind(NamedTuple):
    """What a file holds: a short name, the words of a sentence about it, and the version of its content."""

    name: str
    words: str
    version: int


class DamagedFileError(ValueError):
    """The file is not a .npz file of plain arrays, or not whole; the text says why."""


def write_file(path: Any, kind: FileKind, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a header of JSON values and arrays to a new file, then put that file in its place in one step."""
    target = file_path(f"The path of the {kind.name}", path)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    text = json.dumps({"kind": kind.name, "version": kind.version, **header})
    try:
        with part.open("w+b") as file:
            with ZipFile(file, "w") as archive:
                archive.comment = bytes(CHECKSUM)
                for name, array in {"header": np.array(text), **arrays}.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
            checksum = checksum_of(file)
            file.seek(-CHECKSUM, os.SEEK_END)
            file.write(checksum)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise bad_request(
            f"{str(path)!r}", "be a file that can be written", Unquoted(error.strerror or "an error")
        ) from None


@contextmanager
def open_saved(path: Any, kind: FileKind) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the header and the arrays of a saved file. What is wrong with them is said in one sentence.

    That holds for the body of the `with` statement too: an ordinary error that odd content raises there means that the
    file is not what it should be.
    """
    place = file_path(f"The path of the {kind.name}", path)
    try:
        arrays = read_arrays(place, sealed=True)
        header = json.loads(str(arrays.pop("header")))
        if header["kind"] != kind.name:
            raise DamagedFileError(f"a file of kind {header['kind']!r}")
        if header["version"] != kind.version:
            rule, hint = f"be of version {kind.version}", "Another gradient-dd wrote it: please make it again."
            raise bad_request(f"{str(path)!r}", rule, header["version"], hint)
        yield header, arrays
    except GradientDDError:
        raise
    except OSError as error:
        raise bad_request(
            f"{str(path)!r}", "be a file that can be read", Unquoted(error.strerror or "a damaged one")
        ) from None
    except ODD:
        raise not_saved(path, kind) from None


def not_saved(path: Any, kind: FileKind) -> BadRequestError:
    """Return the error for a file that is not a whole file of this kind."""
    return bad_request(
        f"{str(path)!r}", f"be {kind.words}", Unquoted("another file, a damaged one, or one of an older version")
    )


def checksum_of(file: IO[bytes]) -> bytes:
    """Return the checksum of all bytes of an open file but the last ones, where the checksum itself stands."""
    left, found = file.seek(0, os.SEEK_END) - CHECKSUM, sha256()
    file.seek(0)
    while left > 0 and (piece := file.read(min(left, PIECE))):
        found.update(piece)
        left -= len(piece)
    return found.hexdigest().encode()


def read_arrays(path: Path, sealed: bool = False) -> dict[str, Any]:
    """Return the arrays of a .npz file by name. Raise OSError if it cannot be opened, DamagedFileError if damaged.

    Every array is checked against the checksum that the archive holds of it, and a `sealed` file against that of all
    its bytes.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DamagedFileError("a pipe or a device")  # opening one could wait for ever
    with path.open("rb") as file:
        if sealed:
            check_memory(f"The file {path.name!r}", os.fstat(file.fileno()).st_size, "Use fewer features.")
            if checksum_of(file) != file.read(CHECKSUM):
                raise DamagedFileError("another checksum")
        try:
            with ZipFile(file) as archive:
                members = archive.infolist()
                if len({member.filename for member in members}) < len(members):
                    raise DamagedFileError("two arrays of one name")
                return {member.filename.removesuffix(".npy"): read_member(archive, member) for member in members}
        except (DamagedFileError, GradientDDError):
            raise
        except Exception as error:  # what `zipfile`, `zlib` and NumPy raise for damaged bytes has no common class
            words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            raise DamagedFileError(words) from None


def read_member(archive: ZipFile, member: ZipInfo) -> Any:
    """Return one array, after its header was compared with its size."""
    with archive.open(member) as opened:
        begin = BytesIO(opened.read(LONGEST_HEADER))
    version = np.lib.format.read_magic(begin)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, in_columns, kind = read_header(begin, max_header_size=LONGEST_HEADER)
    if kind.hasobject or kind.kind not in "biufU":
        raise DamagedFileError(f"an array of {kind}")
    if any(length < 0 for length in shape):
        raise DamagedFileError(f"an array of shape {shape}")
    count = 1
    for length in shape:
        count *= length
    check_memory(f"The array {member.filename!r}", count * kind.itemsize, "Use fewer rows or columns.")
    if member.file_size != begin.tell() + count * kind.itemsize:  # before more is unpacked than the header says
        raise DamagedFileError(f"an array of shape {shape} in {member.file_size} bytes")
    content = archive.read(member)  # the checksum is compared here
    flat = np.frombuffer(content, kind, offset=begin.tell())
    return flat.reshape(shape, order="F" if in_columns else "C").copy()
