"""Rows of a query as columns of numbers. SQLite lets any cell hold anything, so rows that do not fit are set apart."""

from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np

TYPES = {"q": int, "d": float}  # what SQLite returns for a cell that fits


def columns_of(rows: Iterable[tuple[Any, ...]], kinds: str) -> tuple[list[Any], list[tuple[Any, ...]]]:
    """Return the columns of rows as arrays, and the rows that do not fit.

    `kinds` has a letter for each column: "q" for integers of 64 bits, "d" for floats.
    """
    columns, misfits = [array(kind) for kind in kinds], list[tuple[Any, ...]]()
    for some in batches(rows):
        try:
            parts = [array(kind, cells) for kind, cells in zip(kinds, zip(*some, strict=True), strict=True)]
        except (TypeError, OverflowError):
            misfits += [row for row in some if not fits(row, kinds)]
            good = [row for row in some if fits(row, kinds)]
            parts = [array(kind, [row[i] for row in good]) for i, kind in enumerate(kinds)]
        for column, part in zip(columns, parts, strict=True):
            column.extend(part)
    return [np.frombuffer(column, np.int64 if column.typecode == "q" else float) for column in columns], misfits


def fits(row: tuple[Any, ...], kinds: str) -> bool:
    """Return whether each cell of a row is a number of its kind."""
    return all(isinstance(cell, TYPES[kind]) for cell, kind in zip(row, kinds, strict=True))


def batches(rows: Iterable[Any], size: int = 4096) -> Iterator[list[Any]]:
    """Yield rows in lists of at most `size`."""
    remaining = iter(rows)
    while some := list(islice(remaining, size)):
        yield some
