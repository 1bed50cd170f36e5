"""Checks of a task, which run once when it is built; each error is one sentence."""

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, connected_components

from gradient_dd.arrays import LARGEST, Array, check_memory, numbers
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, show, text

if TYPE_CHECKING:
    from gradient_dd.tasks.task import Task

States = NDArray[np.integer]
WHOLE = ("state", "action", "next_state")  # the columns of outcomes that number states and actions

TOLERANCE = 1e-9  # of sums of probabilities; the probability of leaving a state is 0 or exceeds this limit
MOST_STEPS = 1e12  # maximum expected steps; exact values and visits then have at least four correct digits
OUTCOME_BYTES, STATE_BYTES = 120, 600  # measured memory to build and solve a task


def broken(task: "Task", what: str, rule: str, got: Any, hint: str = "") -> BadRequestError:
    """Return the error for a rule that a task breaks; an empty `what` means the whole task."""
    return bad_request(f"Task {task.name!r}" + (f": {what}" if what else ""), rule, got, hint)


def check_size(name: str, states: int, outcomes: int) -> None:
    """Raise if a table of this size would not fit in memory."""
    size = OUTCOME_BYTES * outcomes + STATE_BYTES * states
    check_memory(f"The table of {name}, {show(states)} states,", size, "Make it smaller.")


def check_table(task: "Task") -> None:
    """Raise unless all shapes, numbers and probabilities are valid."""
    check_arrays(task)
    states, features = len(task.start), task.feature_rows.shape[1]
    actions = task.behaviour.shape[1] if task.behaviour.ndim == 2 else 0
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(("start", "discount", "interest"), (states,)),
        **dict.fromkeys(("behaviour", "target", "ratios"), (states, actions)),
        "feature_rows": (states, features),
        "initial_weights": (features,),
        "cumulant": task.outcomes.state.shape,
    }
    for name, shape in shapes.items():
        array = getattr(task, name)
        if array is not None and array.shape != shape:
            raise broken(task, f"the shape of {name!r}", f"be {shape}", array.shape)
    check_outcomes(task)
    if task.goal is not None and task.goal.shape != task.states.shape:
        raise broken(task, "the shape of 'goal'", f"be {task.states.shape}", task.goal.shape)
    if task.terminal.all():
        raise broken(task, "", "have a state that is not terminal", Unquoted("only terminals"))
    if features == 0:
        raise broken(task, "'features'", "have at least one column", 0)
    if 0 < (size := np.abs(task.feature_rows.data).max(initial=0.0)) < 1 / LARGEST:
        raise broken(task, "the largest of 'features'", f"be {1 / LARGEST:g} or more, or 0", size)
    if len(wrong := task.discount[(task.discount < 0) | (task.discount > 1)]):
        raise broken(task, "'discount'", "be in [0, 1]", wrong[0])
    check_probabilities(task)
    if task.ratios is not None and (task.ratios < 0).any():
        raise broken(task, "'ratios'", "be zero or more", task.ratios.min())
    check_interest(task)
    uncovered = (task.target > 0) & (task.behaviour == 0) & ~task.terminal[:, None]
    if uncovered.any() and task.ratios is None:
        state, action = np.argwhere(uncovered)[0]
        got = (
            f"probability 0 for action {action} in state {state}, where the target has {task.target[state, action]:.6g}"
        )
        rule = "take every action that the target policy takes"
        raise broken(task, "the behaviour policy", rule, Unquoted(got))


def check_arrays(task: "Task") -> None:
    """Raise unless every table is an array of the right type, with finite numbers that are not too large."""
    text("The name of a task", task.name)
    outcome = task.outcomes
    given = {name: getattr(task, name) for name in ("ratios", "cumulant", "interest", "goal")}
    options = {name: array for name, array in given.items() if array is not None}
    if not hasattr(outcome, "_asdict"):
        raise broken(task, "'outcomes'", "be Outcomes", outcome)
    if not (sp.issparse(task.feature_rows) and task.feature_rows.format == "csr"):
        raise broken(task, "'feature_rows'", "be a SciPy csr matrix", Unquoted("another type"))
    tables = {name: getattr(task, name) for name in ("start", "discount", "behaviour", "target", "initial_weights")}
    for name, array in (tables | outcome._asdict() | options | {"features": task.feature_rows.data}).items():
        kind, words = ("iu", "whole numbers") if name in WHOLE else ("f", "floats")
        if not isinstance(array, np.ndarray) or array.dtype.kind not in kind:
            raise broken(task, repr(name), f"be an array of {words}", array)
        numbers(f"Task {task.name!r}: {name!r}", array, np.inf if name in WHOLE else LARGEST)


def check_interest(task: "Task") -> None:
    """Raise unless interest is 0 or 1, is 1 in some state, and the discount into states without interest is 0."""
    if task.interest is None:
        return
    wrong = (task.interest != 0) & (task.interest != 1)
    if wrong.any():
        raise broken(task, "'interest'", "be 0 or 1", task.interest[wrong][0])
    if not (task.interest[task.states] > 0).any():
        raise broken(task, "'interest'", "be 1 in a state that is not terminal", Unquoted("0 in all"))
    across = (task.interest == 0) & (task.discount != 0) & ~task.terminal
    if across.any():
        hint = f"State {np.flatnonzero(across)[0]} has interest 0."
        raise broken(task, "the discount into a state without interest", "be 0", task.discount[across][0], hint)


def check_outcomes(task: "Task") -> None:
    """Raise unless the outcomes are sorted and refer to existing states and actions."""
    outcome, (states, actions) = task.outcomes, task.behaviour.shape
    shapes = {column.shape for column in outcome}
    if len(shapes) > 1 or outcome.state.ndim != 1:
        raise broken(task, "the columns of the outcomes", "have the same length", sorted(shapes))
    for name, count in zip(WHOLE, (states, actions, states), strict=True):
        column = getattr(outcome, name)
        if ((column < 0) | (column >= count)).any():
            raise broken(task, f"{name!r} of an outcome", f"be from 0 to {count - 1}", column.max())
    code = (outcome.state * actions + outcome.action) * states + outcome.next_state
    if (np.diff(code) <= 0).any():
        raise broken(task, "outcomes", "be sorted by state, action, next state, without repetition", code)


def check_probabilities(task: "Task") -> None:
    """Raise unless each group of probabilities is non-negative and sums to 1."""
    outcome, live = task.outcomes, task.states
    state, action = live[:, None], np.arange(task.n_actions)
    into = np.zeros(task.behaviour.shape)
    np.add.at(into, (outcome.state, outcome.action), outcome.probability)
    for what, array, sums in (
        ("transition probabilities", outcome.probability, into[state, action]),
        ("behaviour probabilities", task.behaviour[live], task.behaviour[live].sum(axis=1, keepdims=True)),
        ("target probabilities", task.target[live], task.target[live].sum(axis=1, keepdims=True)),
    ):
        if (array < 0).any():
            raise broken(task, what, "be zero or more", array.min())
        wrong = np.abs(sums - 1) > TOLERANCE
        if wrong.any():
            place, column = np.argwhere(wrong)[0]
            of = f"{what} from state {live[place]}" if "transition" in what else f"{what} in state {live[place]}"
            raise broken(task, of, "sum to 1", sums[place, column])
    leaves = np.where(outcome.state == outcome.next_state, 0.0, outcome.probability)
    leaving = np.bincount(outcome.state, leaves, minlength=len(task.start))
    seldom = np.flatnonzero((leaving > 0) & (leaving <= TOLERANCE))
    if len(seldom):  # probably a mistyped terminal
        rule = f"be left with a probability above {TOLERANCE:g}, or never"
        raise broken(task, f"state {seldom[0]}", rule, leaving[seldom[0]])
    start = task.start
    if (start < 0).any():
        raise broken(task, "start probabilities", "be zero or more", start.min())
    if abs(start.sum() - 1) > TOLERANCE:
        raise broken(task, "start probabilities", "sum to 1", start.sum())
    if start[task.terminal].any():
        ended = int(np.flatnonzero(task.terminal & (start > 0))[0])
        raise broken(task, "an episode", "start in a state that is not terminal", ended)


def check_chains(task: "Task") -> None:
    """Raise unless every state is visited, episodes end, and the target policy's values are finite."""
    P, _ = task.chain(task.behaviour)
    missing = np.setdiff1d(task.states, task.states[reached(P, np.flatnonzero(task.start[task.states]))])
    if len(missing):
        rule = "be reachable from the start under the behaviour policy"
        hint = "keep='reachable' omits the other states."
        raise broken(task, "every state", rule, missing.tolist(), hint)
    if task.episodic:
        endless = never_reach(P, leaks(P))
        if len(endless):
            rule = "end under the behaviour policy"
            raise broken(task, "episodes", rule, Unquoted(f"no end from state {task.states[endless[0]]}"))
    elif connected_components(P, connection="strong")[0] > 1:
        rule = "be reachable from every other under the behaviour policy, because the task has no terminal"
        got, hint, stuck = "states that are never revisited", "", np.flatnonzero(P.diagonal() > 1 - TOLERANCE)
        if len(stuck):
            got = f"state {task.states[stuck[0]]}, which is never left but has a reward"
            hint = "Rewards in a terminal must be 0."
        raise broken(task, "every state", rule, Unquoted(got), hint)
    P, _ = task.chain(task.target)
    endless = never_reach(P, leaks(P @ sp.diags(task.discount[task.states])))
    if len(endless):
        got = Unquoted(f"neither from state {task.states[endless[0]]}")
        rule = "end or be discounted, or their values are infinite"
        raise broken(task, "episodes under the target policy", rule, got)


def check_steps(task: "Task", what: str, steps: Array) -> None:
    """Raise if an expected number of `steps` is so large that rounding errors dominate the solution."""
    if not (steps.min() >= 0 and steps.max() <= MOST_STEPS):
        rule = f"take at most {MOST_STEPS:g} steps on average, or rounding errors dominate its exact values"
        raise broken(task, what, rule, steps.max())


def leaks(P: sp.csr_matrix) -> States:
    """Return the states whose outgoing probabilities sum to less than 1."""
    return np.flatnonzero(np.asarray(P.sum(axis=1)).ravel() < 1 - TOLERANCE)


def reached(P: sp.csr_matrix, sources: States) -> States:
    """Return the states that can be reached from `sources`, including `sources`."""
    n = P.shape[0]
    edge = sp.csr_matrix((np.ones(len(sources)), (np.zeros(len(sources), int), sources)), shape=(1, n))
    graph = sp.bmat([[P, None], [edge, sp.csr_matrix((1, 1))]], format="csr")
    return np.setdiff1d(breadth_first_order(graph, n, return_predecessors=False), [n])


def never_reach(P: sp.csr_matrix, goals: States) -> States:
    """Return the states from which none of `goals` can be reached."""
    return np.setdiff1d(np.arange(P.shape[0]), reached(P.T.tocsr(), goals))
