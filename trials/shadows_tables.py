"""The tables of docs/shadows.md from the rows of a trial, and a file with the ratios of every task.

python -m trials.shadows_tables shadows_trial.rows --csv shadows-trial.csv
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.experiments.shadows import trial
from tools.programs import parser_of

REGIMES = ("all tasks", "TD stable", "TD unstable")
FACTORS = (4, 2, 1, -1, -2, -4)  # steps of the grid by which α is wrong; one is a factor of 2


def regime_table(tables: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield geometric mean with its interval, 95th percentile and worst ratio of every learner, by regime of TD."""
    regimes = [name for name in REGIMES if name in tables]
    heads = [f"{name}, {tables[name]['TD']['tasks']}: geometric mean | 95 % | worst" for name in regimes]
    yield "| | " + " | ".join(heads) + " |"
    yield "|---|" + "---|---|---|" * len(regimes)
    for learner in tables["all tasks"]:
        yield f"| {learner} | " + " | ".join(summary_cells(tables[name][learner]) for name in regimes) + " |"


def summary_cells(row: dict[str, Any]) -> str:
    """Return three cells."""
    low, high = row["interval"]
    return f"{row['geometric_mean']:.2f} [{low:.2f}, {high:.2f}] | {row['percentile_95']:.2f} | {row['worst']:.1f}"


def group_table(tables: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the geometric means by group of tasks."""
    learners = list(tables["all tasks"])
    yield "| geometric mean | " + " | ".join(learners) + " |"
    yield "|---|" + "---|" * len(learners)
    for group, rows in tables.items():
        if group not in REGIMES:
            cells = " | ".join(f"{rows[learner]['geometric_mean']:.2f}" for learner in learners)
            yield f"| {group}, {rows['TD']['tasks']} | {cells} |"


def best_rival(row: dict[str, Any]) -> float:
    """Return the measure of the best rival on a task."""
    return min(measure for name, measure in row["measure"].items() if name not in trial.CHOOSERS)


def tail_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the worst shown run over the best rival's mean, and in how many tasks a learner is beyond 1.5 × or best."""
    learners = list(rows[0]["measure"])
    table = trial.ratios(rows, learners)
    yield "| | worst of the shown runs: geometric mean | 95 % | tasks beyond 1.5 × | better than all rivals |"
    yield "|---|---|---|---|---|"
    for place, name in enumerate(learners):
        worst = np.minimum([row["worst_run"][name] / best_rival(row) for row in rows], trial.CAP)
        mean = np.exp(np.log(worst).mean())
        cells = f"{mean:.2f} | {np.quantile(worst, 0.95):.2f} | {(table[:, place] > 1.5).sum()}"
        yield f"| {name} | {cells} | {100 * (table[:, place] < 1).mean():.0f} % |"


def wrong_alpha_table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the geometric mean of the ratio where α is a factor away from the tuned one, or at the grid's edge."""
    learners = [name for name in rows[0]["measure"] if name != trial.CHOOSERS[1]]
    yield "| α wrong by | " + " | ".join(learners) + " |"
    yield "|---|" + "---|" * len(learners)
    for steps in FACTORS:
        cells = " | ".join(f"{np.exp(np.log(wrong_alpha(rows, name, steps)).mean()):.2f}" for name in learners)
        yield f"| {10 ** (0.3 * steps):.2g} | {cells} |"


def wrong_alpha(rows: list[dict[str, Any]], name: str, steps: int) -> Array:
    """Return the ratios on all tasks, (tasks,); settings are ordered by falling α, then by the other parameter."""
    found = []
    for row in rows:
        means, chosen = np.array(row["every_setting"][name]), row["setting"][name]
        others = 1 if len(means) == len(trial.ALPHAS) or name == "TD" else len(means) // len(trial.ALPHAS)
        column = means[chosen % others :: others]
        shift = steps * len(column) // len(trial.ALPHAS)
        found.append(column[np.clip(chosen // others - shift, 0, len(column) - 1)] / best_rival(row))
    return np.minimum(found, trial.CAP)


def write_csv(rows: list[dict[str, Any]], path: Path) -> None:
    """Write the ratio of every learner on every task, by group and name."""
    rows = sorted(rows, key=lambda row: (row["group"], row["task"]))
    learners = list(rows[0]["measure"])
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["group", "task", "td_stable", "start", *learners])
        for row, ratios in zip(rows, trial.ratios(rows, learners), strict=True):
            start = row["start"] / best_rival(row)
            writer.writerow(
                [row["group"], row["task"], row["td_stable"], f"{start:.4g}", *(f"{ratio:.4g}" for ratio in ratios)]
            )


def main(words: list[str] | None = None) -> None:
    """Print all tables; write the ratios of every task if a file is named."""
    parser = parser_of(__doc__)
    parser.add_argument("rows", type=Path, help="the .rows file of a trial")
    parser.add_argument("--csv", type=Path, help="where to write the ratio of every learner on every task")
    chosen = parser.parse_args(words)
    rows = trial.read_rows(chosen.rows)
    tables = trial.tables(rows)
    for table in (regime_table(tables), group_table(tables), tail_table(rows), wrong_alpha_table(rows)):
        print("\n".join(table), end="\n\n")
    for name in trial.CHOOSERS:
        low, high = tables["all tasks"][name]["percentile_95_interval"]
        print(f"{name}: interval of the 95th percentile [{low:.2f}, {high:.2f}]")
    if chosen.csv:
        write_csv(rows, chosen.csv)


if __name__ == "__main__":
    main()
