"""Baird's off-policy counterexample with N states.

Table      "dashed" (action 0) goes to one of the states 1 … N−1, each equally likely; "solid" (action 1)
           goes to state N. Rewards are zero and episodes never end
Policies   behaviour: dashed with probability (N−1)/N, solid 1/N, so that every state is equally frequent.
           Target: always solid
Discount   0.99
Features   2 e_j + e_{N+1} for j < N, e_N + 2 e_{N+1} for state N: p = N + 1 weights for N states, so A and C are
           singular and only the part of w in the row space of X is determined
Weights    (1, …, 1, 10, 1), or independent standard normal numbers drawn from `start_seed`. The updates are
           linear in w, so relative errors depend only on the direction of the initial w, which is uniform
Ratios     "standard": 0 for dashed and N for solid, target over behaviour.
           "paper": (N−1)/N for dashed and N for solid, as printed in the paper. (N−1)/N is the probability
           of dashed, not a ratio: E[ρ|s] = 1 + ((N−1)/N)² instead of 1, and TD then converges at N = 7
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from gradient_dd.errors import one_of, whole_number
from gradient_dd.tasks.task import Outcomes, Task
from gradient_dd.tasks.validation import check_size


def baird(n_states: int = 7, ratios: str = "standard", start_seed: int | None = None) -> Task:
    """Make Baird's counterexample with N = n_states, 3 or more; `ratios` is "standard" or "paper".

    If `start_seed` is given, the initial weights are drawn at random with this seed.
    """
    N = whole_number("'n_states'", n_states, at_least=3)
    one_of("'ratios'", ratios, ("standard", "paper"))
    check_size("baird", N, N * N)
    parameters: dict[str, Any] = {"n_states": N}
    if ratios != "standard":
        parameters["ratios"] = ratios
    weights = np.concatenate([np.ones(N - 1), [10.0, 1.0]])
    if start_seed is not None:
        parameters["start_seed"] = whole_number("'start_seed'", start_seed, at_least=0)
        weights = np.random.default_rng(parameters["start_seed"]).standard_normal(N + 1)
    # Outcomes of each state: N − 1 dashed, then one solid.
    next_state = np.tile(np.arange(N), N)
    action = (next_state == N - 1).astype(int)
    main = np.append(np.full(N - 1, 2.0), 1.0)
    shared = np.append(np.ones(N - 1), 2.0)
    return Task(
        name="baird",
        outcomes=Outcomes(
            state=np.repeat(np.arange(N), N),
            action=action,
            next_state=next_state,
            probability=np.where(action, 1.0, 1 / (N - 1)),
            reward=np.zeros(N * N),
        ),
        discount=np.full(N, 0.99),
        start=np.full(N, 1 / N),
        behaviour=np.tile([(N - 1) / N, 1 / N], (N, 1)),
        target=np.tile([0.0, 1.0], (N, 1)),
        feature_rows=sp.hstack([sp.diags(main), shared[:, None]], format="csr"),
        initial_weights=weights,
        ratios=np.tile([(N - 1) / N, float(N)], (N, 1)) if ratios == "paper" else None,
        parameters=parameters,
    )
