"""Logs as streams of transitions; one reader reads every format, finds columns by name, and names the row of an error.

sources  files, frames, arrays and Minari datasets in pieces     columns  the role of each column, and the actions
cells    numbers, flags and names in cells                       rows     rows as transitions
reader   the whole log, with features
"""

from gradient_dd.stream.log.columns import LogColumns, listed
from gradient_dd.stream.log.reader import LogReader
from gradient_dd.stream.log.rows import RewardSums

__all__ = ["LogColumns", "LogReader", "RewardSums", "listed"]
