"""The whole trial of the learner that chooses, as docs/shadows.md fixes it.

    python -m trials.shadows_trial [--suite quick] [--schedule tapered] [--done] [--out shadows_trial.json]

A second call goes on from the tasks that are done. `gradient-dd reproduce shadows` holds a reduced one on other tasks.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gradient_dd.engine.schedules import constant, tapered
from gradient_dd.experiments.shadows.cases import Case, diverging_cases, greedy_cases, random_cases, with_random_start
from gradient_dd.experiments.shadows.trial import (
    ALPHAS,
    STEPS,
    TrialRules,
    keep_row,
    lines,
    read_rows,
    run_trial,
    tables,
)
from gradient_dd.tasks import baird, boyan_chain, random_walk
from tools.programs import parser_of

FIRST = 81_000_000  # of the seeds of tasks and of Baird's initial weights, which nothing else uses
SUITES = ("whole", "greedy", "reduced", "quick")
QUICK: dict[str, Any] = {"alphas": ALPHAS[2::4], "steps": 2000, "tuned": 1, "shown": 1}


def paper_cases(first: int) -> Iterator[Case]:
    """Yield the paper's tasks, Baird's counterexample in both readings with random initial weights."""
    for n in (10, 20, 40):
        yield Case("paper", f"walk {n}", random_walk(n))
    yield Case("paper", "walk 20, linear", random_walk(20, features="linear"))
    for n in (20, 50, 100):
        yield Case("paper", f"Boyan {n}", boyan_chain(n))
    for n in (7, 20):
        for reading in ("standard", "paper"):
            for draw in range(3):
                task = with_random_start(baird(n, ratios=reading), first + draw)
                yield Case("Baird", f"Baird {n}, {reading} ratios, start {draw}", task)


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


def main(words: list[str] | None = None) -> None:
    """Run the trial, or a small one, and write what it saw."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--suite", choices=SUITES, default="whole", help="quick: four tasks, four step sizes, 2,000 steps"
    )
    parser.add_argument("--schedule", choices=("constant", "tapered"), default="constant")
    parser.add_argument("--done", action="store_true", help="run nothing; show the tasks that are done")
    parser.add_argument("--out", type=Path, default=Path("shadows_trial.json"))
    chosen = parser.parse_args(words)
    schedule = constant if chosen.schedule == "constant" else tapered(STEPS // 10, per="step")
    rules = TrialRules(schedule=schedule, **(QUICK if chosen.suite == "quick" else {}))
    file = chosen.out.with_suffix(".rows")  # one line for each task that is done: a second call runs the others
    known = read_rows(file)

    def keep(row: dict[str, Any]) -> None:
        keep_row(file, row)
        print(row["task"], flush=True)

    rows = known if chosen.done else run_trial(suite(chosen.suite), rules, known, keep)
    found = {"schedule": str(schedule), "steps": rules.steps, "rows": rows, "tables": tables(rows)}
    chosen.out.write_text(json.dumps(found, indent=1))
    print("\n".join(lines(found["tables"])))


if __name__ == "__main__":
    main()
