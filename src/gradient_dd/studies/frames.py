"""Frames: what a store holds, as tables with one row for each setting, or for each setting and run.

Every parameter that a rule declares is a column. Those that every table of this project has stand first, in a fixed
order; the others follow in the order in which the settings were stored.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradient_dd.arrays import Integers
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.studies.intervals import has_exploded
from gradient_dd.studies.store import EVERY_RUN, Store, StoredSetting, StoredUnit, gathered, lost_settings
from gradient_dd.tasks import Task

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("last100", "area")
FACTS = ("task", "size", "reading", "learner", "schedule", "episodes", "rho_mode", "sampling", "seed")
COMMON_PARAMETERS = ("alpha", "zeta", "kappa", "reg")  # they are columns of every table, empty where nobody has them
MEASURED = [f"{measure}_{what}" for measure in MEASURES for what in ("mean", "sem")]
SUMMARY_COLUMNS = [
    *("task", "size", "reading", "learner", "alpha", "zeta", "kappa", "schedule", "episodes", "runs"),
    *(*MEASURED, "diverged_runs", "reg", "rho_mode", "sampling"),
]
RUN_COLUMNS = [
    *("task", "size", "reading", "learner", "alpha", "zeta", "kappa", "rho_mode", "schedule", "episodes"),
    *("sampling", "seed", "run", *MEASURES, "diverged_step", "diverged_episode", "reg"),
]
FORMULA = ("=", "+", "-", "@")  # what the first character of a formula is
TAKEN = {*SUMMARY_COLUMNS, *RUN_COLUMNS, "exploded_runs"} - {*COMMON_PARAMETERS}


def column_of(parameter: str) -> str:
    """Return the name of a parameter's column: its own, unless a column of every table has that name."""
    return f"parameter_{parameter}" if parameter in TAKEN else parameter


def setting_frame(settings: Iterable[StoredSetting]) -> "pd.DataFrame":
    """Return the facts and parameters of settings, by their rows in the store."""
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
    """Return the columns of the parameters that not every table has."""
    return [name for name in frame.columns if name not in TAKEN and name not in COMMON_PARAMETERS]


def summary_frame(
    store: Store, keys: set[str] | None = None, tasks: Iterable[Task] | None = None, runs: range = EVERY_RUN
) -> "pd.DataFrame":
    """Return one row for each setting of a store: its parameters, runs done, means, standard errors, divergence.

    Nothing is dropped: a setting that diverged has an infinite mean, one with no run done has none. `keys` chooses
    settings, `tasks` and `runs` results; the default is all. `exploded_runs` counts the runs that ended, or were on
    average, far beyond the error of the first weights.
    """
    with store.snapshot():
        settings, units = store.settings(keys), store.units(tasks, runs)
    rows, _, numbers = results_of(store, settings, units, keys)
    first = {setting.id: setting.facts.get("first_error", np.nan) for setting in settings}
    frame = setting_frame(settings)
    others = other_columns(frame)
    frame = frame.join(fold_runs(rows, numbers, first)).reset_index(drop=True)
    frame[["runs", "diverged_runs"]] = frame[["runs", "diverged_runs"]].fillna(0).astype(int)
    return frame[[*SUMMARY_COLUMNS, *others, "exploded_runs"]]


def results_of(
    store: Store, settings: list[StoredSetting], units: list[StoredUnit], keys: set[str] | None = None
) -> tuple[Integers, Integers, Any]:
    """Return the settings' rows, the runs and the numbers of all results, in that order; each (results,).

    Raise if units have results of a setting that is missing; `keys` are the settings that matter, None stands for all.
    """
    place = {setting.key: setting.id for setting in settings}
    store.report_damage(lost_settings(units, place, keys))
    rows, runs, numbers = gathered(units, place)
    order = np.lexsort((runs, rows))
    return rows[order], runs[order], numbers[order]


def fold_runs(rows: Integers, numbers: Any, first: dict[int, float]) -> "pd.DataFrame":
    """Return runs, mean, standard error, divergence and explosions of every setting that has results, by its row.

    `rows` has the setting's row of each result, in order. `first` has the error of the first weights of each setting,
    nan where it is not known.
    """
    import pandas as pd

    settings, begin, count = np.unique(rows, return_index=True, return_counts=True)
    columns: dict[str, Any] = {"runs": count, "diverged_runs": np.zeros(len(count), int)}
    begins = np.array([first[setting] for setting in settings.tolist()])
    measured = {measure: np.ascontiguousarray(numbers[measure]) for measure in MEASURES}
    exploded = np.logical_or(*(has_exploded(errors, np.repeat(begins, count)) for errors in measured.values()))
    counted = np.add.reduceat(exploded, begin, dtype=int) if len(exploded) else np.empty(0, int)
    columns["exploded_runs"] = pd.array(counted, "Int64")
    columns["exploded_runs"][np.isnan(begins)] = pd.NA
    for measure, errors in measured.items():
        with np.errstate(invalid="ignore"):
            mean = np.add.reduceat(errors, begin) / count if len(errors) else np.empty(0)
            spread = np.add.reduceat((errors - np.repeat(mean, count)) ** 2, begin) if len(errors) else np.empty(0)
        diverged = np.add.reduceat(~np.isfinite(errors), begin, dtype=int) if len(errors) else np.empty(0, int)
        columns["diverged_runs"] = np.maximum(columns["diverged_runs"], diverged)
        sem = np.sqrt(spread / np.maximum(1, count - 1) / count)
        columns[f"{measure}_mean"] = mean
        columns[f"{measure}_sem"] = np.where(diverged > 0, np.inf, np.where(count > 1, sem, np.nan))
    return pd.DataFrame(columns, index=settings)


def run_frame(store: Store) -> "pd.DataFrame":
    """Return one row for each setting and run of a store, curves left out."""
    import pandas as pd

    with store.snapshot():
        settings, units = store.settings(), store.units()
    frame = setting_frame(settings)
    rows, runs, numbers = results_of(store, settings, units)
    names = (*MEASURES, "diverged_step", "diverged_episode")
    results = pd.DataFrame({"run": runs} | {name: numbers[name] for name in names})
    of_setting = frame.loc[rows].reset_index(drop=True)
    return pd.concat([of_setting, results], axis=1)[[*RUN_COLUMNS, *other_columns(frame)]]


def write_frame(frame: "pd.DataFrame", target: str | Path) -> None:
    """Write a frame as CSV or Parquet, by the ending of the name."""
    path = Path(target)
    try:
        if path.suffix == ".csv":
            without_formulas(frame).to_csv(path, index=False)
        elif path.suffix == ".parquet":
            frame.to_parquet(path, index=False)
        else:
            raise bad_request("The file to export to", "end in .csv or .parquet", path.name)
    except OSError as error:
        raise bad_request(
            f"{str(path)!r}", "be a file that can be written", Unquoted(error.strerror or "an error")
        ) from None


def without_formulas(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a frame whose texts and column names no spreadsheet takes for formulas."""
    changed = {}
    for name in frame.columns:
        if frame[name].dtype.kind not in "ifub":  # texts are many, but few of them differ
            known = {cell: harmless(cell) for cell in frame[name].unique()}
            if any(cell != shown for cell, shown in known.items() if isinstance(cell, str)):
                changed[name] = frame[name].map(known)
    return frame.assign(**changed).rename(columns=harmless)


def harmless(cell: Any) -> Any:
    """Return a cell. A text is put on one line, and gets an apostrophe in front if it looks like a formula."""
    if not isinstance(cell, str):
        return cell
    cell = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in cell)
    if not cell.startswith(FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
