"""Tasks from your own tables."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import LARGEST, Array, Booleans, Integers, check_memory, numbers, sparse_numbers
from gradient_dd.errors import Unquoted, bad_request, one_of, text
from gradient_dd.tasks.task import Outcomes, Task
from gradient_dd.tasks.validation import TOLERANCE, reached


def from_tables(
    P: Any,
    R: Any,
    discount: Any,
    behaviour: Any,
    target: Any = None,
    start: Any = None,
    features: Any = None,
    initial_weights: Any = None,
    ratios: Any = None,
    name: str = "mine",
    keep: str = "all",
) -> Task:
    """Make a task from your own Markov decision process.

    P                (states, actions, states) transition probabilities. A state that no action leaves and that
                     has no rewards is terminal: entering it ends the episode. The probability of leaving any
                     other state must exceed 1e-9; rows must sum to 1 within the same tolerance
    R                rewards: (states, actions, states), or (states, actions), or one number; up to 1e50
    discount         a number in [0, 1], or one per state: the continuation discount into it. Discounts into
                     terminals are always 0
    behaviour        (states, actions) probabilities of the behaviour policy
    target           (states, actions) probabilities of the policy to evaluate; default `behaviour`
    start            (states,) distribution of initial states, or one state; default uniform over non-terminals
    features         (states, p) or (non-terminal states, p), dense or SciPy sparse; default one-hot
    initial_weights  (p,) default 0
    ratios           (states, actions) importance ratios, if not target / behaviour; they determine A and b
    keep             "all", or "reachable": omit states that the behaviour policy never reaches from the start.
                     `task.states` has the numbers of the kept states, and `task.notes` lists the omitted ones

    >>> import numpy as np
    >>> stay_or_end = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    >>> task = from_tables(stay_or_end, R=[[[0, 1]], [[0, 0]]], discount=1.0, behaviour=np.ones((2, 1)))
    >>> task.true_values
    array([1.])
    """
    text("The name of a task", name)
    P = table(name, "P", P)
    if P.ndim != 3 or P.shape[0] != P.shape[2] or not P.size:
        raise bad_request(f"Task {name!r}: the shape of 'P'", "be (states, actions, states)", P.shape)
    states, actions = P.shape[:2]
    R = table(name, "R", R)
    if R.shape not in ((), P.shape, P.shape[:2]):
        rule = f"be {P.shape}, or {P.shape[:2]}, or one number"
        raise bad_request(f"Task {name!r}: the shape of 'R'", rule, R.shape)
    R = np.broadcast_to(R[:, :, None] if R.shape == P.shape[:2] else R, P.shape)
    acting, target = (
        table(name, what, policy, (states, actions))
        for what, policy in (("behaviour", behaviour), ("target", behaviour if target is None else target))
    )
    loop = np.arange(states)
    stays = (np.abs(P[loop, :, loop] - 1) <= TOLERANCE) & (np.count_nonzero(P, axis=2) == 1)
    terminal = (stays & (R[loop, :, loop] == 0)).all(axis=1)
    first, weights = start_distribution(name, start, terminal), 0 if initial_weights is None else initial_weights
    missing = np.zeros(states, bool)
    if one_of("'keep'", keep, ("all", "reachable")) == "reachable":
        here, action, there = np.nonzero((P != 0) & ~terminal[:, None, None])
        missing = ~terminal & ~reachable(here, action, there, acting, first)
    state, action, next_state = np.nonzero((P != 0) & ~(terminal | missing)[:, None, None])
    return Task(
        name=name,
        outcomes=Outcomes(state, action, next_state, P[state, action, next_state], R[state, action, next_state]),
        discount=broadcast(name, "discount", discount, (states,)),
        start=first,
        behaviour=acting,
        target=target,
        feature_rows=(rows := feature_rows(name, features, terminal, missing)),
        initial_weights=broadcast(name, "initial_weights", weights, rows.shape[1:]),
        ratios=None if ratios is None else table(name, "ratios", ratios, (states, actions)),
        notes=left_out("are never reached", missing),
    )


def table(task: str, what: str, value: Any, shape: tuple[int, ...] | None = None) -> np.ndarray:
    """Return a new float array; raise unless its numbers are finite and not too large, and its shape is `shape`."""
    array = numbers(f"Task {task!r}: {what!r}", value, LARGEST).copy()
    if shape is not None and array.shape != shape:
        raise bad_request(f"Task {task!r}: the shape of {what!r}", f"be {shape}", array.shape)
    return array


def broadcast(task: str, what: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return the numbers broadcast to `shape`, or raise."""
    array = table(task, what, value)
    try:
        return np.broadcast_to(array, shape).copy()
    except ValueError:
        raise bad_request(f"Task {task!r}: the shape of {what!r}", f"be {shape}", array.shape) from None


def start_distribution(task: str, start: Any, terminal: np.ndarray) -> np.ndarray:
    """Return the distribution of initial states: the given distribution, one state, or uniform over non-terminals."""
    if start is None:
        return ~terminal / max(1, (~terminal).sum())
    array = table(task, "start", start)
    if array.ndim:
        return table(task, "start", array, terminal.shape)
    if array not in np.arange(len(terminal)):
        raise bad_request(f"Task {task!r}: 'start'", f"be a state from 0 to {len(terminal) - 1}", start)
    return np.eye(1, len(terminal), int(array))[0]


def reachable(state: Integers, action: Integers, next_state: Integers, behaviour: Array, start: Array) -> Booleans:
    """Return a mask of the states that the behaviour policy can reach, (states,)."""
    n, possible = len(start), behaviour[state, action] > 0
    steps = sp.csr_matrix((possible[possible], (state[possible], next_state[possible])), shape=(n, n))
    return np.isin(np.arange(n), reached(steps, np.flatnonzero(start > 0)))


def left_out(why: str, missing: Booleans) -> tuple[str, ...]:
    """Return a note on omitted states, or no note if there are none."""
    if not missing.any():
        return ()
    states = np.flatnonzero(missing)
    shown = ", ".join(map(str, states[:8])) + (", …" if len(states) > 8 else "")
    return (f"{len(states)} of {len(missing)} states {why} and are omitted: {shown}.",)


def feature_rows(task: str, features: Any, terminal: Booleans, missing: Booleans) -> sp.csr_matrix:
    """Return one feature row per state, zero for terminals and omitted states."""
    live = np.flatnonzero(~(terminal | missing if features is None else terminal))
    rows = sparse_rows(sp.identity(len(live), format="csr") if features is None else features, task)
    what = f"Task {task!r}: 'features'"
    check_memory(what, 40 * rows.shape[1], "Choose fewer features.")
    if rows.shape[0] == len(terminal):
        rows = rows[live]
    if rows.shape[0] != len(live):
        counts = f"{len(terminal)} (states) or {len(live)} (non-terminal states)"
        raise bad_request(what, f"have one row for each of {counts}", Unquoted(f"{rows.shape[0]} rows"))
    spread = sp.csr_matrix((np.ones(len(live)), (live, np.arange(len(live)))), shape=(len(terminal), len(live)))
    placed = (spread @ rows).tocsr()
    return (sp.diags((~missing).astype(float)) @ placed).tocsr() if missing.any() else placed


def sparse_rows(features: Any, task: str = "") -> sp.csr_matrix:
    """Return dense or SciPy sparse features as sparse rows of finite numbers; errors name the `task`."""
    prefix = f"Task {task!r}: " if task else ""
    if sp.issparse(features):
        return sparse_numbers(f"{prefix}'features'", features, LARGEST)
    dense = np.atleast_2d(numbers(f"{prefix}'features'", features, LARGEST))
    if dense.ndim != 2:
        raise bad_request(f"{prefix}the shape of 'features'", "be (states, p)", dense.shape)
    return sp.csr_matrix(dense)
