"""Results: what a store holds, as arrays and frames. Reads only."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import must
from gradient_dd.learners import Setting
from gradient_dd.studies import Study, statistics
from gradient_dd.studies.frames import MEASURES, summary_frame
from gradient_dd.studies.selection import tuned
from gradient_dd.studies.store import Store, pieces

if TYPE_CHECKING:
    import pandas as pd


class Results:
    """The results of a study in a store; settings in the study's order, a task at a time."""

    def __init__(self, study: Study, path: str | Path) -> None:
        self.study = study
        self.path = Path(path)
        self.tasks = {str(task): task for task in study.built_tasks()}

    def _lanes(self, store: Store, task: str) -> tuple[list[Setting], list[int | None]]:
        """Return the settings of a task, and their rows in the store."""
        if task not in self.tasks:
            raise must(f"The tasks of study {self.study.name!r}", f"include {task!r}", list(self.tasks))
        lanes = [(key, setting) for key, setting, _ in self.study.lanes(self.tasks[task])]
        rows = store.setting_rows(key for key, _ in lanes)
        return [setting for _, setting in lanes], [rows.get(key) for key, _ in lanes]

    def errors(self, task: str, measure: str = "last100") -> tuple[list[Setting], Array]:
        """Return the settings of a task, and their errors (settings, runs); nan where a run is not done yet."""
        if measure not in MEASURES:
            raise must("'measure'", "be 'last100' or 'area'", measure)
        first, last = self.study.first_run, self.study.first_run + self.study.runs
        with Store(self.path) as store:
            settings, rows = self._lanes(store, task)
            place = {row: i for i, row in enumerate(rows) if row is not None}
            table = np.full((len(rows), self.study.runs), np.nan)
            for piece in pieces(list(place)):
                marks = ", ".join("?" * len(piece))
                query = (
                    f"SELECT setting, run, {measure} FROM result WHERE setting IN ({marks}) AND run >= ? AND run < ?"
                )
                for setting, run, value in store.rows(query, [*piece, first, last]):
                    table[place[setting], run - first] = value
        return settings, table

    def curves(self, task: str, settings: list[Setting]) -> Array:
        """Return the learning curves of chosen settings, (settings, runs, bins); nan where a run is not done yet."""
        bounds = self.study.first_run, self.study.first_run + self.study.runs
        curves = np.full((len(settings), self.study.runs, self.study.horizon.bins), np.nan)
        with Store(self.path) as store:
            known, rows = self._lanes(store, task)
            for i, setting in enumerate(settings):
                query = "SELECT run, points FROM curve WHERE setting = ? AND run >= ? AND run < ?"
                for run, blob in store.rows(query, [rows[known.index(setting)], *bounds]):
                    curves[i, run - bounds[0]] = np.frombuffer(blob, "<f8")
        return curves

    def frame(self) -> "pd.DataFrame":
        """Return one row for each task and setting of the study; see `summary_frame`.

        `exploded_runs` counts the runs that ended, or were on average, far beyond the error of the first weights.
        """
        exploded: dict[int, int] = {}  # by the setting's row in the store
        with Store(self.path) as store:
            for name, task in self.tasks.items():
                _, rows = self._lanes(store, name)
                first = task.rmsve(task.initial_weights)
                gone = [statistics.has_exploded(self.errors(name, measure)[1], first) for measure in MEASURES]
                counts = np.logical_or(*gone).sum(axis=1).tolist()
                exploded |= {row: count for row, count in zip(rows, counts, strict=True) if row is not None}
            frame = summary_frame(store, exploded, self.study.run_numbers)
        frame.insert(
            frame.columns.get_loc("diverged_runs") + 1, "exploded_runs", [exploded[row] for row in sorted(exploded)]
        )
        return frame

    def selected(self, task: str, learner: str, measure: str = "last100") -> Setting:
        """Return the setting of a learner with the smallest mean error."""
        settings, errors = self.errors(task, measure)
        known = sorted({setting.rule.name for setting in settings})
        if learner not in known:
            raise must(f"The learners of study {self.study.name!r}", f"include {learner!r}", known)
        return settings[tuned(settings, errors, lambda setting: setting.rule.name == learner)]

    def compare(
        self, task: str, left: Setting, right: Setting, measure: str = "last100", seed: int = 0
    ) -> statistics.Interval:
        """Return left − right with its 95 % paired-bootstrap interval over common runs."""
        settings, errors = self.errors(task, measure)
        return statistics.paired_bootstrap(errors[settings.index(left)], errors[settings.index(right)], seed)
