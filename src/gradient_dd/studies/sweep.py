"""Sweep: study -> units -> executor -> store. Only results missing in the store are computed.

A unit is (task, run): the missing settings of a task on the trajectory of a run. A study with more than 8,192 settings
has several units per (task, run), so that memory stays bounded. Damaged results count as missing. Workers compute; only
this process writes, and it commits each unit in one transaction.

Studies with the same conditions share units: a trajectory is sampled once for all their settings, and the kernels
process wider blocks of lanes.
"""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from os import cpu_count
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np

from gradient_dd.engine.horizon import Horizon, LaneResults
from gradient_dd.engine.lanes import CHUNK, LaneRun
from gradient_dd.engine.schedules import Schedule
from gradient_dd.errors import GradientDDError, whole_number
from gradient_dd.learners import Setting
from gradient_dd.progress import shown
from gradient_dd.studies.results import Results
from gradient_dd.studies.store import Store, StoredUnit, Work, named
from gradient_dd.studies.study import Study, provenance
from gradient_dd.tasks import Task

MOST_SETTINGS = 8192  # maximum number of settings per unit


@dataclass(frozen=True)
class Unit:
    """Settings of a task to run on the trajectory of one run, with their keys in the store."""

    task: Task
    run: int
    settings: list[Setting]
    keys: list[str]
    horizon: Horizon
    schedule: Schedule
    sampling: str
    seed: int


@dataclass
class Progress:
    """The progress of a study; its cells are settings × runs, counted per task."""

    study: Study
    total: dict[str, int]
    done: dict[str, int] = field(default_factory=dict)
    stored: int = 0  # cells found in the store
    updates: float = 0.0
    diverged: int = 0
    core_seconds: float = 0.0  # summed over units, without compilation
    begin: float = field(default_factory=perf_counter)

    @property
    def cells(self) -> tuple[int, int]:
        """The numbers of finished cells and of all cells."""
        return sum(self.done.values()), sum(self.total.values())

    def add(self, lanes: slice, unit: Unit, results: LaneResults, seconds: float) -> None:
        """Add the study's part of a unit; the seconds are shared equally among the settings."""
        count = lanes.stop - lanes.start
        self.done[str(unit.task)] += count
        self.updates += float(results.steps[0]) * count
        self.diverged += int(np.count_nonzero(results.diverged_step[0, lanes]))
        self.core_seconds += seconds * count / len(unit.keys)


Share = tuple[Progress, slice]  # the part of a unit for one study: its progress, and its settings in the unit
Shared = tuple[Unit, list[Share]]  # a unit, and its part for each study
OnProgress = Callable[[Progress], None]
OnNotice = Callable[[str], None]


class StoppedError(GradientDDError):
    """A sweep was interrupted; committed results are kept."""


def run(
    study: Study,
    out: str | Path = "results.db",
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: bool = True,
    on_progress: OnProgress | None = None,
    on_notice: OnNotice = lambda sentence: None,
) -> Results:
    """Compute the results of a study that are missing in the file `out`, and return all results of the study.

    `executor` is any concurrent.futures.Executor, by default `workers` threads. Its workers compute, and this process
    writes. `progress` shows a bar on stderr, or a line every few seconds. If `on_progress` is given, it is called after
    every unit instead. `on_notice` is called with notices for the user.

    >>> from gradient_dd.studies import grid
    >>> study = Study("mine", ["five_state_walk"], [grid("td", alpha=[0.1, 0.2])], episodes=5, runs=2)
    >>> run(study, "results.db").frame()[["learner", "alpha", "runs"]]
      learner  alpha  runs
    0      td    0.1     2
    1      td    0.2     2
    """
    with shown(False if on_progress else progress, f"Settings × runs of {study.name}") as told:
        watch = on_progress or (lambda state: told(*state.cells))
        (results,) = run_all([study], out, workers=workers, executor=executor, on_progress=watch, on_notice=on_notice)
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
    """Compute the missing results of several studies without a pause between them, and return their results."""
    count = whole_number("'workers'", cpu_count() or 1 if workers is None else workers)
    stop = threading.Event()
    with Store(out, write=True) as store:
        if removed := store.repair():
            on_notice(f"{store.path} was damaged: {named(removed)}. Damaged parts were removed and are recomputed.")
        scheduled: dict[str, set[int]] = {}
        units = joined(
            one for study in studies for one in missing_units(study, store, scheduled, on_progress, on_notice)
        )
        if executor is not None:
            run_units(units, executor, 2 * count, run_unit, store, on_progress)
        else:
            with ThreadPoolExecutor(count) as pool, ThreadPoolExecutor(1) as compiler, quick_switches():
                try:
                    compile_ahead(units, compiler, stop)
                    run_units(units, pool, 2 * count, partial(run_unit, stop=stop), store, on_progress)
                finally:
                    stop.set()
    return [Results(study, out) for study in studies]


# Missing units --------------------------------------------------------------------------------------------------


def missing_units(
    study: Study, store: Store, scheduled: dict[str, set[int]], on_progress: OnProgress, on_notice: OnNotice
) -> Iterator[Shared]:
    """Yield the missing units of a study, and count its stored results.

    `scheduled` has the runs that other studies have already requested, by the key of the setting. These runs are
    skipped, and the runs of this study are added.
    """
    tasks = study.built_tasks
    state = Progress(study, {str(task): study.n_settings * study.runs for task in tasks})
    state.done = dict.fromkeys(state.total, 0)
    started, redefined, none = store.add_study(study), 0, set[int]()
    how = study.horizon, study.schedule, study.sampling, study.seed
    for task in tasks:
        stored_runs = runs_by_key(store.units([task], study.run_numbers))
        first = {"first_error": task.rmsve(task.initial_weights)}
        all_lanes = study.lanes(task)
        while lanes := list(islice(all_lanes, MOST_SETTINGS)):
            store.add_settings(((key, facts | first) for key, _, facts in lanes), started)
            others = store.count_other_definitions(
                (facts["description"] for *_, facts in lanes), (key for key, *_ in lanes)
            )
            if others and not redefined:
                on_notice(
                    f"{store.path} has results of this study from another definition of a task, a rule or the "
                    "engine. They are kept separate from the new results."
                )
            redefined += others
            taken = [stored_runs.get(key, none) | scheduled.get(key, none) for key, *_ in lanes]
            for run in study.run_numbers:
                lacking = [lane for lane, runs in zip(lanes, taken, strict=True) if run not in runs]
                stored_cells = len(lanes) - len(lacking)
                state.done[str(task)] += stored_cells
                state.stored += stored_cells
                if lacking:
                    keys, settings, _ = map(list, zip(*lacking, strict=True))
                    yield Unit(task, run, settings, keys, *how), [(state, slice(0, len(settings)))]
            scheduled |= {key: runs.union(study.run_numbers) for (key, *_), runs in zip(lanes, taken, strict=True)}
    if state.stored == sum(state.total.values()):
        on_progress(state)  # nothing to run, so no unit will report progress


def runs_by_key(units: Iterable[StoredUnit]) -> dict[str, set[int]]:
    """Return the stored runs of each setting, by key; settings with the same runs share a set."""
    runs: dict[tuple[str, ...], set[int]] = {}
    for unit in units:
        runs.setdefault(unit.keys, set()).add(unit.run)
    found: dict[str, set[int]] = {}
    for keys, some in runs.items():
        for key in keys:
            found[key] = found[key] | some if key in found else some
    return found


def joined(units: Iterable[Shared]) -> list[Shared]:
    """Return units of one or several studies; units of the same task, run and conditions are merged."""
    found: dict[Any, list[Shared]] = {}
    for unit, shares in units:
        same = found.setdefault((conditions(unit), unit.run), [])
        if same and len(same[-1][0].settings) + len(unit.settings) <= MOST_SETTINGS:
            before, others = same.pop()
            begin = len(before.settings)
            shares = [*others, *((state, slice(begin + own.start, begin + own.stop)) for state, own in shares)]
            unit = replace(before, settings=before.settings + unit.settings, keys=before.keys + unit.keys)
        same.append((unit, shares))
    return list(chain.from_iterable(found.values()))


def conditions(unit: Unit) -> tuple[Any, ...]:
    """Return the conditions, except the run, that units must share to use the same trajectory."""
    return unit.task.key, unit.horizon, unit.schedule, unit.sampling, unit.seed


# Running units --------------------------------------------------------------------------------------------------


def check_stop(stop: threading.Event | None) -> None:
    """Raise StoppedError if `stop` is set."""
    if stop is not None and stop.is_set():
        raise StoppedError("stopped")


def run_unit(unit: Unit, stop: threading.Event | None = None) -> tuple[LaneResults, Work]:
    """Run a unit, and return its results and their cost; `stop` is checked several times a second."""
    check = partial(check_stop, stop)
    lanes = LaneRun(unit.task, unit.settings, unit.horizon, unit.schedule, unit.sampling, unit.seed, unit.run, check)
    begin = perf_counter()
    piece = max(1000, min(CHUNK, 10**8 // len(unit.settings)))  # at most a tenth of a second of work
    while not lanes.done:
        check()
        lanes.advance(piece)
    return lanes.results(), Work(perf_counter() - begin, lanes.costs())


@contextmanager
def quick_switches() -> Iterator[None]:
    """Switch Python threads every 0.2 ms, so that kernels do not wait 5 ms for a compiling thread."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-4)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def compile_ahead(units: list[Shared], compiler: Executor, stop: threading.Event) -> None:
    """Compile the kernels of later tasks and conditions while the first units run."""

    def compile_kernels(unit: Unit) -> None:
        with suppress(GradientDDError):  # interrupted, or the unit itself will fail and report the error
            LaneRun(unit.task, unit.settings, unit.horizon, check=partial(check_stop, stop))

    heads = {conditions(unit): unit for unit, _ in reversed(units)}
    for unit in list(heads.values())[-2::-1]:  # in the order of the units, without the first unit
        compiler.submit(compile_kernels, unit)


def run_units(
    units: list[Shared],
    executor: Executor,
    ahead: int,
    run_one: Callable[[Unit], tuple[LaneResults, Work]],
    store: Store,
    on_progress: OnProgress,
) -> None:
    """Run units on the executor, with `ahead` submitted units, and write the results of each unit when it is done."""
    facts, left = provenance(), iter(units)
    waiting: dict[Future[tuple[LaneResults, Work]], Shared] = {}
    finished = SimpleQueue[Future[tuple[LaneResults, Work]]]()  # unlike `futures.wait`, safe to interrupt at any moment

    def submit(count: int) -> None:
        for unit, shares in islice(left, count):
            future = executor.submit(run_one, unit)
            waiting[future] = unit, shares
            future.add_done_callback(finished.put)

    try:
        submit(ahead)
        while waiting:
            future = finished.get()
            unit, shares = waiting.pop(future)
            results, work = future.result()
            store.add_unit(unit.task, unit.run, unit.keys, results, work, facts)
            for state, lanes in shares:
                state.add(lanes, unit, results, work.seconds)
                on_progress(state)
            submit(1)
    except BaseException:
        for future in waiting:
            future.cancel()
        raise
