"""Task: one table, and everything derived from it.

A task is a table of outcomes, two policies, and features of the states. The sampler, the Gymnasium environment, the
true values, the visits, the matrices and every error measure are derived from that table.

Several tasks can ask different questions about one stream. They share the table and the behaviour policy, and each has
its own target policy, discount, cumulant and interest. A learner skips steps from states without interest. The
discount into such a state must be 0, so no information is lost.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array, Booleans, Integers, check_memory
from gradient_dd.cards import card
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.fingerprint import fingerprint
from gradient_dd.tasks import exact
from gradient_dd.tasks.validation import check_chains, check_steps, check_table


class Outcomes(NamedTuple):
    """The table: one row for each possible (state, action, next state), in that order."""

    state: Integers
    action: Integers
    next_state: Integers
    probability: Array
    reward: Array


class OutcomeColumns(NamedTuple):
    """The outcomes as a learner sees them; `row` and `next_row` are indices in `Task.states`, n for terminals."""

    row: Integers
    next_row: Integers
    reward: Array
    discount: Array
    rho: Array
    ends: Booleans


@dataclass(frozen=True, eq=False)
class Task:
    """A finite Markov decision process, a behaviour and a target policy, and features.

    outcomes         possible transitions; a state without outcomes is terminal: entering it ends the episode
    discount         (states,) continuation discount into each state; 0 into a terminal
    start            (states,) distribution of the initial state of an episode
    behaviour        (states, actions) probabilities of the behaviour policy
    target           (states, actions) probabilities of the policy to evaluate
    feature_rows     (states, p) sparse; rows of terminals are never used
    initial_weights  (p,) w at the first step
    ratios           (states, actions) explicit importance ratios, or None for target / behaviour
    cumulant         (outcomes,) the signal to predict instead of the rewards, or None
    interest         (states,) 1 where the question is asked and 0 elsewhere, or None for everywhere
    goal             (n,) reference values for errors instead of V of the target policy, or None
    parameters       the arguments of a named task
    notes            a sentence for each change made while building the table
    """

    name: str
    outcomes: Outcomes
    discount: Array
    start: Array
    behaviour: Array
    target: Array
    feature_rows: sp.csr_matrix
    initial_weights: Array
    ratios: Array | None = None
    cumulant: Array | None = None
    interest: Array | None = None
    goal: Array | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_table(self)
        object.__setattr__(self, "discount", np.where(self.terminal, 0.0, self.discount))
        check_chains(self)
        given = (*self.outcomes, self.discount, self.start, self.behaviour, self.target, self.initial_weights)
        options = [array for array in (self.ratios, self.cumulant, self.interest, self.goal) if array is not None]
        for array in (*given, self.feature_rows.data, *options):
            frozen(array)

    def __repr__(self) -> str:
        return f"<Task {self}: {self.n_states} states, {self.n_features} features>"

    def _repr_html_(self) -> str:
        ends = "episodic" if self.episodic else "continuing"
        facts = {"states": self.n_states, "actions": self.n_actions, "features": self.n_features, "length": ends}
        return card(str(self), {**facts, "policies": self.policies, "notes": "\n".join(self.notes) or None})

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value}' for name, value in self.parameters.items())})"

    # The states ------------------------------------------------------------------------------------------

    @cached_property
    def terminal(self) -> Booleans:
        """Whether entering each state ends the episode, (states,)."""
        terminal = np.ones(len(self.start), dtype=bool)
        terminal[self.outcomes.state] = False
        return terminal

    @cached_property
    def states(self) -> Integers:
        """The non-terminal states, (n,); all arrays of shape (n, …) are in this order."""
        return np.flatnonzero(~self.terminal)

    @cached_property
    def row(self) -> Integers:
        """The index of each state in `states`, (states,); n for a terminal."""
        row = np.full(len(self.start), self.n_states)
        row[self.states] = np.arange(self.n_states)
        return row

    @property
    def n_states(self) -> int:
        """The number of non-terminal states."""
        return len(self.states)

    @property
    def n_actions(self) -> int:
        """The number of actions."""
        return self.behaviour.shape[1]

    @property
    def n_features(self) -> int:
        """The number of features and weights, p."""
        return self.feature_rows.shape[1]

    @property
    def episodic(self) -> bool:
        """Whether episodes end."""
        return bool(self.terminal.any())

    @property
    def policies(self) -> str:
        """Return "on-policy" if the target policy is the behaviour policy, else "off-policy"."""
        return "on-policy" if self.ratios is None and np.array_equal(self.behaviour, self.target) else "off-policy"

    # The data a learner sees -----------------------------------------------------------------------------

    @cached_property
    def rho(self) -> Array:
        """The importance ratios, (states, actions); 0 for actions that the behaviour policy never takes."""
        if self.ratios is not None:
            return self.ratios
        return np.divide(self.target, self.behaviour, out=np.zeros_like(self.target), where=self.behaviour > 0)

    @property
    def rewards(self) -> Array:
        """The rewards that a learner sees, (outcomes,): the cumulant, or the rewards of the table."""
        return self.outcomes.reward if self.cumulant is None else self.cumulant

    @cached_property
    def active(self) -> Booleans:
        """Whether a learner sees each outcome, (outcomes,): only outcomes of states with interest."""
        state = self.outcomes.state
        return np.ones(len(state), bool) if self.interest is None else self.interest[state] > 0

    @cached_property
    def action_probabilities(self) -> tuple[Array, Array]:
        """The probabilities π and μ of the action of each outcome, (outcomes,) each."""
        taken = self.outcomes.state, self.outcomes.action
        return frozen(self.target[taken]), frozen(self.behaviour[taken])

    @cached_property
    def transitions(self) -> OutcomeColumns:
        """The columns a learner sees, one entry per outcome."""
        outcome = self.outcomes
        return OutcomeColumns(
            row=self.row[outcome.state],
            next_row=self.row[outcome.next_state],
            reward=self.rewards,
            discount=self.discount[outcome.next_state],
            rho=self.rho[outcome.state, outcome.action],
            ends=self.terminal[outcome.next_state],
        )

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the dynamics; tasks with the same digest share their trajectories.

        Features, ratios, discount, target policy, cumulant, interest and initial weights do not change the digest, so
        two variants of a task, two feature sets, or two questions are compared on the same transitions.
        """
        code = sha256()
        for array in (*self.outcomes, self.start, self.behaviour):
            code.update(np.ascontiguousarray(array).tobytes())
        return code.hexdigest()[:16]

    @cached_property
    def key(self) -> str:
        """A fingerprint of all tables; tasks with the same key give the same results."""
        features, ratios = self.feature_rows, [] if self.ratios is None else [self.ratios]
        arrays = [self.discount, self.target, self.initial_weights, features.data, features.indices, features.indptr]
        question = {"cumulant": self.cumulant, "interest": self.interest, "goal": self.goal}
        asked = {name: sha256(array.tobytes()).hexdigest() for name, array in question.items() if array is not None}
        tables = [sha256(array.tobytes()).hexdigest() for array in (*arrays, *ratios)]
        return fingerprint(self.digest, tables, *([asked] if asked else []))

    # Exact quantities ------------------------------------------------------------------------------------

    def chain(self, policy: Array) -> tuple[sp.csr_matrix, Array]:
        """Return P (n, n) among the non-terminal states and r (n,) under `policy`."""
        outcome, n = self.outcomes, self.n_states
        weight = policy[outcome.state, outcome.action] * outcome.probability
        here, there = self.row[outcome.state], self.row[outcome.next_state]
        P = sp.csr_matrix((weight, (here, there)), shape=(n, n + 1))[:, :n]
        P.eliminate_zeros()
        return P, np.bincount(here, weight * self.rewards, minlength=n).astype(float)

    @cached_property
    def P(self) -> Array:
        """The transition probabilities between non-terminal states under the target policy, (n, n)."""
        check_memory(f"P of {self}, dense,", 8 * self.n_states**2, "Use task.chain(task.target).")
        return frozen(self.chain(self.target)[0].toarray())

    @cached_property
    def r(self) -> Array:
        """The expected reward on leaving each state under the target policy, (n,)."""
        return frozen(self.chain(self.target)[1])

    @cached_property
    def true_values(self) -> Array:
        """The values V of the target policy, (n,), or `goal` if given."""
        if self.goal is not None:
            return self.goal
        (P, r), discount = self.chain(self.target), self.discount[self.states]
        check_steps(self, "an episode under the target policy", exact.expected_steps(P, discount))
        return frozen(exact.true_values(P, r, discount))

    @cached_property
    def visits(self) -> Array:
        """The share d of visits to each state under the behaviour policy, (n,); 0 for states without interest."""
        if self.episodic:
            d = self._episode_visits
        else:
            P, _ = self.chain(self.behaviour)
            if self.n_states > 1:
                check_steps(self, "the way to the last state", exact.expected_steps(P[:-1, :-1]))
            d = exact.stationary_distribution(P)
        d = d if self.interest is None else d * (self.interest[self.states] > 0)
        return frozen(d / d.sum())

    @cached_property
    def expected_length(self) -> float:
        """The expected steps of an episode under the behaviour policy; infinite in a continuing task."""
        return float(self._episode_visits.sum()) if self.episodic else float("inf")

    @cached_property
    def _episode_visits(self) -> Array:
        P, _ = self.chain(self.behaviour)
        visits = exact.expected_visits(P, self.start[self.states])
        check_steps(self, "an episode", visits.sum(keepdims=True))
        return visits

    @cached_property
    def sparse_features(self) -> sp.csr_matrix:
        """The feature rows of the non-terminal states, (n, p)."""
        rows = self.feature_rows[self.states]
        frozen(rows.data)
        return rows

    @cached_property
    def features(self) -> Array:
        """The features X of the non-terminal states as a dense array, (n, p)."""
        check_memory(f"Features of {self}, dense,", 8 * self.n_states * self.n_features, "Use task.sparse_features.")
        return frozen(self.sparse_features.toarray())

    @cached_property
    def row_features(self) -> sp.csr_matrix:
        """The sparse rows that `transitions` refers to, (n + 1, p); the last row, for all terminals, is zero."""
        return sp.vstack([self.sparse_features, sp.csr_matrix((1, self.n_features))], format="csr")

    @cached_property
    def moments(self) -> exact.Moments:
        """The matrices A, b and C; explicit `ratios` replace target / behaviour in every E[ρ …]."""
        check_memory(f"A and C of {self}", 16 * self.n_features**2, "Choose fewer features.")
        weight = self.target if self.ratios is None else self.behaviour * self.ratios
        P, r = self.chain(weight)
        expected_ratio = weight[self.states].sum(axis=1)
        discount = self.discount[self.states]
        matrices = exact.moments(self.sparse_features, self.visits, P, r, discount, expected_ratio)
        return exact.Moments(*map(frozen, matrices))

    @cached_property
    def fixed_point(self) -> Array:
        """The TD fixed point w*, (p,), with minimum norm if it is not unique."""
        return frozen(exact.fixed_point(self.moments.A, self.moments.b))

    def check_asked_everywhere(self, reader: str) -> None:
        """Raise if the task has an interest, because `reader` cannot skip steps."""
        if self.interest is not None:
            got = Unquoted(f"{self}, which has an interest")
            raise bad_request(f"The task of {reader}", "ask its question in every state", got)

    def rmsve(self, w: Array) -> float:
        """Return the root mean squared error of the values of w, weighted by `visits`."""
        return exact.rmsve(w, self.sparse_features, self.true_values, self.visits)


def frozen(array: Array) -> Array:
    """Return the array, made read-only."""
    array.setflags(write=False)
    return array
