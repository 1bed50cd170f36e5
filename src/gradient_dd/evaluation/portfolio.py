"""A portfolio: settings of several rules on one stream, each with copies that learn from bootstrap samples of it.

A copy sees every block of the stream with a weight drawn from the Poisson distribution of mean 1: some blocks count
twice, and e⁻¹ = 37 % of them not at all. The spread of the copies is the doubt about the full lane, and the blocks that
a copy has not seen are held out from it. Weights are averaged over the last half to three quarters of the stream.

Shadows follow the same stream and say without a matrix whether TD is stable on it: they are copies of TD that get no
reward. A shadow is the difference of two TD learners that began in different places. Where it dies out TD forgets where
it began; where it grows TD diverges, whatever the rewards. Its size is the root mean square of its values at the states
visited, chunk after chunk.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from os import cpu_count
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.engine.single import FeatureRows
from gradient_dd.engine.stream_lanes import LaneMemory, lane_rows
from gradient_dd.evaluation.episodes import GROUPS
from gradient_dd.evaluation.moments import lane_values
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.learners import LEARNERS, Rule, Setting
from gradient_dd.stream.auto import AutoLearner
from gradient_dd.stream.features import Rows
from gradient_dd.studies.intervals import poisson_resamples

TRIED = ("td", "tdrc", "gradient_dd", "gtd2")
MULTIPLES = (0.4, 0.15, 0.05, 0.02, 0.006, 0.002)  # of 1 / mean |x|²; twice 0.5 would make TDRC forget η at once
COPIES, FEW_COPIES = 8, 3  # of each setting, for few and for many features
MANY_FEATURES = 100_000  # from here on weights have single precision and are not averaged: memory is short
MOST_LANES = 4.8e7  # over n_features: lanes with so many features
FIRST_AVERAGE = 1000  # updates before the average begins anew for the first time
STARTS = 2  # shadows of each step size
SHADOW_MULTIPLES = (0.4, 0.2, 0.1, 0.04)  # step sizes of shadows, over 1 / mean |x|²
DEAD, GROWN = 0.05, 20.0  # a shadow of this size, over its size at the beginning, has died out or has grown
CHUNK = 1000  # rows between two readings of the shadows


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


def settings_to_try(unit: float, n_features: int, rule: Rule | None, parameters: Mapping[str, Any]) -> list[Setting]:
    """Return the settings of a rule with these parameters, or of several rules.

    Where `alpha` is not given, step sizes are tried over two and a half decades below `unit`; fewer settings where
    memory is short.
    """
    if rule is not None and "alpha" in parameters:
        return [rule.setting(**parameters)]
    chosen = [LEARNERS[name] for name in TRIED] if rule is None else [rule]
    most = max(3, int(MOST_LANES / n_features / (1 + copies_of(n_features))))
    multiples: tuple[float, ...] = MULTIPLES
    if len(chosen) * len(multiples) > most:
        chosen, multiples = chosen[:3], MULTIPLES[0:5:2]
    return [one.setting(alpha=unit * multiple, **parameters) for multiple in multiples for one in chosen][:most]


class Portfolio:
    """Lanes of several rules, and their copies.

    settings  the settings; lane (k, 0) is setting k on the whole stream, lane (k, 1 + r) its copy r
    unit      1 / mean |x|², of which the step sizes of the shadows are multiples
    weights   (groups, copies) how often each copy counts a group
    shadows   of TD, on the same stream;  autos  `AutoLearner` and its copies, or nothing
    """

    saved = ("lanes", "shadows", "autos", "older", "steps", "turn", "every")

    def __init__(
        self, settings: Sequence[Setting], initial_w: Array, unit: float, seed: int, with_auto: bool = False
    ) -> None:
        self.settings, copies = list(settings), copies_of(len(initial_w))
        self.initial_w, self.seed = initial_w, seed
        self.shadows = TdShadows(len(initial_w), unit, seed)
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
        self.autos = [AutoCopies(initial_w, self.weights)] if with_auto else []
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
            lanes.advance(here, there, columns, ones, group, table)

        list(threads().map(advance, self.lanes, self.table))  # kernels of different rules share nothing
        self.shadows.learn(batch)
        for one in self.autos:
            one.learn(batch, group)
        self.steps += len(batch)
        if self.steps >= self.turn and self.averaged:
            self.older = self._window()
            self._average_anew()
            for one in self.autos:
                one.look_back()
            self.turn = 2 * self.steps

    def _average_anew(self) -> None:
        for lanes in self.lanes:
            lanes.average_from_now(self.every)

    def averages(self) -> Array:
        """Return the averaged weights, (settings, 1 + copies, p)."""
        window = self._window()
        if self.older:
            pairs = zip(window, self.older, strict=True)
            window = [(sums + more, count + again) for (sums, count), (more, again) in pairs]
        return self._averaged(window)

    def moved(self, setting: Setting | None) -> tuple[Array, Array] | None:
        """Return the weights of a setting averaged over the older and over the newer window, (p,) each.

        None where there is no older window, or no setting.
        """
        if setting is None or not self.older:
            return None
        k = self.settings.index(setting)
        return self._averaged(self.older)[k, 0], self._averaged(self._window())[k, 0]

    def diverged(self) -> list[int]:
        """Return for each setting the first update at which the setting or a copy diverged, or 0."""
        found = [0] * len(self.settings)
        for places, lanes in zip(self.places, self.lanes, strict=True):
            steps = lanes.stopped[: lanes.count].reshape(len(places), -1) + 1
            for k, row in zip(places, steps, strict=True):
                found[k] = int(row[row > 0].min()) if (row > 0).any() else 0
        return found

    def _window(self) -> list[tuple[Array, int]]:
        """Return the sums of weights since the average began anew, and how many were added, for every rule."""
        return [(lanes.sums, lanes.counted) for lanes in self.lanes]

    def _averaged(self, window: list[tuple[Array, int]]) -> Array:
        """Return the mean weights of a window, (settings, 1 + copies, p); the present ones where it is empty."""
        found = np.empty((len(self.settings), 1 + self.copies, len(self.initial_w)), self.lanes[0].w.dtype)
        for places, lanes, (sums, count) in zip(self.places, self.lanes, window, strict=True):
            mean = sums[:, : lanes.count] / count if count else lanes.w
            found[places] = mean.T.reshape(len(places), 1 + self.copies, -1)
        return found


class AutoCopies:
    """`AutoLearner` on the whole stream, and copies of it that see every row as often as its group counts for them.

    agents  the first learns from the whole stream;  weights  (groups, copies) how often each copy counts a group
    older   (p,) what the first had learnt when the stream was half as long or a little more; empty before
    """

    saved = ("arrays", "older")

    def __init__(self, initial_w: Array, weights: Array) -> None:
        self.weights = np.column_stack([np.ones(len(weights)), weights]).astype(np.int64)
        self.agents = [AutoLearner(len(initial_w), initial_w=initial_w) for _ in self.weights.T]
        self.older = np.empty(0)

    def learn(self, batch: Transitions, group: Integers) -> None:
        """Learn from a batch whose rows belong to these groups."""

        def advance(agent: AutoLearner, times: Integers) -> None:
            seen = batch.part(np.repeat(np.arange(len(batch)), times[group]))
            x, x_next = ((rows.values if rows.indices is None else tuple(rows)) for rows in (seen.x, seen.x_next))
            agent.update_many(x, seen.reward, seen.discount, x_next, seen.rho)

        list(threads().map(advance, self.agents, self.weights.T))

    def look_back(self) -> None:
        """Keep what the first agent has learnt by now."""
        self.older = self.agents[0].w

    def moved(self) -> tuple[Array, Array] | None:
        """Return the weights of before, and those of now, (p,) each; None where there are none of before."""
        return (self.older, self.agents[0].w) if len(self.older) else None

    @property
    def arrays(self) -> list[Array]:
        """All that the agents know: the arrays of one after the other."""
        return [array for agent in self.agents for array in agent.arrays().values()]

    @arrays.setter
    def arrays(self, arrays: list[Array]) -> None:
        each = len(arrays) // len(self.agents)
        for place, agent in enumerate(self.agents):
            agent.put_back(dict(zip(agent.arrays(), arrays[place * each :][:each], strict=False)))


NOT_ASKED = "not asked"  # of TD, where action values are solved


class TdStability(NamedTuple):
    """What the shadows say of TD.

    verdict  "stable", "unstable", "unclear" where the stream is too short to tell, or "not asked"
    dead     share of the shadows that died out;  grown  share of the shadows that grew
    """

    verdict: str
    dead: float
    grown: float


class TdShadows:
    """Shadows of TD at several step sizes, fed with the same batches as the learners."""

    saved = ("lanes", "sizes")

    def __init__(self, n_features: int, unit: float, seed: int) -> None:
        settings = [
            LEARNERS["td"].setting(alpha=unit * multiple) for multiple in SHADOW_MULTIPLES for _ in range(STARTS)
        ]
        self.lanes = LaneMemory(settings, np.zeros(n_features), precision(n_features))
        vectors = np.random.default_rng(seed).standard_normal((n_features, STARTS))
        self.lanes.w[:] = np.tile(vectors, len(SHADOW_MULTIPLES))
        self.sizes: list[Array] = []

    def learn(self, batch: Transitions) -> None:
        """Let the shadows learn from a batch, and note their sizes before every chunk."""
        for begin in range(0, len(batch), CHUNK):
            part = batch.part(slice(begin, begin + CHUNK))
            with np.errstate(over="ignore", invalid="ignore"):
                self.sizes.append(np.sqrt((lane_values(part.x, self.lanes.w) ** 2).mean(axis=0)))
            rows = as_lane_rows(part.x), as_lane_rows(part.x_next)
            columns = np.zeros((len(part), 1)), part.discount[:, None], part.rho[:, None]
            self.lanes.advance(*rows, columns, np.ones(len(part)))

    def verdict(self) -> TdStability:
        """Return whether TD is stable: what the smallest step size says whose shadows died out or grew."""
        if not self.sizes:
            return TdStability("unclear", 0.0, 0.0)
        first, last = self.sizes[0], self.sizes[-1]
        stopped = self.lanes.stopped[: self.lanes.count] >= 0
        grown = (stopped | ~(last <= GROWN * first)).reshape(len(SHADOW_MULTIPLES), STARTS)
        dead = (last < DEAD * first).reshape(grown.shape) & ~grown
        shares = float(dead.mean()), float(grown.mean())
        for row in range(len(SHADOW_MULTIPLES) - 1, -1, -1):
            if dead[row].mean() > 0.5:
                return TdStability("stable", *shares)
            if grown[row].mean() > 0.5:
                return TdStability("unstable", *shares)
        return TdStability("unclear", *shares)


def as_lane_rows(rows: Rows) -> FeatureRows:
    """Return feature rows as lanes read them."""
    return lane_rows(rows.indices, rows.values)
