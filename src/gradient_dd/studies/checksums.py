"""Checksums: 64 bits that stand for what was written, so that damage is noticed when it is read.

    text, bytes   BLAKE2b with 8 bytes, read as a little-endian integer
    a row         BLAKE2b of its cells as Python writes them: ascii((cell, cell, …))
    a curve       BLAKE2b of "KEY RUN " and the bytes of its points
    a result      h ← mix(h XOR word), from h = 0, over four words: the checksum of its setting's key, the run, and two
                  numbers, last100 and area, or diverged_step and diverged_episode; a float is its 64 bits, mix the
                  last step of SplitMix64

A file has hundreds of thousands of results, and BLAKE2b would take 0.6 µs for each, a seventh of an export. So results
have a checksum that NumPy computes, in 0.04 µs. mix is one to one: a single changed word always changes the checksum.
Any other damage goes unnoticed once in 2⁶⁴ cases, by either kind of checksum.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array, Integers

Words = NDArray[np.uint64]


def checksum(data: bytes | str) -> int:
    """Return the checksum of bytes or of a text, as a signed integer that SQLite can hold."""
    raw = data.encode() if isinstance(data, str) else data
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "little", signed=True)


def row_checksum(cells: Iterable[Any]) -> int:
    """Return the checksum of a row of numbers, texts, bytes and None."""
    return checksum(ascii(tuple(cells)))


def curve_checksum(key: str, run: int, points: bytes) -> int:
    """Return the checksum of the curve of a setting's run."""
    return checksum(f"{key} {run} ".encode() + points)


def result_checksums(keys: Integers, run: Integers, *numbers: Array | Integers) -> Words:
    """Return the checksum of each result; every array is (results,), and `keys` are checksums of the settings' keys."""
    total = np.zeros(len(keys), np.uint64)
    for column in (keys, run, *numbers):
        total ^= np.ascontiguousarray(column + 0).view(np.uint64)  # -0.0 + 0 is 0.0; SQLite has no -0.0 either
        mix(total)
    return total


def mix(words: Words) -> None:
    """Mix the bits of each word of 64 bits, in place: the last step of SplitMix64."""
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
