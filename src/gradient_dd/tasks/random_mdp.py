"""Random off-policy tasks, for tests and experiments."""

from dataclasses import replace

import numpy as np

from gradient_dd.errors import boolean, checked_seed, number, whole_number
from gradient_dd.tasks.from_tables import from_tables
from gradient_dd.tasks.task import Task
from gradient_dd.tasks.validation import check_size


def random_mdp(
    n_states: int = 8,
    n_actions: int = 3,
    n_features: int = 4,
    discount: float = 0.9,
    episodic: bool = False,
    seed: int = 0,
) -> Task:
    """Make a dense random task: every action can lead to every state, and both policies take every action.

    Transitions and policies are drawn uniformly from their simplices, rewards and features from the standard
    normal distribution. `episodic` adds a terminal state that every action can enter.
    """
    n = whole_number("'n_states'", n_states, at_least=1)
    actions = whole_number("'n_actions'", n_actions, at_least=1)
    p = whole_number("'n_features'", n_features, at_least=1)
    seed = checked_seed(seed)
    discount = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
    states = n + boolean("'episodic'", episodic)
    check_size("random_mdp", states, states * states * actions + states * p)
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(states), size=(states, actions))
    R = rng.standard_normal((states, actions, states))
    if episodic:
        P[n], R[n] = np.eye(states)[n], 0.0
    task = from_tables(
        P,
        R,
        discount,
        behaviour=rng.dirichlet(np.ones(actions), size=states),
        target=rng.dirichlet(np.ones(actions), size=states),
        features=rng.standard_normal((n, p)),
        name="random_mdp",
    )
    chosen = {"n_states": n, "n_actions": actions, "n_features": p, "discount": discount, "seed": seed}
    return replace(task, parameters=chosen | ({"episodic": True} if episodic else {}))
