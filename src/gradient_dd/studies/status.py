"""What a results file holds, in numbers."""

import re
from typing import Any

import numpy as np

from gradient_dd.studies.inspection import DIVERGENCE, Rows, inspect_results
from gradient_dd.studies.ranges import ranges_of
from gradient_dd.studies.store import Store


def store_status(store: Store) -> dict[str, Any]:
    """Return what a store holds: its studies, and for each task its settings, runs and results."""
    with store.snapshot():
        rows, damaged = inspect_results(store, DIVERGENCE)
        totals = "SELECT count(*), coalesce(sum(steps), 0), coalesce(sum(seconds), 0.0) FROM unit"
        units, steps, seconds = store.rows(totals)[0]
        return {
            "studies": studies_of(store),
            "tasks": tasks_of(store, rows),
            "units": units,
            "steps": steps,
            "worker_seconds": seconds,
            "damaged": len(damaged),
        }


def studies_of(store: Store) -> list[dict[str, Any]]:
    """Return every study that was started: when last, how often, its length and runs, and how much of it is done.

    An earlier version did not keep which settings belong to a study, so what is done of it is None.
    """
    known = "first_run, runs, total, settings" if store.has_seals else "NULL, NULL, NULL, NULL"
    studies: dict[tuple[str, str], dict[str, Any]] = {}
    for name, text, at, first, runs, total, settings in store.rows(
        f"SELECT name, text, at, {known} FROM study ORDER BY id"
    ):
        length = re.search(r"^  length +(.*), (\d+) runs$", str(text), re.MULTILINE)
        started = studies.get((name, text), {"starts": 0})["starts"] + 1
        studies[name, text] = {
            "name": name,
            "started": at,
            "starts": started,
            "length": length[1] if length else None,
            "runs": int(length[2]) if length else None,
            "done": None if total is None else count_done(store, settings, first, runs),
            "total": total,
            "text": text,
        }
    return list(studies.values())


def count_done(store: Store, settings: str | None, first: int, runs: int) -> int:
    """Return how many results there are of settings, given as ranges of rows, and of runs from the first on."""
    query = "SELECT count(*) FROM result WHERE setting >= ? AND setting <= ? AND run >= ? AND run < ?"
    counts = (store.rows(query, (*bounds, first, first + runs))[0][0] for bounds in ranges_of(settings or ""))
    return sum(counts)


def tasks_of(store: Store, rows: Rows) -> list[dict[str, Any]]:
    """Return each task with results: how many settings, runs and results it has, and how many of these diverged."""
    names = {row: task for row, *task in store.rows("SELECT id, task, size, reading FROM setting")}
    settings, which = np.unique(rows.setting, return_inverse=True)
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, setting in enumerate(settings.tolist()):
        groups.setdefault(tuple(names.get(setting, ("?", 0, "?"))), []).append(place)
    found = []
    for (task, size, reading), places in groups.items():
        ours = np.isin(which, places)
        found.append(
            {
                "task": task,
                "size": size,
                "reading": reading,
                "settings": len(places),
                "runs": len(np.unique(rows.run[ours])),
                "results": int(ours.sum()),
                "diverged": int(np.count_nonzero(rows.first[ours])),
            }
        )
    return found
