"""The trial of the learner that chooses, as docs/shadows.md fixes it; `python -m trials.shadows_trial` runs the whole.

Every learner is tuned on some runs of each task and shown on others, for every task alone. The measure of a learner on
a task is the mean over all steps of ‖X(w − w*)‖_D, w* being the TD fixed point, and its ratio to the smallest measure
of the rivals there.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import chain
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.choosing import run_shadow_learner
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.schedules import Schedule, constant
from gradient_dd.experiments.shadows.cases import Case, aimed_at_the_fixed_point, td_is_stable
from gradient_dd.experiments.tuning import tune_then_show
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.studies.intervals import percentile_interval
from gradient_dd.tasks import Task

STEPS, EVERY, TUNED, SHOWN = 20_000, 100, 3, 5
SEED = 4127  # of trajectories
ALPHAS: Array = np.power(10.0, 0.2 - 0.3 * np.arange(15))  # over the mean of ‖x‖²
ZETAS = (0.25, 1.0, 4.0, 16.0)
KAPPAS = (0.25, 1.0, 4.0, 16.0)
CAP = 1000.0  # ratios beyond it, divergence included, count as this
CHOOSERS = ("shadows, alpha tuned", "shadows, nothing tuned")

Row = dict[str, Any]


@dataclass(frozen=True)
class TrialRules:
    """How a trial is held: the step sizes, how long a run is, how many are to tune on and how many to show."""

    steps: int = STEPS
    tuned: int = TUNED
    shown: int = SHOWN
    schedule: Schedule = constant
    alphas: Array = field(default_factory=lambda: ALPHAS)


def unit_of(task: Task) -> float:
    """Return the unit of step sizes: one over the mean of ‖x‖²."""
    return 1 / float(task.visits @ (task.features**2).sum(axis=1))


def rivals(task: Task, alphas: Array) -> dict[str, list[Setting]]:
    """Return 60 settings of each rival, or nearly so, alphas being in units of one over the mean of ‖x‖²."""
    scale = unit_of(task)

    def grid(name: str, parameter: str, values: Iterable[float], **fixed: Any) -> list[Setting]:
        rule = LEARNERS[name]
        chosen: list[Row] = [{"alpha": a * scale, parameter: v} for a in alphas for v in values]
        return [rule.setting(**values, **fixed) for values in chosen]

    fine = np.geomspace(alphas[0], alphas[-1], 4 * len(alphas))
    return {
        "TD": [LEARNERS["td"].setting(alpha=a * scale) for a in fine],
        "TDC": grid("tdc", "zeta", ZETAS),
        "TDRC": grid("tdrc", "zeta", ZETAS),
        "GTD2": grid("gtd2", "zeta", ZETAS),
        "Gradient-DD": grid("gradient_dd", "kappa", KAPPAS),
        "c = 0.3": grid("gtd2_to_td", "zeta", ZETAS, c=0.3),
        "c = 0.6": grid("gtd2_to_td", "zeta", ZETAS, c=0.6),
        "c = 1": grid("gtd2_to_td", "zeta", ZETAS, c=1.0),
        "HTD": grid("htd", "zeta", ZETAS),
    }


def measured(task: Task, rules: TrialRules, run: int) -> dict[str, Array]:
    """Return the mean error of every setting of every learner in one run, diverged ones as inf."""
    settings, steps = rivals(task, rules.alphas), rules.steps
    every_setting = chain.from_iterable(settings.values())
    lanes = LaneRun(task, every_setting, Horizon(steps=steps, every=EVERY), rules.schedule, seed=SEED, run=run)
    lanes.advance()
    cuts = np.cumsum([len(part) for part in settings.values()])[:-1]
    areas = dict(zip(settings, np.split(lanes.results().area[0], cuts), strict=True))
    common: dict[str, Any] = {"steps": steps, "every": EVERY, "seed": SEED, "run": run, "shadow_seed": run}
    alphas = [alpha * unit_of(task) for alpha in rules.alphas]
    for name, chosen in zip(CHOOSERS, (alphas, [None]), strict=True):
        runs = [run_shadow_learner(task, alpha, schedule=rules.schedule, **common).errors.mean() for alpha in chosen]
        areas[name] = np.nan_to_num(np.array(runs), nan=np.inf, posinf=np.inf)
    return areas


def shown(case: Case, rules: TrialRules) -> Row:
    """Return the measure of every learner on a task: its best setting of the first runs, on the others."""
    task = aimed_at_the_fixed_point(case.task)
    runs = [measured(task, rules, run) for run in range(rules.tuned + rules.shown)]
    measures, tails, places, means = {}, {}, {}, {}
    for name in runs[0]:
        areas = np.stack([areas[name] for areas in runs], axis=1)
        places[name], errors = tune_then_show(areas, rules.tuned)
        measures[name], tails[name] = float(errors.mean()), float(errors.max())
        means[name] = [float(f"{mean:.4g}") for mean in np.minimum(areas[:, rules.tuned :], 1e100).mean(axis=1)]
    start = float(np.linalg.norm(np.sqrt(task.visits) * (task.features @ task.initial_weights - task.true_values)))
    return {
        "group": case.group,
        "task": case.name,
        "rules": rules_text(rules),
        "td_stable": td_is_stable(task),
        "start": start,
        "measure": measures,
        "worst_run": tails,
        "setting": places,
        "every_setting": means,
    }


def ratios(rows: list[Row], names: list[str]) -> Array:
    """Return each learner's measure over that of the best rival, (tasks, learners), at most CAP."""
    measures = np.array([[row["measure"][name] for name in names] for row in rows])
    best = measures[:, [name not in CHOOSERS for name in names]].min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.minimum(np.nan_to_num(measures / best, nan=CAP, posinf=CAP), CAP)


def summary(values: Array, resamples: int = 2000) -> dict[str, Any]:
    """Return geometric mean, 95th percentile, both with 95 % bootstrap intervals over tasks, and the worst."""
    of_mean = percentile_interval(np.log(values), lambda drawn: np.exp(drawn.mean(axis=1)), resamples)
    of_tail = percentile_interval(values, lambda drawn: np.quantile(drawn, 0.95, axis=1), resamples)
    return {
        "geometric_mean": float(np.exp(np.log(values).mean())),
        "interval": list(of_mean),
        "percentile_95": float(np.quantile(values, 0.95)),
        "percentile_95_interval": list(of_tail),
        "worst": float(values.max()),
    }


def tables(rows: list[Row]) -> dict[str, dict[str, Any]]:
    """Return the summary of every learner, over all tasks, by regime of TD, and by group."""
    names = list(rows[0]["measure"])
    table = ratios(rows, names)
    stable = np.array([row["td_stable"] for row in rows])
    groups = {"all tasks": np.ones(len(rows), bool), "TD stable": stable, "TD unstable": ~stable}
    groups |= {group: np.array([row["group"] == group for row in rows]) for group in {row["group"]: 0 for row in rows}}
    return {
        group: {name: summary(table[chosen, i]) | {"tasks": int(chosen.sum())} for i, name in enumerate(names)}
        for group, chosen in groups.items()
        if chosen.any()
    }


def run_trial(
    cases: list[Case],
    rules: TrialRules,
    known: Iterable[Row] = (),
    on_row: Callable[[Row], None] = lambda row: None,
    workers: int | None = None,
    executor: Executor | None = None,
) -> list[Row]:
    """Return the row of every case: known ones made by the same rules, and the others, run in a fixed random order."""
    rows = {row["task"]: row for row in known if row.get("rules") == rules_text(rules)}
    missing = [case for case in cases if case.name not in rows]
    order = np.random.default_rng(SEED).permutation(len(missing))
    with ThreadPoolExecutor(workers or cpu_count()) if executor is None else nullcontext(executor) as pool:
        going = [pool.submit(shown, missing[place], rules) for place in order]
        for row in (one.result() for one in going):
            rows[row["task"]] = row
            on_row(row)
    return [rows[case.name] for case in cases]


def rules_text(rules: TrialRules) -> str:
    """Return in words by which rules a row was made."""
    runs = f"{rules.tuned} runs to tune and {rules.shown} to show"
    return f"{rules.steps} steps, {runs}, {len(rules.alphas)} step sizes, {rules.schedule}"


def read_rows(rows: Path) -> list[Row]:
    """Return the rows of a file, one in each line; a last line that was cut off is left out."""
    text = rows.read_text(encoding="utf-8") if rows.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def keep_row(rows: Path, row: dict[str, Any]) -> None:
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
                f"  {name:24} geometric mean {row['geometric_mean']:7.3f} [{low:.3f}, {high:.3f}]"
                f"   95 % {row['percentile_95']:8.2f}   worst {row['worst']:8.2f}"
            )
