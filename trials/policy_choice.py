"""Measure the regret of following the recommendation, the largest estimate, or the logging policy.

    python -m trials.policy_choice [--first 7000] [--logs 200]

Each log has six policies; the types are those of trials.logs, in turn. Regret is the difference between the values of
the best policy and of the followed policy, in % of the range of the six values. "Tied" is right if the values of the
named policies differ by less than 5 % of the best value, or if the best policy is among them. "Worse" counts
recommendations of a policy that is truly worse than the logging policy. The rules were designed on logs numbered below
500; logs from 7,000 on were fixed before the evaluation was run on them.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.evaluation import PolicyComparison, compare
from tools.programs import parser_of, print_table
from trials.logs import KINDS, KnownLog

USED = (
    *("tabular", "named actions, no propensities", "queue", "cart pole", "mountain car", "recommender"),
    *("aliased features", "continuing", "50 short episodes", "bandit"),
)
CLOSE = 0.05


class Outcome(NamedTuple):
    """The result of following one comparison.

    regret    of following the recommendation, of the largest estimate, and of keeping the logging policy
    held      whether the intervals of all differences contain the truth simultaneously, for usable policies
    single    whether one policy was recommended, and right  whether it is the best
    tied      whether several were not significantly different, and agreed  whether this is right
    worse     whether the followed policy is worse than the logging policy
    """

    regret: tuple[float, float, float]
    held: bool
    single: bool
    right: bool
    tied: bool
    agreed: bool
    worse: bool


def outcome(known: KnownLog, found: PolicyComparison) -> Outcome:
    """Return the result of following a comparison."""
    worth = {name: known.worth(name) for name in known.policies}
    best, low = max(worth, key=lambda name: worth[name]), min(worth.values())
    spread = worth[best] - low
    largest = max(found.table, key=lambda one: one["value"])["name"]
    followed = (found.deploy, largest, "today")
    regret = tuple((worth[best] - worth[name]) / spread for name in followed)
    held = all(
        one["difference_low"] <= worth[one["name"]] - worth["today"] <= one["difference_high"]
        for one in found.table
        if one["verdict"] != "not"
    )
    ties = found.ties
    near = [abs(worth[name] - worth[best]) <= CLOSE * abs(worth[best]) for name in ties]
    single = len(ties) == 1 and found.deploy != "today"
    agreed = best in ties or all(near)
    right, worse = found.deploy == best, worth[found.deploy] < worth["today"]
    return Outcome((regret[0], regret[1], regret[2]), held, single, right, len(ties) > 1, agreed, worse)


def main(words: list[str] | None = None) -> None:
    """Print regrets, and how often recommendations are right."""
    parser = parser_of(__doc__)
    parser.add_argument("--logs", type=int, default=200, help="number of logs")
    parser.add_argument("--first", type=int, default=7000, help="the number of the first log")
    chosen = parser.parse_args(words)
    found: dict[str, list[Outcome]] = {name: [] for name in USED}
    for k in range(chosen.first, chosen.first + chosen.logs):
        name = USED[k % len(USED)]
        known = KINDS[name](2000 + k)
        targets = {key: None if key == "today" else policy for key, policy in known.policies.items()}
        made = compare(known.log, targets, discount=known.discount, features=known.features, seed=k)
        found[name].append(outcome(known, made))
    rows = [line(name, several) for name, several in found.items() if several]
    rows.append(line("all", [one for several in found.values() for one in several]))
    head = (
        "type",
        "sentence",
        "largest",
        "not changing",
        "differences contain truth",
        "single, right",
        "tied, right",
        "worse",
    )
    print_table(head, rows)


def line(name: str, several: list[Outcome]) -> tuple[str, ...]:
    """Return one line of the table."""
    regrets = 100 * np.array([one.regret for one in several]).mean(axis=0)
    singles, ties = [one for one in several if one.single], [one for one in several if one.tied]
    held = np.mean([one.held for one in several])
    counts = f"{sum(one.right for one in singles)}/{len(singles)}", f"{sum(one.agreed for one in ties)}/{len(ties)}"
    return (
        name,
        *(f"{regret:.1f} %" for regret in regrets),
        f"{held:.2f}",
        *counts,
        str(sum(one.worse for one in several)),
    )


if __name__ == "__main__":
    main()
