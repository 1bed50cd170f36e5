"""The Boyan chain of the paper: 4p − 3 states in a row, with p features interpolated between every fourth state.

Table      the actions go one or two states forward, reward −0.3; from the last non-terminal state both actions lead
           to the terminal with reward −0.2
Start      the first state
Policies   behaviour = target: both actions with probability ½
Discount   1, and 0 into the terminal. The paper also gives the terminal a feature; bootstrapping from it would
           make A singular, because the features of a state sum to 1
Weights    0
"""

import numpy as np
import scipy.sparse as sp

from gradient_dd.errors import whole_number
from gradient_dd.tasks.task import Outcomes, Task
from gradient_dd.tasks.validation import check_size


def boyan_chain(n_features: int = 20) -> Task:
    """Make the Boyan chain with p = n_features; the true weights are −4(p − i)/5 for i = 1 … p."""
    p = whole_number("'n_features'", n_features, at_least=2)
    last = 4 * p - 4  # the terminal
    check_size("boyan_chain", last, 2 * last)
    state = np.repeat(np.arange(last), 2)
    action = np.tile([0, 1], last)
    return Task(
        name="boyan_chain",
        outcomes=Outcomes(
            state=state,
            action=action,
            next_state=np.minimum(state + 1 + action, last),
            probability=np.ones(2 * last),
            reward=np.where(state == last - 1, -0.2, -0.3),
        ),
        discount=np.ones(last + 1),
        start=np.eye(1, last + 1)[0],
        behaviour=np.full((last + 1, 2), 0.5),
        target=np.full((last + 1, 2), 0.5),
        feature_rows=interpolated(last + 1, p, every=4),
        initial_weights=np.zeros(p),
        parameters={"n_features": p},
    )


def interpolated(states: int, p: int, every: int) -> sp.csr_matrix:
    """Return features (states, p): state i has weight 1 − t on anchor k and t on k + 1, where i / every = k + t.

    States beyond the last anchor extrapolate from the last two anchors, so every row sums to 1 and values that are
    linear in the state are always representable.
    """
    place = np.arange(states) / every
    left = np.minimum(place.astype(int), p - 2)
    t = place - left
    rows = np.arange(states)
    matrix = sp.csr_matrix(
        (np.concatenate([1 - t, t]), (np.tile(rows, 2), np.concatenate([left, left + 1]))), shape=(states, p)
    )
    matrix.eliminate_zeros()
    return matrix
