"""The protocol of a trial of `AutoLearner` (docs/evidence/auto-learner.md).

Every learner is tuned on some runs of each task and tested on others, separately for every task. The measure of a
learner on a task is the mean over all points of ‖X(w − w*)‖_D, where w* is the TD fixed point. Its ratio is relative to
the smallest measure of the rivals on this task, with last weights, or with the better of last and averaged weights.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.studies.intervals import percentile_interval, select
from trials.auto_learner.cases import Case, aimed_at_the_fixed_point, first_error, td_is_stable
from trials.auto_learner.rivals import (
    LSTD_FEATURES,
    OWN_ALPHAS,
    RIDGES,
    RIVALS,
    Road,
    auto_run,
    lstd_errors,
    rival_errors,
)

CAP = 1000.0  # limit of ratios; diverged runs also count as this
AUTO = ("AutoLearner, nothing tuned", "AutoLearner, rungs, nothing tuned", "AutoLearner, alpha tuned")
STILL, LSTD, LSTD_TUNED = "stands still", "LSTD, ridge 0.1", "LSTD, ridge tuned"
AVERAGED = ", averaged"

Row = dict[str, Any]
Extra = Callable[[Road], dict[str, float]]


@dataclass(frozen=True)
class TrialRules:
    """The size of a trial: the numbers of tuning and test runs, and of steps if not each task's own."""

    tuned: int = 2
    shown: int = 3
    steps: int | None = None

    def __str__(self) -> str:
        steps = "steps of each task" if self.steps is None else f"{self.steps} steps"
        return f"{self.tuned} runs to tune and {self.shown} to show, {steps}"


def tune_then_show(errors: Array, tuning_runs: int) -> tuple[int, Array]:
    """Return the best setting on the first runs, and its errors on the others; errors: (settings, runs)."""
    best = select(errors[:, :tuning_runs])
    return best, errors[best, tuning_runs:]


def measured(road: Road, extra: Extra) -> dict[str, Array]:
    """Return the mean error of every setting of every learner in one run; inf if it diverged."""
    mean_errors: dict[str, Array] = {}
    for name in RIVALS:
        mean_errors[name], mean_errors[name + AVERAGED] = rival_errors(road, name)
    free, rungs, tuned = AUTO
    mean_errors[free], mean_errors[rungs] = (
        np.array([auto_run(road, quadratic=one).mean_error]) for one in (None, False)
    )
    mean_errors[tuned] = np.array([auto_run(road, alpha).mean_error for alpha in OWN_ALPHAS])
    mean_errors[STILL] = np.array([first_error(road.task)])
    if road.task.n_features <= LSTD_FEATURES:
        mean_errors[LSTD_TUNED] = lstd_errors(road)
        mean_errors[LSTD] = mean_errors[LSTD_TUNED][[RIDGES.index(0.1)]]
    return mean_errors | {name: np.array([mean_error]) for name, mean_error in extra(road).items()}


def shown(case: Case, rules: TrialRules, extra: Extra = lambda road: {}) -> Row:
    """Return the measure of every learner on a task: its test error with the setting best on the tuning runs."""
    task = aimed_at_the_fixed_point(case.task)
    roads = [Road(task, rules.steps or case.steps, run) for run in range(rules.tuned + rules.shown)]
    runs = [measured(road, extra) for road in roads]
    row: Row = {"kind": case.kind, "task": case.name, "rules": str(rules), "td_stable": td_is_stable(task)}
    row |= {"features": task.n_features, "start": first_error(task), "measure": {}, "setting": {}, "every_setting": {}}
    for name in runs[0]:
        mean_errors = np.stack([mean_errors[name] for mean_errors in runs], axis=1)
        place, errors = tune_then_show(mean_errors, rules.tuned)
        row["measure"][name], row["setting"][name] = float(errors.mean()), place
        means = np.minimum(mean_errors[:, rules.tuned :], 1e100).mean(axis=1)
        row["every_setting"][name] = [float(f"{mean:.4g}") for mean in means]
    shown_runs = [auto_run(road) for road in roads[rules.tuned :]]
    row |= {"ends": [one.end for one in shown_runs], "peaks": [one.peak for one in shown_runs]}
    return row


def ratios(rows: list[Row], name: str, averaged: bool) -> Array:
    """Return a learner's measure relative to the best rival of each task, (tasks,), at most CAP; NaN if it has none.

    averaged  whether rivals use the better of last and averaged weights
    """
    found = []
    for row in rows:
        names = [one + end for one in RIVALS for end in (("", AVERAGED) if averaged else ("",))]
        best = min(row["measure"][one] for one in names)
        found.append(row["measure"].get(name, np.nan) / best)
    with np.errstate(invalid="ignore"):
        return np.minimum(np.array(found), CAP)


def summary(values: Array, resamples: int = 2000) -> dict[str, Any]:
    """Return the number, geometric mean, 95th percentile and maximum, with 95 % bootstrap intervals over tasks."""
    values = values[~np.isnan(values)]
    of_mean = percentile_interval(np.log(values), lambda drawn: np.exp(drawn.mean(axis=1)), resamples)
    of_tail = percentile_interval(values, lambda drawn: np.quantile(drawn, 0.95, axis=1), resamples)
    return {
        "tasks": len(values),
        "geometric_mean": float(np.exp(np.log(values).mean())),
        "interval": list(of_mean),
        "percentile_95": float(np.quantile(values, 0.95)),
        "percentile_95_interval": list(of_tail),
        "worst": float(values.max()),
    }


def groups(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the rows of all tasks, by stability of TD, and by type."""
    found = {"all tasks": rows}
    found["TD stable"] = [row for row in rows if row["td_stable"]]
    found["TD unstable"] = [row for row in rows if not row["td_stable"]]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        found[kind] = [row for row in rows if row["kind"] == kind]
    return {name: some for name, some in found.items() if some}


def tables(rows: list[Row], averaged: bool = False) -> dict[str, dict[str, Any]]:
    """Return the summary of every learner relative to the best rival, in every group."""
    names = [*AUTO, *(one + end for one in RIVALS for end in ("", AVERAGED)), STILL, LSTD, LSTD_TUNED]
    names += [name for name in rows[0]["measure"] if name not in names]
    found: dict[str, dict[str, Any]] = {}
    for group, some in groups(rows).items():
        columns = {name: ratios(some, name, averaged) for name in names}
        found[group] = {name: summary(one) for name, one in columns.items() if not np.isnan(one).all()}
    return found


def pair(rows: list[Row], left: str, right: str) -> dict[str, Any]:
    """Return the summary of the ratio of two learners on the same tasks."""
    return summary(np.array([row["measure"].get(left, np.nan) / row["measure"].get(right, np.nan) for row in rows]))


def averaging(rows: list[Row]) -> dict[str, Any]:
    """Return the summary of the gain from averaging alone for the best rival of each task."""

    def best(row: Row, end: str) -> float:
        return float(min(row["measure"][name + end] for name in RIVALS))

    return summary(np.array([best(row, AVERAGED) / best(row, "") for row in rows]))


def best_fixed(rows: list[Row]) -> tuple[str, int, float]:
    """Return the rule, whether it is averaged, the position of the setting best on all tasks, and its ratio."""
    candidates = []
    for name in (one + end for one in RIVALS for end in ("", AVERAGED)):
        means = np.array([row["every_setting"][name] for row in rows])
        best = np.array([[min(row["measure"][one] for one in RIVALS)] for row in rows])
        logs = np.log(np.minimum(means / best, CAP)).mean(axis=0)
        candidates.append((float(np.exp(logs.min())), name, int(logs.argmin())))
    ratio, name, place = min(candidates)
    return name, place, ratio


def run_trial(
    cases: list[Case],
    rules: TrialRules,
    known: Iterable[Row] = (),
    on_row: Callable[[Row], None] = lambda row: None,
    workers: int | None = None,
    extra: Extra = lambda road: {},
) -> list[Row]:
    """Return the row of every case: known rows of the same rules, and new rows, computed in a fixed random order."""
    rows = {row["task"]: row for row in known if row.get("rules") == str(rules)}
    missing = [case for case in cases if case.name not in rows]
    order = np.random.default_rng(0).permutation(len(missing))
    with ThreadPoolExecutor(workers or cpu_count()) as pool:
        going = [pool.submit(shown, missing[place], rules, extra) for place in order]
        for row in (one.result() for one in going):
            rows[row["task"]] = row
            on_row(row)
    return [rows[case.name] for case in cases]


def read_rows(rows: Path) -> list[Row]:
    """Return the rows of a file, one per line, without an incomplete last line."""
    text = rows.read_text(encoding="utf-8") if rows.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def keep_row(rows: Path, row: Row) -> None:
    """Add a row to a file, in one write."""
    with rows.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def lines(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the tables as text."""
    for group, table in found.items():
        yield f"\n{group}: {next(iter(table.values()))['tasks']} tasks"
        for name, row in table.items():
            low, high = row["interval"]
            yield (
                f"  {name:28} geometric mean {row['geometric_mean']:7.3f} [{low:.3f}, {high:.3f}]"
                f"   95 % {row['percentile_95']:8.2f}   worst {row['worst']:8.2f}"
            )
