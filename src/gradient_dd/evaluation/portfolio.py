"""A portfolio: settings of several rules on one stream, each with copies that learn from bootstrap samples of it.

A copy sees every block of the stream with a weight drawn from the Poisson distribution of mean 1: some blocks count
twice, and e⁻¹ = 37 % of them not at all. The spread of the copies is the doubt about the full lane, and the blocks that
a copy has not seen are held out from it. Weights are averaged over the last half to three quarters of the stream.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from os import cpu_count
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.engine.stream_lanes import LaneMemory, LaneRows, lane_rows
from gradient_dd.evaluation.episodes import GROUPS
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.learners import LEARNERS, Rule, Setting
from gradient_dd.stream.features import Rows
from gradient_dd.studies.intervals import poisson_resamples

TRIED = ("td", "tdrc", "gradient_dd", "gtd2")
MULTIPLES = (0.4, 0.15, 0.05, 0.02, 0.006, 0.002)  # of 1 / mean |x|²; twice 0.5 would make TDRC forget η at once
COPIES, FEW_COPIES = 8, 3  # of each setting, for few and for many features
MANY_FEATURES = 100_000  # from here on weights have single precision and are not averaged: memory is short
MOST_LANES = 4.8e7  # over n_features: lanes with so many features
FIRST_AVERAGE = 1000  # updates before the average begins anew for the first time


@cache
def threads() -> ThreadPoolExecutor:
    """Return the threads on which kernels run."""
    return ThreadPoolExecutor(cpu_count() or 1)


def copies_of(n_features: int) -> int:
    """Return how many copies each setting has."""
    return COPIES if n_features < MANY_FEATURES else FEW_COPIES


def precision(n_features: int) -> Any:
    """Return the kind of numbers in which weights are kept."""
    return np.float64 if n_features < MANY_FEATURES else np.float32


def default_settings(unit: float, n_features: int, rules: Sequence[Rule] | None = None) -> list[Setting]:
    """Return the settings to try: step sizes over two and a half decades below `unit`; fewer where memory is short."""
    chosen = [LEARNERS[name] for name in TRIED] if rules is None else list(rules)
    most = max(3, int(MOST_LANES / n_features / (1 + copies_of(n_features))))
    multiples: tuple[float, ...] = MULTIPLES
    if len(chosen) * len(multiples) > most:
        chosen, multiples = chosen[:3], MULTIPLES[0:5:2]
    return [rule.setting(alpha=unit * multiple) for multiple in multiples for rule in chosen][:most]


class Portfolio:
    """Lanes of several rules, and their copies.

    settings  the settings; lane (k, 0) is setting k on the whole stream, lane (k, 1 + r) its copy r
    weights   (groups, copies) how often each copy counts a group
    """

    def __init__(self, settings: Sequence[Setting], initial_w: Array, seed: int) -> None:
        self.settings, copies = list(settings), copies_of(len(initial_w))
        self.initial_w, self.seed = initial_w, seed
        self.copies, self.averaged = copies, len(initial_w) < MANY_FEATURES
        kind = precision(len(initial_w))
        self.weights = poisson_resamples(GROUPS, copies, seed)
        each = np.column_stack([np.ones(GROUPS), self.weights])
        rules = dict.fromkeys(setting.rule for setting in self.settings)
        self.places = [[k for k, one in enumerate(self.settings) if one.rule == rule] for rule in rules]
        self.lanes = []
        for places in self.places:
            several = [self.settings[k] for k in places for _ in range(1 + copies)]
            self.lanes.append(LaneMemory(several, initial_w, kind))
        self.table = [np.tile(each, len(places)) for places in self.places]
        self.older: list[tuple[Array, int]] = []
        self.steps, self.turn = 0, FIRST_AVERAGE
        self.every = 0

    def learn(self, batch: Transitions, group: Integers) -> None:
        """Learn from a batch whose rows belong to these groups."""
        here, there = (as_lane_rows(rows) for rows in (batch.x, batch.x_next))
        if not self.every and self.averaged:
            p, k = self.lanes[0].memory.shape[0], max(1, batch.x.values.shape[1])
            self.every = max(4, p // k)
            self._average_anew()
        columns = batch.reward[:, None], batch.discount[:, None], batch.rho[:, None]
        ones = np.ones(len(batch))

        def advance(lanes: LaneMemory, table: Array) -> None:
            lanes.advance(here, there, batch.x.indices is None, columns, ones, group, table)

        list(threads().map(advance, self.lanes, self.table))  # kernels of different rules share nothing
        self.steps += len(batch)
        if self.steps >= self.turn and self.averaged:
            self.older = [(lanes.sums, lanes.counted) for lanes in self.lanes]
            self._average_anew()
            self.turn = 2 * self.steps

    def _average_anew(self) -> None:
        for lanes in self.lanes:
            lanes.average_from_now(self.every)

    def averages(self) -> Array:
        """Return the averaged weights, (settings, 1 + copies, p)."""
        return self._gathered([self._mean(i) for i in range(len(self.lanes))])

    def halves(self) -> tuple[Array, Array]:
        """Return the averages of the older and of the newer window of the full lanes, (settings, p) each."""
        old, new = [], []
        for i, lanes in enumerate(self.lanes):
            sums, count = self.older[i] if self.older else (lanes.sums, lanes.counted)
            old.append(sums[:, : lanes.count] / count if count else lanes.w)
            new.append(lanes.sums[:, : lanes.count] / lanes.counted if lanes.counted else lanes.w)
        return self._gathered(old)[:, 0], self._gathered(new)[:, 0]

    def diverged(self) -> list[int]:
        """Return for each setting the first update at which it or a copy diverged, or 0."""
        found = [0] * len(self.settings)
        for places, lanes in zip(self.places, self.lanes, strict=True):
            steps = lanes.stopped[: lanes.count].reshape(len(places), -1) + 1
            for k, row in zip(places, steps, strict=True):
                found[k] = int(row[row > 0].min()) if (row > 0).any() else 0
        return found

    def _mean(self, i: int) -> Array:
        lanes = self.lanes[i]
        sums, count = lanes.sums, lanes.counted
        if self.older:
            sums, count = sums + self.older[i][0], count + self.older[i][1]
        return sums[:, : lanes.count] / count if count else lanes.w

    def _gathered(self, columns: list[Array]) -> Array:
        """Return (settings, 1 + copies, p) from the (p, lanes) of every rule."""
        found = np.empty((len(self.settings), 1 + self.copies, len(columns[0])), columns[0].dtype)
        for places, weights in zip(self.places, columns, strict=True):
            found[places] = weights.T.reshape(len(places), 1 + self.copies, -1)
        return found


def as_lane_rows(rows: Rows) -> LaneRows:
    """Return feature rows as lanes read them."""
    return lane_rows(rows.indices, rows.values)
