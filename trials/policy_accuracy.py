"""Measure the errors of estimated values of a target policy, and how often intervals contain the truth.

    python -m trials.policy_accuracy [--seeds 20] [--kind NAME ...]

headline   the blend of LSTD-Q and the doubly robust estimate, with its interval
LSTD-Q     its own interval
DR         the limited doubly robust estimate, with its own interval

Errors are root mean squares over seeds, in % of the truth, and so are half-widths. trials.logs has the types of logs.
The seeds from 7000 on were fixed before the evaluation was run on them.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.evaluation import evaluate_log
from gradient_dd.studies.intervals import Interval
from tools.programs import parser_of, print_table
from trials.logs import KINDS, KnownLog

WAYS = ("headline", "LSTD-Q", "DR")


class Answer(NamedTuple):
    """The estimates of one log, the headline first, and its verdict."""

    estimates: list[Interval]
    verdict: str
    seconds: float


def answer(known: KnownLog, seed: int) -> Answer:
    """Return the estimates of one log."""
    found = evaluate_log(known.log, target=known.target, discount=known.discount, features=known.features, seed=seed)
    headline = Interval(found.start_value, *found.start_interval)
    exact = found.parts["LSTD-Q"]
    return Answer([headline, exact, found.parts.get("doubly robust", exact)], found.verdict.word, found.seconds["all"])


def main(words: list[str] | None = None) -> None:
    """Print error, coverage, half-width and verdicts of every type."""
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="logs of each type")
    parser.add_argument("--first", type=int, default=7000, help="the first seed")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="a type of logs (default: all)")
    chosen = parser.parse_args(words)
    head = ("type", *(f"{way} %" for way in WAYS), *(f"{way} holds" for way in WAYS), "half %", "trust", "outside", "s")
    lines, covered, wrong = [], list[list[bool]](), 0
    for name in chosen.kind or KINDS:
        errors, inside, halves, trusted, outside, seconds = [], [], [], 0, 0, 0.0
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            known = KINDS[name](seed)
            found = answer(known, seed)
            size, each = abs(known.truth), found.estimates
            errors.append([(one.estimate - known.truth) / size for one in each])
            inside.append([bool(one.low <= known.truth <= one.high) for one in each])
            halves.append((each[0].high - each[0].low) / 2 / size)
            trusted += found.verdict == "trust"
            outside += found.verdict == "trust" and not inside[-1][0]
            seconds += found.seconds
        sizes = 100 * np.sqrt((np.array(errors) ** 2).mean(axis=0))
        cells = [*(f"{size:.1f}" for size in sizes), *(f"{share:.2f}" for share in np.array(inside).mean(axis=0))]
        cells += [f"{100 * np.mean(halves):.0f}", str(trusted), str(outside), f"{seconds / chosen.seeds:.1f}"]
        lines.append((name, *cells))
        covered += inside
        wrong += outside
        print(f"{name}: {' '.join(cells)}", flush=True)
    print_table(head, lines)
    for k, way in enumerate(WAYS):
        print(f"{way}: {np.mean([row[k] for row in covered]):.1%} of {len(covered)} intervals contain the truth")
    print(f"trusted, but the truth is outside the interval: {wrong}")


if __name__ == "__main__":
    main()
