"""Seals: the checksums of results and curves that were written together, one row of a store for each unit.

A seal names its run and its settings, and has three checksums for each of them: of the errors, of the divergence and of
the curve. So it says what must be there: a result that is lost is noticed just as one that is changed. Where two seals
name the same setting and run, the later one counts. A seal that is damaged itself is ignored, and what it named is
without a seal.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Integers
from gradient_dd.studies.checksums import Words, checksum, curve_checksum, result_checksums

COLUMNS = "run, settings, errors, divergence, curves, checksum"
INSERT = f"INSERT INTO seal (id, first_setting, last_setting, {COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


def seal_row(seals: "Seals", row: int | None = None) -> tuple[Any, ...]:
    """Return what INSERT takes for a seal of entries that have one run; `row` is its id, None for a new one."""
    run, named = int(seals.run[0]), seals.setting.astype("<i8").tobytes()
    checks = [words.astype("<u8").tobytes() for words in (seals.errors, seals.divergence, seals.curves)]
    own = checksum(f"{run} ".encode() + named)
    return row, int(seals.setting.min()), int(seals.setting.max()), run, named, *checks, own


class Seals(NamedTuple):
    """What a store must hold: an entry for each setting and run, in that order; each array (entries,)."""

    setting: Integers
    run: Integers
    errors: Words
    divergence: Words
    curves: Words

    def at(self, chosen: Any) -> "Seals":
        """Return the chosen entries."""
        return Seals._make(array[chosen] for array in self)

    def places(self, setting: Integers, run: Integers) -> Integers:
        """Return the place of the entry for each setting and run, -1 where there is none."""
        if not len(self.run):
            return np.full(len(setting), -1)
        known = np.unique(self.run)
        number = np.searchsorted(known, run).clip(max=len(known) - 1)
        code = setting * len(known) + number
        ours = self.setting * len(known) + np.searchsorted(known, self.run)
        place = np.searchsorted(ours, code).clip(max=len(ours) - 1)
        return np.where((ours[place] == code) & (known[number] == run), place, -1)


def unit_seal(
    run: int, keys: dict[int, str], settings: list[int], measured: list[Any], points: list[bytes]
) -> tuple[Any, ...]:
    """Return what INSERT takes for the seal of a unit: the settings' rows and keys, their numbers and their curves."""
    named = np.array([checksum(keys[setting]) for setting in settings], np.int64)
    runs = np.full(len(named), run)
    errors, divergence = (result_checksums(named, runs, *some) for some in (measured[:2], measured[2:]))
    curves = [curve_checksum(keys[setting], run, blob) for setting, blob in zip(settings, points, strict=True)]
    words = np.array(curves, np.int64).view(np.uint64)
    return seal_row(Seals(np.array(settings), runs, errors, divergence, words))


def is_whole(run: Any, settings: Any, *checks: Any) -> bool:
    """Return whether a seal is as it was written; `checks` are its checksums, then the one of itself."""
    if not isinstance(settings, bytes) or checksum(f"{run} ".encode() + settings) != checks[-1]:
        return False
    return all(isinstance(words, bytes) and len(words) == len(settings) for words in checks[:-1])


def joined_seals(rows: Iterable[tuple[Any, ...]]) -> Seals:
    """Return the entries of seals; rows: COLUMNS of each, in the order in which they were written."""
    whole = [row for row in rows if is_whole(*row)]
    setting, *checks = (
        np.frombuffer(b"".join(row[i] for row in whole), kind) for i, kind in enumerate(("<i8", *["<u8"] * 3), start=1)
    )
    run = np.repeat(np.array([row[0] for row in whole], np.int64), [len(row[1]) // 8 for row in whole])
    order = np.lexsort((run, setting))  # it keeps the order of equal ones
    seals = Seals(setting, run, *checks).at(order)
    last = np.ones(len(run), bool)
    last[:-1] = (np.diff(seals.setting) != 0) | (np.diff(seals.run) != 0)
    return seals if last.all() else seals.at(last)
