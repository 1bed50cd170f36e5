"""Repair: what is damaged is removed, so that its sweep runs it again."""

from collections.abc import Collection

import numpy as np

from gradient_dd.studies.checked import inspect_settings, inspect_units, lost_settings
from gradient_dd.studies.columns import columns_of
from gradient_dd.studies.inspection import DIVERGENCE, ERRORS, inspect_curves, inspect_results
from gradient_dd.studies.seals import COLUMNS, INSERT, is_whole, joined_seals, seal_row
from gradient_dd.studies.store import Store

SEALS = f"SELECT id, {COLUMNS} FROM seal"
BOTH = (("result", "curve"), ("curve", "result"))
Cells = Collection[tuple[int, int]]  # settings and runs


def drop_cells(store: Store, cells: Cells) -> None:
    """Remove results and curves, and what their seals say of them: as if they had not been run yet."""
    with store.transaction():
        for table, _ in BOTH:
            store.db.executemany(f"DELETE FROM {table} WHERE setting IS ? AND run IS ?", cells)
        for run in {run for _, run in cells}:
            gone = np.array([setting for setting, of_run in cells if of_run == run and isinstance(setting, int)], int)
            for row, *seal in store.rows(f"{SEALS} WHERE run = ? ORDER BY id", (run,)):
                if is_whole(*seal):
                    entries = joined_seals([tuple(seal)])
                    kept = entries.at(~np.isin(entries.setting, gone))
                    if len(kept.run) < len(entries.run):
                        store.db.execute("DELETE FROM seal WHERE id = ?", (row,))
                    if 0 < len(kept.run) < len(entries.run):
                        store.db.execute(INSERT, seal_row(kept, row))


def drop_strays(store: Store) -> None:
    """Remove damaged seals, and results or curves without a seal and a counterpart: no sweep would ask for them."""
    with store.transaction():
        rows = store.rows(f"{SEALS} ORDER BY id")
        store.db.executemany("DELETE FROM seal WHERE id = ?", [row[:1] for row in rows if not is_whole(*row[1:])])
        seals = joined_seals(row[1:] for row in rows)
        for table, other in BOTH:
            cells = "SELECT setting, run FROM"
            (setting, run), _ = columns_of(store.rows(f"{cells} {table} EXCEPT {cells} {other}"), "qq")
            alone = seals.places(setting, run) < 0
            strays = zip(setting[alone].tolist(), run[alone].tolist(), strict=True)
            store.db.executemany(f"DELETE FROM {table} WHERE setting = ? AND run = ?", strays)


def drop_orphans(store: Store) -> int:
    """Remove the results of settings that are lost, and return how many settings that were."""
    lost = [(one.setting,) for one in lost_settings(store)]
    for row in lost:
        drop_cells(store, store.rows("SELECT setting, run FROM result WHERE setting = ?", row))
    return len(lost)


def drop_records(store: Store) -> int:
    """Remove damaged records of the time that units took, and return how many there were. Results are not touched."""
    damaged = [(unit,) for unit in inspect_units(store)]
    if damaged:
        with store.transaction():
            store.db.executemany("DELETE FROM cost WHERE unit = ?", damaged)
            store.db.executemany("DELETE FROM unit WHERE id = ?", damaged)
    return len(damaged)


def drop_damage(store: Store) -> None:
    """Remove all that is damaged: results and curves, records, and settings with all that belongs to them."""
    drop_records(store)
    drop_orphans(store)
    drop_strays(store)
    settings = [(one.setting,) for one in inspect_settings(store)[1]]
    query = "SELECT setting, run FROM result WHERE setting = ?"
    drop_cells(store, [cell for row in settings for cell in store.rows(query, row)])
    found = [*(inspect_results(store, part) for part in (ERRORS, DIVERGENCE)), inspect_curves(store)]
    drop_cells(store, {(one.setting, one.run) for _, damaged in found for one in damaged})
    with store.transaction():
        store.db.executemany("DELETE FROM setting WHERE id = ?", settings)
