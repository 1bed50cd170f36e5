"""Reading a store with care: what is returned agrees with its checksums, and what is damaged raises one sentence."""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import one_line
from gradient_dd.studies.checksums import row_checksum
from gradient_dd.studies.inspection import Damage, Keys, Part, Rows, inspect_curves, inspect_results, selected
from gradient_dd.studies.schema import UNIT_COLUMNS
from gradient_dd.studies.sqlite_file import StoreError
from gradient_dd.studies.store import Store, pieces
from gradient_dd.studies.upgrade import unit_checksum

SOME = 3  # damaged units that a sentence names


class DamagedError(StoreError):
    """What was asked for is damaged."""


def inspect_settings(store: Store, chosen: Collection[int] | None = None) -> tuple[list[Any], list[Damage]]:
    """Return the whole settings of a store, of the `chosen` rows or of all, and what is damaged.

    A setting is (id, *SETTING_COLUMNS).
    """
    whole, damaged = [], []
    for row in setting_rows(store, chosen):
        fits = row_checksum(row[1:-1]) == row[-1] if store.has_seals else has_values(row[11])
        whole.append(row[:-1]) if fits else damaged.append(Damage(row[0], None, "setting"))
    return whole, damaged


def setting_rows(store: Store, chosen: Collection[int] | None) -> list[Any]:
    """Return the settings of a store as they stand in its file, the checksum last."""
    query = f"SELECT id, {', '.join(store.setting_columns)} FROM setting"
    if chosen is None:
        return store.rows(f"{query} ORDER BY id")
    found = [
        row
        for piece in pieces(sorted(chosen))
        for row in store.rows(f"{query} WHERE id IN ({str(piece)[1:-1]}) ORDER BY id")
    ]
    if len(found) == len(chosen):
        return found
    return [row for row in store.rows(f"{query} ORDER BY id") if row[0] in chosen]  # a lookup may miss what is there


def lost_settings(store: Store) -> list[Damage]:
    """Return the settings that have results but no row any more."""
    query = "SELECT DISTINCT setting FROM result WHERE setting NOT IN (SELECT id FROM setting)"
    return [Damage(setting, None, "missing setting") for (setting,) in store.rows(query)]


def has_values(text: Any) -> bool:
    """Return whether a text is the JSON of a setting's values."""
    try:
        values = json.loads(text)
    except (TypeError, ValueError):
        return False
    return isinstance(values, dict) and all(isinstance(value, float | int) for value in values.values())


def checked_settings(store: Store, chosen: Collection[int] | None = None) -> list[Any]:
    """Return the settings of a store, the `chosen` rows or all, as (id, *SETTING_COLUMNS)."""
    return undamaged(store, *inspect_settings(store, chosen))


def checked_results(store: Store, part: Part, keys: Keys | None = None, runs: range | None = None) -> Rows:
    """Return a part of the results of these settings and runs, or of all."""
    return undamaged(store, *inspect_results(store, part, keys, runs))


def checked_curves(store: Store, keys: Keys, runs: range) -> Iterator[tuple[int, int, Array]]:
    """Yield the setting, the run and the points of each curve of these settings and runs."""
    with store.snapshot():
        undamaged(store, *inspect_curves(store, keys, runs))
        for setting, run, points in selected(store, "SELECT setting, run, points FROM curve", keys, runs):
            yield setting, run, np.frombuffer(points, "<f8")


def inspect_units(store: Store) -> dict[int, tuple[str, int]]:
    """Return the task and the run of each unit whose record of steps and time is damaged, by its row."""
    if not store.has_seals:
        return {}
    costs: dict[Any, list[Any]] = {}
    for unit, *cost in store.rows("SELECT unit, learner, seconds, updates FROM cost ORDER BY unit, learner"):
        costs.setdefault(unit, []).append(cost)
    rows = store.rows(f"SELECT id, {', '.join(UNIT_COLUMNS)}, checksum FROM unit ORDER BY id")
    wrong = {row[0]: row[1:3] for row in rows if unit_checksum(row[1:-1], costs.pop(row[0], [])) != row[-1]}
    return wrong | dict.fromkeys(costs, ("a unit that is missing", None))


def checked_costs(store: Store, task: str, runs: range) -> list[tuple[str, int, float, int]]:
    """Return the learner, the unit, the seconds and the updates of each cost of a task and some runs."""
    query = """
        SELECT learner, unit, cost.seconds, updates FROM cost JOIN unit ON unit = id
        WHERE task = ? AND run >= ? AND run < ?
    """
    with store.snapshot():
        if store.version < 2:
            return []
        wrong = [Damage(*unit, "record of time") for unit in inspect_units(store).values()]
        return undamaged(store, store.rows(query, (task, runs.start, runs.stop)), wrong)


def undamaged(store: Store, found: Any, damaged: list[Damage]) -> Any:
    """Return what was found; raise if anything is damaged."""
    if damaged:
        units = damaged_units(store, damaged)
        named = [f"{task}, run {run}" if run is not None else f"{task}, every run" for task, run in units]
        more = f" and {len(named) - SOME:,} more" if len(named) > SOME else ""
        raise DamagedError(
            f"{str(store.path)!r} must be whole. Got damage to {'; '.join(named[:SOME])}{more}. "
            "Run the same sweep again: it replaces what is damaged. gradient-dd verify names all of it."
        )
    return found


def damaged_units(store: Store, damaged: Iterable[Damage]) -> dict[tuple[str, Any], list[str]]:
    """Return the damaged units, as the name of a task and a run, and what of each is damaged."""
    names = task_names(store)
    units: dict[tuple[str, Any], list[str]] = {}
    for setting, run, what in damaged:
        name = setting if isinstance(setting, str) else names.get(setting, f"a setting that is missing ({setting!r})")
        units.setdefault((one_line(name), run), []).append(what)
    return units


def task_names(store: Store) -> dict[int, str]:
    """Return the task of each setting in words, e.g. "random_walk 20" or "baird 7 (ratios=paper)", by its row."""
    names = {}
    for row, task, size, reading in store.rows("SELECT id, task, size, reading FROM setting"):
        about = re.sub("(, )?rho_mode=T$", "", str(reading))  # a unit has settings of both modes
        names[row] = f"{task} {size}" + (f" ({about})" if about not in ("", "default") else "")
    return names
