"""Transitions with their actions, and what a policy would do at both of their ends.

The features of a state and an action are all products of those of the state and those of the action, one block of state
features for each feature of the action:

    φ(s, a) = u(a) ⊗ x(s)          u(a) = 0s and a 1 for actions with names, else 1, a and a²

so that the mean over a policy's actions is a product too:  Σ_a π(a|s) φ(s, a) = (Σ_a π(a|s) u(a)) ⊗ x(s).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array, as_floats
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.evaluation.episodes import goes_on
from gradient_dd.evaluation.moments import sparse_matrix
from gradient_dd.evaluation.transitions import Transitions, rows_of
from gradient_dd.stream.features import Features, Rows
from gradient_dd.stream.log.actions import Actions
from gradient_dd.stream.policies import all_probabilities, called, wants_actions

FEW_EPISODES = 20  # below this the first actions that were taken say little of those that would be


@dataclass(frozen=True, eq=False)
class ActionRows(Transitions):
    """Transitions with what policies ask for. `rho` is 1: it depends on the policy.

    action     (n, k) the numbers of the actions taken, or the actions themselves where they are measured
    signals    (n, signals) the rewards of every signal; the first is `reward`
    behaviour  (n,) probability of the action taken, NaN where it is not known
    seen       (n, d) the observation;  after  (n, d) the next one
    carried    (n, m) columns of policies in the log;  carried_after  (n, m) the same at the next observation
    """

    action: Array
    signals: Array
    behaviour: Array
    seen: Array
    after: Array
    carried: Array
    carried_after: Array


class Choices(NamedTuple):
    """The mean features of a policy's action where a step begins and where it leads, (n, features of an action)."""

    here: Array
    there: Array


class TargetPolicy:
    """A policy as the user gave it, asked about the rows of a log.

    given    None, the policy that made the log; a function of observations, which returns probabilities (n, actions),
             or the actions themselves where they are measured; a table (states, actions); or the beginning of the names
             of columns that hold its probabilities
    columns  the columns that rows carry;  decode  gives observations of rows as the log has them, with their texts
    """

    def __init__(
        self, name: str, given: Any, actions: Actions, columns: tuple[str, ...], decode: Callable[[Array], Any]
    ) -> None:
        self.name, self.given, self.actions, self.decode = name, given, actions, decode
        if isinstance(given, str):
            ending = {column[len(given) :]: k for k, column in enumerate(columns) if column.startswith(given)}
            self.places = [ending.get(str(one)) for one in actions.names]

    @property
    def logging(self) -> bool:
        """Whether this is the policy that made the log."""
        return self.given is None

    def choices(self, rows: ActionRows) -> Choices:
        """Return the mean features of the policy's action at both ends of each row."""
        if self.given is None:
            return logging_choices(rows, self.actions)
        if isinstance(self.given, str):
            sides = (rows.carried, rows.carried_after)
            return Choices(*(self._from_columns(side, rows.ended & bool(k)) for k, side in enumerate(sides)))
        following = np.where(rows.ended[:, None], rows.seen, rows.after)  # nothing is asked of what follows an end
        return Choices(self.at(self.decode(rows.seen)), self.at(self.decode(following)))

    def at(self, observations: Any) -> Array:
        """Return the mean features of the policy's action at observations, (n, features of an action)."""
        if self.given is None or isinstance(self.given, str):
            rule = "be a function or a table, to be asked about other observations than those of the log"
            raise bad_request(f"The policy {self.name!r}", rule, self.given)
        if self.actions.named:
            return all_probabilities(self.name, self.given, observations, self.actions.names)
        if not callable(self.given) or wants_actions(self.given):
            raise bad_request(
                f"The policy {self.name!r}", "be a function of observations that returns actions", self.given
            )
        chosen = np.asarray(called(self.name, self.given, observations), float)
        chosen = chosen[:, None] if chosen.ndim == 1 else chosen
        if chosen.shape != (len(observations), self.actions.width):
            rule = f"return actions ({len(observations)}, {self.actions.width})"
            raise bad_request(f"The policy {self.name!r}", rule, Unquoted(f"an array {chosen.shape}"))
        return self.actions.features(chosen)

    def _from_columns(self, carried: Array, ended: Any) -> Array:
        """Return the probabilities that columns of the log hold; columns are 0 for actions that they do not name."""
        found = np.column_stack([np.zeros(len(carried)) if k is None else carried[:, k] for k in self.places])
        total = found.sum(axis=1)
        wrong = ~ended & ~((found >= 0).all(axis=1) & (np.abs(total - 1) <= 1e-3))
        if wrong.any():
            got = Unquoted(np.array2string(found[np.argmax(wrong)], precision=4))
            raise bad_request(f"The columns {self.given}… of the policy", "hold probabilities that sum to 1", got)
        return np.asarray(np.where(ended[:, None], 0.0, found / np.where(ended, 1.0, total)[:, None]))


def logging_choices(rows: ActionRows, actions: Actions) -> Choices:
    """Return the actions that were taken, at both ends of each row.

    Where a row is the last that is known of its episode, the next action is not known. A linear function of the state
    features, fitted to the actions taken, stands for it. It also stands for the first actions of few episodes.
    """
    taken = actions.features(rows.action)
    on = goes_on(rows)
    here, there = taken.copy(), np.zeros_like(taken)
    there[:-1][on[:-1]] = taken[1:][on[:-1]]
    open_end = ~on & ~rows.ended
    first = np.diff(rows.episode, prepend=rows.episode[:1] - 1) != 0
    few = first if first.sum() < FEW_EPISODES else np.zeros(len(rows), bool)
    if open_end.any() or few.any():
        p = width_of(rows)
        X = as_matrix(rows.x, p)
        square = X.T @ X
        square = np.asarray(square.todense() if sparse.issparse(square) else square)
        square[np.diag_indices_from(square)] += 1e-6 * max(1e-12, float(np.trace(square)))
        fit = np.linalg.solve(square, np.asarray(X.T @ taken))
        there[open_end] = as_matrix(rows_of(rows.x_next, open_end), p) @ fit
        here[few] = as_matrix(rows_of(rows.x, few), p) @ fit
    return Choices(here, there)


def width_of(rows: Transitions) -> int:
    """Return how many features the states of some rows have at least."""
    if rows.x.indices is None:
        return rows.x.values.shape[1]
    return 1 + int(max(one.indices.max(initial=0) for one in (rows.x, rows.x_next) if one.indices is not None))


def as_matrix(rows: Rows, p: int) -> Any:
    """Return feature rows as (n, p), sparse if they are."""
    return rows.values if rows.indices is None else sparse_matrix(rows, p)


def product_rows(u: Array, x: Rows, p: int) -> Rows:
    """Return u ⊗ x as feature rows, for features of actions u (n, features of an action) and of states."""
    values = np.asarray((u[:, :, None] * x.values[:, None, :]).reshape(len(u), -1))
    if x.indices is None:
        return Rows(None, values)
    shift = p * np.arange(u.shape[1])[None, :, None]
    return Rows((shift + x.indices[:, None, :]).reshape(len(u), -1), values)


class PolicyFeatures(Features):
    """The mean features of a state and a policy's action there: Σ_a π(a|s) φ(s, a), from which V(s) follows."""

    kind = "policy"

    def __init__(self, mapping: Features, policy: TargetPolicy, dimensions: int) -> None:
        self.mapping, self.policy, self.dimensions = mapping, policy, dimensions
        self.n_features = mapping.n_features * policy.actions.n_features
        self.nonzeros, self.bound = mapping.nonzeros * policy.actions.n_features, mapping.bound

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, whose values are V."""
        seen = as_observations(observations)
        return product_rows(self.policy.at(seen), self.mapping.rows(seen), self.mapping.n_features)

    def action_rows(self, observations: Any, actions: Any) -> Rows:
        """Return the features of n observations and an action at each, whose values are Q."""
        seen = as_observations(observations)
        numbers = self.policy.actions.numbers("'action'", np.broadcast_to(np.asarray(actions), len(seen)))
        if np.isnan(numbers).any():
            raise bad_request("'action'", f"be one of {list(self.policy.actions.names)}", actions)
        taken = self.policy.actions.features(numbers)
        return product_rows(taken, self.mapping.rows(seen), self.mapping.n_features)


def as_observations(observations: Any) -> Any:
    """Return observations as an array (n, d), of numbers unless some are text."""
    seen = np.asarray(observations)
    seen = seen if seen.dtype.kind in "OU" else as_floats("Observations", observations)
    return seen[:, None] if seen.ndim == 1 else seen
