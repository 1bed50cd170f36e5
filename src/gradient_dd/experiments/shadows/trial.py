"""The trial of the learner that chooses, as docs/shadows.md fixes it:  python -m gradient_dd.experiments.shadows.trial

Every learner is tuned on some runs of each task and shown on others, for every task alone. The measure of a learner on
a task is the mean over all steps of ‖X(w − w*)‖_D, w* being the TD fixed point, and its ratio to the smallest measure
of the rivals there.
"""

import json
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from os import cpu_count
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.choosing import run_shadow_learner
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.schedules import Schedule, constant, tapered
from gradient_dd.experiments.shadows.cases import (
    Case,
    aimed_at_the_fixed_point,
    diverging_cases,
    greedy_cases,
    paper_cases,
    random_cases,
    td_is_stable,
)
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.studies.intervals import percentile_interval
from gradient_dd.tasks import Task, random_walk

STEPS, EVERY, TUNED, SHOWN = 20_000, 100, 3, 5
SEED = 4127  # of trajectories
FIRST = 81_000_000  # of the seeds of tasks and of Baird's initial weights, which nothing else uses
ALPHAS: Array = np.power(10.0, 0.2 - 0.3 * np.arange(15))  # over the mean of ‖x‖²
ZETAS = (0.25, 1.0, 4.0, 16.0)
KAPPAS = (0.25, 1.0, 4.0, 16.0)
CAP = 1000.0  # ratios beyond it, divergence included, count as this
SUITES = ("whole", "greedy", "reduced", "quick")
QUICK: dict[str, Any] = {"alphas": ALPHAS[2::4], "steps": 2000, "tuned": 1, "total": 2}
CHOOSERS = ("shadows, alpha tuned", "shadows, nothing tuned")


def rivals(task: Task, alphas: Array) -> dict[str, list[Setting]]:
    """Return 60 settings of each rival, or nearly so, alphas being in units of one over the mean of ‖x‖²."""
    scale = 1 / float(task.visits @ (task.features**2).sum(axis=1))

    def grid(name: str, parameter: str, values: Iterable[float], **fixed: Any) -> list[Setting]:
        rule = LEARNERS[name]
        chosen: list[dict[str, Any]] = [{"alpha": a * scale, parameter: v} for a in alphas for v in values]
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


def measured(task: Task, schedule: Schedule, alphas: Array, steps: int, run: int) -> dict[str, Array]:
    """Return the mean error of every setting of every learner in one run, diverged ones as inf."""
    settings = rivals(task, alphas)
    every_setting = chain.from_iterable(settings.values())
    lanes = LaneRun(task, every_setting, Horizon(steps=steps, every=EVERY), schedule, seed=SEED, run=run)
    lanes.advance()
    cuts = np.cumsum([len(part) for part in settings.values()])[:-1]
    areas = dict(zip(settings, np.split(lanes.results().area[0], cuts), strict=True))
    common: dict[str, Any] = {"steps": steps, "every": EVERY, "seed": SEED, "run": run, "shadow_seed": run}
    scale = 1 / float(task.visits @ (task.features**2).sum(axis=1))
    for name, chosen in zip(CHOOSERS, ([a * scale for a in alphas], [None]), strict=True):
        runs = [run_shadow_learner(task, alpha, schedule=schedule, **common).errors.mean() for alpha in chosen]
        areas[name] = np.nan_to_num(np.array(runs), nan=np.inf, posinf=np.inf)
    return areas


def shown(case: Case, schedule: Schedule, alphas: Array, steps: int, tuned: int, total: int) -> dict[str, Any]:
    """Return the measure of every learner on a task: its best setting of the first runs, on the others."""
    task = aimed_at_the_fixed_point(case.task)
    runs = [measured(task, schedule, alphas, steps, run) for run in range(total)]
    measures, tails, places, means = {}, {}, {}, {}
    for name in runs[0]:
        areas = np.array([areas[name] for areas in runs])
        best = int(np.minimum(areas[:tuned], 1e100).mean(axis=0).argmin())
        measures[name], tails[name] = float(areas[tuned:, best].mean()), float(areas[tuned:, best].max())
        places[name] = best
        means[name] = [float(f"{mean:.4g}") for mean in np.minimum(areas[tuned:], 1e100).mean(axis=0)]
    start = float(np.linalg.norm(np.sqrt(task.visits) * (task.features @ task.initial_weights - task.true_values)))
    return {
        "group": case.group,
        "task": case.name,
        "td_stable": td_is_stable(task),
        "start": start,
        "measure": measures,
        "worst_run": tails,
        "setting": places,
        "every_setting": means,
    }


def ratios(rows: list[dict[str, Any]], names: list[str]) -> Array:
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


def tables(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
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
    schedule: Schedule = constant,
    alphas: Array = ALPHAS,
    steps: int = STEPS,
    tuned: int = TUNED,
    total: int = TUNED + SHOWN,
    on_row: Callable[[dict[str, Any]], None] = lambda row: None,
    known: Iterable[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Run all cases but those whose rows are known, in a fixed random order; return rows and tables for a file."""
    rows = {row["task"]: row for row in known}
    missing = [case for case in cases if case.name not in rows]
    order = np.random.default_rng(SEED).permutation(len(missing))

    def work(case: Case) -> None:
        rows[case.name] = shown(case, schedule, alphas, steps, tuned, total)
        on_row(rows[case.name])

    with ThreadPoolExecutor(cpu_count()) as pool:
        list(pool.map(work, [missing[i] for i in order]))
    return summarised([rows[case.name] for case in cases], schedule, steps)


def summarised(rows: list[dict[str, Any]], schedule: Schedule, steps: int) -> dict[str, Any]:
    """Return rows with their tables."""
    return {"schedule": str(schedule), "steps": steps, "rows": rows, "tables": tables(rows)}


def read_rows(rows: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, one in each line; a last line that was cut off is left out."""
    text = rows.read_text(encoding="utf-8") if rows.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def keep_row(rows: Path, row: dict[str, Any]) -> None:
    """Add a row to a file, in one write."""
    with rows.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def lines(trial: dict[str, Any]) -> Iterator[str]:
    """Yield the tables as text."""
    for group, table in trial["tables"].items():
        yield f"\n{group}: {next(iter(table.values()))['tasks']} tasks"
        for name, row in table.items():
            low, high = row["interval"]
            yield (
                f"  {name:24} geometric mean {row['geometric_mean']:7.3f} [{low:.3f}, {high:.3f}]"
                f"   95 % {row['percentile_95']:8.2f}   worst {row['worst']:8.2f}"
            )


def suite(name: str) -> list[Case]:
    """Return the tasks of a suite; the quick one has other tasks than the trial."""
    if name == "greedy":
        return [*greedy_cases(30, FIRST)]
    first, paper, random, diverging = FIRST, [*paper_cases(FIRST)], 100, 50
    if name == "reduced":
        paper, random, diverging = paper[:7] + paper[7::3], 25, 25
    if name == "quick":
        first, paper, random, diverging = 5_000_000, [Case("paper", "walk 5", random_walk(5))], 1, 1
    on, off = random_cases("on", random, first), random_cases("off", random, first)
    return [*paper, *on, *off, *diverging_cases(diverging, first)]


def main() -> None:
    """Run the trial, or a small one, and write what it saw."""
    parser = ArgumentParser(description="The trial of the learner that chooses, see docs/shadows.md.")
    parser.add_argument(
        "--suite", choices=SUITES, default="whole", help="quick: four tasks, four step sizes, 2,000 steps"
    )
    parser.add_argument("--schedule", choices=("constant", "tapered"), default="constant")
    parser.add_argument("--done", action="store_true", help="run nothing; show the tasks that are done")
    parser.add_argument("--out", type=Path, default=Path("shadows_trial.json"))
    chosen = parser.parse_args()
    schedule = constant if chosen.schedule == "constant" else tapered(STEPS // 10, per="step")
    options: dict[str, Any] = QUICK if chosen.suite == "quick" else {}
    cases = suite(chosen.suite)
    rows = chosen.out.with_suffix(".rows")  # one line for each task that is done: a second call runs the others
    known = read_rows(rows)

    def keep(row: dict[str, Any]) -> None:
        keep_row(rows, row)
        print(row["task"], flush=True)

    if chosen.done:
        trial = summarised(known, schedule, STEPS)
    else:
        trial = run_trial(cases, schedule, on_row=keep, known=known, **options)
    chosen.out.write_text(json.dumps(trial, indent=1))
    print("\n".join(lines(trial)))


if __name__ == "__main__":
    main()
