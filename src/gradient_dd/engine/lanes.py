"""The lane engine: compiled kernels run all settings of all learners together on one trajectory.

    run_lanes(task, settings, Horizon(episodes=20_000), runs=50)

Each setting is a lane. The lanes of one rule, or of several rules with few settings each, form a block, which one call
of a kernel advances. All lanes of a run see the same transitions. Results are bit-identical for any number of workers,
any grouping of lanes, and any pieces in which a run is advanced.

Diverged lanes are dropped, because their error is infinite at every later point: between two pieces of a run, the other
lanes of a block are copied into a smaller block as soon as that saves a strip.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from linecache import getline
from os import cpu_count
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array, check_memory
from gradient_dd.engine.horizon import Horizon, LaneResults, Segments
from gradient_dd.engine.kernels.compiler import subnormals_flushed
from gradient_dd.engine.kernels.fused import fused_kernel
from gradient_dd.engine.kernels.rows import (
    WIDEST,
    Errors,
    Measure,
    OutcomeRows,
    Shape,
    measure,
    no_errors,
    outcome_rows,
)
from gradient_dd.engine.kernels.rules import JointRule, join_few
from gradient_dd.engine.kernels.state import MOST_LANES, Lanes, new_lanes, padded_lanes
from gradient_dd.engine.kernels.traced import traced_kernel
from gradient_dd.engine.reference import KNOWN_MOVES, KNOWN_SIGNALS, check_sampling
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.engine.single import aligned
from gradient_dd.engine.trajectories import OutcomeSampler, ends_in
from gradient_dd.errors import Unquoted, bad_request, show, whole_number
from gradient_dd.learners import Rule, Setting
from gradient_dd.tasks import Task

CHUNK = 2**17  # steps sampled at a time: half a megabyte of outcomes
FIRST_PIECE = 2**12  # steps after which diverged lanes are first dropped
PER_LANE = ("w", "eta", "start", "change")  # arrays with one column per lane, in addition to the fields
NOTHING = Segments(*(np.zeros(0, kind) for kind in (np.int64, float, np.int64, bool, np.int64, np.int64)))
COMPILING: dict[Any, Lock] = {}  # by kernel: the lock that is held while it is compiled
COMPILING_GUARD = Lock()  # protects COMPILING


class LaneTask(NamedTuple):
    """The kernels' input from a task, for one rho_mode: tables, error, initial weights (p,), bins, π and μ."""

    table: OutcomeRows
    shape: Shape
    error: Measure
    initial_w: Array
    bins: int
    probabilities: tuple[Array, Array]

    def fuses(self, rule: Rule) -> bool:
        """Return whether the fused kernel runs a rule; the traced kernel runs all other rules."""
        return rule.is_plain and self.shape.width <= WIDEST and (self.shape.one_hot or not rule.natural)


def rejected_line(rule: Rule, message: str) -> str:
    """Return the line of a step that Numba cannot compile, or the last line of Numba's message."""
    plain = re.sub(r"\x1b\[[\d;]*m", "", message)  # without colours
    for one in rule.parts if isinstance(rule, JointRule) else (rule,):
        file = one.step.__code__.co_filename
        if found := re.search(rf'{re.escape(Path(file).name)}", line (\d+)', plain):
            return f"line {found[1]} of {Path(file).name}: {getline(file, int(found[1])).strip()}"
    return plain.strip().splitlines()[-1]


class Block:
    """A block of lanes with the same rule, which one call of a kernel advances.

    lanes, errors  state of all settings; out of date for lanes that continue in a smaller block, until `unpack`
    places         (live,) indices of the lanes that continue;  small  their lanes and errors
    seconds        time spent in the kernel, without compilation
    """

    def __init__(self, settings: Sequence[Setting], lanes: int, task: LaneTask) -> None:
        rule, shape, error = settings[0].rule, task.shape, task.error
        self.settings, self.table, self.is_fused = settings, task.table, task.fuses(rule)
        self.error = error._replace(rows=error.rows.ravel(), values=error.values.ravel())
        self.lanes = new_lanes(settings, lanes, shape.width, task.initial_w, task.probabilities, self.is_fused)
        self.errors = no_errors(lanes, task.bins)
        self.places, self.small = np.arange(len(settings)), (self.lanes, self.errors)
        self._compile(rule, shape, error.rows.shape[1])
        self.seconds = 0.0

    def _compile(self, rule: Rule, shape: Shape, terms: int) -> None:
        """Compile the kernel; `terms` is the number of non-zeros per row of the error."""
        with COMPILING_GUARD:
            compiling = COMPILING.setdefault((rule, shape, terms) if self.is_fused else rule, Lock())
        with compiling:  # one thread compiles, and others that need the kernel wait
            self.kernel = fused_kernel(rule, shape, terms) if self.is_fused else traced_kernel(rule)
            try:
                self.kernel(np.zeros(1, np.int32), NOTHING, self.table, self.error, self.lanes, self.errors)
            except Exception as error:  # Numba raises exceptions of many types
                reason = Unquoted(rejected_line(rule, str(error)))
                what = f"The step of the rule {rule.name!r}"
                raise bad_request(what, "be arithmetic on scalars that Numba can compile", reason) from error

    def advance(self, column: NDArray[np.int32], segments: Any) -> None:
        """Advance the lanes over a piece of the trajectory, then drop diverged lanes if that saves a strip."""
        begin = perf_counter()
        if len(self.places):
            with subnormals_flushed():
                self.kernel(column, segments, self.table, self.error, *self.small)
            diverged = self.small[1].diverged[: len(self.places)]
            if saves_a_strip(diverged, len(self.small[1].now)):
                self._leave_behind(diverged > 0)
        self.seconds += perf_counter() - begin

    def _leave_behind(self, gone: NDArray[np.bool_]) -> None:
        """Drop the `gone` lanes: copy the other lanes, padded to whole strips with copies of the last lane."""
        self.unpack()
        self.places = self.places[~gone]
        if len(self.places):
            block = padded_lanes(len(self.places))
            columns = np.concatenate([self.places, np.repeat(self.places[-1:], block - len(self.places))])
            own = {name: resized(getattr(self.lanes, name), self.errors, block) for name in PER_LANE}
            lanes = self.lanes._replace(**own, fields=aligned(self.lanes.fields.shape))
            self.small = lanes, Errors(*(resized(one, self.errors, block) for one in self.errors))
            copy_lanes((self.lanes, self.errors), columns, self.small, slice(block))

    def unpack(self) -> None:
        """Copy the lanes of the smaller block back to their places in `lanes` and `errors`."""
        if self.small[0] is not self.lanes:
            copy_lanes(self.small, slice(len(self.places)), (self.lanes, self.errors), self.places)

    def weights(self, p: int) -> tuple[Array, Array]:
        """Return w and η, (lanes, p) each; the weights of a diverged lane are from some step after its divergence."""
        self.unpack()
        block, count = len(self.errors.now), len(self.settings)
        w, eta = (array.reshape(-1, block)[:p, :count].T.copy() for array in (self.lanes.w, self.lanes.eta))
        scale = self.lanes.fields.reshape(-1, MOST_LANES)[-1, :count]
        return w, eta * scale[:, None]


def saves_a_strip(diverged: NDArray[np.int64], width: int) -> bool:
    """Return whether a block would be narrower without its diverged lanes; `diverged` is 0 for the other lanes."""
    return padded_lanes(int(np.sum(diverged == 0))) < width


def resized(array: Any, errors: Errors, block: int) -> Any:
    """Return zeros in the layout of a flat array with one column per lane, for a block of another width."""
    return aligned((array.size // len(errors.now) * block,), array.dtype)


def copy_lanes(source: tuple[Lanes, Errors], columns: Any, target: tuple[Lanes, Errors], places: Any) -> None:
    """Copy the lanes in `columns` of one block to `places` in another block."""
    views = []  # every array as (rows, lanes); the fields have space for MOST_LANES
    for lanes, errors in (source, target):
        own = [*(getattr(lanes, name) for name in PER_LANE), *errors]
        views.append([lanes.fields.reshape(-1, MOST_LANES), *(one.reshape(-1, len(errors.now)) for one in own)])
    for one, other in zip(*views, strict=True):
        other[:, places] = one[:, columns]


class LaneRun:
    """One run of a task with all settings, which advance together in pieces of any length."""

    def __init__(
        self,
        task: Task,
        settings: Iterable[Setting],
        horizon: Horizon,
        schedule: Schedule = constant,
        sampling: str = "trajectory",
        seed: int = 0,
        run: int = 0,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Make all blocks and compile their kernels; `check` is called before each block, and may raise."""
        horizon.check(task)
        self.task, self.horizon, self.schedule = task, horizon, check_schedule(schedule)
        self.settings = check_settings(settings)
        self.sampling, self._ends = sampling, task.transitions.ends
        self._sampler = OutcomeSampler(task, seed, run, sampling)
        self._ahead = self._sampler.take(1)  # outcomes that are drawn but not yet used; never empty
        self.steps = self.episodes = 0
        self.places, self.blocks = self._make_blocks(check)

    def _make_blocks(self, check: Callable[[], None]) -> tuple[list[list[int]], list[Block]]:
        """Return the indices of each block's settings, and the blocks."""
        groups: dict[Any, list[int]] = {}
        for place, setting in enumerate(self.settings):
            read = setting.rule.trace_arguments  # settings with the same trace parameters share their traces
            shared = tuple(setting.values[p.name] for p in setting.rule.parameters if p.shared or p.name in read)
            groups.setdefault((setting.rule, setting.rho_mode, shared), []).append(place)
        error, first_w, pi_mu = measure(self.task), self.task.initial_weights, self.task.action_probabilities
        modes = {setting.rho_mode for setting in self.settings}
        bins = self.horizon.bins
        as_read = {mode: LaneTask(*outcome_rows(self.task, mode), error, first_w, bins, pi_mu) for mode in modes}
        for rule in {setting.rule: None for setting in self.settings}:
            rule.check_known("The lane engine", KNOWN_SIGNALS, KNOWN_MOVES)
            check_sampling(rule, self.sampling)
        in_groups = join_few(self.settings, groups.values(), lambda one: as_read[one.rho_mode].fuses(one.rule))
        places, blocks = [], []
        for group, settings in in_groups:
            task = as_read[self.settings[group[0]].rho_mode]
            parts = np.array_split(np.arange(len(group)), -(-len(group) // MOST_LANES))
            for part in parts:
                check()
                places.append([group[i] for i in part])
                blocks.append(Block([settings[i] for i in part], padded_lanes(len(parts[0])), task))
        return places, blocks

    @property
    def done(self) -> bool:
        """Whether the run has reached its horizon."""
        return self.steps == self.horizon.steps or self.episodes == self.horizon.episodes

    def advance(self, steps: int | None = None) -> None:
        """Make `steps` more steps, or all steps up to the horizon."""
        if steps is not None:
            whole_number("'steps'", steps)
        stop = None if steps is None else self.steps + steps
        while not self.done and self.steps != stop:
            piece = min(CHUNK, max(FIRST_PIECE, self.steps))  # short at first, because lanes diverge early
            self._advance_piece(piece if stop is None else min(piece, stop - self.steps))

    def _advance_piece(self, length: int) -> None:
        column = self._draw(length)
        ends = ends_in(column[:length], self._ends)
        segments = self.horizon.cut(ends, length, self.steps, self.episodes, self.schedule)
        seen, visible = column, segments
        if self.task.interest is not None:  # learners do not see the steps from states without interest
            active = self.task.active[column]
            seen, visible = column[active], segments._replace(end=np.append(0, np.cumsum(active))[segments.end])
        for block in self.blocks:
            block.advance(seen, visible)
        made = int(segments.end[-1])
        self.steps += made
        self.episodes += int(np.searchsorted(ends, made, side="right"))
        self._ahead = column[made:]

    def _draw(self, length: int) -> NDArray[np.int32]:
        """Return the outcomes of the next `length` steps, and of later steps up to the first that learners see."""
        column = np.concatenate([self._ahead, self._sampler.take(max(0, length + 1 - len(self._ahead)))])
        while not self.task.active[column[length:]].any():
            column = np.concatenate([column, self._sampler.take(CHUNK // 1024)])
        return column

    def results(self) -> LaneResults:
        """Return the summarised errors of a finished run, with one row for the run."""
        if not self.done:
            raise bad_request("A run", "finish before its results are read", Unquoted(f"{self.steps} steps so far"))
        count, bins = len(self.settings), self.horizon.bins
        last, mean_error, diverged = np.empty(count), np.empty(count), np.empty((2, count), np.int64)
        curve, sizes = np.empty((count, bins)), self.horizon.bin_sizes()[:, None]
        for places, block in zip(self.places, self.blocks, strict=True):
            block.unpack()
            lanes, errors = len(places), block.errors
            last[places] = errors.last[:lanes] / self.horizon.n_last
            mean_error[places] = errors.total[:lanes] / self.horizon.points
            curve[places] = (errors.curve.reshape(bins, -1)[:, :lanes] / sizes).T
            diverged[:, places] = errors.diverged.reshape(2, -1)[:, :lanes]
        lost = diverged[0] > 0  # dropped lanes have no errors after their divergence
        last[lost] = mean_error[lost] = np.inf
        point = diverged[1] if self.horizon.steps is None else -(-diverged[0] // self.horizon.every)
        curve[lost[:, None] & (np.arange(bins) >= self.horizon.bin_of(point)[:, None])] = np.inf
        return LaneResults(
            last[None], mean_error[None], curve[None], diverged[:1], diverged[1:], np.array([self.steps])
        )

    def costs(self) -> dict[str, tuple[float, int]]:
        """Return each learner's seconds in kernels and number of updates, without blocks of joint rules."""
        costs: dict[str, tuple[float, int]] = {}
        for block in self.blocks:
            if isinstance(block.settings[0].rule, JointRule):
                continue
            name = block.settings[0].rule.name
            seconds, updates = costs.get(name, (0.0, 0))
            costs[name] = seconds + block.seconds, updates + self.steps * len(block.settings)
        return costs

    def weights(self) -> tuple[Array, Array]:
        """Return w and η of every setting, (settings, p) each."""
        p = self.task.n_features
        w, eta = np.empty((2, len(self.settings), p))
        for places, block in zip(self.places, self.blocks, strict=True):
            w[places], eta[places] = block.weights(p)
        return w, eta


def run_lanes(
    task: Task,
    settings: Iterable[Setting],
    horizon: Horizon,
    *,
    runs: int = 1,
    workers: int | None = None,
    **how: Any,
) -> LaneResults:
    """Run every setting on runs 0, 1, … of a task, by default on one thread per core, and return the errors.

    `how` contains further arguments of each `LaneRun`, such as the schedule, the sampling and the seed.
    """
    chosen = check_settings(settings)
    whole_number("'runs'", runs)
    check_memory(f"The results of {show(runs)} runs", 8 * (horizon.bins + 5) * len(chosen) * runs, "Use fewer runs.")
    workers = whole_number("'workers'", cpu_count() or 1 if workers is None else workers)
    shares = shared_out(chosen, max(1, workers // runs))

    def work(item: tuple[int, list[int]]) -> LaneResults:
        run, share = item
        lane_run = LaneRun(task, [chosen[place] for place in share], horizon, run=run, **how)
        lane_run.advance()
        return lane_run.results()

    items = [(run, share) for run in range(runs) for share in shares]
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(work, items))
    return joined(parts, runs, shares)


def shared_out(settings: Sequence[Setting], shares: int) -> list[list[int]]:
    """Divide settings, sorted by rule, into `shares` lists of indices, or fewer if there are few settings."""
    order = sorted(range(len(settings)), key=lambda place: (settings[place].rule.name, settings[place].rho_mode))
    dealt = np.array_split(np.array(order), min(shares, -(-len(order) // MOST_LANES)))
    return [sorted(share.tolist()) for share in dealt]


def joined(parts: list[LaneResults], runs: int, shares: list[list[int]]) -> LaneResults:
    """Return the results of all parts, which are ordered by run and then by share, as one."""
    back = np.argsort(np.concatenate(shares))

    def gather(name: str) -> Any:
        rows = [getattr(part, name) for part in parts]
        by_run = [np.concatenate(rows[run * len(shares) : (run + 1) * len(shares)], axis=1) for run in range(runs)]
        return np.concatenate(by_run)[:, back]

    names = ("last100", "mean_error", "curve", "diverged_step", "diverged_episode")
    steps = np.concatenate([part.steps for part in parts[:: len(shares)]])
    return LaneResults(**{name: gather(name) for name in names}, steps=steps)


def check_settings(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings as a list; raise if there are none, or if an element is not a setting."""
    try:
        chosen = list(settings)
    except TypeError:  # not iterable
        chosen = [settings]  # type: ignore[list-item]
    wrong = [setting for setting in chosen if not isinstance(setting, Setting)]
    if wrong or not chosen:
        got = wrong[0] if wrong else Unquoted("none")
        raise bad_request("Settings", "be one or more settings, e.g. [LEARNERS['td'].setting(alpha=0.1)]", got)
    return chosen
