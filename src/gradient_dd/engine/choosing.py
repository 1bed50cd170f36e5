"""Runs of the learner that chooses (`stream/shadows.py`) on tasks, compiled."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine import ladder
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.schedules import Schedule, constant
from gradient_dd.engine.trajectories import Stream
from gradient_dd.tasks import Task


@dataclass(frozen=True)
class Chosen:
    """The error after every so many steps and the rung chosen then, (points,) each, and w at the end."""

    errors: Array
    choices: NDArray[np.int64]
    w: Array


def run_shadow_learner(
    task: Task,
    alpha: float | None = None,
    *,
    steps: int,
    every: int = 1,
    schedule: Schedule = constant,
    sampling: str = "trajectory",
    seed: int = 0,
    run: int = 0,
    values: Array | None = None,
    shadow_seed: int = 0,
) -> Chosen:
    """Run it on one stream of a task; the error is the root mean square distance to `values`, the true ones by default.

    The weights are those of `ShadowLearner(p, alpha, seed=shadow_seed)` on the same stream, to the bit.
    """
    from gradient_dd.engine.kernels.shadows import run as run_compiled

    Horizon(steps=steps, every=every).check(task)
    task.check_asked_everywhere("a ShadowLearner")
    column = Stream(task, seed, run, sampling).take(steps)
    row, next_row, reward, discount, rho, ends = task.transitions
    outcomes = tuple(np.ascontiguousarray(array) for array in (row, next_row, reward, discount, rho))
    ended = np.concatenate([[0], np.cumsum(ends[column])[:-1]])
    factors = schedule.factors(np.arange(1, steps + 1) if schedule.per == "step" else ended + 1)
    chosen = ladder.WIDE if alpha is None else ladder.NARROW
    *numbers, averages = np.array(chosen.rungs, dtype=float).T
    columns = *(np.repeat(column, ladder.COPIES) for column in numbers), averages.astype(np.int64)
    rules = tuple(map(float, (chosen.caution, chosen.largest, chosen.sudden, chosen.centre, chosen.wait)))
    vectors = np.random.default_rng(shadow_seed).standard_normal((task.n_features, ladder.STARTS))
    odd = np.asarray(np.random.PCG64DXSM(shadow_seed).random_raw(steps), np.uint64) & np.uint64(1)
    root = np.sqrt(task.visits)
    measure = root[:, None] * task.features, root * (task.true_values if values is None else values)
    return Chosen(
        *run_compiled(
            column,
            factors,
            np.where(odd == 1, 1.0, -1.0),
            outcomes,
            rows_of(task),
            columns,
            rules,
            chosen.first,
            float(alpha or 0.0),
            np.array(task.initial_weights, dtype=float),
            vectors,
            measure,
            every,
        )
    )


def rows_of(task: Task) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
    """Return indices, values (rows, k) and counts (rows,) of the non-zeros of every feature row, terminals included."""
    rows = task.row_features.copy()
    rows.eliminate_zeros()
    rows.sort_indices()
    counts = np.diff(rows.indptr).astype(np.int64)
    place = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], counts)
    line = np.repeat(np.arange(rows.shape[0]), counts)
    indices = np.zeros((rows.shape[0], max(1, int(counts.max(initial=0)))), np.int64)
    values = np.zeros(indices.shape)
    indices[line, place], values[line, place] = rows.indices, rows.data
    return indices, values, counts
