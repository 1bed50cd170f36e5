"""Collision: eight states in a row that lead to a wall, with features that cannot separate all states.

Table      forward leads from state s to s + 1, and from the last state into the wall: the end, with reward 1.
           From the fifth state on, retreat ends the episode with reward 0
Start      one of the first four states, each equally likely
Policies   behaviour: forward in the first four states, in the others forward or retreat, each with ½. Target: forward
Discount   0.9, so that the value of state s is 0.9^(7 − s)
Features   6 binary features, 3 of them active in each state, drawn from the seed. The rank is below 6
           for a third of the seeds, so compare values, not weights
Weights    0

Ghiassian & Sutton (2021), An empirical comparison of off-policy prediction learning algorithms on the Collision task.
The authors redraw the features in every run; to do the same, use one task per seed in a study.
"""

import numpy as np
import scipy.sparse as sp

from gradient_dd.errors import checked_seed
from gradient_dd.tasks.task import Outcomes, Task

STATES, FIRST_RETREAT, FEATURES, ONES = 8, 4, 6, 3
FORWARD, RETREAT = 0, 1


def collision(seed: int = 0) -> Task:
    """Make the Collision task with the features that `seed` draws."""
    seed = checked_seed(seed)
    state, action = np.repeat(np.arange(STATES), 2), np.tile([FORWARD, RETREAT], STATES)
    end = STATES
    retreats = (action == RETREAT) & (state >= FIRST_RETREAT)  # in earlier states both actions go forward
    next_state = np.where(retreats, end, state + 1)
    crash = (state == STATES - 1) & ~retreats
    behaviour = np.tile([1.0, 0.0], (STATES + 1, 1))
    behaviour[FIRST_RETREAT:] = 0.5
    ranks = np.argsort(np.random.default_rng(seed).random((STATES, FEATURES)), axis=1)
    features = np.vstack([ranks < ONES, np.zeros(FEATURES)])  # three ones in each row, drawn without replacement
    return Task(
        name="collision",
        outcomes=Outcomes(state, action, next_state, np.ones(2 * STATES), crash.astype(float)),
        discount=np.full(STATES + 1, 0.9),
        start=(np.arange(STATES + 1) < FIRST_RETREAT) / FIRST_RETREAT,
        behaviour=behaviour,
        target=np.tile([1.0, 0.0], (STATES + 1, 1)),
        feature_rows=sp.csr_matrix(features),
        initial_weights=np.zeros(FEATURES),
        parameters={"seed": seed},
    )
