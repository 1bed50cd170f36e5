"""What "auto" of `evaluate` takes where there are too many features for LSTD, and how good it is.

    python -m trials.many_features

A torus of 24 × 24 or 32 × 32 states with 8 of 4,000 or 5,000 features each, discounts .95 and .9; logs of 15,000
rows, which are replayed, and of 60,000; five seeds of each. Printed for each kind of log: how often `AutoLearner` is
taken; the error of the values over that of what would be taken without it, and over that of the best candidate
(geometric means); how often the interval holds the value of the first state, and how often the verdict is "trust".
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.evaluation import evaluate_stream, transitions_of
from gradient_dd.evaluation.choice import AUTO
from gradient_dd.stream.features import Rows
from gradient_dd.tasks import Task
from tools.programs import parser_of
from trials.auto_learner.cases import torus

SHAPES = ((24, 4000, 0.95), (32, 5000, 0.9))
LENGTHS, SEEDS = (15_000, 60_000), range(93_000_000, 93_000_005)


class Answered(NamedTuple):
    """What came out for one log: what was taken, its error over two others, and the interval."""

    auto: bool
    over_rest: float
    over_best: float
    holds: bool
    trusted: bool


def answered(task: Task, rows: int, seed: int) -> Answered:
    """Return what "auto" makes of a log of a task without an end, whose states have equally many features."""
    row, next_row, reward, discount, rho, _ = task.transitions
    X = task.row_features[: len(task.true_values)].copy()
    X.sort_indices()
    indices, values = (one.reshape(X.shape[0], -1) for one in (X.indices.astype(np.int64), X.data))
    o = OutcomeSampler(task, seed=seed).take(rows)
    here, there = (Rows(indices[at[o]], values[at[o]]) for at in (row, next_row))
    found = evaluate_stream([transitions_of(here, reward[o], discount[o], there, rho[o])], task.n_features)
    errors = {one.words: task.rmsve(np.asarray(one.w, float)) for one in found.candidates}
    rest = next(one.words for one in found.candidates if one.words != AUTO)  # they are sorted by held-out error
    low, high = found.start_interval
    return Answered(
        found.chosen == AUTO,
        errors[found.chosen] / errors[rest],
        errors[found.chosen] / min(errors.values()),
        bool(low <= task.true_values[row[o[0]]] <= high),
        found.verdict.word == "trust",
    )


def main(words: list[str] | None = None) -> None:
    """Print a line for each kind of log."""
    parser_of(__doc__).parse_args(words)
    for side, features, discount in SHAPES:
        for rows in LENGTHS:
            made = [answered(torus(seed, side, features, discount), rows, seed) for seed in SEEDS]
            over = [np.exp(np.mean(np.log([getattr(one, name) for one in made]))) for name in Answered._fields[1:3]]
            taken, held, trusted = (sum(getattr(one, name) for one in made) for name in ("auto", "holds", "trusted"))
            print(
                f"{features} features, discount {discount}, {rows} rows: taken {taken} of {len(made)}, error over what "
                f"would be taken {over[0]:.2f}, over the best {over[1]:.2f}, interval holds {held}, trusted {trusted}",
                flush=True,
            )


if __name__ == "__main__":
    main()
