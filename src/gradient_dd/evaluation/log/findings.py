"""What the columns of a log say against each other: ends inside episodes, rows left out, columns that nothing uses."""

import numpy as np

from gradient_dd.evaluation.verdict import SURE, Finding
from gradient_dd.stream.log import LogColumns, RewardSums, listed

MANY_LEFT_OUT = 0.01  # of the rows


def unused_columns(columns: LogColumns) -> list[Finding]:
    """Return the finding that the log has columns which may belong to the state."""
    if not columns.unused:
        return []
    sentence = (
        f"Nothing uses the columns {listed(columns.unused)}. If the state is not described without them, the value is "
        "wrong. Name all columns of the observation, or those that are used, to confirm them."
    )
    return [Finding("with care", "unused columns", sentence)]


def ends_inside(columns: LogColumns, count: int, first: int) -> list[Finding]:
    """Return the finding that episodes go on after their end, in so many rows; `first` is one of them."""
    if not count:
        return []
    rows = "1 row" if count == 1 else f"{count:,} rows"
    sentence = (
        f"The column of episodes, {columns.episode!r}, goes on with the same episode after an end in {rows}, first "
        f"after row {first:,}. One of the two columns is not what it was taken for."
    )
    return [Finding("not", "ends", sentence)]


def no_ends(columns: LogColumns) -> list[Finding]:
    """Return the finding that no column says where episodes end."""
    if columns.terminated or columns.done or columns.discount:
        return []
    sentence = "No column says where episodes end, so all are taken to go on. If some end, name the column."
    return [Finding("with care", "ends", sentence)]


def left_out(dropped: RewardSums, kept: RewardSums) -> list[Finding]:
    """Return the finding that rows without a next observation pay otherwise than those that are used."""
    rows = dropped.count + kept.count
    apart = abs(dropped.mean - kept.mean)
    if dropped.count < MANY_LEFT_OUT * rows or apart <= SURE * np.sqrt(dropped.variance + kept.variance):
        return []
    sentence = (
        f"{dropped.count:,} of {rows:,} rows were left out because their next observation is not known, and they pay "
        f"{dropped.mean:.3g} in the mean, the others {kept.mean:.3g}. If episodes end there, name the column that says "
        "so."
    )
    return [Finding("not" if dropped.count > 0.1 * rows else "with care", "left out", sentence)]
