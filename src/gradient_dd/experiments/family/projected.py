"""The error that the authors of TDRC measured: the root of the mean squared projected Bellman error, over a run.

    RMSPBE(w) = √((b − A w)ᵀ C⁺ (b − A w))

A study keeps value errors; these runs are short, so they are made here, from the weights of the lane engine.
"""

from collections.abc import Sequence

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task

POINTS = 100  # errors of a run


def projected_errors(task: Task, weights: Array) -> Array:
    """Return the RMSPBE of each row of weights, (settings,)."""
    A, b, C = task.moments.A, task.moments.b, task.moments.C
    with np.errstate(all="ignore"):
        rest = b - weights @ A.T
        squared = np.einsum("sp,pq,sq->s", rest, np.linalg.pinv(C), rest)
    return np.where(np.isfinite(squared), np.sqrt(np.maximum(squared, 0.0)), np.inf)


def projected_area(task: Task, settings: Sequence[Setting], steps: int, runs: Sequence[int]) -> Array:
    """Return the mean RMSPBE over a run, (settings, runs)."""
    every = -(-steps // POINTS)
    areas = []
    for run in runs:
        lanes = LaneRun(task, settings, Horizon(steps=every * POINTS, every=every), run=run)
        total = np.zeros(len(settings))
        while not lanes.done:
            lanes.advance(every)
            total += projected_errors(task, lanes.weights()[0])
        areas.append(total / POINTS)
    return np.stack(areas, axis=1)
