"""Many whole numbers as a short text, and back."""

import re
from collections.abc import Iterable

import numpy as np


def as_ranges(rows: Iterable[int]) -> str:
    """Return whole numbers as text: "1-273 300-300"."""
    ordered = np.array(sorted(set(rows)), np.int64)
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) != 1) + 1)
    return " ".join(f"{run[0]}-{run[-1]}" for run in runs if len(run))


def ranges_of(text: str) -> list[tuple[int, int]]:
    """Return the first and the last number of each range in a text made by `as_ranges`."""
    return [(int(first), int(last)) for first, last in re.findall(r"(\d+)-(\d+)", str(text))]
