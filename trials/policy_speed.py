"""Measure the time and the memory of evaluations, each in its own process.

    python -m trials.policy_speed                        all parts
    python -m trials.policy_speed --part "50 policies" --part taxi

The program prints processor seconds, wall seconds and the peak memory of each process. BLAS has one thread, as in the
command line. "digits" needs scikit-learn, and "folder, two workers" needs the extra `cluster`.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation import collect, compare, evaluate_log
from gradient_dd.stream.question import Question
from tools.programs import parser_of, print_table

STEPS = 20  # steps of an episode on average
PART = 500_000  # rows written at a time
GOALS = {  # wall seconds and GB on an idle machine
    "6 policies": "1 s",
    "50 policies": "2 s",
    "500 policies": "8 s",
    "1,000 policies": "",
    "999 actions": "",
    "1,400 features": "",
    "3,000 questions": "",
    "300 features": "5 s",
    "digits": "5 s",
    "taxi": "5 s",
    "long log": "20 s, 1 GB",
    "long log, 6 policies": "",
    "folder of 20 files": "20 s, 1 GB",
    "folder, two workers": "",
}


def rows_of(rng: np.random.Generator, rows: int, features: int, actions: int = 3, first: int = 0) -> dict[str, Array]:
    """Return rows of a log: features, and a reward that is linear in one feature and in the action."""
    x = rng.standard_normal((rows, features))
    x[:, -1] = 1.0
    action = rng.integers(actions, size=len(x))
    paid = 0.1 * x[:, 0] + 2 * action / (actions - 1) - 1 + rng.standard_normal(len(x))
    columns = {f"x{i}": x[:, i] for i in range(features)}
    columns |= {"action": action, "reward": paid, "propensity": np.full(len(x), 1 / actions)}
    last = rng.random(rows) < 1 / STEPS
    last[-1] = True
    return columns | {"terminated": last, "episode": first + np.cumsum(last) - last}


def policies(count: int, actions: int = 3) -> dict[str, Any]:
    """Return policies with different preferences for the last action."""

    def policy(slope: float) -> Any:
        def probabilities(seen: Array) -> Array:
            scores = np.clip(slope + 0.1 * seen[:, :1], -3, 3) * np.linspace(-1, 1, actions)
            scores = np.exp(scores)
            return np.asarray(scores / scores.sum(axis=1, keepdims=True))

        return probabilities

    return {f"slope {slope:.4g}": policy(slope) for slope in np.linspace(-0.5, 0.5, count)}


def write(folder: Path, rows: int, features: int, files: int) -> None:
    """Write a log as Parquet files in single precision; every file ends with an episode."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, each = np.random.default_rng(0), -(-rows // files)
    for k in range(files):
        writer = None
        for begin in range(0, each, PART):
            columns = rows_of(rng, min(PART, each - begin), features, first=k * each + begin)
            columns = {name: one.astype(np.float32) if one.dtype == float else one for name, one in columns.items()}
            part = pa.table(columns)
            writer = writer or pq.ParquetWriter(folder / f"{k:03}.parquet", part.schema)
            writer.write_table(part)
        if writer:
            writer.close()


def comparison(count: int, rows: int = 20_000, features: int = 50, actions: int = 3) -> Any:
    """Return a comparison of policies on a log in memory."""
    log = rows_of(np.random.default_rng(0), rows, features, actions)
    return lambda: compare(log, policies(count, actions), discount=0.95, features="raw")


def questions(count: int) -> Any:
    """Return the answers of a log to many questions."""
    log = rows_of(np.random.default_rng(0), 5000, 20)
    asked = [Question(f"q{k}", "reward", 0.99 * k / count) for k in range(count)]
    return lambda: evaluate_log(log, questions=asked, features="raw")


def wide() -> Any:
    """Return the value of a policy on 30,000 rows of 300 dense features and two actions."""
    log = rows_of(np.random.default_rng(0), 30_000, 300, 2)
    return lambda: evaluate_log(log, target=next(iter(policies(1, 2).values())), discount=0.9)


def digits() -> Any:
    """Return the value of a policy on 1,258 digits of 64 pixels, shown to a uniform policy over ten classes."""
    from sklearn.datasets import load_digits

    rng, (x, label) = np.random.default_rng(0), load_digits(return_X_y=True)
    x, label, action = x[:1258], label[:1258], rng.integers(10, size=1258)
    log = {f"obs_{i}": x[:, i] for i in range(64)} | {"action": action, "reward": 1.0 * (action == label)}
    means = np.stack([x[label == k].mean(axis=0) for k in range(10)])

    def nearest(seen: Array) -> Array:
        distance = ((seen[:, None] - means) ** 2).sum(axis=2)
        return 0.05 / 10 + 0.95 * np.eye(10)[distance.argmin(axis=1)]

    return lambda: evaluate_log(log | {"propensity": np.full(1258, 0.1)}, target=nearest, discount=0.0)


def taxi() -> Any:
    """Return the value of a policy on 100,000 steps of Taxi, by table."""
    policy = np.full((500, 6), 1 / 6)
    log = collect("Taxi-v4", policy, 100_000, seed=0)
    target = np.tile([0.2, 0.2, 0.2, 0.2, 0.15, 0.05], (500, 1))
    return lambda: evaluate_log(log, target=target, discount=0.95, features="table")


def long_log(rows: int, files: int, count: int, **options: Any) -> Any:
    """Return a comparison on a long log in files, which another process writes."""

    def call() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            code = "from trials.policy_speed import write; from pathlib import Path; "
            code += f"write(Path({folder!r}), {rows}, 8, {files})"
            subprocess.run([sys.executable, "-c", code], check=True)
            log = place if files > 1 else place / "000.parquet"
            begin = process_time(), perf_counter()
            if options.get("dask") == "two":
                from distributed import LocalCluster

                with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
                    found = compare(log, policies(count), discount=0.95, dask=cluster.scheduler_address)
            else:
                found = compare(log, policies(count), discount=0.95, features="raw")
            return found, begin

    return call


def parts(rows: int) -> dict[str, Callable[[], Any]]:
    """Return, by name, functions that prepare a part and return the call to time."""
    return {
        "6 policies": lambda: comparison(6),
        "50 policies": lambda: comparison(50),
        "500 policies": lambda: comparison(500),
        "1,000 policies": lambda: comparison(1000),
        "999 actions": lambda: comparison(2, 20_000, 10, 999),
        "1,400 features": lambda: comparison(2, 20_000, 1400, 2),
        "3,000 questions": lambda: questions(3000),
        "300 features": wide,
        "digits": digits,
        "taxi": taxi,
        "long log": lambda: long_log(rows, 1, 1),
        "long log, 6 policies": lambda: long_log(rows, 1, 6),
        "folder of 20 files": lambda: long_log(rows, 20, 1),
        "folder, two workers": lambda: long_log(rows, 20, 1, dask="two"),
    }


def timed(name: str, rows: int) -> str:
    """Return the numbers of a part as a line, separated by tabs."""
    call = parts(rows)[name]()
    begin = process_time(), perf_counter()
    found = call()
    if isinstance(found, tuple):
        found, begin = found
    seconds = process_time() - begin[0], perf_counter() - begin[1]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    value = found.table[-1]["value"] if hasattr(found, "table") else found.start_value
    return "\t".join([name, *(f"{one:.1f}" for one in seconds), f"{memory:.2f}", f"{value!r}", GOALS[name]])


def main(words: list[str] | None = None) -> None:
    """Print the seconds."""
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the long log")
    parser.add_argument("--part", action="append", choices=list(GOALS), help="a part (default: all)")
    parser.add_argument("--here", action="store_true", help="time one part in this process")
    chosen = parser.parse_args(words)
    if chosen.here:
        print(timed(chosen.part[0], chosen.rows))
        return
    lines = []
    for name in chosen.part or GOALS:
        words = [sys.executable, "-m", "trials.policy_speed", "--here", "--part", name, "--rows", str(chosen.rows)]
        done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
        last = (done.stdout.strip("\n") or done.stderr.strip()).splitlines()[-1]
        lines.append(tuple(last.split("\t")) if done.returncode == 0 else (name, last, "", "", "", ""))
        print(*lines[-1], sep="  ", flush=True)
    print_table(("part", "processor s", "clock s", "GB", "value", "goal"), lines)


if __name__ == "__main__":
    main()
