"""The five-state walk: off-policy, with three sets of features.

Table      from each state left or right; reward −1 into the left terminal, +1 into the right one, else 0
Start      the centre
Policies   behaviour: both actions with ½. Target: left with 0.4, right with 0.6
Discount   1
Features   "tabular": one per state. "inverted": ½ everywhere but at the state's own place. "dependent": three features
           for the five states, (1, 0, 0), (1, 1, 0), (1, 1, 1), (0, 1, 1) and (0, 0, 1), each of length 1
Weights    0

Sutton et al. (2009), Fast gradient-descent methods for temporal-difference learning, has the walk and the features;
Ghiassian et al. (2020), Gradient temporal-difference learning with regularized corrections, the policies.
"""

import numpy as np
import scipy.sparse as sp

from gradient_dd.errors import one_of
from gradient_dd.tasks.task import Outcomes, Task

STATES = 5
FEATURES = {
    "tabular": np.eye(STATES),
    "inverted": 1.0 - np.eye(STATES),
    "dependent": np.array([[1.0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]]),
}


def five_state_walk(features: str = "tabular") -> Task:
    """Make the five-state walk; `features` is "tabular", "inverted" or "dependent"."""
    rows = FEATURES[one_of("'features'", features, FEATURES)]
    return two_sided_walk(
        "five_state_walk",
        target=np.array([0.4, 0.6]),
        features=rows / np.linalg.norm(rows, axis=1, keepdims=True),
        parameters={"features": features},
    )


def two_sided_walk(name: str, target: np.ndarray, features: np.ndarray, parameters: dict[str, object]) -> Task:
    """Make a walk over as many states as there are rows of features; −1 at the left end, +1 at the right."""
    m, p = features.shape
    state, action = np.repeat(np.arange(1, m + 1), 2), np.tile([0, 1], m)
    next_state = state + 2 * action - 1
    reward = (next_state == m + 1).astype(float) - (next_state == 0)
    empty = sp.csr_matrix((1, p))
    return Task(
        name=name,
        outcomes=Outcomes(state, action, next_state, np.ones(2 * m), reward),
        discount=np.ones(m + 2),
        start=np.eye(1, m + 2, m // 2 + 1)[0],
        behaviour=np.full((m + 2, 2), 0.5),
        target=np.tile(target, (m + 2, 1)),
        feature_rows=sp.vstack([empty, sp.csr_matrix(features), empty], format="csr"),
        initial_weights=np.zeros(p),
        parameters=parameters,
    )
