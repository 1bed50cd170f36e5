"""The store: one SQLite file with all results, their studies and their origin.

A unit is one task and one run with some settings. Its row has the keys of the settings, a record of numbers per setting
and the curves. The curves have a separate column, so that numbers are fast to read. A unit is written in one
transaction. Readers may read while a sweep writes; a second sweep on the same file is an error.

Every row has a checksum, and every task has the number of its units; both are verified when data are read. Damage
raises an error, except inside `Store.collecting`, which lists it for status, verification and repair.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path
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
SOME = 3  # maximum number of damaged parts that a message names

as_text = partial(json.dumps, default=str)  # converts the facts of a row
keys_in = lru_cache(maxsize=256)(lambda settings: tuple(settings.split()))  # successive units share settings


class DamagedStoreError(StoreError):
    """The requested results are damaged."""


class Work(NamedTuple):
    """The cost of a unit: seconds, and for each learner the seconds and updates of its kernels."""

    seconds: float
    costs: dict[str, tuple[float, int]]


class StoredSetting(NamedTuple):
    """A stored setting with its conditions; `facts` come from `Study.lanes`."""

    id: int
    key: str
    facts: dict[str, Any]


class Damage(NamedTuple):
    """A damaged row: its table and id, its task and run (None for every run), and what is damaged."""

    table: str
    id: Any
    task: str
    run: Any
    what: str


class StoredUnit(NamedTuple):
    """The numbers of one task and run; numbers: (settings,) records of NUMBERS, in the order of `keys`."""

    id: int
    task_key: str
    run: int
    facts: dict[str, Any]
    keys: tuple[str, ...]
    curves_checksum: int
    numbers: Any

    def damage(self, what: str = "unit") -> Damage:
        """Return a record of damage to a part of this unit."""
        return Damage("unit", self.id, self.facts["task"], self.run, what)


class Store(ResultsFile):
    """A results file that verifies checksums when it is read."""

    _damage: list[Damage] | None = None  # collects damage; if None, damage raises an error

    # Writing ------------------------------------------------------------------------------------------------------

    def add_study(self, study: Study) -> int:
        """Record the start of a study, and return its row."""
        tasks = study.built_tasks
        facts: dict[str, Any] = {
            "name": study.name,
            "text": str(study),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "tasks": [{"name": task.name, "parameters": plain(dict(task.parameters))} for task in tasks],
            "episodes": study.episodes,
            "steps": study.steps,
            "first_run": study.first_run,
            "runs": study.runs,
            "total": len(tasks) * study.n_settings * study.runs,
            "settings": [],  # ranges of rows such as [[1, 273], [300, 300]], added when the study reaches the settings
        }
        with self.transaction():
            facts["id"] = self._next_id("study")
            self._write("study", facts["id"], as_text(facts))
        return int(facts["id"])

    def add_settings(self, lanes: Iterable[tuple[str, dict[str, Any]]], study: int | None = None) -> None:
        """Ensure that each (key, facts) has a correct row; a damaged row is repaired.

        `study`, if given, is the row of the study to which the settings belong.
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
                (facts,) = (one for one in self.studies() if one["id"] == study)
                ours += (row for first, last in facts["settings"] for row in range(first, last + 1))
                rows = np.unique(ours)
                parts = np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1)
                facts["settings"] = [[int(part[0]), int(part[-1])] for part in parts]
                self._write("study", study, as_text(facts))

    def add_unit(
        self, task: Task, run: int, keys: Sequence[str], results: LaneResults, work: Work, provenance: dict[str, Any]
    ) -> None:
        """Write the results of one task and run, for settings with these `keys`, in one transaction."""
        facts = {
            "task": str(task),
            "steps": int(results.steps[0]),
            "seconds": work.seconds,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
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
        """Write the number of units of a task, inside the caller's transaction."""
        ((units,),) = self.rows("SELECT count(*) FROM unit WHERE task_key = ?", [task_key])
        self._write("task", task_key, units)

    def repair(self) -> list[Damage]:
        """Remove all damaged parts and return their damage; a sweep computes these parts again.

        Units with damaged settings stay, because their numbers are intact and their sweep rewrites the settings.
        """
        removed = [one for one in self.inspect()[1] if one.what != "missing setting"]
        if removed:
            with self.transaction():
                for one in removed:
                    if one.table != "task":
                        self.db.execute(f"DELETE FROM {one.table} WHERE id = ?", (one.id,))
                self.db.execute("DELETE FROM task")
                for (key,) in self.rows("SELECT DISTINCT task_key FROM unit"):
                    self.count_units(key)
        return removed

    def _write(self, table: str, *cells: Any, blobs: tuple[bytes, ...] = ()) -> None:
        """Write or replace a row: the cells, the checksum of the cells and the first blob, and the blobs."""
        row = *cells, checksum(cells, *blobs[:1]), *blobs
        self.db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    def _next_id(self, table: str) -> int:
        """Return the id of the next row of a table."""
        return int(self.rows(f"SELECT coalesce(max(id), 0) + 1 FROM {table}")[0][0])

    # Reading ------------------------------------------------------------------------------------------------------

    def units(self, tasks: Iterable[Task] | None = None, runs: range = EVERY_RUN) -> list[StoredUnit]:
        """Return the units of these tasks and runs, or all units, in the order in which they were written."""
        keys = None if tasks is None else {task.key for task in tasks}
        with self.snapshot():
            rows, counts = self._rows("unit", "task_key", keys), self._rows("task", "key", keys)
        rows = sorted({row[0]: row for row in rows}.values(), key=itemgetter(0))
        whole, wrong = intact("unit", rows)
        units = [
            StoredUnit(row, key, run, json.loads(facts), keys_in(settings), curves, np.frombuffer(numbers, NUMBERS))
            for row, key, run, facts, settings, curves, numbers in whole
        ]
        names = {unit.task_key: unit.facts["task"] for unit in units}
        known = {key: number for key, number, _ in intact("task", counts)[0]}
        there = Counter(row[1] for row in rows)
        differing = (key for key in dict.fromkeys([*names, *known]) if there[key] != known.get(key))
        self.report(wrong + [Damage("task", key, names.get(key, "?"), None, "missing unit") for key in differing])
        return [unit for unit in units if unit.run in runs]

    def curves(self, unit: StoredUnit) -> Array:
        """Return the curves of a unit, (settings, bins)."""
        try:
            points = self.rows("SELECT curves FROM unit WHERE id = ?", [unit.id])[0][0]
        except (StoreError, IndexError):  # the pages of the curves are damaged
            points = None
        if not isinstance(points, bytes) or checksum((), points) != unit.curves_checksum:
            self.report([unit.damage()])
            points = b""
        return np.frombuffer(points, "<f8").reshape(len(unit.keys), -1)

    def settings(self, keys: Collection[str] | None = None) -> list[StoredSetting]:
        """Return the settings with these keys, or all settings, in the order in which they were stored."""
        whole, wrong = intact("setting", sorted(self._rows("setting", "key", keys), key=itemgetter(0)))
        self.report(wrong)
        return [StoredSetting(row, key, json.loads(facts)) for row, key, _, facts, _ in whole]

    def studies(self) -> list[dict[str, Any]]:
        """Return the facts of every started study, in order."""
        whole, wrong = intact("study", sorted(self._rows("study")))
        self.report(wrong)
        return [json.loads(facts) for _, facts, _ in whole]

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

    # Damage -------------------------------------------------------------------------------------------------------

    def report(self, wrong: list[Damage]) -> None:
        """Raise if there is damage, or add it to the list of `collecting`."""
        if self._damage is not None:
            self._damage += wrong
        elif wrong:
            raise DamagedStoreError(
                f"{str(self.path)!r} is damaged: {named(wrong)}. "
                "Run the same sweep again to replace the damaged parts. gradient-dd verify lists all of them."
            )

    @contextmanager
    def collecting(self) -> Iterator[list[Damage]]:
        """Yield a list that collects the damage found in the block, whose queries all use one snapshot."""
        self._damage = found = list[Damage]()
        try:
            with self.snapshot():
                yield found
        finally:
            self._damage = None

    def inspect(self) -> tuple[list[StoredUnit], list[Damage]]:
        """Read everything; return the units with intact numbers, and all damage."""
        with self.collecting() as damaged:
            units, *_ = self.units(), self.settings(), self.studies()
            self.report(lost_settings(units, {key for (key,) in self.rows("SELECT key FROM setting NOT INDEXED")}))
            for unit in units:
                self.curves(unit)
        return units, damaged


def checksum(cells: tuple[Any, ...], data: bytes = b"") -> int:
    """Return a 64-bit checksum of the cells of a row, in their `ascii` form, and of the bytes that follow."""
    found = blake2b(ascii(cells).encode(), digest_size=8)
    found.update(data)
    return int.from_bytes(found.digest(), "little", signed=True)


def intact(table: str, rows: Iterable[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], list[Damage]]:
    """Return the intact rows of a table, as in COLUMNS but without checksums, and the damage to other rows."""
    whole, wrong = [], []
    for *cells, check, data in rows:
        if isinstance(data, bytes) and checksum(tuple(cells), data) == check:
            whole.append((*cells, data))
            continue
        try:
            task = str(json.loads(cells[1 if table == "study" else 3])["task"])
        except (IndexError, KeyError, TypeError, ValueError):
            task = "a study" if table == "study" else "?"
        wrong.append(Damage(table, cells[0], task, cells[2] if table == "unit" else None, table))
    return whole, wrong


def lost_settings(
    units: Iterable[StoredUnit], known: Container[str], wanted: Container[str] | None = None
) -> list[Damage]:
    """Return the damage to units with results of settings that are not `known`, among the `wanted` settings."""
    return [
        unit.damage("missing setting")
        for unit in units
        if any(key not in known and (wanted is None or key in wanted) for key in unit.keys)
    ]


def gathered(units: Iterable[StoredUnit], place: Mapping[str, int]) -> tuple[Integers, Integers, Any]:
    """Return the indices of settings, the runs and the numbers of all results of units, each (results,).

    `place` has the caller's index of each setting, by key. Settings without an index are omitted.
    """
    where: dict[tuple[str, ...], Integers] = {}
    places, runs, numbers = [np.empty(0, int)], [np.empty(0, int)], [np.empty(0, NUMBERS)]
    for unit in units:
        if unit.keys not in where:
            found = [(lane, place[key]) for lane, key in enumerate(unit.keys) if key in place]
            where[unit.keys] = np.array(found, int).reshape(-1, 2).T
        lanes, at = where[unit.keys]
        places.append(at)
        runs.append(np.full(len(at), unit.run))
        numbers.append(unit.numbers[lanes])
    return np.concatenate(places), np.concatenate(runs), np.concatenate(numbers)


def named(damaged: Iterable[Damage]) -> str:
    """Return the damaged parts of a store as text: the first SOME parts, and the number of other parts."""
    places = ((one_line(one.task), "every run" if one.run is None else f"run {one.run}") for one in damaged)
    words = list(dict.fromkeys(map(", ".join, places)))
    return "; ".join(words[:SOME]) + (f" and {len(words) - SOME:,} more" if len(words) > SOME else "")


# Status and verification ----------------------------------------------------------------------------------------


def store_status(store: Store) -> dict[str, Any]:
    """Return the contents of a store: its studies, and for each task its settings, runs and results."""
    with store.collecting() as damaged:
        units, settings, studies = store.units(), store.settings(), store.studies()
    rows, runs, numbers = gathered(units, {setting.key: setting.id for setting in settings})
    places, tasks = defaultdict[tuple[Any, ...], list[int]](list), []
    for one in settings:
        places[one.facts["task"], one.facts["size"], one.facts["reading"]].append(one.id)
    for (task, size, reading), ours in places.items():
        if (chosen := np.isin(rows, ours)).any():
            counts = {"settings": len(np.unique(rows[chosen])), "runs": len(np.unique(runs[chosen]))}
            diverged = numbers["diverged_step"][chosen] != 0
            counts |= {"results": len(diverged), "diverged": int(diverged.sum())}
            tasks.append({"task": task, "size": size, "reading": reading, **counts})
    started: dict[tuple[str, str], dict[str, Any]] = {}
    for study in studies:
        done = rows[(study["first_run"] <= runs) & (runs < study["first_run"] + study["runs"])]
        names = study["name"], study["text"]
        started[names] = {
            "name": study["name"],
            "started": study["at"],
            "starts": started.get(names, {"starts": 0})["starts"] + 1,
            "length": f"{study['episodes']} episodes" if study["episodes"] else f"{study['steps']} steps",
            "runs": study["runs"],
            "done": sum(int(((first <= done) & (done <= last)).sum()) for first, last in study["settings"]),
            "total": study["total"],
            "text": study["text"],
        }
    return {
        "studies": list(started.values()),
        "tasks": tasks,
        "units": len(units),
        "steps": sum(unit.facts["steps"] for unit in units),
        "worker_seconds": sum(unit.facts["seconds"] for unit in units),
        "damaged": len(damaged),
    }


class Verification(NamedTuple):
    """The checked contents of a file, and its damage."""

    file: str
    units: int
    results: int
    structure: list[str]  # problems that SQLite finds in the file
    damaged: list[dict[str, Any]]  # task, run (None means every run) and "what", counts by type, of each damaged unit
    whole: bool  # nothing is damaged


def verify(path: str | Path) -> Verification:
    """Check every study, setting, number and curve of a results file."""
    with Store(path) as store, store.snapshot():
        structure = [text for (text,) in store.rows("PRAGMA integrity_check(10)") if text != "ok"]
        units, damaged = store.inspect()
    wrong = {one.id for one in damaged if one.table == "unit"}
    sizes = [len(unit.numbers) for unit in units if unit.id not in wrong]
    types = defaultdict[tuple[str, Any], Counter[str]](Counter)
    for one in damaged:
        types[one_line(one.task), one.run][one.what] += 1
    counts = [{"task": task, "run": run, "what": dict(what)} for (task, run), what in types.items()]
    return Verification(str(path), len(sizes), sum(sizes), structure, counts, not structure and not damaged)
