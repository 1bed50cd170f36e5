"""Conversion of the cells of a column to numbers, flags, names of episodes or actions; errors name the row.

A text cell has the value that it spells, so a CSV file, whose cells are all text, gives the same rows as other formats.
"""

import re
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.errors import Unquoted, bad_request

MISSING = (  # texts of missing cells
    *("", "NaN", "nan", "-NaN", "-nan", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "NULL", "null"),
    *("None", "<NA>", "NaT", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
NO_NAMES = ("true", "false", "inf", "infinity")  # texts that are flags or numbers in other formats
EXACT = 2**53  # floats above this skip whole numbers, so two episodes may share a number
FLOAT = re.compile(r"[+-]?\d+(\.\d*(e[+-]?\d+)?|e[+-]\d+)", re.IGNORECASE)  # floats in the notation of programs
NAME = "be a whole number or the name of an episode"
PLAIN = "biuf"  # types of NumPy arrays that hold real numbers
CELLS = "OUT"  # types of NumPy arrays whose cells are checked one by one: objects and text
KINDS = {"c": "complex numbers", "M": "dates", "m": "durations", "S": "bytes", "V": "records", "b": "flags"}


def objects(cells: list[Any]) -> Any:
    """Return cells of any type as an array of objects, (n,)."""
    return np.fromiter(cells, dtype=object, count=len(cells))


def as_column(name: Any, values: Any) -> Any:
    """Return a column as an array with unchanged cells; a masked cell is missing.

    NumPy alone would turn whole numbers next to text into text, and large whole numbers into floats.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        cells = np.array(values.data, dtype=object)
        cells[np.ma.getmaskarray(values)] = None
        return cells
    listed = isinstance(values, list | tuple)
    if listed and len(set(map(type, values))) > 1:
        return objects(list(values))
    try:
        array = np.asarray(values)
    except Exception:  # lists of several lengths, or an object that NumPy cannot convert
        if listed:
            return objects(list(values))
        raise bad_request(f"The column {name!r}", "be an array", values) from None
    if listed and array.dtype.kind == "f" and array.size and type(values[0]) is int:  # too large for NumPy's integers
        return objects(list(values))
    if array.ndim == 0 and array.dtype.kind not in "biufU":
        raise bad_request(f"The column {name!r}", "be an array", values)
    return array


def from_arrow(column: Any) -> Any:
    """Return an Arrow column as a NumPy array: lists of equal length become rows; missing cells are NaN or None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return from_arrow(column.dictionary_decode())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        width = pc.list_value_length(column).unique().to_pylist() if not column.null_count else []
        flat = from_arrow(column.flatten()) if len(width) == 1 and width[0] else None
        if flat is not None and flat.ndim == 1:
            return flat.reshape(len(column), width[0])
        return objects(column.to_pylist())
    if column.null_count and not pa.types.is_floating(kind):
        return objects(column.to_pylist())
    return column.to_numpy(zero_copy_only=False)


def number_of(cell: Any) -> float | None:
    """Return a cell as a number: NaN if the cell is missing, None if it is not a number."""
    if isinstance(cell, str):
        word = cell.strip()
        if word in MISSING:
            return np.nan
        if word.lower() in ("true", "false"):
            return float(word.lower() == "true")
        if "_" in word or not word.isascii():  # Python accepts 1_000, and the digits of all scripts
            return None
    elif is_missing(cell):
        return np.nan
    elif not isinstance(cell, Real | Decimal | np.bool_):
        return None
    try:
        return float(cell)
    except OverflowError:
        return np.inf
    except ValueError:
        return None


def is_missing(cell: Any) -> bool:
    """Return whether a cell that is not text is missing; pandas has its own objects for missing cells."""
    not_itself = isinstance(cell, float | np.floating | np.datetime64) and cell != cell
    return not_itself or cell is None or type(cell).__name__ in ("NAType", "NaTType", "MaskedConstant")


def text_of(cell: Any) -> str | None:
    """Return the text of a cell in a text column; None if the cell is missing."""
    if not isinstance(cell, str) and is_missing(cell):
        return None
    try:
        word = str(cell).strip()
    except Exception:  # `str` of a user's class may raise anything, and `str` of an integer with 4,301 digits does
        if isinstance(cell, int):
            return hex(cell)
        raise bad_request("A cell of a log", "be a number or text", cell) from None
    return None if word in MISSING else word


def is_text(values: Any) -> bool:
    """Return whether at least half of the non-missing cells of a column are text that does not spell a number."""
    if values.ndim != 1 or values.dtype.kind not in CELLS:
        return False
    cells = [cell for cell in values.tolist() if not is_list(cell) and text_of(cell) is not None]
    words = sum(isinstance(cell, str) and number_of(cell) is None for cell in cells)
    return words > 0 and 2 * words >= len(cells)


def as_numbers(name: str, values: Any, first: int, rule: str = "be a number") -> Array:
    """Return a column as floats of its shape, NaN for missing cells; `first` is the number of its first row."""
    kind = values.dtype.kind
    if kind in PLAIN:
        with np.errstate(over="ignore"):
            return np.asarray(values.astype(float))
    if kind not in CELLS:
        raise bad_request(f"Column {name!r} in row {first:,}", rule, Unquoted(KINDS.get(kind, str(values.dtype))))
    cells = values.ravel().tolist()
    found = list(map(number_of, cells))
    if None in found:
        at = found.index(None)
        row = first + at // (len(cells) // len(values))
        raise bad_request(f"Column {name!r} in row {row:,}", rule, cells[at])
    return np.array(found, float).reshape(values.shape)


def as_matrix(name: str, values: Any, first: int, width: int | None) -> tuple[Array, Integers]:
    """Return a column of numbers, or of lists of numbers, as (n, d), and the number of values in each row.

    d is `width`, or the length of the first list. Rows of another length, and missing rows, are NaN.
    """
    if values.dtype.kind == "O" and values.ndim == 1:
        values, sizes = unpacked(values, width)
    elif values.ndim > 2:
        rule = "have a number or a list of numbers in each row"
        raise bad_request(f"Column {name!r}", rule, Unquoted(f"{values.shape}"))
    else:
        values = values.reshape(len(values), -1)
        sizes = np.full(len(values), values.shape[1])
    if values.shape[1] == 0:
        row = first + int(np.argmax(sizes == 0))
        raise bad_request(f"Column {name!r} in row {row:,}", "have at least one number", Unquoted("none"))
    found = as_numbers(name, values, first)
    if width is not None and found.shape[1] != width:
        found = np.full((len(found), width), np.nan)
    return found, sizes


def unpacked(values: Any, width: int | None) -> tuple[Any, Integers]:
    """Return a column of objects as cells (n, d), and the number of cells in each row; -1 for a missing row."""
    if isinstance(values[0], np.ndarray | list):
        try:
            quick = np.array(values.tolist())
        except ValueError:  # lists of several lengths
            quick = values
        if quick.ndim == 2 and quick.dtype.kind in PLAIN:
            return quick, np.full(len(quick), quick.shape[1])
    rows = [list(cell) if is_list(cell) else [cell] for cell in values]
    given = [is_list(cell) or not is_missing(cell) for cell in values]
    sizes = np.where(given, list(map(len, rows)), -1)
    if width is None:
        width = int(sizes[sizes >= 0][0]) if (sizes >= 0).any() else 1
    blank = [None] * width
    cells = [cell for row, size in zip(rows, sizes, strict=True) for cell in (row if size == width else blank)]
    return objects(cells).reshape(len(rows), width), sizes


def is_list(cell: Any) -> bool:
    """Return whether a cell is a list of cells."""
    return isinstance(cell, list | tuple) or (isinstance(cell, np.ndarray) and cell.ndim > 0)


def as_actions(values: Any) -> Any:
    """Return actions as policies receive them: whole numbers as integers in every format, others as they are."""
    if values.dtype.kind in CELLS and values.ndim == 1:
        found = list(map(number_of, values.tolist()))
        if None not in found:
            numbers = np.array(found, float)
            large = (np.abs(numbers) >= EXACT).any() and all(
                re.fullmatch(r"\s*[+-]?\d+\s*", cell) if isinstance(cell, str) else isinstance(cell, Integral)
                for cell in values.tolist()
            )
            values = np.array([int(cell) for cell in values.tolist()]) if large else numbers
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    whole = values.dtype.kind == "f" and (values == np.floor(values)).all() and (np.abs(values) < EXACT).all()
    return values.astype(np.int64) if whole else values


def as_names(name: str, values: Any, first: int, known: str) -> tuple[Any, Booleans, str]:
    """Return the names of episodes (n,), a mask of the missing names, and the type of the names.

    The type is "number", "text" or "date", and "" if no name is known yet. A column has names of one type;
    `known` is the type of the names in earlier rows.
    """
    kind = values.dtype.kind
    if values.ndim != 1 or kind not in "iufM" + CELLS:
        got = f"an array {values.shape}" if values.ndim != 1 else KINDS.get(kind, str(values.dtype))
        raise bad_request(f"Column {name!r} in row {first:,}", NAME, Unquoted(got))
    if kind in "iu" and known in ("", "number"):
        return values, np.zeros(len(values), bool), "number"
    try:
        begins = np.concatenate([[True], values[1:] != values[:-1]]).astype(bool)
    except (OverflowError, TypeError, ValueError):  # cells that cannot be compared
        begins = np.ones(len(values), bool)
    where = np.flatnonzero(begins)
    cells = list(values[where]) if kind == "M" else values[where].tolist()
    kinds = list(map(kind_of_name, cells))
    for at, cell, found in zip(where, cells, kinds, strict=True):
        known = known or found or ""
        if found not in ("", known):
            rule = NAME if found is None else f"be a {known}, as before"
            raise bad_request(f"Column {name!r} in row {first + at:,}", rule, cell)
    missing = np.repeat([not found for found in kinds], np.diff([*where, len(values)]))
    return values, missing, known


def kind_of_name(cell: Any) -> str | None:
    """Return the type of a name of an episode: "" if it is missing, None if it is not a name."""
    if isinstance(cell, str):
        word = cell.strip()
        if word in MISSING or word.lower() in ("nan", "null", "none"):
            return ""
        merged = FLOAT.fullmatch(word) and abs(float(word)) > EXACT
        return None if merged or word.lower().lstrip("+-") in NO_NAMES else "text"
    if is_missing(cell):
        return ""
    if isinstance(cell, date | np.datetime64):
        return "date"
    if isinstance(cell, bool | np.bool_) or not isinstance(cell, Real | Decimal):
        return None
    if isinstance(cell, Decimal) and not cell.is_finite():
        return None
    size: Any = abs(cell)  # not converted: a fraction may be too large for a float
    return "number" if isinstance(cell, Integral) or size <= EXACT else None
