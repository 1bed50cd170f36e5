"""Results: what a store holds, as arrays and frames. Reads only."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import extra, must, one_of
from gradient_dd.learners import Setting
from gradient_dd.studies import Study, intervals
from gradient_dd.studies.checked import checked_curves, checked_results, lost_settings, undamaged
from gradient_dd.studies.frames import MEASURES, column_of, summary_frame
from gradient_dd.studies.inspection import ERRORS, Damage
from gradient_dd.studies.selection import tuned
from gradient_dd.studies.store import Store

if TYPE_CHECKING:
    import pandas as pd


class Results:
    """The results of a study in a store; settings in the study's order, a task at a time."""

    def __init__(self, study: Study, path: str | Path) -> None:
        self.study = study
        self.path = Path(path)
        self.tasks = {str(task): task for task in study.built_tasks}
        self._keys: dict[str, tuple[list[str], list[Setting]]] = {}  # by task, once they were asked for
        self._complete: dict[str, dict[str, Array]] = {}  # by task and measure: what is complete cannot change

    def _lanes(self, store: Store, task: str) -> tuple[list[Setting], list[int | None], dict[int, str]]:
        """Return the settings of a task, their rows in the store, and the key of each row."""
        if task not in self.tasks:
            raise must(f"The tasks of study {self.study.name!r}", f"include {task!r}", list(self.tasks))
        if task not in self._keys:
            lanes = [(key, setting) for key, setting, _ in self.study.lanes(self.tasks[task])]
            self._keys[task] = [key for key, _ in lanes], [setting for _, setting in lanes]
        all_keys, settings = self._keys[task]
        rows = store.setting_rows(all_keys)
        keys = {row: key for key, row in rows.items()}
        if len(rows) < len(all_keys):  # some are not run yet, or lost
            undamaged(store, None, lost_settings(store))
        return list(settings), [rows.get(key) for key in all_keys], keys

    def errors(self, task: str, measure: str = "last100") -> tuple[list[Setting], Array]:
        """Return the settings of a task, and their errors (settings, runs); nan where a run is not done yet."""
        one_of("'measure'", measure, MEASURES)
        if task in self._complete:
            return list(self._keys[task][1]), self._complete[task][measure].copy()
        with Store(self.path) as store, store.snapshot():
            settings, rows, keys = self._lanes(store, task)
            found = checked_results(store, ERRORS, keys, self.study.run_numbers)
        place = {row: i for i, row in enumerate(rows) if row is not None}
        at = [place[row] for row in found.setting.tolist()], found.run - self.study.first_run
        tables = {name: np.full((len(rows), self.study.runs), np.nan) for name in MEASURES}
        for table, errors in zip(tables.values(), found[2:], strict=True):
            table[at] = errors
        if not any(np.isnan(table).any() for table in tables.values()):
            self._complete[task] = tables
        return settings, tables[measure].copy()

    def curves(self, task: str, settings: list[Setting]) -> Array:
        """Return the learning curves of chosen settings, (settings, runs, bins); nan where a run is not done yet."""
        curves = np.full((len(settings), self.study.runs, self.study.horizon.bins), np.nan)
        with Store(self.path) as store, store.snapshot():
            known, rows, keys = self._lanes(store, task)
            chosen = [rows[known.index(setting)] for setting in settings]
            ours = {row: keys[row] for row in chosen if row is not None}
            for setting, run, points in checked_curves(store, ours, self.study.run_numbers):
                at = [i for i, row in enumerate(chosen) if row == setting]
                if len(points) != curves.shape[2]:
                    undamaged(store, None, [Damage(setting, run, "curve")])
                curves[at, run - self.study.first_run] = points
        return curves

    def frame(self) -> "pd.DataFrame":
        """Return one row for each task and setting of the study; see `summary_frame`."""
        first: dict[int, float] = {}  # by the setting's row in the store
        with Store(self.path) as store:
            keys: dict[int, str] = {}
            for name, task in self.tasks.items():
                found = self._lanes(store, name)[2]
                keys |= found
                first |= dict.fromkeys(found, task.rmsve(task.initial_weights))
            frame = summary_frame(store, keys, self.study.run_numbers, first)
        exploded = frame.pop("exploded_runs").fillna(0).astype(int)
        frame.insert(frame.columns.get_loc("diverged_runs") + 1, "exploded_runs", exploded)
        return frame

    def best_frame(self, measure: str = "last100") -> "pd.DataFrame":
        """Return the tuned setting of each learner on each task, with every parameter that varies in the study."""
        with extra("frames"):
            import pandas as pd

        parts = []
        for task in self.tasks:
            settings, errors = self.errors(task, measure)
            with Store(self.path) as store:
                _, rows, keys = self._lanes(store, task)
                for kind in dict.fromkeys(map(learner_of, settings)):
                    best = rows[tuned(settings, errors, lambda setting, kind=kind: learner_of(setting) == kind)]  # type: ignore[misc]
                    if best is not None:
                        parts.append(summary_frame(store, {best: keys[best]}, self.study.run_numbers))
        frame = pd.concat(parts, ignore_index=True)
        first, shown = (
            ["task", "size", "reading", "learner"],
            ["last100_mean", "last100_sem", "area_mean", "diverged_runs"],
        )
        return frame[[*first, *varying_columns(self.study.settings()), *shown]]

    def selected(self, task: str, learner: str, measure: str = "last100") -> Setting:
        """Return the setting of a learner with the smallest mean error."""
        settings, errors = self.errors(task, measure)
        known = sorted({setting.rule.name for setting in settings})
        if learner not in known:
            raise must(f"The learners of study {self.study.name!r}", f"include {learner!r}", known)
        return settings[tuned(settings, errors, lambda setting: setting.rule.name == learner)]

    def compare(
        self, task: str, left: Setting, right: Setting, measure: str = "last100", seed: int = 0
    ) -> intervals.Interval:
        """Return left − right with its 95 % paired-bootstrap interval over common runs."""
        settings, errors = self.errors(task, measure)
        return intervals.paired_bootstrap(errors[settings.index(left)], errors[settings.index(right)], seed)


def learner_of(setting: Setting) -> tuple[str, str]:
    """Return the learner and the placement of its ratio: what a setting is tuned within."""
    return setting.rule.name, setting.rho_mode


def varying_columns(settings: Iterable[Setting]) -> list[str]:
    """Return the column of alpha, and of every other parameter that has several values."""
    values: dict[str, set[float]] = {}
    for setting in settings:
        for name, value in setting.values.items():
            values.setdefault(name, set()).add(value)
    return [column_of(name) for name, several in values.items() if name == "alpha" or len(several) > 1]
