"""Action probabilities of a user's policies, which are tables, functions, classifiers or networks."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers, as_floats
from gradient_dd.errors import Unquoted, bad_request, foreign

TOLERANCE = 1e-4  # of a sum of probabilities: networks compute in single precision

Policy = Callable[[Any, int], Array]  # a batch of observations and their number -> probabilities (n, actions)


def policy_of(name: str, given: Any, actions: int, first_state: int = 0) -> Policy:
    """Return a policy that gives probabilities (n, actions), or raise.

    given        a table (states, actions) for whole-number observations; or a function of a batch of observations that
                 returns an array (n, actions), such as a network's softmax
    first_state  the number of the first row of a table
    """
    if callable(given):
        return lambda observations, n: checked(name, called(name, given, observations), n, actions)
    table = as_floats(f"{name!r}", given)
    if table.ndim != 2 or table.shape[1] != actions:
        raise bad_request(f"{name!r}", f"be a table (states, {actions}), or a function of observations", table.shape)
    checked(name, table, len(table), actions)

    def look_up(observations: Any, n: int) -> Array:
        states = np.asarray(observations)
        if states.shape != (n,) or states.dtype.kind not in "iu":
            got = Unquoted(f"{states.dtype} of {states.shape}")
            raise bad_request(f"Observations for the table {name!r}", "be whole numbers, one for each state", got)
        rows = states - first_state
        outside = (rows < 0) | (rows >= len(table))
        if outside.any():
            raise bad_request(f"The table {name!r}", "have a row for every state", int(states[outside][0]))
        return table[rows]

    return look_up


def of_table(table: Any, observations: Any) -> Array:
    """Return the rows of a table of probabilities (states, actions) for observations that are state numbers."""
    given = as_floats("'target'", table)
    if given.ndim != 2:
        raise bad_request("'target'", "be a function, or a table (states, actions)", table)
    states = observations[:, 0] if observations.ndim == 2 and observations.shape[1] == 1 else observations
    if states.dtype.kind not in "fiu":
        rule = "be whole numbers, one for each state"
        raise bad_request("Observations for the table 'target'", rule, Unquoted("texts"))
    whole = states.astype(np.int64)
    return policy_of("target", given, given.shape[1])(whole if np.array_equal(whole, states) else states, len(states))


def of_actions(probabilities: Array, actions: Any) -> Array:
    """Return the probability of each action taken, (n,), from the probabilities of all actions, (n, actions)."""
    n, count = probabilities.shape
    if actions.dtype.kind not in "iu" or actions.shape != (n,) or not ((actions >= 0) & (actions < count)).all():
        raise bad_request("Actions", f"be whole numbers from 0 to {count - 1}, the actions of the target", actions[:3])
    return np.asarray(probabilities[np.arange(n), actions])


def wants_actions(target: Any) -> bool:
    """Return whether a policy is a function of observations and actions instead of observations alone."""
    try:
        wanted = signature(target).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return True
    return len([one for one in wanted if one.default is one.empty and one.kind != one.KEYWORD_ONLY]) != 1


def all_probabilities(name: str, target: Any, observations: Array, names: tuple[Any, ...]) -> Array:
    """Return a policy's probabilities of all actions, (n, actions), in the order of their names.

    target  a function of observations that returns (n, actions); a function of observations and actions that returns
            the probability of each action, (n,), and is called once for each action; or a table
    """
    n = len(observations)
    if callable(target) and wants_actions(target):
        kind = np.int64 if all(isinstance(one, int) and abs(one) < 2**63 for one in names) else object
        columns = []
        for one in names:
            asked = np.full(n, one, dtype=kind)
            found = as_floats(f"The output of the policy {name!r}", called(name, target, observations, asked))
            if found.shape == (n, len(names)):
                return checked(name, found, n, len(names))
            columns.append(per_row(f"The policy {name!r}", found, n))
        return checked(name, np.column_stack(columns), n, len(names))
    found = called(name, target, observations) if callable(target) else of_table(target, observations)
    return checked(name, found, n, len(names))


def classifier_policy(name: str, model: Any, actions: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Return a classifier with `predict_proba` as a function from observations to probabilities of these actions.

    Its `classes_` are matched to the actions by name; an action that is not a class has probability 0.
    """
    place = {str(one): k for k, one in enumerate(actions)}
    classes = [str(one.item() if isinstance(one, np.generic) else one) for one in np.asarray(model.classes_)]
    for one in classes:
        if one not in place:
            rule = f"have classes that are actions of the log: {', '.join(place)}"
            raise bad_request(f"The classifier {name!r}", rule, one)

    def probabilities(observations: Any) -> Array:
        found = np.zeros((len(observations), len(actions)))
        found[:, [place[one] for one in classes]] = called(name, model.predict_proba, observations)
        return found

    return probabilities


def taken_probabilities(target: Callable[..., Any], observations: Array, actions: Any) -> Array:
    """Return the target policy's probabilities of the actions taken, (n,)."""
    n = len(observations)
    found = as_floats("The output of the target policy", called("target", target, observations, actions))
    if found.ndim == 2 and len(found) == n:
        checked("target", found, n, found.shape[1])
        found = of_actions(found, actions)
    found = per_row("The target policy", found, n)
    if (low := ~(found >= 0)).any():
        at = int(np.argmax(low))
        raise bad_request(f"The output of the target policy for row {at:,}", "be a probability", float(found[at]))
    return found


def per_row(what: str, found: Array, n: int) -> Array:
    """Return probabilities (n,), or raise."""
    if found.shape != (n,):
        rule = "return a probability for each row, (n,), or one for each action, (n, actions)"
        raise bad_request(what, rule, Unquoted(f"an array {found.shape}"))
    return found


def called(name: str, function: Any, *arguments: Any) -> Any:
    """Return the result of a user's policy; an error in the policy becomes one sentence."""
    with foreign(f"The policy {name!r}", "run on a batch of observations"):
        return np.asarray(function(*arguments))


def checked(name: str, found: Any, n: int, actions: int) -> Array:
    """Return nonnegative probabilities (n, actions) that sum to exactly 1, or raise."""
    what = f"The output of the policy {name!r}"
    rows = as_floats(what, found)
    rows = rows[None] if rows.ndim == 1 and n == 1 else rows
    if rows.shape != (n, actions):
        raise bad_request(what, f"be of shape ({n}, {actions}): observations and actions", rows.shape)
    sums = rows.sum(axis=1)
    wrong = ~((rows >= 0).all(axis=1) & (np.abs(sums - 1) <= TOLERANCE))
    if wrong.any():
        row, hint = int(np.argmax(wrong)), "Give probabilities, not logits."
        raise bad_request(f"The probabilities that {name!r} gives", "be zero or more and sum to 1", rows[row], hint)
    return rows / sums[:, None]


def drawn(behaviour: Array, rng: np.random.Generator) -> Integers:
    """Return an action for each row of probabilities, (n,); an action with probability 0 is never drawn."""
    sums = np.cumsum(behaviour, axis=1)
    chosen = (rng.random((len(sums), 1)) * sums[:, -1:] >= sums).sum(axis=1)
    last = behaviour.shape[1] - 1 - np.argmax(behaviour[:, ::-1] > 0, axis=1)  # rounding may exceed it
    return np.minimum(chosen, last)
