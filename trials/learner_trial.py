"""Run the whole trial of AutoLearner against tuned rivals (docs/evidence/auto-learner.md).

    python -m trials.learner_trial [--reduced] [--steps N] [--done] [--workers N] [--out learner_trial]

The author of the task types had not seen the learner. The designer of the learner had not seen the types before a first
trial on other seeds, after which the learner gave each direction its own share. There are 60 small tasks
(6 of each of 10 types, with 20,000, 2,000 and 50,000 steps in turn), 12 greedy targets, 3 large tasks and one task with
300,000 steps. Rivals are tuned on 2 runs and tested on 3 others. The same command resumes a stopped trial. --reduced
runs 18 tasks of nine other types with 20,000 steps each.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.programs import parser_of
from trials import learner_tasks, untuned_rivals
from trials.auto_learner import cases, trial

FIRST, REDUCED = 95_000_000, 61_000_000  # the first seeds of the two trials
EACH, GREEDY = 6, 12
GOALS = {  # for the ratio to the best tuned rival: whether rivals are averaged, learner, statistic, bound
    "nothing tuned": (False, trial.AUTO[0], "geometric_mean", 0.95),
    "nothing tuned, rivals averaged": (True, trial.AUTO[0], "geometric_mean", 1.12),
    "nothing tuned, 95th percentile": (False, trial.AUTO[0], "percentile_95", 1.7),
    "alpha tuned": (False, trial.AUTO[2], "geometric_mean", 0.88),
    "alpha tuned, rivals averaged": (True, trial.AUTO[2], "geometric_mean", 1.03),
}
WORST_END = 3.0  # of the initial error: no run may end above it
WORST_PEAK = 1.5  # of the initial error: no run may exceed it after its first 1,000 steps


def whole() -> list[cases.Case]:
    """Return the tasks of the trial."""
    return [
        *learner_tasks.small_cases(FIRST, EACH),
        *learner_tasks.greedy_cases(FIRST, GREEDY),
        *learner_tasks.large_cases(FIRST),
        learner_tasks.long_case(FIRST),
    ]


def facts_of(rows: list[trial.Row]) -> dict[str, Any]:
    """Return all numbers quoted in the documentation."""
    ends, peaks = ([error / row["start"] for row in rows for error in row[part]] for part in ("ends", "peaks"))
    free, _, tuned = trial.AUTO
    fixed, place, ratio = trial.best_fixed(rows)
    return {
        "rivals as they are": trial.tables(rows),
        "rivals averaged": trial.tables(rows, averaged=True),
        "what averaging alone gives the best rival": trial.averaging(rows),
        "nothing tuned over LSTD": trial.pair(rows, free, trial.LSTD),
        "nothing tuned over LSTD with its ridge tuned": trial.pair(rows, free, trial.LSTD_TUNED),
        "nothing tuned over alpha tuned": trial.pair(rows, free, tuned),
        "nothing tuned over doing nothing": trial.pair(rows, free, trial.STILL),
        "best single setting": {"rule": fixed, "place": place, "ratio to the best tuned rival": ratio},
        "ends": {
            "runs": len(ends),
            "above 1": sum(e > 1 for e in ends),
            "above 3": sum(e > 3 for e in ends),
            "worst": max(ends),
        },
        "peaks": {
            "runs": len(peaks),
            "above 1.5": sum(p > 1.5 for p in peaks),
            "worst": max(peaks),
        },
    }


def goal_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each goal: the number, its bound, and whether it was reached."""
    for name, (averaged, learner, key, bound) in GOALS.items():
        value = facts["rivals averaged" if averaged else "rivals as they are"]["all tasks"][learner][key]
        yield goal_line(name, value, bound)
    yield goal_line("largest final over initial error", facts["ends"]["worst"], WORST_END)
    yield goal_line("largest over initial error within a run", facts["peaks"]["worst"], WORST_PEAK)


def goal_line(name: str, value: float, bound: float) -> str:
    """Return whether a number is below a bound, in words."""
    return f"  {name:40} {value:6.3f}, goal {bound:.2f}: {'reached' if value < bound else 'not reached'}"


def main(words: list[str] | None = None) -> None:
    """Run the trial and print the results."""
    parser = parser_of(__doc__)
    parser.add_argument("--out", type=Path, default=Path("learner_trial"))
    parser.add_argument("--reduced", action="store_true", help="run 18 tasks of nine other types")
    parser.add_argument("--steps", type=int, help="steps of every task, in place of its own number")
    parser.add_argument("--done", action="store_true", help="show the finished tasks without running any")
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args(words)
    some = [*cases.small_cases(2, REDUCED)] if chosen.reduced else whole()
    rules, file = trial.TrialRules(steps=chosen.steps), chosen.out.with_suffix(".rows")

    def keep(row: trial.Row) -> None:
        trial.keep_row(file, row)
        print(row["task"], flush=True)

    known = trial.read_rows(file)
    rows = (
        known
        if chosen.done
        else trial.run_trial(some, rules, known, keep, chosen.workers, extra=untuned_rivals.mean_errors)
    )
    facts = facts_of(rows)
    chosen.out.with_suffix(".json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    for title in ("rivals as they are", "rivals averaged"):
        print(f"\n=== Ratio to the best of the tuned rivals, {title}")
        print("\n".join(trial.lines(facts[title])))
    print("\nGoals", *goal_lines(facts), sep="\n")
    for title in list(facts)[2:]:
        print(title, json.dumps(facts[title]))


if __name__ == "__main__":
    main()
