"""Shadows: copies of a learner that get no reward, and the growth of their size, for any rule and setting.

Every learner here is linear in its weights z = (w, η, …): z ← M_t z + noise_t. A shadow is z ← M_t z on the same
transitions, from a random vector: the difference of two learners that began in different places. The growth of its
size per step tends to the largest Lyapunov exponent of the random matrices M_t, without a matrix or a model:

    below 0   the learner forgets where it began, at that rate
    above 0   two learners on the same data part for ever: it diverges, whatever the rewards

A shadow is a lane on the same task with zero rewards and a random start, so a whole grid of settings is measured in
one pass of the lane engine. The exponent is what almost every run does in the long run. Its mean square can grow all
the same (`theory.mean_square`): then bursts are rare and large. `log_exponents` measures the same on transitions of a
user's own, which are arrays in the order in which they are to be met.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun, check_settings
from gradient_dd.engine.reference import Weights
from gradient_dd.engine.stream_lanes import LaneMemory, lane_rows
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import bad_request, whole_number
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task

BLOCK = 100  # steps between two readings of the size: short enough for a growth by e⁵ a step
BURN_IN = 0.2  # share of the blocks left out, in which a shadow still turns towards the direction that lasts
GROUPS = 20  # of blocks, for the interval
QUANTILE = 2.09  # of Student's t with 19 degrees of freedom, two-sided 95 %


@dataclass(frozen=True)
class Exponents:
    """Growth of log ‖(w, η)‖ per step of every setting: the mean, and a 95 % interval from 20 stretches of time.

    mean, low, high  (settings,); inf where a shadow left the finite numbers within one block, −inf where it became 0
    growth           (starts, blocks, settings) of every block, per step
    """

    mean: Array
    low: Array
    high: Array
    growth: Array


def reward_free(task: Task, start: Array) -> Task:
    """Return the task without rewards, w beginning at `start`, on the same trajectories."""
    return replace(task, cumulant=np.zeros_like(task.outcomes.reward), initial_weights=np.array(start, dtype=float))


def random_starts(task: Task, starts: int, seed: int) -> Array:
    """Return random vectors of length 1 in the span of the features, (starts, p): elsewhere nothing ever moves."""
    draws = np.random.default_rng(seed).standard_normal((starts, task.n_states))
    vectors = draws @ task.features
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def exponents(
    task: Task,
    settings: Iterable[Setting],
    *,
    steps: int = 20_000,
    starts: int = 2,
    sampling: str = "trajectory",
    seed: int = 0,
    run: int = 0,
) -> Exponents:
    """Return the measured exponents of all settings on one stream of a task, with a constant step size."""
    chosen = check_settings(settings)
    blocks = whole_blocks(steps)
    vectors = random_starts(task, whole_number("'starts'", starts), seed)
    growth = np.array([lane_growth(reward_free(task, d), chosen, blocks, sampling, seed, run) for d in vectors])
    return summarised(growth)


def lane_growth(silent: Task, settings: Sequence[Setting], blocks: int, sampling: str, seed: int, run: int) -> Array:
    """Return the growth per step in every block, (blocks, settings), of lanes on a task without rewards."""
    horizon = Horizon(steps=blocks * BLOCK, every=blocks * BLOCK)
    lanes = LaneRun(silent, settings, horizon, sampling=sampling, seed=seed, run=run)
    growth = np.empty((blocks, len(settings)))
    before = np.full(len(settings), np.log(np.linalg.norm(silent.initial_weights)))
    for block in range(blocks):
        lanes.advance(BLOCK)
        w, eta = lanes.weights()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            size = np.sqrt((w * w).sum(axis=1) + (eta * eta).sum(axis=1))
            growth[block] = finite_log(size) - before
            rescale(lanes, np.where(size > 0, 1 / size, 1.0))
        before = np.zeros(len(settings))
    return growth / BLOCK


def rescale(lanes: LaneRun, factors: Array) -> None:
    """Multiply all weights of every lane, and its x·(w − w_prev), by a factor: without rewards nothing else changes."""
    from gradient_dd.engine.kernels.state import lane_fields

    for places, block in zip(lanes.places, lanes.blocks, strict=True):
        state, count = block.lanes, len(places)
        change = lane_fields(block.settings[0].rule).index("memory_x_change")
        for array in (state.w, state.eta):
            array.reshape(-1, len(block.errors.now))[:, :count] *= factors[places]
        state.fields.reshape(-1, block.stride)[change, :count] *= factors[places]


def reference_growth(silent: Task, setting: Setting, blocks: int, sampling: str, seed: int, run: int) -> Array:
    """Return the same for one setting, (blocks,), from the reference engine: slow and obviously right."""
    weights = Weights(setting, silent.initial_weights)
    rows = silent.row_features.toarray()
    row, next_row, _, discount, rho, _ = silent.transitions
    stream = OutcomeSampler(silent, seed, run, sampling)
    growth, before = np.empty(blocks), np.log(np.linalg.norm(weights.w))
    for block in range(blocks):
        for o in stream.take(BLOCK):
            weights.advance(setting, 1.0, rows[row[o]], 0.0, discount[o], rows[next_row[o]], rho[o])
        size = np.sqrt(weights.w @ weights.w + weights.eta @ weights.eta)
        growth[block] = np.log(size) - before
        before = np.log(size)
    return growth / BLOCK


def finite_log(size: Array) -> Array:
    """Return log size; inf where it is not a finite number."""
    return np.where(np.isfinite(size), np.log(size), np.inf)


def summarised(growth: Array) -> Exponents:
    """Return mean and interval of the growth, (starts, blocks, settings), after the burn-in."""
    late = growth[:, round(BURN_IN * growth.shape[1]) :].mean(axis=0)
    with np.errstate(invalid="ignore"):
        groups = np.array([part.mean(axis=0) for part in np.array_split(late, GROUPS)])
        groups = np.nan_to_num(groups, nan=np.inf, posinf=np.inf, neginf=-np.inf)
        mean = groups.mean(axis=0)
        half = QUANTILE * groups.std(axis=0, ddof=1) / np.sqrt(GROUPS)
    half = np.where(np.isfinite(half), half, 0.0)
    return Exponents(mean, mean - half, mean + half, growth)


def whole_blocks(steps: int) -> int:
    """Return how many blocks there are in so many steps; raise unless there are enough for an interval."""
    least = int(np.ceil(GROUPS / (1 - BURN_IN))) * BLOCK
    if whole_number("'steps'", steps) < least or steps % BLOCK:
        raise bad_request("'steps'", f"be a multiple of {BLOCK}, {least} or more", steps)
    return steps // BLOCK


class RewardlessRows(NamedTuple):
    """Transitions without their rewards: x and x_next (n, p), discount and rho (n,)."""

    x: Array
    discount: Array
    x_next: Array
    rho: Array


def log_exponents(rows: RewardlessRows, settings: Sequence[Setting], *, starts: int = 2, seed: int = 0) -> Exponents:
    """Return the measured exponents of all settings on transitions."""
    x, blocks = rows.x, whole_blocks(len(rows.x))
    if any(setting.rule.natural for setting in settings):
        raise bad_request("The rule of a shadow over a log", "be one whose step takes linear time", "a natural one")
    vectors = np.random.default_rng(seed).standard_normal((starts, len(x))) @ x  # in the span of the features
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    growth = np.empty((starts, blocks, len(settings)))
    for rule in dict.fromkeys(setting.rule for setting in settings):
        chosen = [k for k, setting in enumerate(settings) if setting.rule == rule]
        for start, vector in enumerate(vectors):
            lanes = LaneMemory([settings[k] for k in chosen], vector)
            growth[start][:, chosen] = memory_growth(lanes, blocks, rows)
    return summarised(growth)


def memory_growth(lanes: LaneMemory, blocks: int, rows: RewardlessRows) -> Array:
    """Return the growth per step in every block, (blocks, lanes), of lanes that begin with size 1."""
    growth = np.empty((blocks, lanes.count))
    for block in range(blocks):
        x, discount, x_next, rho = (column[block * BLOCK : (block + 1) * BLOCK] for column in rows)
        columns = np.zeros((BLOCK, 1)), discount[:, None], rho[:, None]
        lanes.advance(lane_rows(None, x), lane_rows(None, x_next), columns, np.ones(BLOCK))
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            size = np.sqrt((lanes.w**2).sum(axis=0) + (lanes.eta**2).sum(axis=0))
            growth[block] = np.where(lanes.stopped[: lanes.count] >= 0, np.inf, finite_log(size))
            factors = np.ones(len(lanes.scale))
            factors[: lanes.count] = np.where(np.isfinite(size) & (size > 0), 1 / size, 1.0)
        lanes.memory *= factors
        lanes.moved *= factors
    return growth / BLOCK
