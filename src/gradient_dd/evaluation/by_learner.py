"""Weights that a learner of linear time finds on the rows of a log: one that the user names, or `AutoLearner`.

A named learner makes its steps on φ and ψ', and its weights take the place of those of LSTD-Q. `AutoLearner` stands in
for LSTD-Q where there are too many features to solve for. It learns again without each of eight groups of episodes,
and the interval follows from how much that moves the value (jackknife).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array
from gradient_dd.errors import DivergedError, bad_request
from gradient_dd.evaluation.design import Solution
from gradient_dd.evaluation.findings import Finding, Found, finding, findings_of
from gradient_dd.evaluation.log_data import LogData, TargetPolicy
from gradient_dd.evaluation.policy_value import PolicyValue, chosen
from gradient_dd.evaluation.rows import Piece, dealt_groups
from gradient_dd.evaluation.value import Run, follow_all
from gradient_dd.learners import PLAIN_MOVES, PLAIN_SIGNALS, Rule, find
from gradient_dd.stream.auto import AutoLearner
from gradient_dd.stream.learner import Learner

UPDATES, MOST_PASSES = 200_000, 50  # of a short log, by replaying it
AVERAGED = 1000  # rows between two weights of the average over the last pass
STEP = 0.1  # over the mean of |φ|², where the user names no step size
AUTO_GROUPS = 8
FAR_OFF = 0.1  # of the size of the values


class LearnerRows:
    """The rows of a log as a learner takes them, with one map."""

    def __init__(self, data: LogData, policy: TargetPolicy) -> None:
        self.run = Run(data, policy, data.maps[0])
        self.data = data

    def batches(self) -> Iterator[tuple[Piece, Any, Any, Array]]:
        """Yield pieces with φ and ψ' as sparse rows, and the weight of each row."""
        for piece in self.data.rows.pieces(self.run.design.rows):
            choices, taken, M = self.run.matrices(piece)
            phi = sparse.csr_matrix(taken.dense())
            ahead = sparse.csr_matrix(phi - M)
            into = np.where(piece.discount > 0, piece.discount, 1.0)
            yield piece, phi, sparse.diags(1 / into) @ ahead, choices.weight

    def size(self) -> float:
        """Return the mean of |φ|² of the first piece."""
        _, phi, _, _ = next(self.batches())
        return float(phi.multiply(phi).sum() / phi.shape[0])


def learnt_weights(
    data: LogData, policy: TargetPolicy, learner: str | Rule, parameters: dict[str, Any]
) -> tuple[Array, int, str]:
    """Return the mean weights of a learner over its last pass, the update at which it diverged or 0, and its words."""
    rule = find(learner)
    if rule.natural:
        raise bad_request("'learner'", "be one whose step takes linear time", rule.name)
    rows = LearnerRows(data, policy)
    given = parameters if "alpha" in parameters else {"alpha": STEP / max(rows.size(), 1e-300), **parameters}
    rule.setting(**given).rule.check_known("The evaluation of logs", PLAIN_SIGNALS, PLAIN_MOVES)
    agent = Learner(rule, rows.run.design.q, **given)
    passes = int(np.clip(-(-UPDATES // data.rows.n), 1, MOST_PASSES))
    total, count = np.zeros(rows.run.design.q), 0
    try:
        for turn in range(passes):
            for piece, phi, ahead, weight in rows.batches():
                for begin in range(0, len(piece), AVERAGED):
                    part = slice(begin, begin + AVERAGED)
                    agent.update_many(
                        phi[part], piece.signals[part, 0], piece.discount[part], ahead[part], weight[part]
                    )
                    if turn == passes - 1:
                        total, count = total + agent.w, count + 1
    except DivergedError:
        return np.array(agent.w), agent.updates + 1, str(agent.setting)
    return total / count, 0, str(agent.setting)


def by_learner(
    data: LogData, policy: TargetPolicy, found: PolicyValue, learner: str | Rule, parameters: dict[str, Any]
) -> tuple[PolicyValue, list[Finding], str]:
    """Return a value with the weights of a learner in the place of LSTD-Q's, findings on them, and the learner's words.

    The interval is that of the value before, made wide enough to hold the new one.
    """
    if isinstance(learner, str) and learner == "lstd":
        w, diverged, words = found.w, 0, "lstd"
    else:
        w, diverged, words = learnt_weights(data, policy, learner, parameters)
    raw = float(found.start @ w)
    value = float(np.clip(raw, *data.rows.bounds(0)))
    moved = found._replace(w=w, value=value, low=min(found.low, value), high=max(found.high, value))
    scale = max(abs(found.value), abs(value))
    return moved, findings_of("learner", (words, diverged, value, found, scale)), words


@finding("learner", "divergence", "not")
def divergence(seen: tuple[str, int, float, PolicyValue, float]) -> Found:
    """The learner that you asked for diverged, and when. Remedy: a smaller step size, or another learner"""
    words, diverged, *_ = seen
    if diverged:
        yield "not", f"{words} diverged at update {diverged:,}, so its value is arbitrary. Use a smaller step size."


@finding("learner", "least squares", "not")
def far_from_solution(seen: tuple[str, int, float, PolicyValue, float]) -> Found:
    """Whether the learner has arrived at the least-squares solution, and how far it is off. Remedy: another step
    size, or the default
    """
    words, diverged, value, found, scale = seen
    if diverged:
        return
    apart = value - float(found.q.value)
    side = "above" if apart > 0 else "below"
    told = f"{words} is {abs(apart):.3g} {side} the least-squares solution, {found.q.value:.4g}"
    if found.low <= value <= found.high and abs(apart) <= FAR_OFF * scale:
        yield "fine", f"{told}: it has arrived, as far as the interval can tell."
    else:
        level = "not" if not found.low <= value <= found.high else "with care"
        yield level, f"{told}: it has not arrived there, so its value is not that of the policy. Use another step size."


def auto_value(data: LogData, policy: TargetPolicy, confidence: float) -> list[PolicyValue]:
    """Return the value of a policy by `AutoLearner`, for every signal."""
    rows = LearnerRows(data, policy)
    run, signals = rows.run, len(data.rows.lowest)
    agents = [[AutoLearner(run.design.q) for _ in range(1 + AUTO_GROUPS)] for _ in range(signals)]
    for piece, phi, ahead, weight in rows.batches():
        run.add_starts(piece)
        group = piece.group % AUTO_GROUPS
        for g in range(-1, AUTO_GROUPS):
            used = np.flatnonzero(group != g)
            for k in range(signals if len(used) else 0):
                columns = piece.signals[used, k], piece.discount[used]
                agents[k][g + 1].update_many(phi[used], *columns, ahead[used], weight[used])
    w = np.array([[agent.w for agent in several] for several in agents])  # (signals, 1 + groups, q)
    without = w[:, 1 + np.arange(data.rows.groups) % AUTO_GROUPS].transpose(1, 2, 0)
    run.begin_slopes(Solution(w[:, 0].T, without, np.zeros_like))
    follow_all(data, [run], run.design.rows)
    start, counts = run.moments.start, run.moments.starts
    deal = np.arange(len(counts))[None] % AUTO_GROUPS == np.arange(AUTO_GROUPS)[:, None]
    firsts = (start.sum(axis=0) - deal @ start) / np.maximum(1.0, counts.sum() - deal @ counts)[:, None]
    unit = dealt_groups(np.arange(len(run.psi)), data.rows.seed) if not data.rows.few else np.arange(len(run.psi))
    found = []
    for k in range(signals):
        left = ((np.broadcast_to(run.start, firsts.shape) if data.rows.few else firsts) * w[k, 1:]).sum(axis=1)
        pulls = (AUTO_GROUPS - 1) / AUTO_GROUPS * (left.mean() - left)

        def summed(psi: Array, pulls: Array = pulls) -> Array:
            own = [np.bincount(unit % AUTO_GROUPS, psi[:, j], minlength=AUTO_GROUPS) for j in range(2)]
            return np.column_stack([pulls, pulls + own[1] - own[0]])

        found.append(chosen([run.result(k, summed)], data.rows.bounds(k), confidence))
    return found
