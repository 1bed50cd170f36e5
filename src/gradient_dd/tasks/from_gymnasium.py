"""Tasks from Gymnasium environments with a table `P`: FrozenLake, CliffWalking, Taxi and others.

Such a table lists outcomes (probability, next state, reward, done) for each state and action. Three details are easy
to get wrong:

    done      A done outcome ends the episode, even if the table continues after it, as at the goal of CliffWalking.
              All done outcomes lead to one additional terminal state, numbered after the others.
    states    The task omits states that the behaviour policy never reaches: they have no visits and no value.
    rewards   If several outcomes lead to the same state, their rewards are averaged, which preserves all values.

`task.states` keeps the environment's state numbers. `task.notes` describes every change.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from gradient_dd.errors import GradientDDError, Unquoted, bad_request, boolean, number, whole_number
from gradient_dd.tasks.from_tables import feature_rows, left_out, reachable, sparse_rows, start_distribution, table
from gradient_dd.tasks.task import Outcomes, Task

Row = tuple[int, int, int, float, float]  # state, action, next state, probability, reward


def from_gymnasium(
    env: Any,
    behaviour: Any = None,
    target: Any = None,
    discount: float = 1.0,
    features: Any = None,
    start: Any = None,
) -> Task:
    """Return the task that an environment's table defines: predict the values of `target` from data of `behaviour`.

    behaviour  (states, actions) probabilities of the behaviour policy; default uniform
    target     (states, actions) probabilities of the policy to evaluate; default uniform
    discount   continuation discount into every state that does not end the episode
    features   (states, p) or (reachable states, p), dense or SciPy sparse; default one-hot
    start      (states,) distribution of initial states, or one state; default the environment's own

    >>> import gymnasium
    >>> task = from_gymnasium(gymnasium.make("CliffWalking-v1"), discount=0.9)
    >>> task.n_states
    37
    """
    unwrapped, spec = getattr(env, "unwrapped", env), getattr(env, "spec", None)
    entries = getattr(unwrapped, "P", None)
    if entries is None:
        hint = "Use a Learner on the transitions instead."
        raise bad_request("'env'", "have a table of outcomes, env.unwrapped.P", env, hint)
    if start is None:
        start = getattr(unwrapped, "initial_state_distrib", None)
    if start is None:
        rule = "be given, because the environment does not say where episodes start"
        raise bad_request("'start'", rule, Unquoted("none"))
    rows, states, actions = read_rows(entries)
    name = type(env).__name__ if spec is None else spec.id
    uniform = np.full((states, actions), 1 / actions)
    acting, aimed = (
        np.vstack([table(name, what, uniform if policy is None else policy, (states, actions)), uniform[:1]])
        for what, policy in (("behaviour", behaviour), ("target", target))
    )
    first = np.append(start_distribution(name, start, np.zeros(states, bool)), 0.0)
    outcomes, averaged = merged(rows, (states + 1, actions, states + 1))
    if not (outcomes.next_state == states).any():
        raise bad_request(f"The table of {name}", "contain an outcome that ends the episode (done)", Unquoted("none"))
    visited = reachable(*outcomes[:3], acting, first)[:-1]
    used, unused = visited[outcomes.state], np.append(~visited, True)
    if features is not None:
        features = sparse_rows(features)
        if features.shape[0] == states:  # the terminal state has no features
            features = sp.vstack([features, sp.csr_matrix((1, features.shape[1]))])
    notes = list(left_out("are never reached or end episodes", ~visited))
    if averaged:
        notes.append(f"{averaged} outcomes had several rewards, which were averaged; this preserves all values.")
    if limit := getattr(spec, "max_episode_steps", None):
        notes.append(f"The limit of {limit} steps is not in the table: the values are for episodes without a limit.")
    return Task(
        name=name,
        outcomes=Outcomes._make(column[used] for column in outcomes),
        discount=np.full(states + 1, number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)),
        start=first,
        behaviour=acting,
        target=aimed,
        feature_rows=(x := feature_rows(name, features, unused, np.zeros_like(unused))),
        initial_weights=np.zeros(x.shape[1]),
        notes=tuple(notes),
    )


def read_rows(entries: Any) -> tuple[list[Row], int, int]:
    """Return the possible outcomes and the numbers of states and actions; a done outcome enters the extra terminal."""
    rows: list[Row] = []
    what = "The table of the environment"
    try:
        states, actions = len(entries), len(entries[0])
        for state in range(states):
            if len(entries[state]) != actions:
                rule = f"have {actions} actions, like state 0"
                raise bad_request(f"State {state} of the table", rule, len(entries[state]))
            for action in range(actions):
                rows += [read_row(state, action, states, *entry) for entry in entries[state][action]]
    except GradientDDError:
        raise
    except (KeyError, IndexError, TypeError, ValueError) as error:
        rule = "list (probability, next state, reward, done) for every state and action"
        raise bad_request(what, rule, Unquoted(f"{type(error).__name__}: {error}")) from None
    rows = [row for row in rows if row[3] > 0]
    if not rows:
        raise bad_request(what, "have an outcome with a probability above 0", Unquoted("none"))
    return rows, states, actions


def read_row(state: int, action: int, states: int, probability: Any, next_state: Any, reward: Any, done: Any) -> Row:
    """Return one checked outcome; if it is done, it leads to the additional terminal state."""
    entered = whole_number("A next state of the table", next_state, 0, states - 1)
    likely = number("A probability of the table", "be in [0, 1]", probability, low=0.0, high=1.0)
    paid = number("A reward of the table", "be a finite number", reward)
    return state, action, states if boolean("'done' in the table", done) else entered, likely, paid


def merged(rows: list[Row], shape: tuple[int, int, int]) -> tuple[Outcomes, int]:
    """Return one outcome per (state, action, next state), in that order, and the number of averaged rewards."""
    *places, probability, reward = map(np.array, zip(*rows, strict=True))
    code, which = np.unique(np.ravel_multi_index(places, shape), return_inverse=True)
    likely = np.bincount(which, probability).astype(float)
    different = np.unique(np.column_stack([which, reward]), axis=0)[:, 0].astype(int)
    state, action, next_state = np.unravel_index(code, shape)
    outcomes = Outcomes(state, action, next_state, likely, np.bincount(which, probability * reward) / likely)
    return outcomes, int((np.bincount(different) > 1).sum())
