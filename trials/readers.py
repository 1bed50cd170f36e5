"""Read random logs in every format: all formats must give the same transitions, or all must refuse.

    python -m trials.readers --count 2000

A log consists of columns of plain cells: observations as columns or as lists, rewards, flags in several spellings,
names of episodes of several types, ratios. Half of the logs get an unusual cell. The log is written as a dictionary, a
data frame, a Parquet file, a CSV file, a .npz file and a .npy file, if the format can represent its cells, and read
with `LogReader`, with and without skipping of bad rows.
"""

import csv
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from gradient_dd.errors import GradientDDError
from gradient_dd.stream.log import LogReader
from tools.programs import parser_of

Cells = dict[str, list[Any]]
SPELLINGS: dict[str, Callable[[bool], Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "text": str,
    "lower": lambda flag: str(flag).lower(),
    "digit": lambda flag: str(int(flag)),
}
NAMES: dict[str, Callable[[int], Any]] = {
    "small": int,
    "large": lambda k: 2**60 + k,
    "negative": lambda k: -1 - k,
    "float": float,
    "text": lambda k: f"visit {k}",
    "padded": lambda k: f"{k:03}",
    "digits": lambda k: str(10**20 + k),
}
ODD_NUMBERS = (None, float("nan"), float("inf"), 1e60, "much", "1.5", " 2 ", "1_0", "NA", "", True, "٣", -0.5)
ODD_FLAGS = (None, 0.5, 0.999, 2, -1, "yes", "TRUE", "1.0", float("nan"))
ODD_NAMES = (None, "", "nan", "NULL", float("nan"), "true", 2.0**54, "back")
ODD_LISTS = (None, [], [1.0], [1.0, 2.0, 3.0], [1.0, None], ["a", 1.0], ["1", "2"])


def made_log(rng: Random) -> Cells:
    """Return a log as columns of cells, with an odd cell in half of the cases."""
    lengths = [rng.randint(1, 6) for _ in range(rng.randint(1, 5))]
    n = sum(lengths)
    last = [step + 1 == length for length in lengths for step in range(length)]
    number: Callable[[], Any] = rng.choice(
        [lambda: round(rng.uniform(-9, 9), 6), lambda: rng.randint(-3, 3), rng.random]
    )
    lists = rng.random() < 0.4
    cells: Cells = {}
    for prefix in ("", "next_") if rng.random() < 0.5 else ("",):
        if lists:
            cells[f"{prefix}obs"] = [[float(number()), float(number())] for _ in range(n)]
        else:
            cells |= {f"{prefix}obs_{i}": [number() for _ in range(n)] for i in range(2)}
    cells["reward"] = [number() for _ in range(n)]
    spelling = SPELLINGS[rng.choice(list(SPELLINGS))]
    if rng.random() < 0.8:
        ends = [over and rng.random() < 0.7 for over in last]
        cells["terminated"] = [spelling(end) for end in ends]
        if rng.random() < 0.5:
            cells["truncated"] = [spelling(over and not end) for over, end in zip(last, ends, strict=True)]
    if rng.random() < 0.7:
        name = NAMES[rng.choice(list(NAMES))]
        cells["episode"] = [name(k) for k, length in enumerate(lengths) for _ in range(length)]
    if rng.random() < 0.3:
        cells["discount"] = [rng.choice([0.0, 0.5, 1.0]) for _ in range(n)]
    if rng.random() < 0.4:
        cells |= {name: [rng.choice([0.25, 0.5, 1]) for _ in range(n)] for name in ("propensity", "target_prob")}
    if rng.random() < 0.5:
        put_odd_cell(cells, rng)
    return cells


def put_odd_cell(cells: Cells, rng: Random) -> None:
    """Change one cell of a log, or all cells of a column."""
    name = rng.choice(list(cells))
    odd: tuple[Any, ...] = ODD_NUMBERS
    if name in ("terminated", "truncated"):
        odd = ODD_FLAGS
    elif name == "episode":
        texts = isinstance(cells[name][0], str)
        odd = tuple(cell for cell in ODD_NAMES if cell is None or isinstance(cell, str) == texts)
    elif isinstance(cells[name][0], list):
        odd = ODD_LISTS
    cell, at = rng.choice(odd), rng.randrange(len(cells[name]))
    cells[name][at] = cells[name][0] if cell == "back" else cell
    if rng.random() < 0.1:
        cells[name] = [cell] * len(cells[name])


def one_kind(cells: list[Any]) -> list[Any]:
    """Return a column for a format whose columns have one type: all cells as text if some are text."""
    texts = [isinstance(cell, str) for cell in cells if cell is not None]
    return [cell if cell is None else str(cell) for cell in cells] if any(texts) and not all(texts) else cells


def mixes_large(cells: list[Any]) -> bool:
    """Return whether a column mixes floats with whole numbers that are too large for floats."""
    whole = [isinstance(cell, int) for cell in cells]
    return not all(whole) and any(isinstance(cell, int) and abs(cell) > 2**53 for cell in cells)


def as_array(cells: list[Any]) -> Any | None:
    """Return a column as an array without objects, None if there is no such array."""
    column = one_kind(cells)
    if isinstance(column[0], str) or any(isinstance(cell, str) for cell in column):
        return np.array(["" if cell is None else cell for cell in column])
    if mixes_large(column):
        return None
    try:
        found = np.array([np.nan if cell is None else cell for cell in column])
    except ValueError:  # lists of several lengths
        return None
    if found.dtype.kind == "U" and found.ndim == 2:
        return None
    return found if found.dtype.kind in "biufU" else None


def is_text(cell: Any) -> bool:
    """Return whether a cell is text other than a whole number."""
    return isinstance(cell, str) and not cell.isdigit()


def in_columns(cells: Cells) -> Cells | None:
    """Return a log with lists as columns; None if lists differ in length, or if a place has only text.

    A place with only text would be a column of categories, but lists contain numbers.
    """
    flat: Cells = {}
    for name, column in cells.items():
        widths = {len(cell) for cell in column if isinstance(cell, list)}
        if not widths:
            if name.endswith("obs"):
                return None  # all lists are missing, so their width is unknown
            flat[name] = column
        elif len(widths) > 1 or 0 in widths:
            return None
        else:
            width = widths.pop()
            if any(all(cell and is_text(cell[i]) for cell in column) for i in range(width)):
                return None
            flat |= {f"{name}_{i}": [None if cell is None else cell[i] for cell in column] for i in range(width)}
    return flat


def forms_of(cells: Cells, folder: Path) -> dict[str, Any]:
    """Return the log in every format that can represent it."""
    kept = {name: pd.Series(column, dtype=object if mixes_large(column) else None) for name, column in cells.items()}
    forms: dict[str, Any] = {"dictionary": cells, "frame": pd.DataFrame(kept)}
    try:
        pq.write_table(pa.table({name: one_kind(column) for name, column in cells.items()}), folder / "log.parquet")
        forms["parquet"] = folder / "log.parquet"
    except pa.ArrowException:  # lists of several types
        pass
    if (flat := in_columns(cells)) is not None:
        with (folder / "log.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([list(flat), *zip(*flat.values(), strict=True)])
        forms["csv"] = folder / "log.csv"
    arrays = {name: as_array(column) for name, column in cells.items()}
    if all(array is not None for array in arrays.values()):
        np.savez(folder / "log.npz", **arrays)
        kinds = [(name, array.dtype, array.shape[1:]) for name, array in arrays.items()]
        records = np.empty(len(cells["reward"]), kinds)
        for name, array in arrays.items():
            records[name] = array
        np.save(folder / "log.npy", records)
        forms |= {"npz": folder / "log.npz", "npy": folder / "log.npy"}
    return forms


def reading_of(log: Any, skip: bool) -> Any:
    """Return the transitions of a log as bytes, or the row that an error names; other errors propagate."""
    try:
        reader = LogReader(log, discount=0.9, skip_bad_rows=skip)
        tables = list(reader.tables())
    except GradientDDError as error:
        found = re.search(r"in row ([\d,]+)", str(error))
        return f"refused in row {found[1]}" if found else "refused"
    columns = [[getattr(table, one.name) for table in tables] for one in fields(tables[0])] if tables else []
    return tuple(np.concatenate(column).astype(float).tobytes() for column in columns)


def compare(seed: int) -> tuple[Counter[str], str]:
    """Return counts for one random log, and the first difference between two formats in words."""
    counts: Counter[str] = Counter()
    cells = made_log(Random(seed))
    with tempfile.TemporaryDirectory() as folder:
        forms = forms_of(cells, Path(folder))
        counts.update(list(forms))
        for skip in (False, True):
            readings = {form: reading_of(log, skip) for form, log in forms.items()}
            first = readings["dictionary"]
            counts["refused" if isinstance(first, str) else "read"] += 1
            for form, reading in readings.items():
                if reading != first:
                    words = [one if isinstance(one, str) else "other transitions" for one in (first, reading)]
                    return counts, f"seed {seed}, skip {skip}: dictionary {words[0]}, {form} {words[1]}: {cells}"
    return counts, ""


def main(words: list[str] | None = None) -> None:
    """Compare the requested number of logs, and print counts."""
    parser = parser_of(__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    counts: Counter[str] = Counter()
    wrong = []
    for seed in range(given.seed, given.seed + given.count):
        found, disagreement = compare(seed)
        counts += found
        wrong += [disagreement] * bool(disagreement)
    print(f"{given.count:,} logs, read in all formats, with and without skipping of bad rows:")
    print(", ".join(f"{name} {count:,}" for name, count in counts.items()))
    print(f"{len(wrong):,} disagreements", *wrong[:10], sep="\n")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
