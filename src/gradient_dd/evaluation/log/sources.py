"""Where the rows of a log come from: Parquet, CSV, NumPy files, data frames, dictionaries of arrays, Minari datasets.

A source names its columns and yields them in chunks, in order, as often as asked. Files are streamed: a chunk is all
that is in memory. There is no Python for single rows.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.errors import GradientDDError, Words, extra, file_path, must
from gradient_dd.evaluation.log.columns import USUAL
from gradient_dd.files import DamagedFileError, read_arrays

CHUNK = 65_536  # rows
CSV_BYTES = 8 << 20  # of a block of a CSV file
FLAGS = {name for role in ("terminated", "truncated", "done") for name in USUAL[role]}
Chunk = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A log: its name, the names of its columns, and `chunks(columns)`, which yields them as arrays."""

    name: str
    names: list[str]
    chunks: Callable[[list[str]], Iterator[Chunk]]


def open_log(log: Any) -> Source:
    """Return the source of a log: a path, a data frame, a dictionary of arrays or a Minari dataset."""
    if isinstance(log, Mapping):
        return arrays_source("the arrays", {str(name): np.asarray(values) for name, values in log.items()})
    if hasattr(log, "iterate_episodes"):
        from gradient_dd.evaluation.log.minari_source import minari_source

        return minari_source(log)
    if hasattr(log, "columns") and hasattr(log, "iloc"):
        return frame_source(log)
    if isinstance(log, str) and log.startswith("minari:"):
        from gradient_dd.evaluation.log.minari_source import load_minari

        return load_minari(log.removeprefix("minari:"))
    file = file_path("A log", log)
    kinds = {
        ".parquet": parquet_source,
        ".pq": parquet_source,
        ".csv": csv_source,
        ".npz": npz_source,
        ".npy": npy_source,
    }
    if file.suffix.lower() not in kinds:
        raise must("A log", "be a .parquet, .csv, .npz or .npy file, a data frame, or minari:NAME", str(log))
    if not file.is_file():
        raise must("A log", "be a file", str(file))
    return guarded(file, kinds[file.suffix.lower()])


def guarded(file: Path, reader: Callable[[Path], Source]) -> Source:
    """Return the source of a file; whatever goes wrong while it is read is one sentence."""

    def safely(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        seen = 0
        try:
            for chunk in chunks:
                yield chunk
                seen += len(next(iter(chunk.values())))
        except (GradientDDError, MemoryError):
            raise
        except (OSError, ValueError, EOFError) as error:
            raise unreadable(file, error, seen) from None

    try:
        source = reader(file)
    except GradientDDError:
        raise
    except (OSError, ValueError, EOFError) as error:
        raise unreadable(file, error, 0) from None
    return Source(source.name, source.names, lambda columns: safely(source.chunks(columns)))


def unreadable(file: Path, error: Exception, seen: int) -> GradientDDError:
    """Return the error for a file that is cut off, damaged, or not what its name says."""
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    where = f" after row {seen - 1:,}" if seen else ""
    if file.suffix.lower() == ".csv" and (row := torn_row(file)) is not None:
        where, first = f" in row {row:,}", first.removeprefix("CSV parse error: ")
    return must(f"The log {file.name}", f"be readable{where}", Words(first[:200].rstrip(".")))


def torn_row(file: Path) -> int | None:
    """Return the first row of a CSV file that has too few or too many cells; the file is read again, line by line."""
    import pyarrow as pa
    from pyarrow import csv

    try:
        with csv.open_csv(file, read_options=csv.ReadOptions(use_threads=False)) as opened:
            for _ in opened:
                pass
    except pa.ArrowInvalid as error:
        if found := re.search(r"Row #(\d+)", str(error)):
            return int(found[1]) - 2  # it counts from 1, and the names of the columns too
    return None


def arrays_source(name: str, arrays: dict[str, Any]) -> Source:
    """Return the source of arrays in memory, each with one entry or row for each transition."""
    lengths = {len(one) if np.ndim(one) else -1 for one in arrays.values()}
    if len(lengths) > 1 or -1 in lengths:
        shapes = ", ".join(f"{key}: {np.shape(one)}" for key, one in arrays.items())
        raise must(f"The columns of {name}", "have the same length", Words(shapes))
    n = lengths.pop() if lengths else 0

    def chunks(columns: list[str]) -> Iterator[Chunk]:
        for begin in range(0, n, CHUNK):
            yield {column: arrays[column][begin : begin + CHUNK] for column in columns}

    return Source(name, list(arrays), chunks)


def frame_source(frame: Any) -> Source:
    """Return the source of a pandas frame."""

    def chunks(columns: list[str]) -> Iterator[Chunk]:
        for begin in range(0, len(frame), CHUNK):
            part = frame.iloc[begin : begin + CHUNK]
            yield {column: part[column].to_numpy() for column in columns}

    names = list(map(str, frame.columns))
    if len(set(names)) < len(names) or names != list(frame.columns):
        raise must("The columns of a frame", "have different names, as text", list(frame.columns))
    return Source("the frame", names, chunks)


def npz_source(file: Path) -> Source:
    """Return the source of the arrays of a .npz file."""
    try:
        return arrays_source(file.name, read_arrays(file))
    except DamagedFileError as error:
        raise must(f"The log {file.name}", "be readable", Words(error)) from None


def npy_source(file: Path) -> Source:
    """Return the source of a .npy file of records; it is mapped, not read."""
    records = np.load(file, mmap_mode="r", allow_pickle=False)
    if records.dtype.names is None:
        raise must(f"The log {file.name}", "have named fields", Words(f"an array {records.shape} of {records.dtype}"))
    return arrays_source(file.name, {name: records[name] for name in records.dtype.names})


def parquet_source(file: Path) -> Source:
    """Return the source of a Parquet file."""
    with extra("parquet"):
        import pyarrow.parquet as pq

    def chunks(columns: list[str]) -> Iterator[Chunk]:
        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(batch_size=CHUNK, columns=columns):
                yield as_arrays(batch)

    with pq.ParquetFile(file) as opened:
        return Source(file.name, list(opened.schema_arrow.names), chunks)


def csv_source(file: Path) -> Source:
    """Return the source of a CSV file whose first line names the columns."""
    with extra("parquet"):
        import pyarrow as pa
        from pyarrow import csv

    with csv.open_csv(file, read_options=csv.ReadOptions(block_size=CSV_BYTES)) as opened:
        names, inferred = list(opened.schema.names), opened.schema

    def chunks(columns: list[str]) -> Iterator[Chunk]:
        kinds = {
            name: pa.bool_() if pa.types.is_boolean(inferred.field(name).type) else pa.float64() for name in columns
        }
        for name in columns:
            if name.lower() in USUAL["episode"] and pa.types.is_string(inferred.field(name).type):
                kinds[name] = pa.string()
        convert = csv.ConvertOptions(include_columns=columns, column_types=kinds)
        try:
            with csv.open_csv(
                file, read_options=csv.ReadOptions(block_size=CSV_BYTES), convert_options=convert
            ) as opened:
                for batch in opened:
                    yield as_arrays(batch)
        except pa.ArrowInvalid as error:
            if "conversion error" in str(error):
                refuse_text(file, [name for name in columns if kinds[name] != pa.string()])
            raise

    return Source(file.name, names, chunks)


def refuse_text(file: Path, columns: list[str]) -> None:
    """Raise with the row and the column of the first text that is no number; the file is read again, as text."""
    import pyarrow as pa
    from pyarrow import csv

    convert = csv.ConvertOptions(
        include_columns=columns, column_types=dict.fromkeys(columns, pa.string()), strings_can_be_null=True
    )
    row = 0
    with csv.open_csv(file, read_options=csv.ReadOptions(block_size=CSV_BYTES), convert_options=convert) as opened:
        for batch in opened:
            for at, cells in enumerate(zip(*(column.to_pylist() for column in batch.columns), strict=True)):
                for name, cell in zip(columns, cells, strict=True):
                    if cell is not None and not is_number(cell):
                        raise must(f"Column {name!r} in row {row + at:,}", "be a number", cell)
            row += batch.num_rows


def is_number(text: str) -> bool:
    """Return whether a text is a number, or true or false."""
    try:
        float(text)
    except ValueError:
        return text.strip().lower() in ("true", "false")
    return True


def as_arrays(batch: Any) -> Chunk:
    """Return the columns of an Arrow batch as NumPy arrays; a missing number is NaN, a list of numbers a row."""
    import pyarrow as pa

    found: Chunk = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = column.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            flat = column.flatten().to_numpy(zero_copy_only=False)
            width = len(flat) // max(1, len(column))
            if width * len(column) != len(flat):
                raise must(f"The lists of column {name!r}", "have the same length", Words("several lengths"))
            found[name] = flat.reshape(len(column), width)
        elif pa.types.is_boolean(kind) and column.null_count:
            found[name] = column.cast(pa.int8()).cast(pa.float64()).to_numpy(zero_copy_only=False)
        else:
            found[name] = column.to_numpy(zero_copy_only=False)
    return found
