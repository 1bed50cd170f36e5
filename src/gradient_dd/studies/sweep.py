"""Sweep: study -> units -> executor -> store. Only what the store lacks is run.

A unit is (task, run): the missing settings of a task on the trajectory of a run, committed whole. A study with more
than 8,192 settings has several units for each (task, run), so that memory stays bounded. Workers compute; this
process alone writes.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from os import cpu_count
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import CHUNK, LaneRun
from gradient_dd.engine.records import LaneResults
from gradient_dd.engine.schedules import Schedule
from gradient_dd.errors import GradientDDError, whole_number
from gradient_dd.learners import Setting
from gradient_dd.studies import Study
from gradient_dd.studies.inspection import inspect_cells
from gradient_dd.studies.provenance import provenance
from gradient_dd.studies.repair import drop_cells, drop_records, drop_strays
from gradient_dd.studies.results import Results
from gradient_dd.studies.store import Store, Work
from gradient_dd.tasks import Task

MOST_SETTINGS = 8192  # of a unit


class StoppedError(GradientDDError):
    """A sweep was stopped; what was committed is kept."""


@dataclass(frozen=True)
class Unit:
    """Settings of a task to run on one run's trajectory, and their rows in the store."""

    task: Task
    run: int
    settings: list[Setting]
    rows: list[int]
    horizon: Horizon
    schedule: Schedule
    sampling: str
    seed: int


@dataclass
class Progress:
    """How far a sweep is: cells are settings × runs, of each task and in all."""

    study: Study
    total: dict[str, int]
    done: dict[str, int] = field(default_factory=dict)
    kept: int = 0  # cells that were in the store before
    updates: float = 0.0
    diverged: int = 0
    core_seconds: float = 0.0  # summed over units; compiling is not among them
    begin: float = field(default_factory=perf_counter)

    @property
    def seconds(self) -> float:
        """Seconds since the study began."""
        return perf_counter() - self.begin

    @property
    def cells(self) -> tuple[int, int]:
        """Cells done, and in all."""
        return sum(self.done.values()), sum(self.total.values())


def check_stop(stop: threading.Event | None) -> None:
    """Raise if the sweep was told to stop."""
    if stop is not None and stop.is_set():
        raise StoppedError("stopped")


def run_unit(unit: Unit, stop: threading.Event | None = None) -> tuple[LaneResults, Work]:
    """Run a unit; return its results and what they took. Looks at `stop` several times a second."""
    check = partial(check_stop, stop)
    run = LaneRun(unit.task, unit.settings, unit.horizon, unit.schedule, unit.sampling, unit.seed, unit.run, check)
    begin = perf_counter()
    piece = max(1000, min(CHUNK, 10**8 // len(unit.settings)))  # a tenth of a second or less
    while not run.done:
        check()
        run.advance(piece)
    return run.results(), Work(perf_counter() - begin, run.costs())


OnProgress = Callable[[Progress], None]
OnNotice = Callable[[str], None]


def run(
    study: Study,
    out: str | Path = "results.db",
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    on_progress: OnProgress = lambda state: None,
    on_notice: OnNotice = lambda sentence: None,
) -> Results:
    """Run what a store lacks of a study, and return its results.

    `executor` is any concurrent.futures Executor (threads of this process by default, `workers` of them); its workers
    compute, this process writes. `on_progress` is called after every unit; `on_notice` with sentences worth reading.
    """
    (results,) = run_all([study], out, workers=workers, executor=executor, on_progress=on_progress, on_notice=on_notice)
    return results


def run_all(
    studies: Sequence[Study],
    out: str | Path,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    on_progress: OnProgress = lambda state: None,
    on_notice: OnNotice = lambda sentence: None,
) -> list[Results]:
    """Run what a store lacks of several studies, one after the other without a pause, and return their results."""
    count = whole_number("'workers'", cpu_count() or 1 if workers is None else workers)
    stop = threading.Event()
    with Store(out, write=True) as store:
        prepare(store, on_notice)
        given: set[tuple[int, int]] = set()
        lacking = [missing_units(study, store, given, on_progress, on_notice) for study in studies]
        if executor is not None:
            run_units(chain.from_iterable(lacking), executor, 2 * count, run_unit, store, on_progress)
        else:
            with ThreadPoolExecutor(count) as pool, ThreadPoolExecutor(1) as compiler, quick_switches():
                try:
                    units = compiled_ahead(lacking, compiler, stop)
                    run_units(units, pool, 2 * count, partial(run_unit, stop=stop), store, on_progress)
                finally:
                    stop.set()
    return [Results(study, out) for study in studies]


def missing_units(
    study: Study, store: Store, given: set[tuple[int, int]], on_progress: OnProgress, on_notice: OnNotice
) -> Iterator[tuple[Unit, Progress]]:
    """Yield what the store lacks of a study, and count what it has; cells `given` to another unit are left to it."""
    tasks = study.built_tasks()
    state = Progress(study, {str(task): study.n_settings * study.runs for task in tasks})
    started = store.add_study(study.name, str(study), study.run_numbers, sum(state.total.values()))
    state.done = dict.fromkeys(state.total, 0)
    redefined = replaced = 0
    for task in tasks:
        for lanes in sliced(study.lanes(task), MOST_SETTINGS):
            rows = store.add_settings((key, facts) for key, _, facts in lanes)
            store.add_to_study(started, rows.values())
            others = store.count_other_definitions((facts["description"] for *_, facts in lanes), rows)
            if others and not redefined:
                on_notice(
                    f"{store.path} has results of this study made by another definition of a task, a rule or the "
                    "engine. They are kept, and not mixed with these."
                )
            redefined += others
            for run, done, damaged in inspected(study, store, rows):
                if damaged and not replaced:
                    first = f"of {task}, run {run} first"
                    on_notice(f"{store.path} has damaged results of this study, {first}. They are run again.")
                    drop_strays(store)
                if damaged:
                    drop_cells(store, [(row, run) for row in damaged])
                    replaced += len(damaged)
                done |= {row for row in rows.values() if (row, run) in given}
                lacking = [(rows[key], setting) for key, setting, _ in lanes if rows[key] not in done]
                given |= {(row, run) for row, _ in lacking}
                state.done[str(task)] += len(done)
                state.kept += len(done)
                if lacking:
                    places, settings = map(list, zip(*lacking, strict=True))
                    how = study.horizon, study.schedule, study.sampling, study.seed
                    yield Unit(task, run, settings, places, *how), state
    if state.kept == sum(state.total.values()):
        on_progress(state)  # no unit will


def prepare(store: Store, on_notice: OnNotice) -> None:
    """Say what opening a store has changed, and remove from it what is damaged and belongs to no study."""
    for sentence in store.notices:
        on_notice(sentence)
    if not store.is_sound:
        drop_strays(store)
    if count := drop_records(store):
        on_notice(f"{store.path} had {count} damaged records of the time that a unit took. They have been removed.")


def inspected(study: Study, store: Store, rows: dict[str, int]) -> Iterator[tuple[int, set[int], set[int]]]:
    """Yield each run of a study, the settings that the store has of it, and those of which something is damaged."""
    keys = {row: key for key, row in rows.items()}
    for runs in sliced(study.run_numbers, max(1, MOST_SETTINGS // len(keys))):
        done, damaged = inspect_cells(store, keys, range(runs[0], runs[-1] + 1))
        yield from ((run, done[run], damaged[run]) for run in runs)


@contextmanager
def quick_switches() -> Iterator[None]:
    """Let threads take turns at Python every 0.2 ms, so that kernels do not wait 5 ms for one that compiles."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-4)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def compiled_ahead(
    lacking: list[Iterator[tuple[Unit, Progress]]], compiler: Executor, stop: threading.Event
) -> Iterator[tuple[Unit, Progress]]:
    """Return the units of all studies; while those of the first run, the kernels of the others are being compiled."""
    firsts = [list(islice(units, 1)) for units in lacking]

    def compile_kernels(unit: Unit) -> None:
        with suppress(GradientDDError):  # stopped, or the unit itself will tell
            LaneRun(unit.task, unit.settings, unit.horizon, check=partial(check_stop, stop))

    for first in firsts[1:]:
        for unit, _ in first:
            compiler.submit(compile_kernels, unit)
    return chain.from_iterable(chain(*pair) for pair in zip(firsts, lacking, strict=True))


def run_units(
    units: Iterator[tuple[Unit, Progress]],
    executor: Executor,
    ahead: int,
    run_one: Callable[[Unit], tuple[LaneResults, Work]],
    store: Store,
    on_progress: OnProgress,
) -> None:
    """Keep the executor busy, and write each unit as it comes back."""
    facts = provenance()
    waiting: dict[Future[tuple[LaneResults, Work]], tuple[Unit, Progress]] = {}

    def submit(count: int) -> None:
        for unit, state in islice(units, count):
            waiting[executor.submit(run_one, unit)] = unit, state

    try:
        submit(ahead)
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                unit, state = waiting.pop(future)
                results, work = future.result()
                store.add_unit(str(unit.task), unit.run, unit.rows, results, work, facts)
                state.done[str(unit.task)] += len(unit.rows)
                state.updates += float(results.steps[0]) * len(unit.rows)
                state.diverged += int(np.count_nonzero(results.diverged_step))
                state.core_seconds += work.seconds
                on_progress(state)
                submit(1)
    except BaseException:
        for future in waiting:
            future.cancel()
        raise


def sliced(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield items in lists of at most `size`."""
    remaining = iter(items)
    while piece := list(islice(remaining, size)):
        yield piece
