"""Taking a results file of an earlier version further. What it holds stays as it is; checksums are added."""

import sqlite3
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradient_dd.studies.checksums import checksum, curve_checksum, result_checksums, row_checksum
from gradient_dd.studies.columns import columns_of
from gradient_dd.studies.schema import COST, SETTING_COLUMNS, TO_VERSION_3, UNIT_COLUMNS, VERSION
from gradient_dd.studies.seals import INSERT, Seals, seal_row


def upgrade(db: sqlite3.Connection, version: int) -> int:
    """Bring a file to this version, inside the caller's transaction; return how many results got checksums."""
    for statement in (COST if version < 2 else "", *TO_VERSION_3.split(";")):
        db.execute(statement)
    cells = ", ".join(SETTING_COLUMNS)
    rows = [(row_checksum(row), key) for key, *row in db.execute(f"SELECT id, {cells} FROM setting")]
    db.executemany("UPDATE setting SET checksum = ? WHERE id = ?", rows)
    cells = ", ".join(UNIT_COLUMNS)
    rows = [(unit_checksum(row, costs_of(db, key)), key) for key, *row in db.execute(f"SELECT id, {cells} FROM unit")]
    db.executemany("UPDATE unit SET checksum = ? WHERE id = ?", rows)
    sealed = 0
    for seal in new_seals(db):
        db.execute(INSERT, seal)
        sealed += len(seal[4]) // 8
    db.execute(f"PRAGMA user_version = {VERSION}")
    return sealed


def costs_of(db: sqlite3.Connection, unit: int) -> list[tuple[Any, ...]]:
    """Return the learner, seconds and updates of each cost of a unit."""
    return db.execute("SELECT learner, seconds, updates FROM cost WHERE unit = ? ORDER BY learner", (unit,)).fetchall()


def unit_checksum(cells: Any, costs: list[tuple[Any, ...]]) -> int:
    """Return the checksum of a unit's row, its costs included, in the order of the learners' names."""
    return row_checksum((*cells, *(cell for cost in costs for cell in cost)))


def new_seals(db: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """Yield a seal for each run, of all results that are numbers and have a curve."""
    keys = dict(db.execute("SELECT id, key FROM setting"))
    named = {row: checksum(key) for row, key in keys.items()}
    found = db.execute("SELECT * FROM result ORDER BY setting, run")
    columns, _ = columns_of((row for row in found if row[0] in named), "qqddqq")
    setting, run, last100, area, *diverged = columns
    of_key = np.array([named[row] for row in setting.tolist()], np.int64)
    curves = [array("q"), array("q"), array("q")]
    for row, number, points in db.execute("SELECT setting, run, points FROM curve ORDER BY setting, run"):
        if row in keys and isinstance(points, bytes):
            for column, cell in zip(curves, (row, number, curve_checksum(keys[row], number, points)), strict=True):
                column.append(cell)
    drawn = Seals._make(np.frombuffer(column, np.int64) for column in (*curves, *curves[-1:] * 2))
    place = drawn.places(setting, run)
    checks = result_checksums(of_key, run, last100, area), result_checksums(of_key, run, *diverged)
    seals = Seals(setting, run, *checks, drawn.curves[place].view(np.uint64) if len(drawn.run) else checks[0])
    order = np.flatnonzero(place >= 0)
    order = order[np.argsort(run[order], kind="stable")]
    for ours in np.split(order, np.flatnonzero(np.diff(run[order])) + 1):
        if len(ours):
            yield seal_row(seals.at(ours))
