"""Frames: what a store holds, as tables with one row for each setting, or for each setting and run.

Every parameter that a rule declares is a column. Those that every table of this project has stand first, in a fixed
order; the others follow in the order in which the settings were stored.
"""

import json
from collections.abc import Collection
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from gradient_dd.errors import extra
from gradient_dd.studies.checked import checked_results, checked_settings
from gradient_dd.studies.inspection import DIVERGENCE, ERRORS, Keys
from gradient_dd.studies.intervals import has_exploded
from gradient_dd.studies.schema import SETTING_COLUMNS
from gradient_dd.studies.store import Store
from gradient_dd.studies.stored_tasks import first_errors

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ERRORS.columns
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
TAKEN = {*SUMMARY_COLUMNS, *RUN_COLUMNS, "exploded_runs"} - {*COMMON_PARAMETERS}


def column_of(parameter: str) -> str:
    """Return the name of a parameter's column: its own, unless a column of every table has that name."""
    return f"parameter_{parameter}" if parameter in TAKEN else parameter


def setting_frame(store: Store, chosen: Collection[int] | None = None) -> "pd.DataFrame":
    """Return the facts and parameters of the `chosen` settings of a store, or of all, by their rows."""
    with extra("frames"):
        import pandas as pd

    rows = checked_settings(store, chosen)
    columns: Any = zip(*rows, strict=True) if rows else repeat(())
    cells: dict[str, Any] = dict(zip(("id", *SETTING_COLUMNS), columns, strict=False))
    cells["episodes"] = [e if e is not None else s for e, s in zip(cells["episodes"], cells["steps"], strict=True)]
    values = [json.loads(text) for text in cells['"values"']]
    declared = dict.fromkeys([*COMMON_PARAMETERS, *(name for one in values for name in one)])
    parameters = {column_of(name): np.array([one.get(name, np.nan) for one in values], float) for name in declared}
    return pd.DataFrame({name: cells[name] for name in FACTS} | parameters, index=cells["id"])


def other_columns(frame: "pd.DataFrame") -> list[str]:
    """Return the columns of the parameters that not every table has."""
    return [name for name in frame.columns if name not in TAKEN and name not in COMMON_PARAMETERS]


def summary_frame(
    store: Store, keys: Keys | None = None, runs: range | None = None, first: dict[int, float] | None = None
) -> "pd.DataFrame":
    """Return one row for each setting of a store: its parameters, runs done, means, standard errors, divergence.

    Nothing is dropped: a setting that diverged has an infinite mean, one with no run done has none. `keys` chooses
    settings, by their rows, and `runs` runs; the default is all. Memory is a few hundred bytes a setting.
    `exploded_runs` counts the runs that ended, or were on average, far beyond the error of the first weights. That is
    `first`, by the setting's row; without it, it is computed from the tasks. It is empty where the file does not tell
    them.
    """
    with store.snapshot():
        frame = setting_frame(store, keys)
        if first is None:
            tasks = list(zip(frame["task"], frame["size"], frame["reading"], strict=True))
            known = first_errors(tasks)
            first = {row: known[one] for row, one in zip(frame.index.tolist(), tasks, strict=True)}
        folded = fold_runs(store, keys, runs, first)
    others = other_columns(frame)
    frame = frame.join(folded).reset_index(drop=True)
    frame[["runs", "diverged_runs"]] = frame[["runs", "diverged_runs"]].fillna(0).astype(int)
    return frame[[*SUMMARY_COLUMNS, *others, "exploded_runs"]]


def fold_runs(store: Store, keys: Keys | None, runs: range | None, first: dict[int, float]) -> "pd.DataFrame":
    """Return runs, mean, standard error, divergence and explosions of every setting that has results, by its row.

    `first` has the error of the first weights of each setting, nan where it is not known.
    """
    with extra("frames"):
        import pandas as pd

    rows = checked_results(store, ERRORS, keys, runs)
    settings, begin, count = np.unique(rows.setting, return_index=True, return_counts=True)
    columns: dict[str, Any] = {"runs": count, "diverged_runs": np.zeros(len(count), int)}
    begins = np.array([first.get(setting, np.nan) for setting in settings.tolist()])
    exploded = np.logical_or(*(has_exploded(errors, np.repeat(begins, count)) for errors in rows[2:]))
    counted = np.add.reduceat(exploded, begin, dtype=int) if len(exploded) else np.empty(0, int)
    columns["exploded_runs"] = pd.array(counted, "Int64")
    columns["exploded_runs"][np.isnan(begins)] = pd.NA
    for measure, errors in zip(MEASURES, rows[2:], strict=True):
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
    with extra("frames"):
        import pandas as pd

    with store.snapshot():
        frame = setting_frame(store)
        errors, divergence = checked_results(store, ERRORS), checked_results(store, DIVERGENCE)
    of_setting = frame.loc[errors.setting].reset_index(drop=True)
    names = ("run", *ERRORS.columns, *DIVERGENCE.columns)
    results = pd.DataFrame(dict(zip(names, (*errors[1:], *divergence[2:]), strict=True)))
    return pd.concat([of_setting, results], axis=1)[[*RUN_COLUMNS, *other_columns(frame)]]
