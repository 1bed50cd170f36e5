"""Findings on the columns and rows of a log: ends inside episodes, rows left out, columns that nothing uses."""

from typing import NamedTuple

import numpy as np

from gradient_dd.evaluation.data_findings import SURE
from gradient_dd.evaluation.findings import Found, finding
from gradient_dd.stream.log import LogColumns, RewardSums, listed

MANY_LEFT_OUT, TOO_MANY_LEFT_OUT = 0.01, 0.1  # shares of the rows: the answer needs care, or is not to be trusted


class LogFacts(NamedTuple):
    """What reading a log has shown.

    columns        the columns by their roles;  named  whether the user named those of the observation
    ends_inside    rows after which the same episode goes on, though it ended;  first_inside  the first of them
    dropped, used  rewards of the rows whose next observation is not known, and of all others
    discount       γ where the log has no column of discounts
    asked, unseen  states that were asked for, and those of them without data nearby
    """

    columns: LogColumns
    named: bool
    ends_inside: int
    first_inside: int
    dropped: RewardSums
    used: RewardSums
    discount: float = 1.0
    asked: int = 0
    unseen: int = 0


@finding("log", "ends", "not")
def ends_inside(log: LogFacts) -> Found:
    """The column of episodes goes on with an episode after its end. Remedy: name the right columns"""
    if log.ends_inside:
        rows = "1 row" if log.ends_inside == 1 else f"{log.ends_inside:,} rows"
        yield (
            "not",
            f"The column of episodes, {log.columns.episode!r}, goes on with the same episode after an end in {rows}, "
            f"first after row {log.first_inside:,}. One of the two columns is not what it was taken for.",
        )


@finding("log", "ends", "with care")
def no_ends(log: LogFacts) -> Found:
    """No column tells where episodes end. Remedy: name the column of ends"""
    columns = log.columns
    told = columns.terminated or columns.truncated or columns.done or columns.discount
    if not told and log.discount > 0:
        words = "No column says where episodes end, so all are taken to go on. If some end, name the column."
        yield "with care", words


@finding("log", "left out", "not")
def left_out(log: LogFacts) -> Found:
    """Rows without a next observation were left out, and they pay otherwise than the rest. Remedy: name the column of
    ends
    """
    dropped, used = log.dropped, log.used
    rows, apart = dropped.count + used.count, abs(dropped.mean - used.mean)
    if dropped.count >= MANY_LEFT_OUT * rows and apart > SURE * np.sqrt(dropped.variance + used.variance):
        yield (
            "not" if dropped.count > TOO_MANY_LEFT_OUT * rows else "with care",
            f"{dropped.count:,} of {rows:,} rows were left out because their next observation is not known, and they "
            f"pay {dropped.mean:.3g} in the mean, the others {used.mean:.3g}. If episodes end there, name the column "
            "that says so.",
        )


@finding("log", "unused columns", "with care")
def unused_columns(log: LogFacts) -> Found:
    """The log has columns that nothing uses, and you did not name those of the observation: a state that is read in
    part gives a confident, wrong value. Remedy: name all columns of the observation
    """
    if log.columns.unused and not log.named:
        yield (
            "with care",
            f"Nothing uses the columns {listed(log.columns.unused)}. If the state is not described without them, the "
            "value is wrong. Name all columns of the observation, or those that are used, to confirm them.",
        )


@finding("log", "states asked for", "with care")
def unseen_states(log: LogFacts) -> Found:
    """A state that you asked for has no data nearby: its interval is as wide as the rewards allow, and where nothing in
    the data is like it there is no value. Remedy: data from there
    """
    if log.unseen:
        yield (
            "with care",
            f"{log.unseen:,} of the {log.asked:,} states asked for have no data nearby: their intervals are as wide as "
            "the rewards allow.",
        )
