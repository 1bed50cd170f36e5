"""The random MDP of Dann, Neumann & Peters: every action can lead to every state.

Table      transition weights uniform on (0, 1), normalised for each state and action; rewards uniform on (0, 1) for
           each state and action
Start      uniform; episodes never end
Policies   action weights uniform on (0, 1), normalised, drawn for each state and separately for both policies
Discount   0.95
Features   uniform on (0, 1); the last feature is always 1
Weights    0

Dann, Neumann & Peters (2014), Policy evaluation with temporal differences: a survey and comparison. The
authors use `dann_mdp(400, n_features=200)`: 400 states, 10 actions, 200 features and 1.6 million outcomes.
"""

from dataclasses import replace

import numpy as np

from gradient_dd.errors import checked_seed, whole_number
from gradient_dd.tasks.from_tables import from_tables
from gradient_dd.tasks.task import Task
from gradient_dd.tasks.validation import check_size


def dann_mdp(n_states: int = 30, n_actions: int = 10, n_features: int = 15, seed: int = 0) -> Task:
    """Make the random MDP with these sizes, drawn from `seed`; the last feature is always 1."""
    n = whole_number("'n_states'", n_states, at_least=2)
    actions = whole_number("'n_actions'", n_actions, at_least=1)
    p = whole_number("'n_features'", n_features, at_least=1)
    seed = checked_seed(seed)
    check_size("dann_mdp", n, n * n * actions + n * p)
    rng = np.random.default_rng(seed)
    P = normalised(rng.uniform(1e-5, 1.0, (n, actions, n)))
    task = from_tables(
        P,
        R=rng.random((n, actions)),
        discount=0.95,
        behaviour=normalised(rng.uniform(1e-5, 1.0, (n, actions))),
        target=normalised(rng.uniform(1e-5, 1.0, (n, actions))),
        features=np.column_stack([rng.random((n, p - 1)), np.ones(n)]),
        name="dann_mdp",
    )
    return replace(task, parameters={"n_states": n, "n_actions": actions, "n_features": p, "seed": seed})


def normalised(weights: np.ndarray) -> np.ndarray:
    """Return weights divided by their sum over the last axis."""
    return weights / weights.sum(axis=-1, keepdims=True)
