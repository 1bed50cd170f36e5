"""Frames: what a store holds, as tables with one row for each setting, or for each setting and run.

Every parameter that a rule declares is a column. Those that every table of this project has stand first, in a fixed
order; the others follow in the order in which the settings were stored.
"""

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import numpy as np

from gradient_dd.errors import extra
from gradient_dd.studies.store import Store, pieces

if TYPE_CHECKING:
    import pandas as pd

MEASURES = ("last100", "area")
FACTS = {
    "task": "task",
    "size": "size",
    "reading": "reading",
    "learner": "learner",
    "schedule": "schedule",
    "episodes": "coalesce(episodes, steps)",
    "rho_mode": "rho_mode",
    "sampling": "sampling",
    "seed": "seed",
}
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

    ids: list[int] = []
    columns: dict[str, list[Any]] = {name: [] for name in FACTS}
    values: list[dict[str, float]] = []
    seen: dict[Any, Any] = {}  # equal texts are kept once
    for row, text, *facts in store.each(f'SELECT id, "values", {", ".join(FACTS.values())} FROM setting ORDER BY id'):
        if chosen is None or row in chosen:
            ids.append(row)
            values.append(json.loads(text))
            for column, value in zip(columns.values(), facts, strict=True):
                column.append(seen.setdefault(value, value) if isinstance(value, str) else value)
    declared = dict.fromkeys([*COMMON_PARAMETERS, *(name for one in values for name in one)])
    parameters = {column_of(name): np.array([one.get(name, np.nan) for one in values], float) for name in declared}
    return pd.DataFrame(columns | parameters, index=ids)


def other_columns(frame: "pd.DataFrame") -> list[str]:
    """Return the columns of the parameters that not every table has."""
    return [name for name in frame.columns if name not in TAKEN and name not in COMMON_PARAMETERS]


def summary_frame(store: Store, rows: Collection[int] | None = None, runs: range | None = None) -> "pd.DataFrame":
    """Return one row for each setting of a store: its parameters, runs done, means, standard errors, divergence.

    Nothing is dropped: a setting that diverged has an infinite mean, one with no run done has none. `rows` chooses
    settings, `runs` runs; the default is all. Memory is a few hundred bytes a setting.
    """
    chosen = None if rows is None else set(rows)
    frame = setting_frame(store, chosen)
    others = other_columns(frame)
    frame = frame.join(fold_runs(store, chosen, runs)).reset_index(drop=True)
    frame[["runs", "diverged_runs"]] = frame[["runs", "diverged_runs"]].fillna(0).astype(int)
    return frame[[*SUMMARY_COLUMNS, *others]]


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

    names = ("run", *MEASURES, "diverged_step", "diverged_episode")
    found = store.rows(f"SELECT setting, {', '.join(names)} FROM result ORDER BY setting, run")
    results = pd.DataFrame([row[1:] for row in found], columns=names, index=[row[0] for row in found])
    frame = setting_frame(store)
    return results.join(frame, how="inner").reset_index(drop=True)[[*RUN_COLUMNS, *other_columns(frame)]]
