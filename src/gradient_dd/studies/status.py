"""What a results file holds, in numbers, and what of it is damaged."""

from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.arrays import Integers
from gradient_dd.errors import one_line
from gradient_dd.studies.store import (
    Damage,
    Store,
    StoredSetting,
    StoredUnit,
    damaged_unit,
    gathered,
    lost_settings,
)
from gradient_dd.tasks import Task


def store_status(store: Store) -> dict[str, Any]:
    """Return what a store holds: its studies, and for each task its settings, runs and results."""
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
    """Return every study that was started: when last, how often, its length and runs, and how much of it is done.

    `rows` and `runs` are the settings' rows and the runs of all results, each (results,).
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
    """Return each task with results: how many settings, runs and results it has, and how many of these diverged."""
    names = {one.id: tuple(one.facts[name] for name in ("task", "size", "reading")) for one in settings}
    place = {name: i for i, name in enumerate(dict.fromkeys(names.values()))}
    of_row = np.zeros(max(names, default=0) + 1, int)
    of_row[list(names)] = [place[name] for name in names.values()]
    of_result = of_row[rows]
    found = []
    for (task, size, reading), i in place.items():
        ours = of_result == i
        counts = {
            "settings": len(np.unique(rows[ours])),
            "runs": len(np.unique(runs[ours])),
            "results": int(ours.sum()),
            "diverged": int(np.count_nonzero(numbers["diverged_step"][ours])),
        }
        if counts["results"]:
            found.append({"task": task, "size": size, "reading": reading, **counts})
    return found


@dataclass(frozen=True)
class Verification:
    """What was checked in a file, and what is damaged.

    structure  what SQLite finds wrong with the file itself
    damaged    (task, run, counts by kind) of each damaged unit; a run of None stands for every run
    """

    file: Path
    units: int
    results: int
    structure: list[str]
    damaged: list[tuple[str, Any, dict[str, int]]]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged."""
        return not self.structure and not self.damaged

    def as_data(self) -> dict[str, Any]:
        """Return the verification as plain data."""
        damaged = [{"task": task, "run": run, "what": what} for task, run, what in self.damaged]
        return asdict(self) | {"file": str(self.file), "damaged": damaged, "whole": self.is_whole}


def verify(path: str | Path) -> Verification:
    """Check every study, setting, number and curve of a results file."""
    with Store(path) as store, store.snapshot():
        structure = [text for (text,) in store.rows("PRAGMA integrity_check(10)") if text != "ok"]
        whole, damaged = inspect_all(store)
    kinds: dict[tuple[str, Any], Counter[str]] = {}
    for one in damaged:
        kinds.setdefault((one_line(one.task), one.run), Counter())[one.what] += 1
    return Verification(
        file=Path(path),
        units=len(whole),
        results=sum(len(unit.numbers) for unit in whole),
        structure=structure,
        damaged=[(*place, dict(what)) for place, what in kinds.items()],
    )


def inspect_all(store: Store, tasks: Collection[Task] | None = None) -> tuple[list[StoredUnit], list[Damage]]:
    """Return the whole units of a store, and all that is damaged in it; curves only of these tasks, or of all."""
    damaged: list[Damage] = []
    with store.snapshot():
        units = store.units(damaged=damaged)
        store.settings(damaged=damaged)
        store.studies(damaged)
        damaged += lost_settings(units, {key for (key,) in store.rows("SELECT key FROM setting NOT INDEXED")})
        ours = {unit.task_key for unit in units} if tasks is None else {task.key for task in tasks}
        checked = (unit for unit in units if unit.task_key in ours)
        damaged += [damaged_unit(unit) for unit in checked if store.curve_bytes(unit) is None]
    wrong = {one.id for one in damaged if one.table == "unit"}
    return [unit for unit in units if unit.id not in wrong], damaged


def repair(store: Store, tasks: Collection[Task]) -> list[Damage]:
    """Remove what is damaged before a sweep of these tasks, and return it; the sweep runs what is missing.

    Units whose settings are damaged or missing stay: the numbers are whole, and their own sweep writes the settings.
    """
    _, damaged = inspect_all(store, tasks)
    removed = [one for one in damaged if one.what != "missing setting"]
    remove(store, removed)
    return removed


def drop(path: str | Path) -> None:
    """Remove all that is damaged from a results file; the sweeps that made it will run it again."""
    with Store(path, write=True) as store:
        for _ in range(2):  # once a damaged setting is gone, its results are without one
            remove(store, inspect_all(store)[1])


def remove(store: Store, damaged: Collection[Damage]) -> None:
    """Remove damaged rows from a store, and count the units of every task again."""
    if damaged:
        with store.transaction():
            for one in damaged:
                if one.table != "task":
                    store.db.execute(f"DELETE FROM {one.table} WHERE id = ?", (one.id,))
            store.db.execute("DELETE FROM task")
            for (key,) in store.rows("SELECT DISTINCT task_key FROM unit"):
                store.count_units(key)
