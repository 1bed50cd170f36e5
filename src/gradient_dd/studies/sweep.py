"""Sweep: study -> units -> executor -> store. Only what the store lacks is run.

A unit is committed whole. Workers compute; this process alone writes.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from os import cpu_count
from pathlib import Path
from time import perf_counter

import numpy as np

from gradient_dd.engine.horizon import LaneResults
from gradient_dd.engine.lanes import CHUNK, LaneRun
from gradient_dd.errors import GradientDDError, whole_number
from gradient_dd.studies import Study
from gradient_dd.studies.provenance import provenance
from gradient_dd.studies.results import Results
from gradient_dd.studies.status import repair
from gradient_dd.studies.store import Store, Work, named
from gradient_dd.studies.units import OnNotice, OnProgress, Share, Shared, Unit, grouped, missing_units


class StoppedError(GradientDDError):
    """A sweep was stopped; what was committed is kept."""


def check_stop(stop: threading.Event | None) -> None:
    """Raise StoppedError if `stop` is set."""
    if stop is not None and stop.is_set():
        raise StoppedError("stopped")


def run_unit(unit: Unit, stop: threading.Event | None = None) -> tuple[LaneResults, Work]:
    """Run a unit, and return its results and what they took; `stop` is checked several times a second."""
    check = partial(check_stop, stop)
    run = LaneRun(unit.task, unit.settings, unit.horizon, unit.schedule, unit.sampling, unit.seed, unit.run, check)
    begin = perf_counter()
    piece = max(1000, min(CHUNK, 10**8 // len(unit.settings)))  # a tenth of a second or less
    while not run.done:
        check()
        run.advance(piece)
    return run.results(), Work(perf_counter() - begin, run.costs())


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
        removed = repair(store, [task for study in studies for task in study.built_tasks])
        if removed:
            on_notice(f"{store.path} had damage to {named(removed)}. It was removed, and its sweep runs it again.")
        scheduled: set[tuple[str, int]] = set()
        lacking = [missing_units(study, store, scheduled, on_progress, on_notice) for study in studies]
        groups = grouped(studies, lacking)
        if executor is not None:
            run_units(chain.from_iterable(groups), executor, 2 * count, run_unit, store, on_progress)
        else:
            with ThreadPoolExecutor(count) as pool, ThreadPoolExecutor(1) as compiler, quick_switches():
                try:
                    units = compiled_ahead(groups, compiler, stop)
                    run_units(units, pool, 2 * count, partial(run_unit, stop=stop), store, on_progress)
                finally:
                    stop.set()
    return [Results(study, out) for study in studies]


@contextmanager
def quick_switches() -> Iterator[None]:
    """Let threads take turns at Python every 0.2 ms, so that kernels do not wait 5 ms for a thread that compiles."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-4)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def compiled_ahead(
    groups: list[Iterator[Shared] | list[Shared]], compiler: Executor, stop: threading.Event
) -> Iterator[Shared]:
    """Return the units of all groups; the kernels of later groups are compiled while the first group runs."""
    heads: list[Unit] = []  # units with all kernels between them
    units: list[Iterable[Shared]] = []
    for group in groups:
        if isinstance(group, list):
            heads += {unit.task.key: unit for unit, _ in reversed(group)}.values()
            units.append(group)
        else:
            first = list(islice(group, 1))
            heads += [unit for unit, _ in first]
            units.append(chain(first, group))

    def compile_kernels(unit: Unit) -> None:
        with suppress(GradientDDError):  # it is to stop, or the unit itself will fail and say why
            LaneRun(unit.task, unit.settings, unit.horizon, check=partial(check_stop, stop))

    for unit in heads[1:]:
        compiler.submit(compile_kernels, unit)
    return chain.from_iterable(units)


def run_units(
    units: Iterator[Shared],
    executor: Executor,
    ahead: int,
    run_one: Callable[[Unit], tuple[LaneResults, Work]],
    store: Store,
    on_progress: OnProgress,
) -> None:
    """Keep the executor busy, and write each unit as it comes back."""
    facts = provenance()
    waiting: dict[Future[tuple[LaneResults, Work]], Shared] = {}

    def submit(count: int) -> None:
        for unit, shares in islice(units, count):
            waiting[executor.submit(run_one, unit)] = unit, shares

    try:
        submit(ahead)
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                unit, shares = waiting.pop(future)
                results, work = future.result()
                store.add_unit(unit.task, unit.run, unit.keys, results, work, facts)
                for share in shares:
                    count_unit(share, unit, results, work.seconds)
                    on_progress(share.state)
                submit(1)
    except BaseException:
        for future in waiting:
            future.cancel()
        raise


def count_unit(share: Share, unit: Unit, results: LaneResults, seconds: float) -> None:
    """Add what a unit has done for a study to its progress; seconds are divided by the number of settings."""
    state, lanes = share.state, len(unit.keys[share.lanes])
    state.done[str(unit.task)] += lanes
    state.updates += float(results.steps[0]) * lanes
    state.diverged += int(np.count_nonzero(results.diverged_step[0, share.lanes]))
    state.core_seconds += seconds * lanes / len(unit.keys)
