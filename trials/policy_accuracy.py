"""How far off are values of a target policy, and how often do their intervals hold the truth? Four ways, side by side.

    python -m trials.policy_accuracy [--seeds 20] [--kind NAME ...]

default    LSTD-Q for the number, the union of its interval and the doubly robust one
LSTD-Q     its own interval
DR         the limited doubly robust estimate, its own interval
returns    self-normalised per-decision importance sampling over whole episodes

The error is the root mean square over seeds, in % of the truth. Kinds of logs are those of trials.logs.
"""

from typing import NamedTuple

import numpy as np
from gradient_dd.evaluation.action_log import ActionLog
from gradient_dd.evaluation.doubly_robust import follow, weighted_returns
from gradient_dd.evaluation.policy_values import Valuer

from gradient_dd.studies.intervals import Bounds
from tools.programs import parser_of, print_table
from trials.logs import KINDS, KnownLog

WAYS = ("default", "LSTD-Q", "DR", "returns")


class Answer(NamedTuple):
    """A number and its interval."""

    value: float
    bounds: Bounds


def answers(known: KnownLog, seed: int) -> list[Answer]:
    """Return what the four ways say of one log."""
    log = ActionLog(known.log, {"target": known.target}, discount=known.discount, features=known.features)
    valuer = Valuer(log, log.rows, seed=seed, refit=True)
    found = valuer.value(log.policies["target"])
    estimates = [Answer(one.value, Bounds(one.low, one.high)) for one in (found.action_values, found.robust)]
    ratios = valuer.ratios(log.policies["target"], log.policies["target"].choices(log.rows).here)
    assert ratios is not None
    followed = follow(log.rows, ratios, valuer.group, len(valuer.weights), limited=False)
    paid = weighted_returns(valuer.sums, followed, np.column_stack([np.ones(len(valuer.weights)), valuer.weights]))
    half = float(np.quantile(np.abs(paid[1:] - paid[0]), 0.95))
    returns = Answer(float(paid[0]), Bounds(paid[0] - half, paid[0] + half))
    return [Answer(found.value, Bounds(found.low, found.high)), *estimates, returns]


def main(words: list[str] | None = None) -> None:
    """Print error and coverage of every kind and way."""
    parser = parser_of(__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="logs of each kind")
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="a kind of logs; default all")
    chosen = parser.parse_args(words)
    covered = {way: list[bool]() for way in WAYS}
    head = ("kind", *(f"{way} %" for way in WAYS), *(f"{way} holds" for way in WAYS), "default / best")
    lines = []
    for name in chosen.kind or KINDS:
        errors, inside = [], []
        for seed in range(chosen.first, chosen.first + chosen.seeds):
            known = KINDS[name](seed)
            found = answers(known, seed)
            errors.append([(one.value - known.truth) / known.truth for one in found])
            inside.append([one.bounds.low <= known.truth <= one.bounds.high for one in found])
        sizes = 100 * np.sqrt((np.array(errors) ** 2).mean(axis=0))
        shares = np.array(inside).mean(axis=0)
        for k, way in enumerate(WAYS):
            covered[way] += [row[k] for row in inside]
        ratio = sizes[0] / sizes.min()
        cells = (*(f"{size:.1f}" for size in sizes), *(f"{share:.2f}" for share in shares), f"{ratio:.2f}")
        lines.append((name, *cells))
        print(f"{name}: {' '.join(cells)}", flush=True)
    print_table(head, lines)
    for way, held in covered.items():
        print(f"{way}: {np.mean(held):.1%} of {len(held)} intervals hold the truth")


if __name__ == "__main__":
    main()
