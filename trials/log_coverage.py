"""Measure how often intervals contain the truth, on logs of tasks with known values.

python -m trials.log_coverage
"""

import numpy as np

from gradient_dd.evaluation import evaluate_log
from gradient_dd.tasks import random_walk
from tests.evaluation.known_logs import log_of, realisable
from tools.programs import parser_of


def trial(logs: int, rows: int) -> dict[str, float]:
    """Return the share of intervals that contain the truth: for the mean initial value, and for every state."""
    starts, states, trusted = [], [], []
    for seed in range(logs):
        task = random_walk(10) if seed % 4 == 0 else realisable(seed)
        found = evaluate_log(log_of(task, rows, seed), seed=seed)
        start = task.start[~task.terminal] @ task.true_values
        low, high = found.start_interval
        starts.append(low <= start <= high)
        low, high = found.predict_interval(task.features)
        states.append(float(np.mean((low <= task.true_values) & (task.true_values <= high))))
        trusted.append(found.verdict.word == "trust")
    names = {"first value": starts, "value of a state": states, "trusted": trusted}
    return {name: float(np.mean(one)) for name, one in names.items()}


def main(words: list[str] | None = None) -> None:
    """Print the shares."""
    parser = parser_of(__doc__)
    parser.add_argument("--logs", type=int, default=200, help="number of logs")
    parser.add_argument("--rows", type=int, default=3000, help="rows of a log")
    chosen = parser.parse_args(words)
    logs, rows = chosen.logs, chosen.rows
    print(f"{logs} logs of {rows:,} rows, 95 % intervals")
    for name, share in trial(logs, rows).items():
        print(f"  {name:18}{share:.1%}")


if __name__ == "__main__":
    main()
