"""The store: one SQLite file with all results, their studies and their origin.

A unit is (task, run) with some settings, and one row: the keys of its settings, a record of numbers per setting
and, separate so that numbers are fast to read, their curves. A unit is written in one transaction.
Readers may read while a sweep writes; a second sweep on the same file is an error.

Every row has a checksum, and every task the number of its units. All data read are compared with them; damage
raises an error.
"""

import json
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.engine.horizon import LaneResults
from gradient_dd.errors import one_line
from gradient_dd.fingerprint import plain
from gradient_dd.studies.sqlite_file import ResultsFile, StoreError
from gradient_dd.studies.study import Study
from gradient_dd.tasks import Task

NUMBERS = np.dtype([("last100", "<f8"), ("mean_error", "<f8"), ("diverged_step", "<i8"), ("diverged_episode", "<i8")])
COLUMNS = {  # the cells that the checksum of a row covers, and the bytes that follow them
    "study": "id, facts, checksum, x''",
    "setting": "id, key, description, facts, checksum, x''",
    "task": "key, units, checksum, x''",
    "unit": "id, task_key, run, facts, settings, curves_checksum, checksum, numbers",
}
EVERY_RUN = range(2**63 - 1)
SOME = 3  # most damaged parts that a sentence names


class DamagedStoreError(StoreError):
    """The requested results are damaged."""


class Work(NamedTuple):
    """The cost of a unit: seconds, and for each learner the seconds and updates of its kernels."""

    seconds: float
    costs: dict[str, tuple[float, int]]


class StoredSetting(NamedTuple):
    """A setting under given conditions; `facts` are the facts of `Study.lanes`."""

    id: int
    key: str
    facts: dict[str, Any]


class StoredUnit(NamedTuple):
    """The numbers of one task and run; numbers: (settings,) records of NUMBERS, in the order of `keys`."""

    id: int
    task_key: str
    run: int
    facts: dict[str, Any]
    settings: str
    curves_checksum: int
    numbers: Any

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its settings."""
        return keys_in(self.settings)


class Damage(NamedTuple):
    """A damaged row: its table and id, its task and run (None for every run), and what is damaged."""

    table: str
    id: Any
    task: str
    run: Any
    what: str


class Store(ResultsFile):
    """One results file: writes results, and reads them with checksum verification."""

    # Writing ------------------------------------------------------------------------------------------------------

    def add_study(self, study: Study) -> int:
        """Record the start of a study, and return its row."""
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
            "settings": [],  # ranges of rows, added when the study reaches them
        }
        with self.transaction():
            facts["id"] = self._next_id("study")
            self._write("study", facts["id"], as_text(facts))
        return int(facts["id"])

    def add_settings(self, lanes: Iterable[tuple[str, dict[str, Any]]], study: int | None = None) -> None:
        """Ensure that each (key, facts) has a correct row; a damaged row is repaired.

        `study` is the row of the study of the settings, if it should be recorded.
        """
        wanted = {key: dict(facts) for key, facts in lanes}
        with self.transaction():
            stored = {row[1]: row[:-1] for row in self._rows("setting", "key", wanted)}
            following, ours = self._next_id("setting"), []
            for key, facts in wanted.items():
                ours.append(stored[key][0] if key in stored else following)
                following += key not in stored
                cells = ours[-1], key, facts.pop("description"), as_text(facts)
                if (*cells, checksum(cells)) != stored.get(key):
                    self._write("setting", *cells)
            if study is not None:
                (facts,) = (one for one in self.studies([]) if one["id"] == study)
                known = (row for first, last in facts["settings"] for row in range(first, last + 1))
                self._write("study", study, as_text(facts | {"settings": as_ranges([*known, *ours])}))

    def add_unit(
        self, task: Task, run: int, keys: Sequence[str], results: LaneResults, work: Work, provenance: dict[str, Any]
    ) -> None:
        """Write the results of one (task, run), whose settings have these `keys`, in one transaction."""
        facts = {
            "task": str(task),
            "steps": int(results.steps[0]),
            "seconds": work.seconds,
            "at": now(),
            "costs": work.costs,
            "provenance": provenance,
        }
        records = np.empty(len(keys), NUMBERS)
        for name in NUMBERS.names or ():
            records[name] = getattr(results, name)[0]
        numbers, curves = records.tobytes(), np.ascontiguousarray(results.curve[0], "<f8").tobytes()
        with self.transaction():
            head = self._next_id("unit"), task.key, run, as_text(facts), " ".join(keys), checksum((), curves)
            self._write("unit", *head, blobs=(numbers, curves))
            self.count_units(task.key)

    def count_units(self, task_key: str) -> None:
        """Write how many units a task has, inside the caller's transaction."""
        ((units,),) = self.rows("SELECT count(*) FROM unit WHERE task_key = ?", [task_key])
        self._write("task", task_key, units)

    def _write(self, table: str, *cells: Any, blobs: tuple[bytes, ...] = ()) -> None:
        """Write a row: cells, the checksum of cells and first blob, blobs. It replaces an existing row."""
        row = *cells, checksum(cells, *blobs[:1]), *blobs
        self.db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def _next_id(self, table: str) -> int:
        """Return the id of the next row of a table."""
        return int(self.rows(f"SELECT coalesce(max(id), 0) + 1 FROM {table}")[0][0])

    # Reading. Damage is added to the list `damaged`; without such a list, it raises -------------------------------

    def units(
        self, tasks: Iterable[Task] | None = None, runs: range = EVERY_RUN, damaged: list[Damage] | None = None
    ) -> list[StoredUnit]:
        """Return the units of these tasks and runs, or all units, in the order in which they were written."""
        keys = None if tasks is None else {task.key for task in tasks}
        wrong: list[Damage] = []
        with self.snapshot():
            rows, counts = self._rows("unit", "task_key", keys), self._rows("task", "key", keys)
        rows = sorted({row[0]: row for row in rows}.values(), key=itemgetter(0))
        units = [
            StoredUnit(row, key, run, json.loads(facts), settings, curves, np.frombuffer(numbers, NUMBERS))
            for row, key, run, facts, settings, curves, numbers in intact("unit", rows, wrong)
        ]
        names = {unit.task_key: unit.facts["task"] for unit in units}
        known = {key: number for key, number, _ in intact("task", counts, [])}
        there = Counter(row[1] for row in rows)
        for key in dict.fromkeys([*names, *known]):
            if there[key] != known.get(key):
                wrong.append(Damage("task", key, names.get(key, "?"), None, "missing unit"))
        self.report_damage(wrong, damaged)
        return [unit for unit in units if unit.run in runs]

    def curves(self, unit: StoredUnit) -> Array:
        """Return the curves of a unit, (settings, bins), or raise if they are damaged."""
        try:
            points = self.rows("SELECT curves FROM unit WHERE id = ?", [unit.id])[0][0]
        except (StoreError, IndexError):  # the pages of the curves are damaged
            points = None
        if not isinstance(points, bytes) or checksum((), points) != unit.curves_checksum:
            self.report_damage([damaged_unit(unit)])
        return np.frombuffer(points, "<f8").reshape(len(unit.keys), -1)

    def settings(self, keys: Collection[str] | None = None, damaged: list[Damage] | None = None) -> list[StoredSetting]:
        """Return the settings with these keys, or all, in the order in which they were stored."""
        rows, wrong = sorted(self._rows("setting", "key", keys), key=itemgetter(0)), list[Damage]()
        found = [StoredSetting(row, key, json.loads(facts)) for row, key, _, facts, _ in intact("setting", rows, wrong)]
        self.report_damage(wrong, damaged)
        return found

    def studies(self, damaged: list[Damage] | None = None) -> list[dict[str, Any]]:
        """Return the facts of every started study, in order."""
        wrong: list[Damage] = []
        found = [json.loads(facts) for _, facts, _ in intact("study", sorted(self._rows("study")), wrong)]
        self.report_damage(wrong, damaged)
        return found

    def count_other_definitions(self, descriptions: Iterable[str], keys: Iterable[str]) -> int:
        """Return how many stored settings have one of these descriptions but another definition."""
        known = set(keys)
        return sum(key not in known for _, key, *_ in self._rows("setting", "description", descriptions))

    def _rows(self, table: str, column: str = "", values: Iterable[str] | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a table whose column has one of these values, or all rows; each row as in COLUMNS."""
        query = f"SELECT {COLUMNS[table]} FROM {table}"
        if values is None:
            return self.rows(f"{query} NOT INDEXED")
        return self.rows(f"{query} WHERE {column} IN (SELECT value FROM json_each(?))", [json.dumps(list(values))])

    def report_damage(self, wrong: list[Damage], damaged: list[Damage] | None = None) -> None:
        """Add damage to a list; without a list, raise if there is any."""
        if damaged is not None:
            damaged += wrong
        elif wrong:
            raise DamagedStoreError(
                f"{str(self.path)!r} is damaged: {named(wrong)}. "
                "Run the same sweep again to replace the damaged parts. gradient-dd verify lists all of them."
            )


def checksum(cells: tuple[Any, ...], data: bytes = b"") -> int:
    """Return a 64-bit checksum of the cells of a row, as Python writes them, and of the bytes that follow."""
    found = blake2b(ascii(cells).encode(), digest_size=8)
    found.update(data)
    return int.from_bytes(found.digest(), "little", signed=True)


def as_text(facts: Mapping[str, Any]) -> str:
    """Return facts as text for the file."""
    return json.dumps(facts, default=str)


@lru_cache(maxsize=256)  # successive units have the same settings
def keys_in(settings: str) -> tuple[str, ...]:
    """Return the keys in the text of a unit's settings."""
    return tuple(settings.split())


def intact(table: str, rows: Iterable[tuple[Any, ...]], wrong: list[Damage]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table, as in COLUMNS, without their checksums; damaged rows are added to `wrong` instead."""
    for *cells, check, data in rows:
        if isinstance(data, bytes) and checksum(tuple(cells), data) == check:
            yield *cells, data
            continue
        try:
            task = str(json.loads(cells[1 if table == "study" else 3])["task"])
        except (IndexError, KeyError, TypeError, ValueError):
            task = "a study" if table == "study" else "?"
        wrong.append(Damage(table, cells[0], task, cells[2] if table == "unit" else None, table))


def damaged_unit(unit: StoredUnit, what: str = "unit") -> Damage:
    """Return the damage to a part of a unit."""
    return Damage("unit", unit.id, unit.facts["task"], unit.run, what)


def lost_settings(
    units: Iterable[StoredUnit], known: Container[str], wanted: Container[str] | None = None
) -> list[Damage]:
    """Return the damage to units with results of settings that are not `known`, among the `wanted` settings."""
    return [
        damaged_unit(unit, "missing setting")
        for unit in units
        if any(key not in known and (wanted is None or key in wanted) for key in unit.keys)
    ]


def gathered(units: Iterable[StoredUnit], place: Mapping[str, int]) -> tuple[Integers, Integers, Any]:
    """Return the indices of settings, the runs and the numbers of all results of units, each (results,).

    `place` has the caller's index of each setting, by key. Settings without an index are omitted.
    """
    where: dict[str, Integers] = {}
    places, runs, numbers = [np.empty(0, int)], [np.empty(0, int)], [np.empty(0, NUMBERS)]
    for unit in units:
        if unit.settings not in where:
            found = [(lane, place[key]) for lane, key in enumerate(unit.keys) if key in place]
            where[unit.settings] = np.array(found, int).reshape(-1, 2).T
        lanes, at = where[unit.settings]
        places.append(at)
        runs.append(np.full(len(at), unit.run))
        numbers.append(unit.numbers[lanes])
    return np.concatenate(places), np.concatenate(runs), np.concatenate(numbers)


def as_ranges(rows: Iterable[int]) -> list[list[int]]:
    """Return integers as ranges, first and last included: [[1, 273], [300, 300]]."""
    ordered = np.array(sorted(set(rows)), np.int64)
    several = np.split(ordered, np.flatnonzero(np.diff(ordered) != 1) + 1)
    return [[int(one[0]), int(one[-1])] for one in several if len(one)]


def named(damaged: Iterable[Damage]) -> str:
    """Return the damaged parts of a store as text: the first ones, and the number of the rest."""
    words = [f"{one_line(one.task)}, {'every run' if one.run is None else f'run {one.run}'}" for one in damaged]
    words = list(dict.fromkeys(words))
    return "; ".join(words[:SOME]) + (f" and {len(words) - SOME:,} more" if len(words) > SOME else "")


def now() -> str:
    """Return the current time as text."""
    return datetime.now(UTC).isoformat(timespec="seconds")
