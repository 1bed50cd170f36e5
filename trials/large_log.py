"""A log of ten million rows: memory, seconds, the share of reading, and whether the interval holds the truth.

    python -m trials.large_log

The file is made first, by a process of its own, so that the memory printed is that of the evaluation.
"""

import resource
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import extra
from gradient_dd.evaluation import evaluate_log
from tests.evaluation.known_logs import realisable
from tools.programs import parser_of

PART = 1_000_000  # rows written at a time
TASK = realisable(1)  # eight states, a feature for each


def write(file: Path, rows: int) -> None:
    """Write a log in Parquet: eight features, reward, discount and ratio in single precision; no next observation."""
    with extra("parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq

    row, _, reward, discount, rho, _ = TASK.transitions
    stream, X, writer = OutcomeSampler(TASK, seed=0), TASK.row_features.toarray(), None
    for begin in range(0, rows, PART):
        outcome = stream.take(min(PART, rows - begin))
        x = X[row[outcome]].astype(np.float32)
        columns = {f"x{i}": x[:, i] for i in range(x.shape[1])}
        columns |= {"reward": reward[outcome], "discount": discount[outcome], "rho": rho[outcome]}
        table = pa.table({name: np.asarray(values, np.float32) for name, values in columns.items()})
        writer = writer or pq.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def main(words: list[str] | None = None) -> None:
    """Make the file and evaluate it."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the log")
    rows = parser.parse_args(words).rows
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.parquet"
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            pool.submit(write, file, rows).result()
        size = file.stat().st_size / 1e6
        found = evaluate_log(file)
    truth = float(TASK.start[~TASK.terminal] @ TASK.true_values)
    low, high = found.start_interval
    bounds, values = found.predict_interval(TASK.features), TASK.true_values
    inside = ((bounds.low <= values) & (values <= bounds.high)).sum()
    seconds, reading = found.seconds["all"], found.seconds["reading"]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{found.rows:,} transitions, 8 features, a file of {size:.0f} MB")
    print(f"{seconds:.1f} s in all, {reading:.1f} s of them reading ({reading / seconds:.0%})")
    print(f"{memory:.2f} GB of memory at most")
    print(f"value {found.start_value:.4f}, from {low:.4f} to {high:.4f}; truth {truth:.4f}; {inside} of 8 states in")
    print(f"chosen {found.chosen}; verdict: {found.verdict.word}")


if __name__ == "__main__":
    main()
