"""Logs as streams of transitions: one reader for every form, columns found by name, bad rows refused with their number.

columns  which column has which role          sources  files, frames, arrays and Minari datasets in pieces
cells    what the cells of a column may be     rows     rows as transitions       reader  all of it, with features
"""

from gradient_dd.stream.log.columns import LogColumns, listed
from gradient_dd.stream.log.reader import LogReader
from gradient_dd.stream.log.rows import RewardSums

__all__ = ["LogColumns", "LogReader", "RewardSums", "listed"]
