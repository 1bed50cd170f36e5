"""Reading .npz files that may be damaged or hostile: nothing is unpickled, and sizes are checked before reading."""

from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np

from gradient_dd.arrays import check_memory
from gradient_dd.errors import GradientDDError

LONGEST_HEADER = 4096  # bytes; NumPy writes 118 for an array of numbers


class DamagedError(ValueError):
    """The file is not a .npz file of plain arrays, or not whole; the text says why."""


def read_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of a .npz file by name. Raise OSError if it cannot be opened, DamagedError if it is damaged.

    Every array is checked against the checksum that the file holds of it.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DamagedError("a pipe or a device")  # opening one could wait for ever
    with path.open("rb") as file:
        try:
            with ZipFile(file) as archive:
                members = archive.infolist()
                if len({member.filename for member in members}) < len(members):
                    raise DamagedError("two arrays of one name")
                return {member.filename.removesuffix(".npy"): read_member(archive, member) for member in members}
        except (DamagedError, GradientDDError):
            raise
        except Exception as error:  # what `zipfile`, `zlib` and NumPy raise for damaged bytes has no common class
            raise DamagedError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__) from None


def read_member(archive: ZipFile, member: ZipInfo) -> Any:
    """Return one array, after its header was compared with its size."""
    with archive.open(member) as opened:
        begin = BytesIO(opened.read(LONGEST_HEADER))
    version = np.lib.format.read_magic(begin)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, in_columns, kind = read_header(begin, max_header_size=LONGEST_HEADER)
    if kind.hasobject or kind.kind not in "biufU":
        raise DamagedError(f"an array of {kind}")
    if any(length < 0 for length in shape):
        raise DamagedError(f"an array of shape {shape}")
    count = 1
    for length in shape:
        count *= length
    check_memory(f"The array {member.filename!r}", count * kind.itemsize, "Use fewer rows or columns.")
    if member.file_size != begin.tell() + count * kind.itemsize:  # before more is unpacked than the header says
        raise DamagedError(f"an array of shape {shape} in {member.file_size} bytes")
    content = archive.read(member)  # the checksum is compared here
    flat = np.frombuffer(content, kind, offset=begin.tell())
    return flat.reshape(shape, order="F" if in_columns else "C").copy()
