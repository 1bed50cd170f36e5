"""The store: one SQLite file with every result, its study and where it came from.

A unit is written in one transaction: all of its results or none. Readers may look while a sweep writes; a second sweep
on the same file is refused. What is read is compared with its checksums, and damage raises one sentence.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from gradient_dd.engine.horizon import LaneResults
from gradient_dd.errors import one_line
from gradient_dd.fingerprint import plain
from gradient_dd.studies.records import (
    EVERY_RUN,
    HEAD,
    Damage,
    StoredSetting,
    StoredUnit,
    Work,
    as_ranges,
    as_text,
    checksum,
    packed,
    task_in,
    unit_in,
)
from gradient_dd.studies.sqlite_file import ResultsFile, StoreError
from gradient_dd.studies.study import Study
from gradient_dd.tasks import Task

PLACES = """
    SELECT id, task_key, run, place FROM unit INDEXED BY unit_task
    UNION SELECT id, task_key, run, place FROM unit INDEXED BY unit_run
"""  # one index finds what damage hides from the other, and from the table
SOME = 3  # damaged parts that a sentence names


class DamagedStoreError(StoreError):
    """What was asked for is damaged."""


class Store(ResultsFile):
    """One results file: what is written to it, and what is read from it and compared with its checksums."""

    # Writing ------------------------------------------------------------------------------------------------------

    def add_study(self, study: Study) -> int:
        """Note that a study was started, and return its row."""
        tasks = study.built_tasks
        facts: dict[str, Any] = {
            "name": study.name,
            "text": str(study),
            "at": now(),
            "tasks": [{"name": task.name, "parameters": plain(dict(task.parameters))} for task in tasks],
            "episodes": study.episodes,
            "steps": study.steps,
            "first_run": study.first_run,
            "runs": study.runs,
            "total": len(tasks) * study.n_settings * study.runs,
            "settings": [],  # ranges of rows, added as their turn comes
        }
        with self.transaction():
            ((facts["id"],),) = self.rows("SELECT coalesce(max(id), 0) + 1 FROM study")
            self._write_study(facts)
        return int(facts["id"])

    def _write_study(self, facts: dict[str, Any]) -> None:
        """Write the row of a study, in place of the one that is there."""
        cells = facts["id"], as_text(facts)
        self.db.execute("INSERT OR REPLACE INTO study VALUES (?, ?, ?)", (*cells, checksum(cells)))

    def add_settings(self, lanes: Iterable[tuple[str, dict[str, Any]]], study: int | None = None) -> None:
        """Make sure that each (key, facts) has a row as it should be; a damaged row is mended.

        `study` is the row of the study that the settings belong to, if that is to be noted.
        """
        wanted = {key: dict(facts) for key, facts in lanes}
        with self.transaction():
            rows = {row[1]: row for row in self._setting_rows(wanted)}
            ((last,),) = self.rows("SELECT coalesce(max(id), 0) FROM setting")
            new, ours = [], []
            for key, facts in wanted.items():
                last += key not in rows
                ours.append(rows[key][0] if key in rows else last)
                cells = ours[-1], key, facts.pop("description"), as_text(facts)
                row = *cells, checksum(cells)
                if row != rows.get(key):
                    new.append(row)
            self.db.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?, ?, ?, ?)", new)
            if study is not None:
                (facts,) = (one for one in self.studies([]) if one["id"] == study)
                known = (row for first, last in facts["settings"] for row in range(first, last + 1))
                self._write_study(facts | {"settings": as_ranges([*known, *ours])})

    def add_unit(
        self, task: Task, run: int, keys: Sequence[str], results: LaneResults, work: Work, provenance: dict[str, Any]
    ) -> None:
        """Write the results of one (task, run), `keys` being those of its settings: all, or none."""
        facts = {
            "task": str(task),
            "steps": int(results.steps[0]),
            "seconds": work.seconds,
            "at": now(),
            "costs": work.costs,
            "provenance": provenance,
        }
        numbers, curves = packed(run, keys, results)
        with self.transaction():
            ((row,),) = self.rows("SELECT coalesce(max(id), 0) + 1 FROM unit")
            self._write_unit((row, task.key, run, as_text(facts), " ".join(keys)), numbers, curves)

    def drop_lanes(self, unit: StoredUnit, keys: Collection[str]) -> None:
        """Remove the results of some settings from a unit, inside the caller's transaction."""
        kept = [lane for lane, key in enumerate(unit.keys) if key not in keys]
        curves = b"".join(self.curves(unit, kept))
        settings = " ".join(unit.keys[lane] for lane in kept)
        self.db.execute("DELETE FROM unit WHERE id = ?", (unit.id,))
        if kept:
            head = unit.id, unit.task_key, unit.run, as_text(unit.facts), settings
            self._write_unit(head, unit.numbers[kept].tobytes(), curves)

    def _write_unit(self, head: tuple[Any, ...], numbers: bytes, curves: bytes) -> None:
        """Write the row of a unit; `head` has the cells of HEAD."""
        row = *head[:3], checksum(head[:3]), *head[3:], numbers, checksum(head, numbers), curves
        self.db.execute("INSERT INTO unit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    # Reading. What is damaged is added to the list `damaged`; without such a list, it raises -------------------------

    def units(
        self, tasks: Iterable[Task] | None = None, runs: range = EVERY_RUN, damaged: list[Damage] | None = None
    ) -> list[StoredUnit]:
        """Return the units of these tasks and runs, or all units, in the order in which they were written."""
        query, wanted = f"SELECT {HEAD}, numbers, checksum FROM unit", {task.key for task in tasks or ()}
        with self.snapshot():
            places = self.rows(PLACES)
            ids = {row for row, *_ in places}
            if tasks is None:
                rows = self.rows(f"{query} NOT INDEXED ORDER BY id")
            else:
                sure = {row: place for row, *place, check in places if checksum((row, *place)) == check}
                ids -= {row for row, (key, run) in sure.items() if key not in wanted or run not in runs}
                rows = self._chosen(f"{query} WHERE id IN", sorted(ids))
        found = [unit_in(row) for row in rows]
        lost = ids.difference(row[0] for row in rows)
        wrong = [one for one in found if isinstance(one, Damage)]
        wrong += [Damage("unit", row, "a unit that is missing", None, "missing unit") for row in sorted(lost)]
        self.report_damage(wrong, damaged)
        units = [one for one in found if isinstance(one, StoredUnit)]
        return units if tasks is None else [one for one in units if one.task_key in wanted and one.run in runs]

    def curves(self, unit: StoredUnit, lanes: Sequence[int], damaged: list[Damage] | None = None) -> list[bytes]:
        """Return the points of some lanes of a unit, each as little-endian float64."""
        try:
            with self.db.blobopen("unit", "curves", unit.id, readonly=True) as blob:
                size = len(blob) // len(unit.keys)
                points = [bytes(blob[lane * size : (lane + 1) * size]) for lane in lanes]
        except sqlite3.Error:
            points = [b""] * len(lanes)  # the cell does not hold bytes
        checks = unit.numbers["curve"].tolist()
        wrong = [
            Damage("unit", unit.id, unit.facts["task"], unit.run, "curve", (unit.keys[lane],))
            for lane, one in zip(lanes, points, strict=True)
            if checksum((unit.keys[lane], unit.run), one) != checks[lane]
        ]
        self.report_damage(wrong, damaged)
        return points

    def settings(self, keys: Collection[str] | None = None, damaged: list[Damage] | None = None) -> list[StoredSetting]:
        """Return the settings with these keys, or all, in the order in which they were stored."""
        whole, wrong = [], []
        for row, key, description, facts, check in self._setting_rows(keys):
            if checksum((row, key, description, facts)) == check:
                whole.append(StoredSetting(row, key, json.loads(facts)))
            else:
                wrong.append(Damage("setting", row, task_in(facts), None, "setting", (key,)))
        self.report_damage(wrong, damaged)
        return whole

    def _setting_rows(self, keys: Collection[str] | None) -> list[tuple[Any, ...]]:
        """Return the rows of settings, in order; what the index does not find may still be in the table."""
        if keys is None:
            return self.rows("SELECT * FROM setting NOT INDEXED ORDER BY id")
        found = {row[1]: row for row in self._chosen("SELECT * FROM setting WHERE key IN", keys)}
        absent = [key for key in keys if key not in found]
        rows = self._chosen("SELECT * FROM setting NOT INDEXED WHERE key IN", absent)
        return sorted([*found.values(), *rows])

    def studies(self, damaged: list[Damage] | None = None) -> list[dict[str, Any]]:
        """Return the facts of every study that was started, in that order."""
        rows = self.rows("SELECT * FROM study ORDER BY id")
        whole = [json.loads(facts) for row, facts, check in rows if checksum((row, facts)) == check]
        known = {one["id"] for one in whole}
        wrong = [Damage("study", row, "a study", None, "study") for row, *_ in rows if row not in known]
        self.report_damage(wrong, damaged)
        return whole

    def count_other_definitions(self, descriptions: Iterable[str], keys: Iterable[str]) -> int:
        """Return how many stored settings have one of these descriptions, but come from another definition."""
        known = set(keys)
        rows = self._chosen("SELECT key FROM setting WHERE description IN", list(descriptions))
        return sum(key not in known for (key,) in rows)

    def _chosen(self, query: str, values: Collection[Any], size: int = 5000) -> list[tuple[Any, ...]]:
        """Return the rows of a query that ends in IN for these values, a part of them at a time."""
        several, found = list(values), list[tuple[Any, ...]]()
        for begin in range(0, len(several), size):
            some = several[begin : begin + size]
            found += self.rows(f"{query} ({', '.join('?' * len(some))})", some)
        return found

    def report_damage(self, wrong: list[Damage], damaged: list[Damage] | None = None) -> None:
        """Add what is wrong to a list of damage; without a list, raise if anything is."""
        if damaged is not None:
            damaged += wrong
        elif wrong:
            raise DamagedStoreError(
                f"{str(self.path)!r} must be whole. Got damage to {named(wrong)}. "
                "Run the same sweep again: it replaces what is damaged. gradient-dd verify names all of it."
            )


def named(damaged: Iterable[Damage]) -> str:
    """Return the damaged parts of a store in words; of many, the first ones and how many more."""
    words = [f"{one_line(one.task)}, {'every run' if one.run is None else f'run {one.run}'}" for one in damaged]
    words = list(dict.fromkeys(words))
    return "; ".join(words[:SOME]) + (f" and {len(words) - SOME:,} more" if len(words) > SOME else "")


def now() -> str:
    """Return the time, for the record."""
    return datetime.now(UTC).isoformat(timespec="seconds")
