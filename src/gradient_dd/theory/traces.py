"""Learners with traces: where they rest, and how fast their mean comes there when step sizes are small.

The step of every learner here is affine in (w, η) once the trace is given, and linear in the trace. So its mean is

    E[Δ(w, η)] = c − G (w, η),

with the trace at its mean, E[z | outcome], which `engine/mean_traces.py` computes from the trace's own function. The
rest point c = G (w, η) is exact: A w = b of the λ-weighted equation for TD(λ) and the gradient learners, of the
emphatic one for ETD. The rate is that of the limit of small step sizes. At a finite step size the trace and the weights
depend on each other, their product has a mean of its own, and no linear equation of this size holds.

Not exact, and refused: learners that use a sample twice (PGTD2, true-online TD). Along trajectories Gradient-DD's term
adds to the mean in the second order of the step size, which this leaves out.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.mean_step import mean_move, samples
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task
from gradient_dd.tasks.exact import inverse


class MeanDrift(NamedTuple):
    """E[Δ(w, η)] = c − G (w, η) for w that did not change in the step before; η is left out where there is none."""

    G: Array
    c: Array


def mean_drift(task: Task, setting: Setting) -> MeanDrift:
    """Return the mean update of a learner near rest, its traces at their mean."""
    rule, p = setting.rule, task.n_features
    if rule.uses_sample_twice or rule.natural:
        what = f"The mean update of {rule.name}"
        raise bad_request(what, "be linear in the sample for an exact mean", Unquoted("one that is not"))
    weighted = samples(task, setting)
    size = 2 * p if rule.has_eta else p

    def drift(state: Array) -> Array:
        w, eta = state[:p], state[p:] if rule.has_eta else np.zeros(p)
        return np.concatenate(mean_move(setting, weighted, w, eta, w))[:size]

    c = drift(np.zeros(size))
    return MeanDrift(np.column_stack([c - drift(unit) for unit in np.eye(size)]), c)


def rest_weights(task: Task, setting: Setting) -> Array:
    """Return where the mean of a learner rests: w (p,), of least norm where it is not unique."""
    G, c = mean_drift(task, setting)
    return (inverse(G) @ c)[: task.n_features]


def small_step_rate(task: Task, setting: Setting) -> float:
    """Return the share of its distance to rest that the slowest mode of the mean loses in a step; negative: unstable.

    It is the least real part of the eigenvalues of G, of the modes that move at all.
    """
    modes = np.linalg.eigvals(mean_drift(task, setting).G)
    moving = modes[np.abs(modes) > 1e-12 * np.abs(modes).max()]
    return float(moving.real.min())
