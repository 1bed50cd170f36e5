"""LSTD-Q: action values of a policy, from sums over groups of episodes. No ratio enters.

    A = Σ φ (φ − γψ')ᵀ      b = Σ φ r      φ = φ(s, a)      ψ' = Σ_a π(a|s') φ(s', a), 0 at an end
    Q(s, a) = φ(s, a)·w with (A + ridge) w = b              V(s) = Σ_a π(a|s) Q(s, a)

C = Σ φ φᵀ and b do not depend on the policy: `LogSums` has them for all policies. Fitted Q evaluation regresses
r + γV(s') on φ again and again. Where it settles, its w is that of LSTD-Q.

Lagoudakis & Parr (2003), Least-squares policy iteration. Le, Voloshin & Yue (2019), Batch policy learning under
constraints (fitted Q evaluation).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.action_rows import FEW_EPISODES, ActionRows, Choices, as_matrix
from gradient_dd.evaluation.transitions import rows_of
from gradient_dd.stream.features import Rows
from gradient_dd.stream.least_squares import TINY_RIDGE, scaled_solution
from gradient_dd.stream.log.actions import Actions

PIECE = 8192  # rows whose products with all features are in memory at a time
MOST_SUMS = 32e6  # numbers of the matrices of all groups
SWEEPS = 2000  # of fitted Q evaluation


def blocks(u: Array, x: Array) -> Array:
    """Return u ⊗ x of each row, (n, features of the action × features of the state)."""
    return np.asarray((u[:, :, None] * x[:, None, :]).reshape(len(x), -1))


class LogSums:
    """Sums over the groups of a log that all policies share, and the way to add those of a policy.

    rows, group  the log, and the group of each row, (n,);  p  features of a state
    C            (groups, q, q) Σ φ φᵀ;  b (groups, q, signals) Σ φ r;  scale (q,) the mean of φ²
    starts       (groups,) how many episodes begin
    """

    def __init__(self, rows: ActionRows, actions: Actions, p: int, group: Integers, groups: int) -> None:
        self.rows, self.actions, self.p, self.group, self.groups = rows, actions, p, group, groups
        self.q = p * actions.n_features
        self.taken = actions.features(rows.action)
        self.begins = np.diff(rows.episode, prepend=rows.episode[:1] - 1) != 0
        self.starts = np.bincount(group[self.begins], minlength=groups).astype(float)
        self.count = np.bincount(group, minlength=groups).astype(float)
        key = group * len(actions.names) + rows.action[:, 0].astype(np.int64) if actions.named else group
        order = np.argsort(key, kind="stable")
        cuts = np.flatnonzero(np.diff(key[order])) + 1
        self._segments = [part for part in np.split(order, cuts) if len(part)]
        self.C = self.products(lambda part: blocks(self.taken[part], self.dense(rows.x, part)))
        self.b = self.products(lambda part: rows.signals[part])
        total = np.einsum("gii->i", self.C) / max(1, len(rows))
        self.scale = np.where(total > 0, total, 1.0)

    def dense(self, rows: Rows, part: Any) -> Array:
        """Return some feature rows as (n, p)."""
        return rows_of(rows, part).dense(self.p)

    def products(self, right: Any) -> Array:
        """Return Σ φ m of each group, (groups, q, m), where `right` gives m (n, m) of rows with these numbers."""
        found = None
        for part in self._pieces():
            m, x = right(part), self.dense(self.rows.x, part)
            if found is None:
                found = np.zeros((self.groups, self.q, m.shape[1]))
            g = self.group[part[0]]
            if self.actions.named:
                a = int(self.rows.action[part[0], 0])
                found[g, a * self.p : (a + 1) * self.p] += x.T @ m
            else:
                found[g] += blocks(self.taken[part], x).T @ m
        assert found is not None
        return found

    def _pieces(self) -> Iterator[Integers]:
        """Yield the numbers of rows of one group, and of one action if actions have names."""
        for part in self._segments:
            for begin in range(0, len(part), PIECE):
                yield part[begin : begin + PIECE]

    def of_policy(self, choices: Choices) -> "PolicySums":
        """Return the sums of a policy that makes these choices."""
        rows = self.rows

        def ahead(part: Integers) -> Array:
            return blocks(rows.discount[part, None] * choices.there[part], self.dense(rows.x_next, part))

        first = np.flatnonzero(self.begins)
        start = np.zeros((self.groups, self.q))
        np.add.at(start, self.group[first], blocks(choices.here[first], self.dense(rows.x, first)))
        return PolicySums(self, self.C - self.products(ahead), start, choices)


class PolicySums:
    """The sums of one policy.

    A      (groups, q, q) Σ φ (φ − γψ')ᵀ;  start  (groups, q) Σ of the mean features of first states
    """

    def __init__(self, log: LogSums, A: Array, start: Array, choices: Choices) -> None:
        self.log, self.A, self.start, self.choices = log, A, start, choices

    def solutions(self, weights: Array) -> Array:
        """Return w (k, q, signals) for weights of the groups (groups, k): one solution for each column."""
        found = np.empty((weights.shape[1], self.log.q, self.log.b.shape[2]))
        flat, step = self.A.reshape(self.log.groups, -1), max(1, int(4e6 / self.log.q**2))
        for begin in range(0, weights.shape[1], step):
            part = weights[:, begin : begin + step]
            total = np.maximum(1e-300, self.log.count @ part)[:, None, None]
            A = (part.T @ flat).reshape(-1, self.log.q, self.log.q) / total
            b = np.tensordot(part.T, self.log.b, axes=1) / total
            found[begin : begin + step] = scaled_solution(A, b, self.log.scale, TINY_RIDGE * self.log.q)
        return found

    def mean_start(self, weights: Array) -> Array:
        """Return the mean features where episodes begin, (k, q), for weights of the groups (groups, k).

        Few beginnings are no sample of others: they are taken as they are.
        """
        if self.log.starts.sum() < FEW_EPISODES:
            weights = np.ones_like(weights)
        return np.asarray(weights.T @ self.start / np.maximum(1e-9, weights.T @ self.log.starts)[:, None])


def action_values(log: LogSums, W: Array, part: Any, rows: Rows) -> Array:
    """Return x·w of every block, (n, features of an action, k), of some rows for weights (q, k)."""
    p, U = log.p, log.actions.n_features
    wide = W.reshape(U, p, -1).transpose(1, 0, 2).reshape(p, -1)
    return np.asarray(as_matrix(rows_of(rows, part), p) @ wide).reshape(-1, U, W.shape[1])


def td_errors(log: LogSums, choices: Choices, W: Array, part: Any, signal: int = 0) -> Array:
    """Return r + γV(s') − Q(s, a) of some rows, (n, k), for weights (q, k)."""
    rows = log.rows
    q = np.einsum("nu,nuk->nk", log.taken[part], action_values(log, W, part, rows.x))
    v = np.einsum("nu,nuk->nk", choices.there[part], action_values(log, W, part, rows.x_next))
    return np.asarray(rows.signals[part, signal, None] + rows.discount[part, None] * v - q)


def fitted_q(sums: PolicySums, sweeps: int = SWEEPS) -> Array:
    """Return the weights of fitted Q evaluation, (q, signals): regress r + γV(s') on φ, again and again.

    The sweeps end early where the weights no longer move. Where they never settle, LSTD-Q is still defined.
    """
    log = sums.log
    one = np.ones((log.groups, 1))
    total = max(1.0, float(log.count.sum()))
    C, A = (np.tensordot(one[:, 0], each, axes=1) / total for each in (log.C, sums.A))
    b = log.b.sum(axis=0) / total
    w = np.zeros_like(b)
    solve = scaled_solution(C, np.column_stack([b, C - A]), log.scale, TINY_RIDGE * log.q)
    fit, carry = solve[:, : b.shape[1]], solve[:, b.shape[1] :]
    for _ in range(sweeps):
        after = fit + carry @ w
        if np.abs(after - w).max() <= 1e-12 * max(1e-300, np.abs(after).max()):
            break
        w = after
    return np.asarray(w)
