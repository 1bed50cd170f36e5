"""Sources of rows: Parquet, CSV and NumPy files, data frames, dictionaries of arrays, Minari datasets.

A source names its columns and yields them in pieces, in order, any number of times. Files are streamed: only one piece
is in memory. Python code runs for single rows only if cells are text or objects.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np

from gradient_dd.errors import GradientDDError, MissingExtraError, Unquoted, bad_request, file_path, foreign, one_line
from gradient_dd.files import array_shapes, read_arrays
from gradient_dd.stream.log.cells import MISSING, as_column, from_arrow
from gradient_dd.stream.log.columns import USUAL, listed

CHUNK = 65_536  # number of rows of a piece
PARQUET = (".parquet", ".pq")
CSV_BYTES = 8 << 20  # size of a block of a CSV file
Chunk = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """A log: its name, the names of its columns, and `chunks(columns, names)`, which yields the columns as arrays.

    The column `names` is read as text if the file does not store types: names of episodes and actions keep their
    spelling. `note` describes an unusual format. A folder has `files`; a Parquet file has its number of `rows` and
    `edge(columns, last)`, its first or last row.
    """

    name: str
    names: list[str]
    chunks: Callable[[list[str], str | None], Iterator[Chunk]]
    note: str = ""
    files: tuple["Source", ...] = ()
    rows: int = 0
    edge: Callable[[list[str], bool], Chunk] = lambda columns, last: {}
    path: Path | None = None

    def __reduce__(self) -> Any:
        """Return the call with which a worker opens the file again."""
        return open_log, (self.path,)

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(self.names).items() if count > 1 or not isinstance(name, str)]
        if twice:
            got = Unquoted(listed(tuple(twice)))
            raise bad_request(f"The columns of {self.name}", "have different names, as text", got)


def open_log(log: Any) -> Source:
    """Return the source of a log: a path, a data frame, a dictionary of arrays or a Minari dataset."""
    if isinstance(log, Mapping):
        arrays = {key: as_column(key, values) for key, values in log.items()}
        shapes = {key: array.shape for key, array in arrays.items()}
        return held_source("the arrays", list(arrays), shapes, lambda columns: arrays)
    if hasattr(log, "columns") and hasattr(log, "iloc"):
        shapes, names = dict.fromkeys(log.columns, (len(log),)), list(log.columns)
        load = lambda columns: {name: as_column(name, log[name].to_numpy()) for name in columns}  # noqa: E731
        return held_source("the frame", names, shapes, load)
    if hasattr(log, "iterate_episodes") or (isinstance(log, str) and log.startswith("minari:")):
        return minari_source(log)
    file = file_path("A log", log)
    if os.path.isdir(file):  # noqa: PTH112  (Path.is_dir raises for long names)
        return folder_source(file)
    readers = {**dict.fromkeys(PARQUET, parquet_source), ".csv": csv_source, ".npz": npz_source, ".npy": npy_source}
    reader = readers.get(file.suffix.lower())
    if reader is None:
        rule = "be a .parquet, .csv, .npz or .npy file, a folder of Parquet files, a data frame, or minari:NAME"
        raise bad_request("A log", rule, str(log))
    return file_source(file, reader)


def folder_source(folder: Path) -> Source:
    """Return the source of the Parquet files of a folder, one after the other in the order of their names."""
    files = sorted(one for one in folder.iterdir() if one.suffix.lower() in PARQUET and not one.name.startswith("."))
    if not files:
        raise bad_request("A log", "be a file, or a folder of Parquet files", str(folder))
    parts = [file_source(one, parquet_source) for one in files]
    for part in parts[1:]:
        if set(part.names) != set(parts[0].names):
            apart = sorted({*part.names} ^ {*parts[0].names})
            rule = f"have the columns of {parts[0].name}"
            raise bad_request(f"The file {part.name}", rule, Unquoted(listed(tuple(apart))))

    def chunks(columns: list[str], names: str | None) -> Iterator[Chunk]:
        for part in parts:
            yield from part.chunks(columns, names)

    return Source(folder.name, parts[0].names, chunks, files=tuple(parts))


def file_source(file: Path, reader: Callable[[Path], Source]) -> Source:
    """Return the source of a file; every error while opening or reading it becomes one sentence."""
    state, seen = state_of(file), 0

    @contextmanager
    def guarded() -> Iterator[None]:
        try:
            yield
        except (GradientDDError, MemoryError):
            raise
        except Exception as error:  # readers raise many types of errors for a truncated, damaged or wrong file
            check_state()
            first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            what, where = f"The log {file.name}", f" after row {seen - 1:,}" if seen else ""
            if isinstance(error, OSError) and error.strerror:
                raise bad_request(what, f"be a file that can be read{where}", Unquoted(error.strerror)) from None
            if torn := re.match(r"CSV parse error: Row #(\d+): (.*)", first):  # a row with too few or too many cells
                where, first = f" in row {int(torn[1]) - 2:,}", torn[2]  # Arrow counts from 1 and includes the header
            raise bad_request(what, f"be readable{where}", Unquoted(first[:200].rstrip("."))) from None

    def check_state() -> None:
        if state_of(file) != state:
            raise bad_request(f"The log {file.name}", "not change while it is read", Unquoted("a file that changed"))

    def chunks(columns: list[str], names: str | None) -> Iterator[Chunk]:
        nonlocal seen
        seen = 0
        with guarded():
            for chunk in source.chunks(columns, names):
                check_state()
                yield chunk
                seen += len(next(iter(chunk.values())))
        check_state()

    with guarded():
        source = reader(file)
    return replace(source, name=one_line(file.name), path=file.absolute(), chunks=chunks)


def state_of(file: Path) -> tuple[int, ...]:
    """Return the identity, the size and the modification time of a file; raise unless it is a regular file."""
    try:
        found = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise bad_request("A log", "be a file", str(file)) from None
    except (OSError, ValueError) as error:
        got = Unquoted(getattr(error, "strerror", "") or "an error")
        raise bad_request(f"The log {file.name}", "be a file that can be read", got) from None
    if not S_ISREG(found.st_mode):  # reading a pipe or a device could block forever
        raise bad_request("A log", "be a file", str(file))
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def held_source(
    name: str, names: list[str], shapes: Mapping[str, tuple[int, ...]], load: Callable[[list[str]], Chunk]
) -> Source:
    """Return the source of columns in memory, which `load` returns; a single number is repeated in every row."""
    lengths = {shape[0] for shape in shapes.values() if shape}
    if len(lengths) != 1:
        words = ", ".join(f"{key}: {shape}" for key, shape in shapes.items()) or "none"
        raise bad_request(f"The columns of {name}", "have the same length", Unquoted(words))
    n = lengths.pop()

    def chunks(columns: list[str], names: str | None) -> Iterator[Chunk]:
        held = load(columns)
        arrays = {key: held[key] if held[key].ndim else np.broadcast_to(held[key], n) for key in columns}
        for begin in range(0, n, CHUNK):
            yield {key: array[begin : begin + CHUNK] for key, array in arrays.items()}

    return Source(name, names, chunks)


def npz_source(file: Path) -> Source:
    """Return the source of the arrays of a .npz file; an array is unpacked when it is first read."""
    held: dict[str, Any] = {}
    shapes = array_shapes(file)

    def load(columns: list[str]) -> Chunk:
        held.update(read_arrays(file, [name for name in columns if name not in held]))
        return held

    return held_source(file.name, list(shapes), shapes, load)


def npy_source(file: Path) -> Source:
    """Return the source of a .npy file of records.

    The file is read in pieces, not mapped: truncating a mapped file while it is read would end the process.
    """
    records = np.load(file, mmap_mode="r", allow_pickle=False)  # only its header is used
    kind, begin, shape = records.dtype, records.offset, records.shape
    if kind.names is None or len(shape) != 1:
        raise bad_request(f"The log {file.name}", "have named fields", Unquoted(f"an array {shape} of {kind}"))

    def chunks(columns: list[str], names: str | None) -> Iterator[Chunk]:
        with file.open("rb") as opened:
            opened.seek(begin)
            for first in range(0, shape[0], CHUNK):
                count = min(CHUNK, shape[0] - first)
                part = np.frombuffer(opened.read(count * kind.itemsize), kind)
                if len(part) < count:
                    raise EOFError("the file ends too early")
                yield {column: part[column] for column in columns}

    return Source(file.name, list(kind.names), chunks)


def opened_natively(file: Path) -> Any:
    """Return a file opened for Arrow, which would refuse a path that is not UTF-8."""
    import pyarrow as pa

    return pa.OSFile(os.fsencode(file))


def parquet_source(file: Path) -> Source:
    """Return the source of a Parquet file."""
    import pyarrow.parquet as pq

    def chunks(columns: list[str], names: str | None) -> Iterator[Chunk]:
        with pq.ParquetFile(opened_natively(file)) as opened:
            for batch in opened.iter_batches(batch_size=CHUNK, columns=columns):
                yield {name: from_arrow(batch.column(name)) for name in columns}

    def edge(columns: list[str], last: bool) -> Chunk:
        with pq.ParquetFile(opened_natively(file)) as opened:
            groups = [k for k in range(opened.num_row_groups) if opened.metadata.row_group(k).num_rows]
            table = opened.read_row_group(groups[-1 if last else 0], columns=columns).combine_chunks()
        row = table.slice(table.num_rows - 1 if last else 0, 1)
        return {name: from_arrow(row.column(name).combine_chunks()) for name in columns}

    with pq.ParquetFile(opened_natively(file)) as opened:
        names, rows = list(opened.schema_arrow.names), opened.metadata.num_rows
    return Source(file.name, names, chunks, rows=rows, edge=edge)


SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def csv_form(file: Path) -> tuple[str, str, str]:
    """Return the encoding, the cell separator and the decimal mark of a CSV file, judged by its first two lines."""
    with file.open("rb") as opened:
        begin = opened.read(1 << 16)
    nulls = begin[1:200:2].count(0), begin[:200:2].count(0)
    unmarked = "utf-16-le" if nulls[0] > 20 else "utf-16-be" if nulls[1] > 20 else "utf-8"
    encoding = "utf-16" if begin[:2] in (b"\xff\xfe", b"\xfe\xff") else unmarked
    lines = [*begin.decode(encoding, "replace").splitlines(), "", ""]
    names = re.sub(r'"[^"]*"', "", lines[0])
    separator = max(SEPARATORS, key=names.count)
    commas = separator != "," and any(re.fullmatch(r"[+-]?\d+,\d+", cell) for cell in lines[1].split(separator))
    return encoding, separator, "," if commas else "."


def csv_source(file: Path) -> Source:
    """Return the source of a CSV file whose first line names the columns.

    The column `names` contains text, as in the file. The first block of the file decides whether each other column has
    whole numbers, floats, flags or text. If a later block does not fit, whole numbers become floats in the rest of the
    file, and if that fails too, all columns become text.
    """
    import pyarrow as pa
    from pyarrow import csv

    encoding, separator, decimal = csv_form(file)

    def opened(**columns: Any) -> Any:  # threads are no faster here, and their errors do not name the row
        reading = csv.ReadOptions(block_size=CSV_BYTES, encoding=encoding, use_threads=False)
        convert = csv.ConvertOptions(null_values=list(MISSING), decimal_point=decimal, **columns)
        return csv.open_csv(opened_natively(file), reading, csv.ParseOptions(delimiter=separator), convert)

    with opened() as first:
        found = first.schema
    suggested = dict.fromkeys(found.names, pa.string())
    for name, kind in zip(found.names, found.types, strict=True):
        if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
            suggested[name] = kind
        elif pa.types.is_floating(kind) or pa.types.is_null(kind):
            suggested[name] = pa.float64()

    def chunks(columns: list[str], names: str | None) -> Iterator[Chunk]:
        kinds = {name: pa.string() if name == names else suggested[name] for name in columns}
        numbers = {name: pa.float64() if pa.types.is_integer(kind) else kind for name, kind in kinds.items()}
        done = 0
        for attempt in (kinds, numbers, dict.fromkeys(columns, pa.string())):
            before = 0
            try:
                with opened(include_columns=columns, column_types=attempt) as reader:
                    for batch in reader:
                        rest = batch.slice(min(max(0, done - before), batch.num_rows))
                        before += batch.num_rows
                        if rest.num_rows:
                            done += rest.num_rows
                            yield {name: from_arrow(rest.column(name)) for name in columns}
                return
            except pa.ArrowInvalid as error:
                if "conversion error" not in str(error):
                    raise

    unusual = [f"its encoding is {encoding.upper()}"] if encoding != "utf-8" else []
    unusual += [f"{SEPARATORS[separator]} separate its cells"] if separator != "," else []
    unusual += ["it has decimal commas"] if decimal != "." else []
    note = f"Detected format of the CSV file: {', '.join(unusual)}." if unusual else ""
    return Source(file.name, list(found.names), chunks, note)


def minari_source(given: Any) -> Source:
    """Return the source of a Minari dataset, or of "minari:NAME": its episodes, and propensities from their infos.

    Infos may have one entry more than there are transitions; the first entry then belongs to the reset.
    """
    dataset = given
    if isinstance(given, str):
        try:
            import minari  # not one of our dependencies
        except ModuleNotFoundError:
            sentence = "A Minari dataset needs minari, which is not installed. Try: pip install minari."
            raise MissingExtraError(sentence) from None
        name = given.removeprefix("minari:")
        with foreign(f"The Minari dataset {name!r}", "be on this machine"):
            dataset = minari.load_dataset(name)
    usual = [name for role in ("rho", "target_probability", "behaviour_probability") for name in USUAL[role]]

    def columns_of(number: int, episode: Any) -> Chunk:
        seen = np.asarray(episode.observations)
        n, flat = len(seen) - 1, seen.reshape(len(seen), -1)
        infos = episode.infos if isinstance(getattr(episode, "infos", None), Mapping) else {}
        found = {
            "observation": flat[:-1],
            "next_observation": flat[1:],
            "action": np.asarray(episode.actions),
            "reward": np.asarray(episode.rewards),
            "terminated": np.asarray(episode.terminations),
            "truncated": np.asarray(episode.truncations),
            "episode": np.full(n, number),
        }
        for name in (one for one in usual if one in infos):
            column = np.asarray(infos[name])
            found[name] = column[1:] if len(column) == n + 1 else column
        if any(len(column) != n for column in found.values()):
            raise ValueError("columns of several lengths")
        return found

    def episodes(columns: list[str] | None = None) -> Iterator[Chunk]:
        rule = "have arrays of observations, actions, rewards, terminations and truncations"
        with foreign("A Minari dataset", "yield its episodes"):
            for number, episode in enumerate(dataset.iterate_episodes()):
                with foreign(f"Episode {number:,} of the Minari dataset", rule):
                    found = columns_of(number, episode)
                    chosen = {name: found[name] for name in columns or found}
                if columns is None or len(found["reward"]):
                    yield chosen

    first = next(episodes(), None)
    if first is None:
        raise bad_request("A Minari dataset", "have at least one episode", Unquoted("none"))
    return Source("the Minari dataset", list(first), lambda columns, names: episodes(columns))
