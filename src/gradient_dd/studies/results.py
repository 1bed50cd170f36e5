"""Results: the contents of a store as arrays and tables, and the best settings of a study.

A table has one row per setting, or per setting and run. Every declared parameter is a column. The columns common to
all tables come first, in a fixed order; the other columns follow in the order in which the settings were stored.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.cards import card
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, file_path, one_of, printable, show
from gradient_dd.files import check_regular
from gradient_dd.learners import Setting
from gradient_dd.studies import Study, intervals
from gradient_dd.studies.store import EVERY_RUN, Store, StoredSetting, gathered, lost_settings
from gradient_dd.tasks import Task

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("last100", "mean_error")
FACTS = ("task", "size", "reading", "learner", "schedule", "episodes", "rho_mode", "sampling", "seed")
COMMON_PARAMETERS = ("alpha", "zeta", "kappa", "reg")  # columns of every table, empty if no learner has the parameter
OLD_NAMES = {"area_mean": "mean_error_mean", "area_sem": "mean_error_sem", "area": "mean_error"}  # aliases
MEASURED = [f"{measure}_{what}" for measure in MEASURES for what in ("mean", "sem")]
SUMMARY_COLUMNS = [
    *("task", "size", "reading", "learner", "alpha", "zeta", "kappa", "schedule", "episodes", "runs"),
    *(*MEASURED, "diverged_runs", "reg", "rho_mode", "sampling"),
]
RUN_COLUMNS = [
    *("task", "size", "reading", "learner", "alpha", "zeta", "kappa", "rho_mode", "schedule", "episodes"),
    *("sampling", "seed", "run", *MEASURES, "diverged_step", "diverged_episode", "reg"),
]
FORMULA = ("=", "+", "-", "@")  # first characters of spreadsheet formulas
TAKEN = {*SUMMARY_COLUMNS, *RUN_COLUMNS, *OLD_NAMES, "exploded_runs"} - {*COMMON_PARAMETERS}


class Results:
    """The results of a study in a store, by task; settings are in the order of the study.

    >>> from gradient_dd.studies import grid
    >>> Results(Study("mine", ["five_state_walk"], [grid("td", alpha=0.1)], episodes=5), "results.db")
    <Results of <Study 'mine': 1 settings x 1 tasks x 1 runs> in results.db>
    """

    def __init__(self, study: Study, path: str | Path) -> None:
        self.study = study
        self.path = file_path("The results file", path)
        self.tasks = {str(task): task for task in study.built_tasks}
        self._keys: dict[str, tuple[list[str], list[Setting]]] = {}  # by task, filled on demand
        self._complete: dict[str, dict[str, Array]] = {}  # by task and measure: complete results do not change

    def __repr__(self) -> str:
        return f"<Results of {self.study!r} in {self.path}>"

    def _repr_html_(self) -> str:
        below = str(self.best_frame().to_html(index=False, border=0, na_rep="")) if self.path.is_file() else ""
        facts = {"settings": self.study.n_settings, "runs": self.study.runs, "file": self.path}
        return card(f"Results of study {self.study.name}", facts, below)

    def _lanes(self, task: str) -> tuple[list[str], list[Setting]]:
        """Return the keys and the settings of a task."""
        if not isinstance(task, str) or task not in self.tasks:
            raise bad_request(f"The tasks of study {self.study.name!r}", f"include {show(task)}", list(self.tasks))
        if task not in self._keys:
            lanes = [(key, setting) for key, setting, _ in self.study.lanes(self.tasks[task])]
            self._keys[task] = [key for key, _ in lanes], [setting for _, setting in lanes]
        return self._keys[task]

    def errors(self, task: str, measure: str = "last100") -> tuple[list[Setting], Array]:
        """Return the settings of a task, and their errors (settings, runs); nan for unfinished runs."""
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

    def curves(self, task: str, settings: list[Setting]) -> tuple[Array, Array]:
        """Return the middle of each bin in episodes or steps, (bins,), and learning curves, (settings, runs, bins).

        Curves of unfinished runs are nan.
        """
        keys, known = self._lanes(task)
        chosen = [keys[known.index(setting)] for setting in settings]
        place = {key: i for i, key in enumerate(dict.fromkeys(chosen))}
        curves = np.full((len(place), self.study.runs, self.study.horizon.bins), np.nan)
        with Store(self.path) as store, store.snapshot():
            for unit in store.units([self.tasks[task]], self.study.run_numbers):
                lanes = [lane for lane, key in enumerate(unit.keys) if key in place]
                places = [place[unit.keys[lane]] for lane in lanes]
                if lanes:  # a unit of another study may have another number of bins
                    curves[places, unit.run - self.study.first_run] = store.curves(unit)[lanes]
        return self.study.horizon.bin_middles(), curves[[place[key] for key in chosen]]

    def plot(self, kind: str = "step_sizes", task: str | None = None, measure: str = "last100", ax: Any = None) -> Any:
        """Draw the error of each learner against alpha, or with kind="curves" its tuned learning curve.

        Bars and bands are standard errors. The default `task` is the first. Return the matplotlib axes (`ax` if given).
        """
        return import_module("gradient_dd.report.plots").plot_results(self, kind, task, measure, ax)

    def report(self, path: str | Path) -> Path:
        """Write an HTML report with figures and tables in its folder; return the path of the report."""
        return Path(
            import_module("gradient_dd.report.own_study").write_report(self, file_path("The path of the page", path))
        )

    def frame(self) -> "pd.DataFrame":
        """Return one row per task and setting of the study; see `summary_frame`."""
        keys = {key for task in self.tasks for key in self._lanes(task)[0]}
        with Store(self.path) as store:
            frame = summary_frame(store, keys, self.tasks.values(), self.study.run_numbers)
        frame.insert(frame.columns.get_loc("diverged_runs") + 1, "exploded_runs", frame.pop("exploded_runs"))
        return frame

    def best_frame(self, measure: str = "last100") -> "pd.DataFrame":
        """Return the tuned setting of each learner on each task, with all parameters that vary in the study."""
        import pandas as pd

        parts = []
        with Store(self.path) as store:
            for task, place, _ in self._winners(measure):
                key = self._lanes(task)[0][place]
                row = summary_frame(store, {key}, [self.tasks[task]], self.study.run_numbers)
                parts += [row] if len(row) else []  # the settings may not have been run yet
        frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=SUMMARY_COLUMNS)
        values: dict[str, set[float]] = {}
        for setting in self.study.settings():
            for name, value in setting.values.items():
                values.setdefault(name, set()).add(value)
        varying = [column_of(name) for name, several in values.items() if name == "alpha" or len(several) > 1]
        shown = ["last100_mean", "last100_sem", "mean_error_mean", "diverged_runs"]
        return frame[["task", "size", "reading", "learner", *varying, *shown]]

    def edge_notes(self, measure: str = "last100") -> list[str]:
        """Return a sentence for each learner, task and parameter whose best value is at the edge of the grid."""
        notes = []
        for task, place, settings in self._winners(measure):
            best = self._lanes(task)[1][place]
            for end, name, beyond in edges(best, settings):
                notes.append(
                    f"{best.rule.name} on {task}: the best {name}, {best.values[name]:.3g}, is the {end} tried."
                    + (f" Also try {beyond}." if beyond else "")
                )
        return notes

    def _winners(self, measure: str) -> Iterator[tuple[str, int, list[Setting]]]:
        """Yield (task, index of the best setting, all settings) for each task, learner and placement of ρ."""
        for task in self.tasks:
            settings, errors = self.errors(task, measure)
            groups: dict[tuple[str, str], list[int]] = {}
            for place, setting in enumerate(settings):
                groups.setdefault((setting.rule.name, setting.rho_mode), []).append(place)
            for ours in groups.values():
                yield task, ours[intervals.select(errors[ours])], [settings[place] for place in ours]

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
    """Return the indices of the wanted settings."""
    return [place for place, setting in enumerate(settings) if wanted(setting)]


def tuned(settings: Sequence[Setting], errors: Array, wanted: Callable[[Setting], bool]) -> int:
    """Return the index of the best of the wanted settings; errors: (settings, runs).

    The best setting has the smallest mean error. If any setting never diverged, the best setting never diverged.
    """
    ours = places(settings, wanted)
    if not ours:
        raise bad_request("The settings to choose from", "include a wanted setting", Unquoted("none"))
    return ours[intervals.select(errors[ours])]


def edge(best: Setting, among: Iterable[Setting]) -> str:
    """Return the parameters of the best setting at an edge of the grid, e.g. "highest alpha"."""
    return ", ".join(f"{end} {name}" for end, name, _ in edges(best, among))


def edges(best: Setting, among: Iterable[Setting]) -> list[tuple[str, str, str]]:
    """Return ("lowest" or "highest", parameter, values to try beyond) for each parameter at an edge of the grid.

    The values continue the spacing of the grid, geometric or linear from 0, within the legal range. The largest legal
    value is not an edge, because no larger value is possible.
    """
    found, others = [], list(among)
    legal = {parameter.name: parameter.high for parameter in best.rule.parameters}
    for name, value in best.values.items():
        values = sorted({setting.values.get(name, 0.0) for setting in others})  # the form with lam = 0 has no lam
        if len(values) < 2 or value not in (values[0], values[-1]) or value == legal.get(name):
            continue
        end = "highest" if value == values[-1] else "lowest"
        last, before = (values[-1], values[-2]) if end == "highest" else (values[0], values[1])
        if last and before:
            beyond = [last * (last / before) ** place for place in (1, 2)]
        else:
            beyond = [last + (last - before) * place for place in (1, 2) if end == "highest"]
        beyond = [one for one in beyond if one <= legal.get(name, np.inf)]
        found.append((end, name, ", ".join(f"{one:.3g}" for one in beyond)))
    return found


# Tables -------------------------------------------------------------------------------------------------------------


def column_of(parameter: str) -> str:
    """Return the column name of a parameter: the parameter's name, with a prefix if another column has that name."""
    return f"parameter_{parameter}" if parameter in TAKEN else parameter


def setting_frame(settings: Iterable[StoredSetting]) -> "pd.DataFrame":
    """Return the facts and parameters of settings as a frame, indexed by their rows in the store."""
    import pandas as pd

    rows = {setting.id: setting.facts for setting in settings}
    cells = {name: [facts[name] for facts in rows.values()] for name in (*FACTS, "steps", "values")}
    cells["episodes"] = [e if e is not None else s for e, s in zip(cells["episodes"], cells["steps"], strict=True)]
    declared = dict.fromkeys([*COMMON_PARAMETERS, *(name for values in cells["values"] for name in values)])
    parameters = {
        column_of(name): np.array([values.get(name, np.nan) for values in cells["values"]], float) for name in declared
    }
    return pd.DataFrame({name: cells[name] for name in FACTS} | parameters, index=list(rows))


def other_columns(frame: "pd.DataFrame") -> list[str]:
    """Return the columns of parameters that are not columns of every table."""
    return [name for name in frame.columns if name not in TAKEN and name not in COMMON_PARAMETERS]


def summary_frame(
    store: Store, keys: set[str] | None = None, tasks: Iterable[Task] | None = None, runs: range = EVERY_RUN
) -> "pd.DataFrame":
    """Return one row per setting of a store: parameters, finished runs, means, standard errors, divergence.

    Nothing is dropped: a setting that diverged has an infinite mean, and a setting without runs the mean nan. `keys`
    selects settings, and `tasks` and `runs` select results; the default is all. `exploded_runs` counts runs whose final
    or mean error is far above the initial error.
    """
    settings, rows, _, numbers = results_of(store, keys, tasks, runs)
    first = {setting.id: setting.facts.get("first_error", np.inf) for setting in settings}
    frame = setting_frame(settings)
    others = other_columns(frame)
    frame = frame.join(fold_runs(rows, numbers, first)).reset_index(drop=True)
    counts = ["runs", "diverged_runs", "exploded_runs"]
    frame[counts] = frame[counts].fillna(0).astype(int)
    return with_old_names(frame[[*SUMMARY_COLUMNS, *others, "exploded_runs"]])


def results_of(
    store: Store, keys: set[str] | None = None, tasks: Iterable[Task] | None = None, runs: range = EVERY_RUN
) -> tuple[list[StoredSetting], Integers, Integers, Any]:
    """Return the settings, and the row of the setting, the run and the numbers of each result; each (results,).

    Raise if units contain results of a setting among `keys` (None: all settings) that is missing in the store.
    """
    with store.snapshot():
        settings, units = store.settings(keys), store.units(tasks, runs)
    place = {setting.key: setting.id for setting in settings}
    store.report(lost_settings(units, place, keys))
    rows, numbered, numbers = gathered(units, place)
    order = np.lexsort((numbered, rows))
    return settings, rows[order], numbered[order], numbers[order]


def fold_runs(rows: Integers, numbers: Any, first: dict[int, float]) -> "pd.DataFrame":
    """Return runs, mean, standard error and divergence counts of every setting with results, indexed by its row.

    `rows` has the row of the setting of each result, sorted. `first` has the initial error of each setting.
    """
    import pandas as pd

    settings, begin, count = np.unique(rows, return_index=True, return_counts=True)
    columns: dict[str, Any] = {"runs": count, "diverged_runs": np.zeros(len(count), int)}
    bound = np.repeat([first[setting] for setting in settings.tolist()], count)
    measured = {measure: np.ascontiguousarray(numbers[measure]) for measure in MEASURES}
    exploded = np.logical_or(*(intervals.has_exploded(errors, bound) for errors in measured.values()))
    columns["exploded_runs"] = np.add.reduceat(exploded, begin, dtype=int)
    for measure, errors in measured.items():
        with np.errstate(invalid="ignore"):
            mean = np.add.reduceat(errors, begin) / count
            spread = np.add.reduceat((errors - np.repeat(mean, count)) ** 2, begin)
        diverged = np.add.reduceat(~np.isfinite(errors), begin, dtype=int)
        columns["diverged_runs"] = np.maximum(columns["diverged_runs"], diverged)
        sem = np.sqrt(spread / np.maximum(1, count - 1) / count)
        columns[f"{measure}_mean"] = mean
        columns[f"{measure}_sem"] = np.where(diverged > 0, np.inf, np.where(count > 1, sem, np.nan))
    return pd.DataFrame(columns, index=settings)


def run_frame(store: Store) -> "pd.DataFrame":
    """Return one row per setting and run of a store, without curves."""
    import pandas as pd

    settings, rows, runs, numbers = results_of(store)
    frame = setting_frame(settings)
    names = (*MEASURES, "diverged_step", "diverged_episode")
    results = pd.DataFrame({"run": runs} | {name: numbers[name] for name in names})
    of_setting = frame.loc[rows].reset_index(drop=True)
    return with_old_names(pd.concat([of_setting, results], axis=1)[[*RUN_COLUMNS, *other_columns(frame)]])


def with_old_names(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame whose renamed columns are repeated at the end under their old names."""
    return frame.assign(**{old: frame[name] for old, name in OLD_NAMES.items() if name in frame.columns})


def write_frame(frame: "pd.DataFrame", target: str | Path) -> None:
    """Write a frame as .csv, with text that is safe in spreadsheets, or as .parquet."""
    path = Path(target)
    check_regular(path)
    try:
        if path.suffix == ".csv":
            texts = [name for name in frame.columns if frame[name].dtype.kind not in "ifub"]
            safe = {name: frame[name].map({cell: harmless(cell) for cell in frame[name].unique()}) for name in texts}
            frame.assign(**safe).rename(columns=harmless).to_csv(path, index=False)
        elif path.suffix == ".parquet":
            frame.to_parquet(path, index=False)
        else:
            raise bad_request("The file to export to", "end in .csv or .parquet", path.name)
    except OSError as error:
        raise BadRequestError(f"Cannot write {str(path)!r}: {error.strerror or error}.") from None


def harmless(cell: Any) -> Any:
    """Return a cell that is safe in spreadsheets: text on one line, with an apostrophe before a formula."""
    if not isinstance(cell, str):
        return cell
    cell = printable(cell).replace("\n", "\\n")
    if not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
