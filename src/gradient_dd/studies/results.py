"""Results: what a store holds, as arrays and frames. Reads only."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import extra, must
from gradient_dd.learners import Setting
from gradient_dd.studies import Study, statistics
from gradient_dd.studies.selection import tuned
from gradient_dd.studies.store import Store, pieces

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("last100", "area")
FACTS = {
    "id": "id",
    "task": "task",
    "size": "size",
    "reading": "reading",
    "learner": "learner",
    "alpha": "alpha",
    "zeta": "zeta",
    "kappa": "kappa",
    "schedule": "schedule",
    "episodes": "coalesce(episodes, steps)",
    "rho_mode": "rho_mode",
    "sampling": "sampling",
    "reg": """json_extract("values", '$.reg')""",
}


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
        """Return one row for each task and setting of the study; see `summary_frame`."""
        with extra("frames"):
            import pandas as pd

        runs = range(self.study.first_run, self.study.first_run + self.study.runs)
        with Store(self.path) as store:
            parts = [summary_frame(store, self._lanes(store, task)[1], runs) for task in self.tasks]
        return pd.concat(parts, ignore_index=True)

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


def summary_frame(store: Store, rows: Iterable[int | None] | None = None, runs: range | None = None) -> "pd.DataFrame":
    """Return one row for each setting of a store: its parameters, runs done, means, standard errors, divergence.

    Nothing is dropped: a setting that diverged has an infinite mean, one with no run done has none. `rows` chooses
    settings, `runs` runs; the default is all. Memory is a few hundred bytes a setting.
    """
    with extra("frames"):
        import pandas as pd

    chosen = None if rows is None else {row for row in rows if row is not None}
    columns: dict[str, list[Any]] = {name: [] for name in FACTS}
    seen: dict[Any, Any] = {}  # equal texts are kept once
    for row in store.each(f"SELECT {', '.join(FACTS.values())} FROM setting ORDER BY id"):
        if chosen is None or row[0] in chosen:
            for column, value in zip(columns.values(), row, strict=True):
                column.append(seen.setdefault(value, value) if isinstance(value, str) else value)
    frame = pd.DataFrame(columns).astype(dict.fromkeys(("alpha", "zeta", "kappa", "reg"), float))
    folded = fold_runs(store, chosen, runs)
    frame = frame.set_index("id").join(folded).reset_index(drop=True)
    frame[["runs", "diverged_runs"]] = frame[["runs", "diverged_runs"]].fillna(0).astype(int)
    measured = [f"{measure}_{what}" for measure in MEASURES for what in ("mean", "sem")]
    first = ["task", "size", "reading", "learner", "alpha", "zeta", "kappa", "schedule", "episodes", "runs"]
    return frame[[*first, *measured, "diverged_runs", "reg", "rho_mode", "sampling"]]


def fold_runs(store: Store, chosen: set[int] | None, runs: range | None) -> "pd.DataFrame":
    """Return runs, mean, standard error and divergence of every setting that has results, by its row."""
    with extra("frames"):
        import pandas as pd

    bounds = (runs.start, runs.stop) if runs else (0, 2**62)
    query = "SELECT setting, run, last100, area FROM result WHERE run >= ? AND run < ?"
    wanted = [""] if chosen is None else [f" AND setting IN ({str(piece)[1:-1]})" for piece in pieces(sorted(chosen))]
    found = (row for some in wanted for row in store.each(f"{query}{some} ORDER BY setting, run", bounds))
    cells = np.fromiter((number for row in found for number in row), float).reshape(-1, 4)
    settings, begin, count = np.unique(cells[:, 0], return_index=True, return_counts=True)
    columns: dict[str, Any] = {"runs": count, "diverged_runs": np.zeros(len(count), int)}
    for i, measure in enumerate(MEASURES):
        errors = cells[:, 2 + i]
        with np.errstate(invalid="ignore"):
            mean = np.add.reduceat(errors, begin) / count if len(cells) else np.empty(0)
            spread = np.add.reduceat((errors - np.repeat(mean, count)) ** 2, begin) if len(cells) else np.empty(0)
        diverged = np.add.reduceat(~np.isfinite(errors), begin, dtype=int) if len(cells) else np.empty(0, int)
        columns["diverged_runs"] = np.maximum(columns["diverged_runs"], diverged)
        sem = np.sqrt(spread / np.maximum(1, count - 1) / count)
        columns[f"{measure}_mean"] = mean
        columns[f"{measure}_sem"] = np.where(diverged > 0, np.inf, np.where(count > 1, sem, np.nan))
    return pd.DataFrame(columns, index=settings.astype(int))


def run_frame(store: Store) -> "pd.DataFrame":
    """Return one row for each setting and run of a store, curves left out."""
    with extra("frames"):
        import pandas as pd

    query = (
        "SELECT task, size, reading, learner, alpha, zeta, kappa, rho_mode, schedule, coalesce(episodes, steps), "
        "sampling, seed, run, last100, area, diverged_step, diverged_episode "
        "FROM result JOIN setting ON setting = id ORDER BY id, run"
    )
    names = (
        "task size reading learner alpha zeta kappa rho_mode schedule episodes sampling seed "
        "run last100 area diverged_step diverged_episode"
    )
    return pd.DataFrame(store.rows(query), columns=names.split())
