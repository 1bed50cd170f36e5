"""Units: what a store lacks of a study, cut into pieces of work.

A unit is (task, run): the missing settings of a task on the trajectory of a run. A study with more than 8,192 settings
has several units for each (task, run), so that memory stays bounded. What is damaged counts as missing.

Studies that run in the same way share their units: the trajectory is sampled once for the settings of all, and blocks
of lanes are wider.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from time import perf_counter
from typing import Any

from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule
from gradient_dd.learners import Setting
from gradient_dd.studies import Study
from gradient_dd.studies.store import Store, StoredUnit, keys_in
from gradient_dd.tasks import Task

MOST_SETTINGS = 8192  # of a unit


@dataclass(frozen=True)
class Unit:
    """Settings of a task to run on one run's trajectory, and their keys in the store."""

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
    """How far a study is; its cells are settings × runs, counted for each task."""

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


@dataclass(frozen=True)
class Share:
    """What a unit does for one study: the progress of the study, and its settings among those of the unit."""

    state: Progress
    lanes: slice


Shared = tuple[Unit, list[Share]]  # a unit, and what it does for each study
OnProgress = Callable[[Progress], None]
OnNotice = Callable[[str], None]


def missing_units(
    study: Study, store: Store, scheduled: set[tuple[str, int]], on_progress: OnProgress, on_notice: OnNotice
) -> Iterator[Shared]:
    """Yield what the store lacks of a study, and count what it has.

    Pairs of a setting's key and a run that are `scheduled` already are skipped; those yielded here are added to them.
    """
    tasks = study.built_tasks
    state = Progress(study, {str(task): study.n_settings * study.runs for task in tasks})
    state.done = dict.fromkeys(state.total, 0)
    started, redefined = store.add_study(study), 0
    how = study.horizon, study.schedule, study.sampling, study.seed
    for task in tasks:
        stored = runs_by_key(store.units([task], study.run_numbers))
        first = {"first_error": task.rmsve(task.initial_weights)}
        for lanes in sliced(study.lanes(task), MOST_SETTINGS):
            store.add_settings(((key, facts | first) for key, _, facts in lanes), started)
            others = store.count_other_definitions(
                (facts["description"] for *_, facts in lanes), (key for key, *_ in lanes)
            )
            if others and not redefined:
                on_notice(
                    f"{store.path} has results of this study made by another definition of a task, a rule or the "
                    "engine. They are kept, and not mixed with these."
                )
            redefined += others
            for run in study.run_numbers:
                lacking = [
                    (key, setting)
                    for key, setting, _ in lanes
                    if run not in stored.get(key, ()) and (key, run) not in scheduled
                ]
                scheduled |= {(key, run) for key, _ in lacking}
                kept = len(lanes) - len(lacking)
                state.done[str(task)] += kept
                state.kept += kept
                if lacking:
                    keys, settings = map(list, zip(*lacking, strict=True))
                    yield Unit(task, run, settings, keys, *how), [Share(state, slice(0, len(settings)))]
    if state.kept == sum(state.total.values()):
        on_progress(state)  # no unit will


def runs_by_key(units: Iterable[StoredUnit]) -> dict[str, set[int]]:
    """Return the runs that a store has of each setting, by its key; settings with the same runs share a set."""
    runs: dict[str, set[int]] = {}
    for unit in units:
        runs.setdefault(unit.settings, set()).add(unit.run)
    found: dict[str, set[int]] = {}
    for settings, some in runs.items():
        for key in keys_in(settings):
            found[key] = found[key] | some if key in found else some
    return found


def grouped(studies: Sequence[Study], lacking: Sequence[Iterator[Shared]]) -> list[Iterator[Shared] | list[Shared]]:
    """Return the units of all studies in groups; studies that run in the same way share a group, and units."""
    groups: dict[Any, list[Iterator[Shared]]] = {}
    for study, units in zip(studies, lacking, strict=True):
        groups.setdefault((study.horizon, study.schedule, study.sampling, study.seed), []).append(units)
    return [group[0] if len(group) == 1 else shared_units(group) for group in groups.values()]


def shared_units(several: Iterable[Iterator[Shared]]) -> list[Shared]:
    """Return the units of several studies; units of the same task and run are joined."""
    found: dict[tuple[str, int], list[Shared]] = {}
    for one in chain.from_iterable(several):
        unit, _ = one
        same = found.setdefault((unit.task.key, unit.run), [])
        if same and len(same[-1][0].settings) + len(unit.settings) <= MOST_SETTINGS:
            same[-1] = joined(same[-1], one)
        else:
            same.append(one)
    return list(chain.from_iterable(found.values()))


def joined(left: Shared, right: Shared) -> Shared:
    """Return two units of one task and run as one."""
    (unit, shares), (other, others) = left, right
    begin = len(unit.settings)
    moved = [Share(one.state, slice(begin + one.lanes.start, begin + one.lanes.stop)) for one in others]
    return replace(unit, settings=unit.settings + other.settings, keys=unit.keys + other.keys), [*shares, *moved]


def sliced(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield items in lists of at most `size`."""
    remaining = iter(items)
    while piece := list(islice(remaining, size)):
        yield piece
