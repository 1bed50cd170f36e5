"""How long a comparison takes: 6, 50 and 500 policies on 20,000 rows × 50 features, and 10 million rows × 8.

    python -m trials.policy_speed [--rows 10000000]

Seconds are those of the processor, the memory is the largest of the process so far.
"""

import resource
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation import compare
from tools.programs import parser_of, print_table

ACTIONS, STEPS = 3, 20  # actions, and steps of an episode in the mean
COUNTS = (6, 50, 500)
PART = 500_000  # rows written at a time


def rows_of(rng: np.random.Generator, rows: int, features: int, first: int = 0) -> dict[str, Array]:
    """Return rows of a log: features, a reward that is linear in one of them and in the action."""
    x = rng.standard_normal((rows, features))
    x[:, -1] = 1.0
    action = rng.integers(ACTIONS, size=len(x))
    paid = 0.1 * x[:, 0] + action - 1 + rng.standard_normal(len(x))
    columns = {f"x{i}": x[:, i] for i in range(features)}
    columns |= {"action": action, "reward": paid, "propensity": np.full(len(x), 1 / ACTIONS)}
    last = rng.random(rows) < 1 / STEPS
    return columns | {"terminated": last, "episode": first + np.cumsum(last) - last}


def policies(count: int) -> dict[str, Any]:
    """Return policies that prefer the last action more or less."""

    def policy(slope: float) -> Any:
        def probabilities(seen: Array) -> Array:
            scores = np.exp(np.clip(slope + 0.1 * seen[:, :1], -3, 3) * (np.arange(ACTIONS) - 1))
            return np.asarray(scores / scores.sum(axis=1, keepdims=True))

        return probabilities

    return {f"slope {slope:.4g}": policy(slope) for slope in np.linspace(-0.5, 0.5, count)}


def write(file: Path, rows: int, features: int) -> None:
    """Write a log in Parquet, in single precision."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, writer = np.random.default_rng(0), None
    for begin in range(0, rows, PART):
        columns = rows_of(rng, min(PART, rows - begin), features, begin)
        columns = {name: one.astype(np.float32) if one.dtype == float else one for name, one in columns.items()}
        part = pa.table(columns)
        writer = writer or pq.ParquetWriter(file, part.schema)
        writer.write_table(part)
    if writer:
        writer.close()


def timed(log: Any, count: int) -> tuple[str, ...]:
    """Return how long a comparison took: processor, clock, memory."""
    begin, clock = process_time(), perf_counter()
    found = compare(log, {"today": None, **policies(count)}, discount=0.95, features="raw")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    numbers = f"{process_time() - begin:.1f}", f"{perf_counter() - clock:.1f}", f"{memory:.2f}"
    return f"{count}", f"{found.rows:,}", *numbers, found.sentence


def main(words: list[str] | None = None) -> None:
    """Print the seconds."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the long log; 0 leaves it out")
    chosen = parser.parse_args(words)
    log = rows_of(np.random.default_rng(0), 20_000, 50)
    lines = [timed(log, count) for count in COUNTS]
    if chosen.rows:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "log.parquet"
            write(file, chosen.rows, 8)
            lines.append(timed(file, COUNTS[0]))
    print_table(("policies", "rows", "processor s", "clock s", "GB", "sentence"), lines)


if __name__ == "__main__":
    main()
