"""Compare the lane engine with hand-written C and a plain NumPy loop, on one core.

    python -m benchmarks.engine [--task random_walk] [--json]

C is compiled on the spot if there is a C compiler. "/ C" is the engine's time relative to C's, "NumPy /" NumPy's time
relative to the engine's. Times are nanoseconds of CPU time per update of one lane, the best of several interleaved
calls; compare them only as ratios within one run. The time is that of the kernel on a given trajectory, including
errors after every episode (or 100 steps). Compiling and making the trajectory, which all lanes of all learners share,
are measured separately.
"""

import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from benchmarks.baselines import LEARNERS_IN_C, c_call, library, plain_call
from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon, Segments
from gradient_dd.engine.kernels.compiler import subnormals_flushed, vector_bits
from gradient_dd.engine.lanes import Block, LaneRun
from gradient_dd.engine.schedules import Schedule, tapered
from gradient_dd.engine.trajectories import OutcomeSampler, ends_in
from gradient_dd.learners import LEARNERS
from gradient_dd.studies.study import processor
from gradient_dd.tasks import Task
from tools.programs import parser_of, print_table

LANES = 64
STEPS = 2**17
REPEATS = 15
PLAIN_STEPS = 3_000
TAPERED = tapered(1000)
IN_C = {"C": True, "C, same bits": False}  # whether the compiler may fuse multiply and add; the engine does not

# task, largest alpha
CASES: tuple[tuple[Task, float], ...] = (
    (tasks.random_walk(40), 0.3),
    (tasks.boyan_chain(100), 0.3),
    (tasks.baird(20), 0.002),
)


def alphas(top: float) -> np.ndarray:
    """Return the step sizes of the lanes."""
    return np.geomspace(top / 1000, top, LANES)


def horizon_of(task: Task) -> Horizon:
    """Return a horizon longer than the timed piece, with the paper's points."""
    return Horizon(episodes=10**9) if task.episodic else Horizon(steps=10**9, every=100)


def piece(
    task: Task, steps: int = STEPS, schedule: Schedule = TAPERED, sampling: str = "trajectory"
) -> tuple[np.ndarray, Segments]:
    """Return a piece of a trajectory and its segments."""
    column = OutcomeSampler(task, sampling=sampling).take(steps + 1)
    return column, horizon_of(task).cut(ends_in(column[:-1], task.transitions.ends), steps, 0, 0, schedule)


def fresh_block(task: Task, name: str, top: float) -> Block:
    """Return a block of lanes of one learner."""
    settings = [LEARNERS[name].setting(alpha=float(alpha)) for alpha in alphas(top)]
    return LaneRun(task, settings, horizon_of(task), TAPERED).blocks[0]


def whole_call(block: Block, column: np.ndarray, segments: Segments) -> Callable[[], None]:
    """Return a call that advances all lanes of a block, including diverged lanes, as the baselines do."""

    def call() -> None:
        with subnormals_flushed():
            block.kernel(column, segments, block.table, block.error, block.lanes, block.errors)

    return call


def best_times(
    calls: dict[str, Callable[[], Any]], repeats: int, clock: Callable[[], float] = thread_time
) -> dict[str, float]:
    """Return the shortest time of each call; the calls are interleaved, so that noise affects all of them.

    It is CPU time of this thread by default, so other work on the machine does not count.
    """
    best = dict.fromkeys(calls, np.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            begin = clock()
            call()
            best[name] = min(best[name], clock() - begin)
    return best


def measure_case(task: Task, top: float, name: str) -> Iterator[dict[str, Any]]:
    """Yield a row for the engine and one for each baseline."""
    column, segments = piece(task)
    begin = perf_counter()
    block = fresh_block(task, name, top)
    compile_seconds = perf_counter() - begin
    silent = segments._replace(point=np.full_like(segments.point, -1), last=np.zeros_like(segments.last))
    calls: dict[str, Callable[[], Any]] = {
        "engine": whole_call(block, column, segments),
        "engine, no errors": whole_call(fresh_block(task, name, top), column, silent),
    }
    one_hot = bool(task.sparse_features.nnz == task.n_states)
    for kind, fused_multiply_add in IN_C.items():
        code = library(LANES, one_hot, fused_multiply_add=fused_multiply_add) if name in LEARNERS_IN_C else None
        if code is not None:
            calls[kind] = c_call(code, fresh_block(task, name, top), column, segments)
    best = best_times(calls, REPEATS)
    per_update = {kind: seconds / (STEPS * LANES) * 1e9 for kind, seconds in best.items()}
    row = {"learner": name, "task": str(task), "lanes": LANES}
    share = 1 - per_update.pop("engine, no errors") / per_update["engine"]
    engine = {"ns_per_update": per_update.pop("engine"), "error_share": share, "compile_seconds": compile_seconds}
    yield {"kind": "engine", **row, **engine}
    for kind, ns in per_update.items():
        yield {"kind": kind, **row, "ns_per_update": ns}
    if name in LEARNERS_IN_C:
        seconds = best_times({"": plain_call(task, name, column[:PLAIN_STEPS], top / 30)}, 3)[""]
        yield {"kind": "numpy", **row, "lanes": 1, "ns_per_update": seconds / PLAIN_STEPS * 1e9}


def sampling_row(task: Task) -> dict[str, Any]:
    """Return the time of one step of a trajectory, shared by all lanes."""
    stream = OutcomeSampler(task)
    seconds = best_times({"": lambda: stream.take(STEPS)}, REPEATS)[""]
    return {"kind": "sampling", "learner": "", "task": str(task), "lanes": 0, "ns_per_step": seconds / STEPS * 1e9}


def run_bench(on_progress: Callable[[str], None], only: str | None = None) -> dict[str, Any]:
    """Measure everything on one core and return it; `on_progress` gets the name of each measurement."""
    with on_one_core():
        rows: list[dict[str, Any]] = []
        for task, top in CASES:
            if only not in (None, task.name):
                continue
            rows.append(sampling_row(task))
            for name in (name for name, rule in LEARNERS.items() if rule.is_plain):
                on_progress(f"{task}: {name}")
                rows.extend(measure_case(task, top, name))
    return {
        "engine": [row for row in rows if row["kind"] == "engine"],
        "baselines": [row for row in rows if row["kind"] not in ("engine", "sampling")],
        "sampling": [row for row in rows if row["kind"] == "sampling"],
        "machine": machine(),
    }


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this process on one core for a while, if the system supports it."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    if before:
        os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        if before:
            os.sched_setaffinity(0, before)


def machine() -> dict[str, Any]:
    """Return a description of the machine."""
    import numba

    return {
        "cpu": processor(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": np.__version__,
        "vector_bits": vector_bits(),
        "c_compiler": library(LANES, True) is not None,
    }


HEAD = ("task", "learner", "ns", "C ns", "/ C", "/ C same bits", "NumPy /", "errors", "compile")


def bench_table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the printed table: times, and how much slower each baseline is."""
    times = {(row["task"], row["learner"], row["kind"]): row["ns_per_update"] for row in result["baselines"]}
    rows: list[tuple[str, ...]] = []
    for row in result["engine"]:
        task, learner, ours = row["task"], row["learner"], row["ns_per_update"]
        c, same, plain = (times.get((task, learner, kind)) for kind in (*IN_C, "numpy"))
        against_c = (f"{c:.3f}", f"{ours / c:.2f}") if c else ("", "")
        others = f"{ours / same:.2f}" if same else "", f"{plain / ours:,.0f}" if plain else ""
        parts = f"{row['error_share']:.0%}", f"{row['compile_seconds']:.1f} s"
        rows.append((task, learner, f"{ours:.3f}", *against_c, *others, *parts))
    return rows


def print_result(result: dict[str, Any]) -> None:
    """Print the table, the time of a step of each trajectory, and a description of the machine."""
    print_table(HEAD, bench_table(result))
    for row in result["sampling"]:
        print(f"A step of the trajectory of {row['task']}, shared by all lanes: {row['ns_per_step']:.1f} ns.")
    print(", ".join(f"{name} {value}" for name, value in result["machine"].items()))


def print_progress(what: str) -> None:
    """Print the next measurement to stderr."""
    print(f"measuring {what}", file=sys.stderr, flush=True)


def main(words: list[str] | None = None) -> None:
    """Measure, and print the table or JSON."""
    parser = parser_of(__doc__)
    parser.add_argument("--task", choices=[task.name for task, _ in CASES], help="only this task")
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")
    chosen = parser.parse_args(words)
    result = run_bench(print_progress, chosen.task)
    print(json.dumps(result, indent=2)) if chosen.json else print_result(result)


if __name__ == "__main__":
    main()
