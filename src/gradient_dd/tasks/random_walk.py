"""The random walk of the paper: m states in a row with a terminal at each end.

Table      from each state left or right with probability ½; reward 1 into the right terminal, else 0
Start      the centre; for even m the upper of the two middle states, S_{m/2+1}
Policies   behaviour = target: both actions with probability ½
Discount   1, since the paper gives the true values as i/(m+1)
Features   "tabular": one per state. "linear": one for every fourth state, interpolated in between
Weights    0.5, so that every value starts at 0.5
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from gradient_dd.errors import one_of, whole_number
from gradient_dd.tasks.boyan_chain import interpolated
from gradient_dd.tasks.task import Outcomes, Task
from gradient_dd.tasks.validation import check_size


def random_walk(
    n_states: int = 20, features: str = "tabular", n_features: int | None = None, start: int | None = None
) -> Task:
    """Make the random walk with states S_0 … S_{m+1}, m = n_states; the outer two are terminals.

    With features="linear" the anchors are S_1, S_5, S_9, …, up to the first anchor beyond the last state: 6 for m = 20.
    The paper says p = 5 for m = 20; the last anchor is then S_17, and n_features=5 extrapolates to the last states.
    `start` is the number of the initial state, 1 to m.
    """
    m = whole_number("'n_states'", n_states, at_least=1)
    check_size("random_walk", m, 2 * m)
    parameters: dict[str, Any] = {"n_states": m}
    if one_of("'features'", features, ("tabular", "linear")) == "tabular":
        if n_features is not None:
            whole_number("'n_features' of tabular features", n_features, at_least=m, at_most=m)
        rows = sp.identity(m, format="csr")
    else:
        most = max(-(-(m - 1) // 4) + 1, 2)  # up to the first anchor beyond the last state
        p = whole_number("'n_features'", most if n_features is None else n_features, at_least=2, at_most=most)
        parameters |= {"features": features, "n_features": p}
        rows = interpolated(m, p, every=4)
    if start is not None:
        parameters["start"] = whole_number("'start'", start, at_least=1, at_most=m)
    return walk("random_walk", rows, parameters, left_reward=0.0, weights=0.5)


def walk(
    name: str,
    features: sp.csr_matrix,
    parameters: dict[str, Any],
    target: tuple[float, float] = (0.5, 0.5),
    left_reward: float = -1.0,
    weights: float = 0.0,
) -> Task:
    """Make a walk with one state per row of features and reward 1 at the right end.

    Episodes start at the centre, unless `parameters` contains `start`.
    """
    m, p = features.shape
    state, action = np.repeat(np.arange(1, m + 1), 2), np.tile([0, 1], m)
    next_state, empty = state + 2 * action - 1, sp.csr_matrix((1, p))
    return Task(
        name=name,
        outcomes=Outcomes(
            state, action, next_state, np.ones(2 * m), (next_state == m + 1) + left_reward * (next_state == 0)
        ),
        discount=np.ones(m + 2),
        start=np.eye(1, m + 2, parameters.get("start", m // 2 + 1))[0],
        behaviour=np.full((m + 2, 2), 0.5),
        target=np.tile(target, (m + 2, 1)),
        feature_rows=sp.vstack([empty, features, empty], format="csr"),
        initial_weights=np.full(p, weights),
        parameters=parameters,
    )
