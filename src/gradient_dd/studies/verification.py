"""Verification: all of a results file against its checksums."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradient_dd.studies.checked import damaged_units, inspect_settings, inspect_units, task_names
from gradient_dd.studies.inspection import DIVERGENCE, ERRORS, Damage, inspect_curves, inspect_results
from gradient_dd.studies.repair import drop_damage
from gradient_dd.studies.store import Store


@dataclass(frozen=True)
class Verification:
    """What was checked in a file, and what is damaged.

    structure  what SQLite finds wrong with the file itself
    damaged    (task, run, counts by kind) of each damaged unit; a run of None stands for every run
    """

    file: Path
    version: int
    has_checksums: bool
    units: int
    results: int
    structure: list[str]
    damaged: list[tuple[str, Any, dict[str, int]]]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged."""
        return not self.structure and not self.damaged

    def as_data(self) -> dict[str, Any]:
        """Return the same as plain data."""
        damaged = [{"task": task, "run": run, "what": what} for task, run, what in self.damaged]
        return self.__dict__ | {"file": str(self.file), "damaged": damaged, "whole": self.is_whole}


def drop(path: str | Path) -> None:
    """Remove all that is damaged from a results file; the sweeps that made it will run it again."""
    with Store(path, write=True) as store:
        drop_damage(store)


def verify(path: str | Path) -> Verification:
    """Check every setting, result, curve and record of a results file."""
    with Store(path) as store, store.snapshot():
        structure = [text for (text,) in store.rows("PRAGMA integrity_check(10)") if text != "ok"]
        _, settings = inspect_settings(store)
        results, wrong = inspect_results(store, ERRORS)
        for _, more in (inspect_results(store, DIVERGENCE), inspect_curves(store)):
            wrong += more
        wrong += [Damage(task, run, "record of time") for task, run in inspect_units(store).values()]
        damaged = damaged_units(store, [*settings, *dict.fromkeys(wrong)])
        of_task = task_names(store)
    return Verification(
        file=Path(path),
        version=store.version,
        has_checksums=store.has_seals,
        units=len(set(zip(map(of_task.get, results.setting.tolist()), results.run.tolist(), strict=True))),
        results=len(results.run),
        structure=structure,
        damaged=[(task, run, dict(Counter(what))) for (task, run), what in damaged.items()],
    )
