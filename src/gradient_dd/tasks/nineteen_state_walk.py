"""The 19-state walk: on-policy and tabular, the standard task for studying λ.

Table      from each state left or right; reward −1 into the left terminal, +1 into the right terminal, else 0
Start      the centre
Policies   behaviour = target: both actions with probability ½
Discount   1, so that the values are −0.9, −0.8, …, 0.9
Features   one per state
Weights    0

Sutton & Barto (2018), Reinforcement learning: an introduction, chapters 7 and 12.
"""

import scipy.sparse as sp

from gradient_dd.tasks.random_walk import walk
from gradient_dd.tasks.task import Task


def nineteen_state_walk() -> Task:
    """Make the 19-state walk."""
    return walk("nineteen_state_walk", sp.identity(19, format="csr"), {})
