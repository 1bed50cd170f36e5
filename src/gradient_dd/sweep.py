"""Sweep: study -> units -> executor -> store. Only what the store lacks is run.

A unit is (task, run): the missing settings of a task on the trajectory of a run, committed whole. A study with more
than 8,192 settings has several units for each (task, run), so that memory stays bounded. Workers compute; this
process alone writes.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from os import cpu_count
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import CHUNK, LaneResults, LaneRun
from gradient_dd.errors import GradientDDError, must
from gradient_dd.learners import Setting
from gradient_dd.provenance import provenance
from gradient_dd.results import Results
from gradient_dd.schedules import Schedule
from gradient_dd.store import Store
from gradient_dd.studies import Study
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
    seconds: float = 0.0

    @property
    def cells(self) -> tuple[int, int]:
        """Cells done, and in all."""
        return sum(self.done.values()), sum(self.total.values())


def run_unit(unit: Unit, stop: threading.Event | None = None) -> tuple[LaneResults, float]:
    """Run a unit; return its results and the seconds it took. Looks at `stop` several times a second."""
    begin = perf_counter()
    run = LaneRun(unit.task, unit.settings, unit.horizon, unit.schedule, unit.sampling, unit.seed, unit.run)
    piece = max(1000, min(CHUNK, 10**8 // len(unit.settings)))  # a tenth of a second or less
    while not run.done:
        if stop is not None and stop.is_set():
            raise StoppedError("stopped")
        run.advance(piece)
    return run.results(), perf_counter() - begin


def run(
    study: Study,
    out: str | Path = "results.db",
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[Progress], None] | None = None,
    notice: Callable[[str], None] = lambda sentence: None,
) -> Results:
    """Run what a store lacks of a study, and return its results.

    `executor` is any concurrent.futures Executor (threads of this process by default, `workers` of them); its workers
    compute, this process writes. `progress` is called after every unit; `notice` with sentences worth reading.
    """
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise must("'workers'", "be a whole number, one or more", workers)
    with Store(out, write=True) as store:
        store.add_study(study.name, str(study))
        tasks = study.built_tasks()
        state = Progress(study, {str(task): study.n_settings * study.runs for task in tasks})
        state.done = dict.fromkeys(state.total, 0)
        units = missing_units(study, tasks, store, state, notice)
        if executor is not None:
            work_off(units, executor, 2 * (workers or cpu_count() or 1), run_unit, store, state, progress)
        else:
            count, stop = workers or cpu_count() or 1, threading.Event()
            with ThreadPoolExecutor(count) as pool:
                try:
                    work_off(units, pool, 2 * count, partial(run_unit, stop=stop), store, state, progress)
                except BaseException:
                    stop.set()
                    raise
    return Results(study, out)


def missing_units(
    study: Study, tasks: list[Task], store: Store, state: Progress, notice: Callable[[str], None]
) -> Iterator[Unit]:
    """Yield what the store lacks, and count what it has."""
    otherwise = 0
    for task in tasks:
        for lanes in sliced(study.lanes(task), MOST_SETTINGS):
            rows = store.add_settings((key, facts) for key, _, facts in lanes)
            others = store.made_otherwise((facts["said"] for *_, facts in lanes), rows)
            if others and not otherwise:
                notice(
                    f"{store.path} has results of this study made by another definition of a task, a rule or the "
                    "engine. They are kept, and not mixed with these."
                )
            otherwise += others
            for run in study.run_numbers:
                done = store.done(rows.values(), run)
                lacking = [(rows[key], setting) for key, setting, _ in lanes if rows[key] not in done]
                state.done[str(task)] += len(done)
                state.kept += len(done)
                if lacking:
                    places, settings = zip(*lacking, strict=True)
                    yield Unit(
                        task,
                        run,
                        list(settings),
                        list(places),
                        study.horizon,
                        study.schedule,
                        study.sampling,
                        study.seed,
                    )


def work_off(
    units: Iterator[Unit],
    executor: Executor,
    ahead: int,
    work: Callable[[Unit], tuple[LaneResults, float]],
    store: Store,
    state: Progress,
    progress: Callable[[Progress], None] | None,
) -> None:
    """Keep the executor busy, and write each unit as it comes back."""
    begin, facts = perf_counter(), provenance()
    waiting: dict[Future[tuple[LaneResults, float]], Unit] = {}
    try:
        for unit in islice(units, ahead):
            waiting[executor.submit(work, unit)] = unit
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                unit = waiting.pop(future)
                results, seconds = future.result()
                store.add_unit(str(unit.task), unit.run, unit.rows, results, seconds, facts)
                state.done[str(unit.task)] += len(unit.rows)
                state.updates += float(results.steps[0]) * len(unit.rows)
                state.diverged += int(np.count_nonzero(results.diverged_step))
                state.seconds = perf_counter() - begin
                if progress is not None:
                    progress(state)
                for unit in islice(units, 1):
                    waiting[executor.submit(work, unit)] = unit
    except BaseException:
        for future in waiting:
            future.cancel()
        raise


def sliced(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield items in lists of at most `size`."""
    remaining = iter(items)
    while piece := list(islice(remaining, size)):
        yield piece
