"""What a results file holds: studies, settings and units, each a row with a checksum of its own.

A unit is (task, run) with some settings. Its row has their keys, a record of numbers for each of them and, apart so
that numbers are quick to read, their curves. The checksum of a row covers all of it but the curves. Each record of
numbers has the checksum of its curve.
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Integers
from gradient_dd.engine.horizon import LaneResults

NUMBERS = np.dtype(
    [("last100", "<f8"), ("area", "<f8"), ("diverged_step", "<i8"), ("diverged_episode", "<i8"), ("curve", "<i8")]
)  # of a setting in a unit; the last one is the checksum of the curve
HEAD = "id, task_key, run, facts, settings"  # the columns of a unit before its numbers
EVERY_RUN = range(2**63 - 1)


class Work(NamedTuple):
    """What a unit took: seconds, and for each learner the seconds and updates of its kernels."""

    seconds: float
    costs: dict[str, tuple[float, int]]


class StoredSetting(NamedTuple):
    """A setting under given conditions; `facts` are those that `Study.lanes` yields."""

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
    numbers: Any

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of its settings."""
        return keys_in(self.settings)


class Damage(NamedTuple):
    """A damaged part of a store: its table and row, the task and the run it is of, and what it is.

    A run of None stands for every run. `keys` are the settings concerned, where the others of the unit are whole.
    """

    table: str
    id: Any
    task: str
    run: Any
    what: str
    keys: tuple[str, ...] = ()


def checksum(cells: tuple[Any, ...], data: bytes = b"") -> int:
    """Return 64 bits that stand for the cells of a row, as Python writes them, and for the bytes that follow."""
    found = blake2b(ascii(cells).encode() + data, digest_size=8).digest()
    return int.from_bytes(found, "little", signed=True)


def as_text(facts: Mapping[str, Any]) -> str:
    """Return facts as the text that a file keeps."""
    return json.dumps(facts, default=str)


@lru_cache(maxsize=256)  # units of the same settings follow one another
def keys_in(settings: str) -> tuple[str, ...]:
    """Return the keys in the text of a unit's settings."""
    return tuple(settings.split())


def packed(run: int, keys: Sequence[str], results: LaneResults) -> tuple[bytes, bytes]:
    """Return the numbers and the curves of a unit as bytes."""
    points = [curve.tobytes() for curve in np.ascontiguousarray(results.curve[0], "<f8")]
    numbers = np.empty(len(keys), NUMBERS)
    for name in ("last100", "area", "diverged_step", "diverged_episode"):
        numbers[name] = getattr(results, name)[0]
    numbers["curve"] = [checksum((key, run), curve) for key, curve in zip(keys, points, strict=True)]
    return numbers.tobytes(), b"".join(points)


def unit_in(row: tuple[Any, ...]) -> StoredUnit | Damage:
    """Return the unit of a row, (*HEAD, numbers, checksum), or the damage if its checksum differs."""
    *head, numbers, check = row
    if not isinstance(numbers, bytes) or checksum(tuple(head), numbers) != check:
        return Damage("unit", row[0], task_in(row[3]), row[2], "unit")
    number, task_key, run, facts, settings = head
    return StoredUnit(number, task_key, run, json.loads(facts), settings, np.frombuffer(numbers, NUMBERS))


def task_in(facts: Any) -> str:
    """Return the task that the facts of a damaged row name, as far as they can be read."""
    try:
        return str(json.loads(facts)["task"])
    except (KeyError, TypeError, ValueError):
        return "?"


def lost_settings(units: Iterable[StoredUnit], keys: Container[str]) -> list[Damage]:
    """Return the damage to units that have results of settings whose keys are not among `keys`."""
    damaged = []
    for unit in units:
        lost = tuple(key for key in unit.keys if key not in keys)
        if lost:
            damaged.append(Damage("unit", unit.id, unit.facts["task"], unit.run, "missing setting", lost))
    return damaged


def gathered(units: Iterable[StoredUnit], place: Mapping[str, int]) -> tuple[Integers, Integers, Any]:
    """Return the places of settings, the runs and the numbers of all results of units, each (results,).

    `place` is where the caller keeps each setting, by its key. Settings without a place are left out.
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
    """Return whole numbers as ranges, first and last included: [[1, 273], [300, 300]]."""
    ordered = np.array(sorted(set(rows)), np.int64)
    several = np.split(ordered, np.flatnonzero(np.diff(ordered) != 1) + 1)
    return [[int(one[0]), int(one[-1])] for one in several if len(one)]
