"""The five-state walk: off-policy, with three sets of features.

Table      from each state left or right; reward −1 into the left terminal, +1 into the right terminal, else 0
Start      the centre
Policies   behaviour: both actions with probability ½. Target: left with 0.4, right with 0.6
Discount   1
Features   "tabular": one per state. "inverted": ½ everywhere except at the state's own index. "dependent": three
           features for the five states, (1, 0, 0), (1, 1, 0), (1, 1, 1), (0, 1, 1) and (0, 0, 1), each of length 1
Weights    0

Walk and features: Sutton et al. (2009), Fast gradient-descent methods for temporal-difference learning. Policies:
Ghiassian et al. (2020), Gradient temporal-difference learning with regularized corrections.
"""

import numpy as np
import scipy.sparse as sp

from gradient_dd.errors import one_of
from gradient_dd.tasks.random_walk import walk
from gradient_dd.tasks.task import Task

STATES = 5
FEATURES = {
    "tabular": np.eye(STATES),
    "inverted": 1.0 - np.eye(STATES),
    "dependent": np.array([[1.0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]]),
}


def five_state_walk(features: str = "tabular") -> Task:
    """Make the five-state walk; `features` is "tabular", "inverted" or "dependent"."""
    rows = FEATURES[one_of("'features'", features, FEATURES)]
    unit = sp.csr_matrix(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    return walk("five_state_walk", unit, {"features": features}, target=(0.4, 0.6))
