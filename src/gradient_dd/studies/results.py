"""Results: what a store holds of a study, as arrays and frames, and which of its settings is the best."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import Unquoted, bad_request, one_of
from gradient_dd.learners import Setting
from gradient_dd.studies import Study, intervals
from gradient_dd.studies.frames import MEASURES, column_of, summary_frame
from gradient_dd.studies.store import Store, gathered

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

    def _lanes(self, task: str) -> tuple[list[str], list[Setting]]:
        """Return the keys and the settings of a task."""
        if task not in self.tasks:
            raise bad_request(f"The tasks of study {self.study.name!r}", f"include {task!r}", list(self.tasks))
        if task not in self._keys:
            lanes = [(key, setting) for key, setting, _ in self.study.lanes(self.tasks[task])]
            self._keys[task] = [key for key, _ in lanes], [setting for _, setting in lanes]
        return self._keys[task]

    def errors(self, task: str, measure: str = "last100") -> tuple[list[Setting], Array]:
        """Return the settings of a task, and their errors (settings, runs); nan where a run is not done yet."""
        one_of("'measure'", measure, MEASURES)
        keys, settings = self._lanes(task)
        if task not in self._complete:
            with Store(self.path) as store:
                units = store.units([self.tasks[task]], self.study.run_numbers)
            place, run, numbers = gathered(units, {key: i for i, key in enumerate(keys)})
            tables = {name: np.full((len(keys), self.study.runs), np.nan) for name in MEASURES}
            for name, table in tables.items():
                table[place, run - self.study.first_run] = numbers[name]
            if any(np.isnan(table).any() for table in tables.values()):
                return list(settings), tables[measure]
            self._complete[task] = tables
        return list(settings), self._complete[task][measure].copy()

    def curves(self, task: str, settings: list[Setting]) -> Array:
        """Return the learning curves of chosen settings, (settings, runs, bins); nan where a run is not done yet."""
        keys, known = self._lanes(task)
        chosen = [keys[known.index(setting)] for setting in settings]
        place = {key: i for i, key in enumerate(dict.fromkeys(chosen))}
        curves = np.full((len(place), self.study.runs, self.study.horizon.bins), np.nan)
        with Store(self.path) as store, store.snapshot():
            for unit in store.units([self.tasks[task]], self.study.run_numbers):
                lanes = [lane for lane, key in enumerate(unit.keys) if key in place]
                places = [place[unit.keys[lane]] for lane in lanes]
                curves[places, unit.run - self.study.first_run] = store.curves(unit)[lanes]
        return curves[[place[key] for key in chosen]]

    def frame(self) -> "pd.DataFrame":
        """Return one row for each task and setting of the study; see `summary_frame`."""
        keys = {key for task in self.tasks for key in self._lanes(task)[0]}
        with Store(self.path) as store:
            frame = summary_frame(store, keys, self.tasks.values(), self.study.run_numbers)
        exploded = frame.pop("exploded_runs").fillna(0).astype(int)
        frame.insert(frame.columns.get_loc("diverged_runs") + 1, "exploded_runs", exploded)
        return frame

    def best_frame(self, measure: str = "last100") -> "pd.DataFrame":
        """Return the tuned setting of each learner on each task, with every parameter that varies in the study."""
        import pandas as pd

        parts = []
        for task in self.tasks:
            keys, (settings, errors) = self._lanes(task)[0], self.errors(task, measure)
            with Store(self.path) as store:
                for kind in dict.fromkeys(map(learner_of, settings)):
                    best = tuned(settings, errors, lambda setting, kind=kind: learner_of(setting) == kind)  # type: ignore[misc]
                    row = summary_frame(store, {keys[best]}, [self.tasks[task]], self.study.run_numbers)
                    parts += [row] if len(row) else []  # the settings may not have been run yet
        frame = pd.concat(parts, ignore_index=True)
        first, shown = (
            ["task", "size", "reading", "learner"],
            ["last100_mean", "last100_sem", "area_mean", "diverged_runs"],
        )
        return frame[[*first, *varying_columns(self.study.settings()), *shown]]

    def edge_notes(self, measure: str = "last100") -> list[str]:
        """Return a sentence for each learner, task and parameter whose best value is the first or last of the grid."""
        notes = []
        for task in self.tasks:
            settings, errors = self.errors(task, measure)
            for kind in dict.fromkeys(map(learner_of, settings)):
                ours = places(settings, lambda setting, kind=kind: learner_of(setting) == kind)  # type: ignore[misc]
                best = settings[ours[intervals.select(errors[ours])]]
                for end, name, values in edges(best, (settings[place] for place in ours)):
                    beyond = ", ".join(f"{value:.3g}" for value in values_beyond(end, values))
                    notes.append(
                        f"{kind[0]} on {task}: its best {name}, {best.values[name]:.3g}, is the {end} of the grid."
                        + (f" Try also {beyond}." if beyond else "")
                    )
        return notes

    def selected(self, task: str, learner: str, measure: str = "last100") -> Setting:
        """Return the setting of a learner with the smallest mean error."""
        settings, errors = self.errors(task, measure)
        known = sorted({setting.rule.name for setting in settings})
        if learner not in known:
            raise bad_request(f"The learners of study {self.study.name!r}", f"include {learner!r}", known)
        return settings[tuned(settings, errors, lambda setting: setting.rule.name == learner)]

    def compare(
        self, task: str, left: Setting, right: Setting, measure: str = "last100", seed: int = 0
    ) -> intervals.Interval:
        """Return left − right with its 95 % paired-bootstrap interval over common runs."""
        settings, errors = self.errors(task, measure)
        return intervals.paired_bootstrap(errors[settings.index(left)], errors[settings.index(right)], seed)


def places(settings: Sequence[Setting], wanted: Callable[[Setting], bool]) -> list[int]:
    """Return the places of the wanted settings."""
    return [place for place, setting in enumerate(settings) if wanted(setting)]


def tuned(settings: Sequence[Setting], errors: Array, wanted: Callable[[Setting], bool]) -> int:
    """Return the place of the best of the wanted settings; errors: (settings, runs).

    The best setting has the smallest mean error. A setting that diverged in any run is chosen only where all did.
    """
    ours = places(settings, wanted)
    if not ours:
        raise bad_request("The settings to choose from", "include one that is wanted", Unquoted("none"))
    return ours[intervals.select(errors[ours])]


def edge(best: Setting, among: Iterable[Setting]) -> str:
    """Return which parameters of the best setting are the lowest or highest of the grid, e.g. "highest alpha"."""
    return ", ".join(f"{end} {name}" for end, name, _ in edges(best, among))


def edges(best: Setting, among: Iterable[Setting]) -> list[tuple[str, str, list[float]]]:
    """Return ("lowest" or "highest", parameter, its values in order) for each parameter whose best value is an end.

    The largest legal value is no end: there is nothing beyond it.
    """
    found, others = [], list(among)
    legal = {parameter.name: parameter.high for parameter in best.rule.parameters}
    for name, value in best.values.items():
        values = sorted({setting.values[name] for setting in others})
        if len(values) > 1 and value in (values[0], values[-1]) and value != legal.get(name):
            found.append(("highest" if value == values[-1] else "lowest", name, values))
    return found


def values_beyond(end: str, values: Sequence[float], count: int = 2) -> list[float]:
    """Return values to try beyond one end of a grid, spaced as the grid is there: by a factor, or by steps from 0."""
    last, before = (values[-1], values[-2]) if end == "highest" else (values[0], values[1])
    if last == 0 or before == 0:
        return [last + (last - before) * (place + 1) for place in range(count) if end == "highest"]
    return [last * (last / before) ** (place + 1) for place in range(count)]


def learner_of(setting: Setting) -> tuple[str, str]:
    """Return the learner of a setting and the placement of its ratio; settings are tuned within such a group."""
    return setting.rule.name, setting.rho_mode


def varying_columns(settings: Iterable[Setting]) -> list[str]:
    """Return the column of alpha, and of every other parameter that has several values."""
    values: dict[str, set[float]] = {}
    for setting in settings:
        for name, value in setting.values.items():
            values.setdefault(name, set()).add(value)
    return [column_of(name) for name, several in values.items() if name == "alpha" or len(several) > 1]
