"""The contents of a results file in numbers, and its damage."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.arrays import Integers
from gradient_dd.errors import one_line
from gradient_dd.studies.store import (
    Damage,
    DamagedStoreError,
    Store,
    StoredSetting,
    StoredUnit,
    damaged_unit,
    gathered,
    lost_settings,
)


def store_status(store: Store) -> dict[str, Any]:
    """Return the contents of a store: its studies, and for each task its settings, runs and results."""
    damaged: list[Damage] = []
    with store.snapshot():
        units, settings = store.units(damaged=damaged), store.settings(damaged=damaged)
        studies = store.studies(damaged)
    results = gathered(units, {setting.key: setting.id for setting in settings})
    return {
        "studies": study_rows(studies, *results[:2]),
        "tasks": task_rows(settings, *results),
        "units": len(units),
        "steps": sum(unit.facts["steps"] for unit in units),
        "worker_seconds": sum(unit.facts["seconds"] for unit in units),
        "damaged": len(damaged),
    }


def study_rows(studies: list[dict[str, Any]], rows: Integers, runs: Integers) -> list[dict[str, Any]]:
    """Return every study: its last start, number of starts, length, runs, and progress.

    `rows` and `runs` are the rows of the settings and the runs of all results, each (results,).
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for study in studies:
        names = study["name"], study["text"]
        chosen = (study["first_run"] <= runs) & (runs < study["first_run"] + study["runs"])
        ours = rows[chosen]
        found[names] = {
            "name": study["name"],
            "started": study["at"],
            "starts": found.get(names, {"starts": 0})["starts"] + 1,
            "length": f"{study['episodes']} episodes" if study["episodes"] else f"{study['steps']} steps",
            "runs": study["runs"],
            "done": sum(int(((first <= ours) & (ours <= last)).sum()) for first, last in study["settings"]),
            "total": study["total"],
            "text": study["text"],
        }
    return list(found.values())


def task_rows(settings: list[StoredSetting], rows: Integers, runs: Integers, numbers: Any) -> list[dict[str, Any]]:
    """Return each task with results: the number of its settings, runs, results and diverged results."""
    places: dict[tuple[Any, ...], list[int]] = {}
    for one in settings:
        places.setdefault(tuple(one.facts[name] for name in ("task", "size", "reading")), []).append(one.id)
    found = []
    for (task, size, reading), ours in places.items():
        chosen = np.isin(rows, ours)
        counts = {
            "settings": len(np.unique(rows[chosen])),
            "runs": len(np.unique(runs[chosen])),
            "results": int(chosen.sum()),
            "diverged": int(np.count_nonzero(numbers["diverged_step"][chosen])),
        }
        if counts["results"]:
            found.append({"task": task, "size": size, "reading": reading, **counts})
    return found


@dataclass(frozen=True)
class Verification:
    """The checked contents of a file, and its damage.

    structure  problems that SQLite finds with the file itself
    damaged    task, run (None means every run) and "what", counts by type, of each damaged unit
    whole      whether nothing is damaged
    """

    file: str
    units: int
    results: int
    structure: list[str]
    damaged: list[dict[str, Any]]
    whole: bool


def verify(path: str | Path) -> Verification:
    """Check every study, setting, number and curve of a results file."""
    with Store(path) as store, store.snapshot():
        structure = [text for (text,) in store.rows("PRAGMA integrity_check(10)") if text != "ok"]
        units, damaged = inspect_all(store)
    wrong = {one.id for one in damaged if one.table == "unit"}
    sizes = [len(unit.numbers) for unit in units if unit.id not in wrong]
    types: dict[tuple[str, Any], Counter[str]] = {}
    for one in damaged:
        types.setdefault((one_line(one.task), one.run), Counter())[one.what] += 1
    counts = [{"task": task, "run": run, "what": dict(what)} for (task, run), what in types.items()]
    return Verification(str(path), len(sizes), sum(sizes), structure, counts, not structure and not damaged)


def inspect_all(store: Store) -> tuple[list[StoredUnit], list[Damage]]:
    """Return the units of a store with intact numbers, and all damage."""
    damaged: list[Damage] = []
    with store.snapshot():
        units = store.units(damaged=damaged)
        store.settings(damaged=damaged)
        store.studies(damaged)
        damaged += lost_settings(units, {key for (key,) in store.rows("SELECT key FROM setting NOT INDEXED")})
        for unit in units:
            try:
                store.curves(unit)
            except DamagedStoreError:
                damaged.append(damaged_unit(unit))
    return units, damaged


def repair(store: Store) -> list[Damage]:
    """Remove all damage, and return it; the sweeps that made it run it again.

    Units whose settings are damaged or missing stay: their numbers are intact, and their sweep rewrites the settings.
    """
    removed = [one for one in inspect_all(store)[1] if one.what != "missing setting"]
    remove(store, removed)
    return removed


def remove(store: Store, damaged: Collection[Damage]) -> None:
    """Remove damaged rows from a store, and update the unit counts of every task."""
    if damaged:
        with store.transaction():
            for one in damaged:
                if one.table != "task":
                    store.db.execute(f"DELETE FROM {one.table} WHERE id = ?", (one.id,))
            store.db.execute("DELETE FROM task")
            for (key,) in store.rows("SELECT DISTINCT task_key FROM unit"):
                store.count_units(key)
