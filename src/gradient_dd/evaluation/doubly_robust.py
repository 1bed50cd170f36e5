"""The limited doubly robust estimate: action values, corrected by the returns of the log as far as its ratios allow.

    R_t = ρ_0 ⋯ ρ_t        D_t = γ_0 ⋯ γ_{t−1}        δ_t = r_t + γ_t V(s_{t+1}) − Q(s_t, a_t)
    mean V(s_0)  +  Σ_{t<h}  Σ R_t D_t δ_t / Σ R_t                                      (sums over episodes)

Every step has weights that sum to 1 over all episodes; an episode that has ended keeps its weight and adds 0. Steps are
followed while the products leave enough effective episodes, (Σ R)² / Σ R²; from there on the values stand for the
rest. Q and V are those of the other folds of episodes. Where Q is right the corrections are noise of mean 0; where the
ratios are right and h reaches the ends, the estimate does not depend on Q.

Jiang & Li (2016), Doubly robust off-policy value evaluation. Thomas & Brunskill (2016), Data-efficient off-policy
policy evaluation (the weighted form). The limit on the steps is ours.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.action_rows import FEW_EPISODES
from gradient_dd.evaluation.episodes import goes_on
from gradient_dd.evaluation.lstd_q import LogSums, PolicySums, td_errors
from gradient_dd.evaluation.transitions import Transitions

FEWEST, SHARE = 20.0, 0.1  # effective episodes that the products must leave, and their share of all
FOLDS, FEW_FOLDS = 4, 2  # of episodes; few where there are many features, for each fold is solved
MANY_FEATURES = 200
PIECE = 4096  # rows whose errors are in memory at a time, for all samples


class FollowedSteps(NamedTuple):
    """The steps of all episodes that are followed.

    row        (m,) the rows;  step  (m,) how many steps each is from its beginning
    weight     (m,) R_t D_t of each
    sums       (steps, groups) Σ R_t over the episodes of a group, those that have ended too
    starts     episodes;  effective  those that the products leave at the last step
    rest       the weight of the values after the last step: 0 where all episodes are followed to their ends
    """

    row: Integers
    step: Integers
    weight: Array
    sums: Array
    starts: int
    effective: float
    rest: float

    @property
    def steps(self) -> int:
        """How many steps are followed."""
        return len(self.sums)

    def summary(self) -> "FollowedSteps":
        """Return the same without the rows, which take memory."""
        none = np.empty(0, np.int64)
        return self._replace(row=none, step=none, weight=np.empty(0), sums=np.empty((self.steps, 0)))


def follow(rows: Transitions, rho: Array, group: Integers, groups: int, limited: bool = True) -> FollowedSteps:
    """Return the steps that the ratios (n,) allow to follow; all of them unless `limited`."""
    on = goes_on(rows)
    at = np.flatnonzero(np.diff(rows.episode, prepend=rows.episode[:1] - 1))
    its_group, alive = group[at], np.arange(len(at))
    product, discount = np.ones(len(at)), np.ones(len(at))
    found: list[tuple[Integers, Integers, Array]] = []
    sums: list[Array] = []
    effective, fewest = float(len(at)), max(FEWEST, SHARE * len(at)) if limited else 0.0
    while len(alive):
        after = product.copy()
        after[alive] *= rho[at]
        square = float((after**2).sum())
        left = float(after.sum() ** 2 / square) if square > 0 else 0.0
        if left < fewest or square == 0 or not np.isfinite(square):
            break
        product, effective = after, left
        found.append((at, np.full(len(at), len(sums)), product[alive] * discount[alive]))
        sums.append(np.bincount(its_group, product, minlength=groups).astype(float))
        discount[alive] *= rows.discount[at]
        stays = on[at]
        discount[alive[~stays & rows.ended[at]]] = 0.0
        alive, at = alive[stays], at[stays] + 1
    rest = float((product * discount).sum() / max(1e-300, product.sum()))
    found = found or [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    row, step, weight = (np.concatenate(part) for part in zip(*found, strict=True))
    return FollowedSteps(row, step, weight, np.array(sums).reshape(-1, groups), len(its_group), effective, rest)


def robust_values(sums: PolicySums, followed: FollowedSteps, weights: Array, signal: int = 0) -> Array:
    """Return the estimate for weights of the groups (groups, k), one for each column, Q refitted each time; (k,)."""
    log, folds = sums.log, FOLDS if sums.log.q <= MANY_FEATURES else FEW_FOLDS
    fold = np.arange(log.groups) % folds
    total = np.maximum(1e-300, followed.sums @ weights)
    few = log.starts.sum() < FEW_EPISODES  # beginnings that are no sample of others
    first = np.ones_like(weights) if few else weights
    starts = np.maximum(1e-9, log.starts @ first)
    found = np.zeros(weights.shape[1])
    for k in range(folds):
        own, others = fold == k, np.where(fold == k, 0.0, 1.0)
        if not (log.count[own] > 0).any():
            continue
        w = sums.solutions(weights * others[:, None])[:, :, signal].T
        found += ((first[own].T @ sums.start[own]) * w.T).sum(axis=1) / starts
        mine = np.flatnonzero(own[log.group[followed.row]])
        for begin in range(0, len(mine), PIECE):
            part = mine[begin : begin + PIECE]
            row, step = followed.row[part], followed.step[part]
            share = followed.weight[part, None] * weights[log.group[row]] / total[step]
            found += (share * td_errors(log, sums.choices, w, row, signal)).sum(axis=0)
    return found


def weighted_returns(log: LogSums, followed: FollowedSteps, weights: Array, signal: int = 0) -> Array:
    """Return self-normalised per-decision returns for weights of the groups (groups, k): Q and V are 0; (k,)."""
    paid = followed.weight * log.rows.signals[followed.row, signal]
    total = np.maximum(1e-300, followed.sums @ weights)
    table = np.zeros((followed.steps, log.groups))
    np.add.at(table, (followed.step, log.group[followed.row]), paid)
    return np.asarray(((table @ weights) / total).sum(axis=0))
