"""Measure how the lane engine scales with features, lanes, the age of the weights and threads; and its memory.

python -m benchmarks.scaling
"""

import resource
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.engine import (
    CASES,
    LANES,
    REPEATS,
    STEPS,
    best_times,
    fresh_block,
    horizon_of,
    on_one_core,
    piece,
    whole_call,
)
from gradient_dd import tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import Block, LaneRun, run_lanes
from gradient_dd.engine.schedules import tapered
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.studies.sweep import run
from gradient_dd.tasks import Task
from tools.programs import parser_of, print_table

CHAINS = (100, 1_000, 10_000, 100_000)
SHUFFLES = (20, 50, 100, 200, 400, 800)
PAPER_LEARNERS = ("td", "gtd2", "tdc", "tdrc", "gradient_dd")
BLOCKS = (8, 16, 24, 32, 64)  # lanes
FEW = 4  # settings of each learner

Row = tuple[str, ...]


def paper_lanes(study: str, name: str) -> list[Setting]:
    """Return the paper's settings of a learner in a study."""
    return [setting for setting in STUDIES[study].settings() if setting.rule.name == name]


def by_size(sizes: tuple[Task, ...], top: float) -> Iterator[Row]:
    """Yield the time of an update of Gradient-DD on tasks of growing size, without errors."""
    first = None
    for task in sizes:
        column, segments = piece(task)
        silent = segments._replace(point=np.full_like(segments.point, -1), last=np.zeros_like(segments.last))
        block = fresh_block(task, "gradient_dd", top)
        with on_one_core():
            seconds = best_times({"": partial(block.advance, column, silent)}, REPEATS)[""]
        ns = seconds / (STEPS * LANES) * 1e9
        first = first or ns
        size = (block.lanes.w.nbytes + block.lanes.eta.nbytes) / 1e6
        yield str(task.n_features), f"{size:.1f} MB", f"{ns:.3f}", f"{ns / first:.2f}"


def block_of(task: Task, name: str, top: float, lanes: int) -> Block:
    """Return a block of a number of lanes of one learner."""
    settings = [LEARNERS[name].setting(alpha=float(alpha)) for alpha in np.geomspace(top / 1000, top, lanes)]
    return LaneRun(task, settings, horizon_of(task), tapered(1000)).blocks[0]


def by_lanes() -> Iterator[Row]:
    """Yield the time of an update in blocks of few lanes, relative to a block of 64."""
    for task, top in CASES:
        column, segments = piece(task)
        for name in PAPER_LEARNERS:
            calls: dict[str, Callable[[], Any]] = {
                str(n): whole_call(block_of(task, name, top, n), column, segments) for n in BLOCKS
            }
            with on_one_core():
                best = best_times(calls, REPEATS)
            each = [best[str(n)] / n for n in BLOCKS]
            yield str(task), name, *(f"{seconds / each[-1]:.2f}" for seconds in each)


def by_few_settings() -> Iterator[Row]:
    """Yield the time of an update of five learners with four settings each: in separate blocks, and in one block."""
    for task, top in CASES:
        column, segments = piece(task)
        alphas = np.geomspace(top / 1000, top, FEW)
        groups = [[LEARNERS[name].setting(alpha=float(alpha)) for alpha in alphas] for name in PAPER_LEARNERS]
        blocks = {
            "apart": [LaneRun(task, group, horizon_of(task), tapered(1000)).blocks[0] for group in groups],
            "joint": LaneRun(task, [one for group in groups for one in group], horizon_of(task), tapered(1000)).blocks,
            "64 lanes": [block_of(task, name, top, LANES) for name in PAPER_LEARNERS],
        }
        calls: dict[str, Callable[[], Any]] = {
            kind: partial(call_all, [whole_call(one, column, segments) for one in some])
            for kind, some in blocks.items()
        }
        with on_one_core():
            best = best_times(calls, REPEATS)
        ns = {kind: best[kind] / (STEPS * sum(len(one.settings) for one in blocks[kind])) * 1e9 for kind in best}
        yield (
            str(task),
            *(f"{one:.2f}" for one in ns.values()),
            *(f"{ns[kind] / ns['64 lanes']:.1f}" for kind in ("apart", "joint")),
        )


def call_all(calls: list[Callable[[], None]]) -> None:
    """Make some calls."""
    for call in calls:
        call()


def by_age() -> Iterator[Row]:
    """Yield the time of an update on the weights after a whole run, relative to initial weights (paper's settings)."""
    cases: list[tuple[Task, str]] = [
        (tasks.random_walk(10), "walk"),
        (tasks.random_walk(40), "walk"),
        (tasks.boyan_chain(20), "boyan"),
        (tasks.boyan_chain(100), "boyan"),
        (tasks.baird(7), "baird"),
        (tasks.baird(20), "baird"),
    ]
    for task, name_of_study in cases:
        study = STUDIES[name_of_study]
        column, segments = piece(task)
        worst, which, diverged = 0.0, "", 0
        for name in PAPER_LEARNERS:
            lanes = paper_lanes(name_of_study, name)
            aged = LaneRun(task, lanes, study.horizon, study.schedule)
            aged.advance()
            diverged += int((aged.results().diverged_step > 0).sum())
            times = {"old": np.inf, "new": np.inf}
            with on_one_core():
                for _ in range(REPEATS):
                    fresh = LaneRun(task, lanes, study.horizon, study.schedule)
                    for kind, timed in (("old", aged), ("new", fresh)):
                        begin = perf_counter()
                        for block in timed.blocks:
                            block.advance(column, segments)
                        times[kind] = min(times[kind], perf_counter() - begin)
            if times["old"] / times["new"] > worst:
                worst, which = times["old"] / times["new"], name
        yield str(task), which, f"{worst:.2f}", str(diverged)


def by_threads() -> Iterator[Row]:
    """Yield the time of four runs of the paper's walk settings, m = 40, 1,000 episodes, on one thread and on two."""
    task = tasks.random_walk(40)
    lanes = [setting for name in PAPER_LEARNERS for setting in paper_lanes("walk", name)]
    seconds = {}
    for workers in (1, 2):
        run_lanes(task, lanes, Horizon(episodes=2), runs=2, workers=workers)
        tries = []
        for _ in range(3):
            begin = perf_counter()
            run_lanes(task, lanes, Horizon(episodes=1000), schedule=tapered(1000), runs=4, workers=workers)
            tries.append(perf_counter() - begin)
        seconds[workers] = min(tries)
        yield str(workers), f"{seconds[workers]:.2f} s", f"{seconds[1] / seconds[workers]:.2f}"


def by_store() -> Iterator[Row]:
    """Yield the time of the walk study with two runs, by the engine alone and as a sweep with its store."""
    study = replace(STUDIES["walk"], runs=2)
    lanes, times = list(study.settings()), dict[str, float]()
    for attempt in range(3):
        begin = perf_counter()
        for task in study.built_tasks:
            run_lanes(task, lanes, study.horizon, schedule=study.schedule, runs=study.runs)
        times["engine"] = min(times.get("engine", np.inf), perf_counter() - begin)
        with TemporaryDirectory() as folder:
            begin = perf_counter()
            run(study, Path(folder) / f"{attempt}.db")
            times["sweep"] = min(times.get("sweep", np.inf), perf_counter() - begin)
    for name, seconds in times.items():
        yield name, f"{seconds:.2f} s", f"{seconds / times['engine']:.2f}"


def memory() -> Row:
    """Return the peak memory of this process after two whole runs of the walk at the paper's scale."""
    lanes = [setting for name in PAPER_LEARNERS for setting in paper_lanes("walk", name)]
    begin = perf_counter()
    results = run_lanes(tasks.random_walk(40), lanes, Horizon(episodes=20_000), schedule=tapered(1000), runs=2)
    seconds = perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    updates = int(results.steps.sum()) * len(lanes)
    return f"{len(lanes)}", f"{updates:.2e}", f"{seconds:.1f} s", f"{peak:.0f} MB"


def scaling_tables() -> Iterator[tuple[str, Row, list[Row]]]:
    """Yield each table: its title, its head, its rows."""
    yield "memory of two runs of the whole walk, m = 40", ("lanes", "updates", "time", "peak"), [memory()]
    yield "store, the walk study, two runs", ("", "time", "against the engine"), list(by_store())
    yield "threads, walk m = 40, four runs", ("threads", "time", "speed-up"), list(by_threads())
    head: Row = ("p", "weights", "ns", "against the first")
    chains = tuple(map(tasks.boyan_chain, CHAINS))
    yield "features, Boyan chain (neighbouring rows), Gradient-DD", head, list(by_size(chains, 0.3))
    shuffles = tuple(map(tasks.baird, SHUFFLES))
    yield "features, Baird (rows anywhere), Gradient-DD", head, list(by_size(shuffles, 1e-5))
    head = ("task", "learner", *(f"{n} lanes" for n in BLOCKS))
    yield "lanes of a block, time of an update over that in a block of 64", head, list(by_lanes())
    head = ("task", "apart ns", "joint ns", "64 lanes ns", "apart /", "joint /")
    yield "four settings of each of five learners, in blocks of their own and in one", head, list(by_few_settings())
    head = ("task", "slowest", "old / fresh weights", "diverged lanes")
    yield "age of the weights, the paper's settings", head, list(by_age())


def main(words: list[str] | None = None) -> None:
    """Print every table as soon as it is measured."""
    parser_of(__doc__).parse_args(words)
    for title, head, rows in scaling_tables():
        print(title)
        print_table(head, rows)
        print()


if __name__ == "__main__":
    main()
