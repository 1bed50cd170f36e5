"""Measure what the standings predict: Kendall's τ between rankings, with intervals over problems.

    python -m trials.predictivity [--copy copy.jsonl] [--double double.jsonl]

The rankings within the shipped standings need no file. The other rankings come from the work files of
`trials.make_standings --copy` and `--double`. If these have fewer learners or problems, only those are compared.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from gradient_dd.arrays import Array
from gradient_dd.ranking.standing import ranks_of
from gradient_dd.ranking.standings import Entries, read_standings
from gradient_dd.ranking.suites import SUITES
from tools.programs import parser_of, print_table
from trials.make_standings import read_work

DRAWS = 2_000
TAILS = (0.025, 0.975)
RANDOM = [one.name for one in SUITES["random"]]
CLASSIC = [one.name for one in SUITES["classic"]]


def ranks(entries: Entries, learners: Sequence[str], problems: Sequence[str]) -> Array:
    """Return the rank of each learner on each problem, (problems, learners)."""
    return ranks_of(np.array([[entries[name, one].errors[0].mean() for name in learners] for one in problems], float))


def tau(left: Array, right: Array, paired: bool) -> str:
    """Return Kendall's τ between the mean ranks of two tables, with an interval over problems."""
    rng, found = np.random.default_rng(0), []
    for _ in range(DRAWS):
        first = rng.integers(len(left), size=len(left))
        second = first if paired else rng.integers(len(right), size=len(right))
        found.append(kendalltau(left[first].mean(axis=0), right[second].mean(axis=0)).statistic)
    low, high = np.quantile(found, TAILS)
    return f"{kendalltau(left.mean(axis=0), right.mean(axis=0)).statistic:.2f} [{low:.2f}, {high:.2f}]"


def halves(table: Array) -> str:
    """Return the mean of τ between random halves of the problems, with its spread."""
    rng, found = np.random.default_rng(0), []
    for _ in range(DRAWS // 10):
        order = rng.permutation(len(table))
        first, second = table[order[: len(table) // 2]], table[order[len(table) // 2 :]]
        found.append(kendalltau(first.mean(axis=0), second.mean(axis=0)).statistic)
    low, high = np.quantile(found, TAILS)
    return f"{np.mean(found):.2f} [{low:.2f}, {high:.2f}]"


def main(words: list[str] | None = None) -> None:
    """Print every τ."""
    parser = parser_of(__doc__)
    parser.add_argument("--copy", type=Path, help="the work file of a copy of the random suite")
    parser.add_argument("--double", type=Path, help="the work file of a search with twice the budget")
    chosen, full = parser.parse_args(words), read_standings()
    learners = list(dict.fromkeys(name for name, _ in full))
    table = {name: ranks(full, learners, some) for name, some in (("random", RANDOM), ("classic", CLASSIC))}
    rows = [("classic, random", len(learners), tau(table["classic"], table["random"], paired=False))]
    rows += [(f"halves of {name}", len(learners), halves(one)) for name, one in table.items()]
    files = ("random, its copy", chosen.copy, False), ("budget, twice the budget", chosen.double, True)
    for name, file, paired in files:
        if file is None:
            continue
        other = read_work(file)
        both = [one for one in learners if (one, next(iter(other))[1]) in other]
        problems = [
            one for one in dict.fromkeys(problem for _, problem in other) if all((name, one) in other for name in both)
        ]
        ours = problems if paired else RANDOM
        found = tau(ranks(full, both, ours), ranks(other, both, problems), paired)
        rows.append((f"{name} ({len(problems)} problems)", len(both), found))
    print_table(("between", "learners", "Kendall's τ [95 %]"), [(one, str(count), text) for one, count, text in rows])


if __name__ == "__main__":
    main()
