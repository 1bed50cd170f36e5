"""Inspection: which results and curves of a store are whole, and which are damaged or missing.

Results and curves are compared with the seals of the store. A file of an earlier version has none: there, only cells
that are not numbers are noticed, and results or curves that have lost their counterpart.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Booleans, Integers
from gradient_dd.studies.checksums import Words, checksum, curve_checksum, result_checksums
from gradient_dd.studies.columns import columns_of
from gradient_dd.studies.seals import COLUMNS, Seals, joined_seals
from gradient_dd.studies.store import Store, pieces

Keys = Mapping[int, str]  # the key of each setting, by its row


class Rows(NamedTuple):
    """A part of results in the order of setting and run: two numbers for each; every array (results,)."""

    setting: Integers
    run: Integers
    first: Any
    second: Any

    def at(self, chosen: Any) -> "Rows":
        """Return the chosen rows."""
        return Rows._make(array[chosen] for array in self)


class Part(NamedTuple):
    """Two columns of a result that are read and checked together, their kind, and where seals keep their checksum."""

    columns: tuple[str, str]
    kind: str
    seal: str


ERRORS = Part(("last100", "area"), "d", "errors")
DIVERGENCE = Part(("diverged_step", "diverged_episode"), "q", "divergence")


class Damage(NamedTuple):
    """A damaged part of a store: the row of its setting, its run (None: all), and what it is."""

    setting: Any
    run: Any
    what: str


def inspect_results(
    store: Store, part: Part, keys: Keys | None = None, runs: range | None = None
) -> tuple[Rows, list[Damage]]:
    """Return a part of the whole results of these settings and runs, or of all, and what is damaged."""
    with store.snapshot():
        known = all_keys(store) if keys is None else keys
        seals = expected(store, "curve", keys, runs)
        if store.has_seals and keys is None:
            found = all_as_sealed(store, part, seals, known)
            if found is not None:
                return found, []
        query = f"SELECT setting, run, {', '.join(part.columns)} FROM result"
        found_rows = selected(store, query, keys, runs, " ORDER BY setting, run")
        columns, misfits = columns_of(found_rows, f"qq{part.kind}{part.kind}")
    rows = Rows(*columns)
    sealed = getattr(seals, part.seal)
    whole, damaged = compared(store, "result", rows, row_checksums(rows, known), seals, sealed, misfits)
    return rows.at(whole), damaged


def inspect_curves(store: Store, keys: Keys | None = None, runs: range | None = None) -> tuple[Rows, list[Damage]]:
    """Return the settings and runs whose curves are whole, with their checksums, and what is damaged."""
    misfits: list[tuple[Any, ...]] = []

    def checked() -> Iterator[tuple[int, int, int]]:
        for setting, run, points in selected(store, "SELECT setting, run, points FROM curve", keys, runs):
            if setting in known and isinstance(run, int) and isinstance(points, bytes) and len(points) % 8 == 0:
                yield setting, run, curve_checksum(known[setting], run, points)
            else:
                misfits.append((setting, run))

    with store.snapshot():
        known = all_keys(store) if keys is None else keys
        seals = expected(store, "result", keys, runs)
        (setting, run, check), _ = columns_of(checked(), "qqq")
    curves = Rows(setting, run, check.view(np.uint64), check)
    whole, damaged = compared(store, "curve", curves, curves.first, seals, seals.curves, misfits)
    return curves.at(whole), damaged


def inspect_cells(store: Store, keys: Keys, runs: range) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Return for each of these runs the settings whose result and curve are whole, and those with something damaged."""
    parts = [
        *(inspect_results(store, part, keys, runs) for part in (ERRORS, DIVERGENCE)),
        inspect_curves(store, keys, runs),
    ]
    damaged: dict[int, set[int]] = {run: set() for run in runs}
    for setting, run, _ in (one for _, wrong in parts for one in wrong):
        damaged[run].add(setting)
    whole: dict[int, set[int]] = {run: set() for run in runs}
    for setting, run in set.intersection(*(set(pairs(rows, slice(None))) for rows, _ in parts)):
        whole[run].add(setting)
    return {run: whole[run] - damaged[run] for run in runs}, damaged


def all_keys(store: Store) -> dict[int, str]:
    """Return the key of every setting."""
    return dict(store.rows("SELECT id, key FROM setting ORDER BY id"))


def expected(store: Store, counterpart: str, keys: Keys | None, runs: range | None) -> Seals:
    """Return what a store must hold of these settings and runs, or of all.

    Without seals that is what its other table of results has; the checksums are then zero.
    """
    if not store.has_seals:
        rows = selected(store, f"SELECT setting, run FROM {counterpart}", keys, runs, " ORDER BY setting, run")
        setting, run = columns_of(rows, "qq")[0]
        return Seals(setting, run, *np.zeros((3, len(run)), np.uint64))
    query = f"SELECT {COLUMNS} FROM seal"
    if keys is None or runs is None:
        return joined_seals(store.each(f"{query} ORDER BY id"))
    query += " WHERE run >= ? AND run < ? AND first_setting <= ? AND last_setting >= ? ORDER BY id"
    bounds = runs.start, runs.stop, max(keys, default=0), min(keys, default=0)
    seals = joined_seals(store.each(query, bounds))
    return seals.at(np.isin(seals.setting, list(keys)))


def selected(store: Store, query: str, keys: Keys | None, runs: range | None, order: str = "") -> Iterator[Any]:
    """Yield the rows of a query on a table with settings and runs, of these or of all."""
    if keys is None or runs is None:
        yield from store.each(query + order)
        return
    for piece in pieces(sorted(keys)):
        where = f" WHERE setting IN ({str(piece)[1:-1]}) AND run >= ? AND run < ?"
        yield from store.each(query + where + order, (runs.start, runs.stop))


def all_as_sealed(store: Store, part: Part, seals: Seals, keys: Keys) -> Rows | None:
    """Return a part of all results if they are exactly what the seals say; else None.

    Of which settings and runs they are is known from the seals, so only the numbers are read: SQLite hands out cells at
    0.2 µs each, which takes longer than their checksums.
    """
    query = f"SELECT {', '.join(part.columns)} FROM result ORDER BY setting, run"
    try:
        numbers = np.fromiter(chain.from_iterable(store.each(query)), float)  # whole numbers to 2⁵³ are exact
    except (TypeError, ValueError):
        return None
    if len(numbers) != 2 * len(seals.run) or np.isnan(numbers).any():
        return None
    first, second = np.ascontiguousarray(numbers.reshape(-1, 2).T)
    if part.kind == "q":
        with np.errstate(invalid="ignore"):
            whole = [column.astype(np.int64) for column in (first, second)]
        if (whole[0] != first).any() or (whole[1] != second).any():
            return None
        first, second = whole
    rows = Rows(seals.setting, seals.run, first, second)
    return rows if (row_checksums(rows, keys) == getattr(seals, part.seal)).all() else None


def row_checksums(rows: Rows, keys: Keys) -> Words:
    """Return the checksum of each row of a part, given the keys of the settings."""
    begin = np.flatnonzero(np.diff(rows.setting, prepend=-1))  # rows stand in the order of their settings
    named = [checksum(keys.get(setting, "")) for setting in rows.setting[begin].tolist()]
    count = np.diff(begin, append=len(rows.setting))
    return result_checksums(np.repeat(np.array(named, np.int64), count), *rows[1:])


def compared(
    store: Store,
    what: str,
    found: Rows,
    checks: Words,
    seals: Seals,
    sealed: Words,
    misfits: list[tuple[Any, ...]],
) -> tuple[Booleans, list[Damage]]:
    """Return which of the rows found are whole, (rows,), and what is damaged.

    `checks` are the checksums of the rows found, `sealed` those that the seals have. `misfits` did not fit as numbers.
    """
    place = seals.places(found.setting, found.run)
    whole = np.ones(len(place), bool)
    if store.has_seals:
        whole[:] = place >= 0
        whole[whole] = checks[whole] == sealed[place[whole]]
    damaged = [Damage(row[0], row[1], what) for row in misfits]
    damaged += [Damage(*pair, what) for pair in pairs(found, ~whole)]
    there = {(damage.setting, damage.run) for damage in damaged}
    lost = np.ones(len(seals.run), bool)
    lost[place[place >= 0]] = False
    damaged += [Damage(*pair, f"missing {what}") for pair in pairs(seals, lost) if pair not in there]
    return whole, damaged


def pairs(rows: Rows | Seals, chosen: Any) -> Iterator[tuple[int, int]]:
    """Yield the setting and the run of chosen rows."""
    return zip(rows.setting[chosen].tolist(), rows.run[chosen].tolist(), strict=True)
