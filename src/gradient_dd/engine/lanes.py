"""The lane engine: every setting of every learner on one trajectory, compiled from the same rules.

    run_lanes(task, settings, Horizon(episodes=20_000), runs=50)

Settings that share a rule are lanes of one compiled call; all lanes of a run see the same transitions. The result is
the same bits whatever the number of workers, the grouping of lanes, or the pieces a run is advanced in.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array, check_memory
from gradient_dd.engine.blocks import Block, LaneTask, is_fused, join_few
from gradient_dd.engine.horizon import Horizon, LaneResults
from gradient_dd.engine.kernels.errors import measure
from gradient_dd.engine.kernels.rows import outcome_rows
from gradient_dd.engine.kernels.rules import JointRule
from gradient_dd.engine.kernels.state import MOST_LANES, padded_lanes
from gradient_dd.engine.reference import KNOWN_MOVES, KNOWN_SIGNALS, check_sampling
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.engine.trajectories import OutcomeSampler, ends_in
from gradient_dd.errors import Unquoted, bad_request, show, whole_number
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task

CHUNK = 2**17  # steps sampled at a time: half a megabyte of outcomes
FIRST_PIECE = 2**12  # steps after which lanes that have diverged are left behind for the first time


class LaneRun:
    """All settings of one run of a task, advanced together in pieces of any length."""

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
        """Make all blocks, compiling what is new; `check` is called before each and may raise to give up."""
        horizon.check(task)
        self.task, self.horizon, self.schedule = task, horizon, check_schedule(schedule)
        self.settings = check_settings(settings)
        self.sampling, self._ends = sampling, task.transitions.ends
        self._sampler = OutcomeSampler(task, seed, run, sampling)
        self._ahead = self._sampler.take(1)  # outcomes drawn and not made: that of the coming step, or more
        self.steps = self.episodes = 0
        self.places, self.blocks = self._make_blocks(check)

    def _make_blocks(self, check: Callable[[], None]) -> tuple[list[list[int]], list[Block]]:
        """Return blocks of settings with one rule, and the places of their lanes among the settings."""
        groups: dict[Any, list[int]] = {}
        for place, setting in enumerate(self.settings):
            read = setting.rule.trace_arguments  # settings that share what their traces read share the traces
            shared = tuple(setting.values[p.name] for p in setting.rule.parameters if p.shared or p.name in read)
            groups.setdefault((setting.rule, setting.rho_mode, shared), []).append(place)
        error, first_w, pi_mu = measure(self.task), self.task.initial_weights, self.task.action_probabilities
        modes = {setting.rho_mode for setting in self.settings}
        bins = self.horizon.bins
        as_read = {mode: LaneTask(*outcome_rows(self.task, mode), error, first_w, bins, pi_mu) for mode in modes}
        for rule in {setting.rule: None for setting in self.settings}:
            rule.check_known("The lane engine", KNOWN_SIGNALS, KNOWN_MOVES)
            check_sampling(rule, self.sampling)
        in_groups = join_few(
            self.settings, groups.values(), lambda one: is_fused(one.rule, as_read[one.rho_mode].shape)
        )
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
        """Whether the horizon is reached."""
        return self.steps == self.horizon.steps or self.episodes == self.horizon.episodes

    def advance(self, steps: int | None = None) -> None:
        """Go on for so many steps, or to the horizon."""
        if steps is not None:
            whole_number("'steps'", steps)
        stop = None if steps is None else self.steps + steps
        while not self.done and self.steps != stop:
            piece = min(CHUNK, max(FIRST_PIECE, self.steps))  # short at first: lanes that diverge do so early
            self._advance_piece(piece if stop is None else min(piece, stop - self.steps))

    def _advance_piece(self, length: int) -> None:
        column = self._draw(length)
        ends = ends_in(column[:length], self._ends)
        segments = self.horizon.cut(ends, length, self.steps, self.episodes, self.schedule)
        seen, visible = column, segments
        if self.task.interest is not None:  # learners do not see steps from states without interest
            active = self.task.active[column]
            seen, visible = column[active], segments._replace(end=np.append(0, np.cumsum(active))[segments.end])
        for block in self.blocks:
            block.advance(seen, visible)
        made = int(segments.end[-1])
        self.steps += made
        self.episodes += int(np.searchsorted(ends, made, side="right"))
        self._ahead = column[made:]

    def _draw(self, length: int) -> NDArray[np.int32]:
        """Return the outcomes of the next `length` steps, and those up to the first one after them that is seen."""
        column = np.concatenate([self._ahead, self._sampler.take(max(0, length + 1 - len(self._ahead)))])
        while not self.task.active[column[length:]].any():
            column = np.concatenate([column, self._sampler.take(CHUNK // 1024)])
        return column

    def results(self) -> LaneResults:
        """Return the folded errors of a finished run, with one row for the run."""
        if not self.done:
            raise bad_request("A run", "be finished for its results", Unquoted(f"{self.steps} steps so far"))
        count, bins = len(self.settings), self.horizon.bins
        last, mean_error, diverged = np.empty(count), np.empty(count), np.empty((2, count), np.int64)
        curve, sizes = np.empty((count, bins)), self.horizon.bin_sizes()[:, None]
        for places, block in zip(self.places, self.blocks, strict=True):
            lanes, errors = len(places), block.unpacked().errors
            last[places] = errors.last[:lanes] / self.horizon.n_last
            mean_error[places] = errors.total[:lanes] / self.horizon.points
            curve[places] = (errors.curve.reshape(bins, -1)[:, :lanes] / sizes).T
            diverged[:, places] = errors.diverged.reshape(2, -1)[:, :lanes]
        return LaneResults(
            last[None], mean_error[None], curve[None], diverged[:1], diverged[1:], np.array([self.steps])
        )

    def costs(self) -> dict[str, tuple[float, int]]:
        """Return what each learner's kernels took: seconds, and updates of all its settings.

        Learners with few settings share a kernel, and are left out.
        """
        costs: dict[str, tuple[float, int]] = {}
        for block in self.blocks:
            if isinstance(block.settings[0].rule, JointRule):
                continue
            seconds, updates = costs.get(block.settings[0].rule.name, (0.0, 0))
            made = seconds + block.seconds, updates + self.steps * len(block.settings)
            costs[block.settings[0].rule.name] = made
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
    """Run every setting on runs 0, 1, … of a task, on as many threads as there are cores, and return all errors.

    `how` is the schedule, the sampling and the seed of each `LaneRun`.
    """
    chosen = check_settings(settings)
    whole_number("'runs'", runs)
    check_memory(f"The results of {show(runs)} runs", 8 * (horizon.bins + 5) * len(chosen) * runs, "Make fewer.")
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
    """Return the places of the settings in as many shares, equal rules together; few settings make fewer shares."""
    order = sorted(range(len(settings)), key=lambda place: (settings[place].rule.name, settings[place].rho_mode))
    dealt = np.array_split(np.array(order), min(shares, -(-len(order) // MOST_LANES)))
    return [sorted(share.tolist()) for share in dealt]


def joined(parts: list[LaneResults], runs: int, shares: list[list[int]]) -> LaneResults:
    """Return the results of all (run, share) parts, in their order, as one."""
    back = np.argsort(np.concatenate(shares))

    def gather(name: str) -> Any:
        rows = [getattr(part, name) for part in parts]
        by_run = [np.concatenate(rows[run * len(shares) : (run + 1) * len(shares)], axis=1) for run in range(runs)]
        return np.concatenate(by_run)[:, back]

    names = ("last100", "mean_error", "curve", "diverged_step", "diverged_episode")
    steps = np.concatenate([part.steps for part in parts[:: len(shares)]])
    return LaneResults(**{name: gather(name) for name in names}, steps=steps)


def check_settings(settings: Iterable[Setting]) -> list[Setting]:
    """Return the settings as a list; raise if there are none, or something else among them."""
    try:
        chosen = list(settings)
    except TypeError:  # one thing, not several
        chosen = [settings]  # type: ignore[list-item]
    wrong = [setting for setting in chosen if not isinstance(setting, Setting)]
    if wrong or not chosen:
        got = wrong[0] if wrong else Unquoted("none")
        raise bad_request("Settings", "be one or more settings, e.g. [LEARNERS['td'].setting(alpha=0.1)]", got)
    return chosen
