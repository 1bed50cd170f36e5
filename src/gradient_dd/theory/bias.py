"""Bias: how far from w* the mean of a learner comes to rest with a constant step size.

The means by state (`dynamics`) come to rest where m = T m + offset, p being the visits. With independent draws E[w] is
then w* for every learner here. Along trajectories weights and state stay correlated, and this leaves a bias of the
order of alpha in E[w]. No number of runs averages it away; a smaller step size does.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from gradient_dd.learners import Setting
from gradient_dd.tasks import Task
from gradient_dd.theory.dynamics import MeanOperator
from gradient_dd.theory.stability import in_row_space


def steady_state_bias(task: Task, setting: Setting, sampling: str = "trajectory") -> float:
    """Return the RMSVE of E[w] at rest, which the mean reaches only where it is stable."""
    reduced = in_row_space(task)
    operator = MeanOperator(reduced, setting, sampling)
    groups, size = operator.shape
    visits = np.ones(1) if groups == 1 and sampling == "iid" else reduced.visits
    still = spsolve(sp.csc_matrix(-operator.generator()), operator.offset(visits).ravel())
    return reduced.rmsve(still.reshape(groups, size)[:, operator.maps.part("w")].sum(axis=0))
