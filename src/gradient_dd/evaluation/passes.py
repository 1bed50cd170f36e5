"""Passes over a log: the values of policies by LSTD-Q, by `AutoLearner`, or with the weights of a named learner.

`AutoLearner` replaces LSTD-Q if there are too many features to solve for. It is trained again without each of eight
groups of episodes, and a jackknife over these groups gives the interval. A learner that the user names updates on φ and
ψ', and its weights replace the weights of LSTD-Q.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from gradient_dd.arrays import Array
from gradient_dd.errors import DivergedError, bad_request
from gradient_dd.evaluation.design import Solution
from gradient_dd.evaluation.findings import Finding, Found, finding, findings_of
from gradient_dd.evaluation.log_data import LogData, TargetPolicy
from gradient_dd.evaluation.maps import too_wide
from gradient_dd.evaluation.pieces import Piece
from gradient_dd.evaluation.rows import dealt_groups
from gradient_dd.evaluation.value import PolicyValue, Run, Sums, add, chosen
from gradient_dd.learners import PLAIN_MOVES, PLAIN_SIGNALS, Rule, find
from gradient_dd.stream.auto import AutoLearner
from gradient_dd.stream.learner import Learner

BATCH_NUMBERS = 64_000_000  # entries of the matrices of all policies summed in one pass
AVERAGED = 1000  # rows between two weight vectors that enter the average over the last pass
AUTO_GROUPS = 8


def values_of(data: LogData, policies: Sequence[TargetPolicy], confidence: float) -> Iterator[list[PolicyValue]]:
    """Yield the values of policies: for each policy a list with one value per signal.

    The map for a long log is chosen on its sample, and only this map is evaluated on all rows.
    """
    actions, n = data.actions, data.rows.n
    largest = max(one.design(actions, n).q for one in data.maps)
    count = 1 if data.rows.kept else max(1, int(BATCH_NUMBERS // (data.rows.groups * largest**2)))
    on_sample = None if data.rows.kept or len(data.maps) == 1 else data.on_sample()
    for begin in range(0, len(policies), count):
        some = policies[begin : begin + count]
        if any(too_wide(data.maps[0].design(None if one.by_ratio else actions, n)) for one in some):
            yield from (auto_value(data, one, confidence) for one in some)
            continue
        first = [[]] * len(some) if on_sample is None else list(values_of(on_sample, some, confidence))
        runs = []
        for policy, values in zip(some, first, strict=True):
            maps = list({id(one.map): one.map for one in values}.values()) or data.maps
            runs.append([Run(data, policy, one) for one in maps])
        flat = [run for several in runs for run in several]
        for run, equations in zip(flat, over_log(data, flat, "equations"), strict=True):
            run.begin(equations)
        sums = iter(later_passes(data, flat))
        for several, values in zip(runs, first, strict=True):
            own = [(run, next(sums)) for run in several]
            yield [
                chosen([run.result(one, k) for run, one in own], data.rows.bounds(k), confidence, *values[k : k + 1])
                for k in range(several[0].signals)
            ]


def later_passes(data: LogData, runs: list[Run]) -> list[Sums]:
    """Run the passes for slopes and influences, given the solutions, and return the sums of the last pass."""
    following = [run for run in runs if run.followed]
    sample, share = data.sample()
    for run, sums in zip(following, sums_of(following, "slopes", sample), strict=True):
        run.slope[:, 1] += sums["slope"] / share
        run.mean = sums["mean"] / share
    for run in runs:
        run.dual = run.solution.dual(run.slope)
    uncertain = [run for run in following if run.behaviour is not None]
    for run, sums in zip(uncertain, sums_of(uncertain, "propensities", sample), strict=True):
        assert run.behaviour is not None
        run.towards = run.behaviour.direction(sums["towards"]) / share
    return over_log(data, runs, "influences")


def over_log(data: LogData, runs: list[Run], step: str) -> list[Sums]:
    """Return the sums of a step of each run over the whole log."""
    total: list[Sums] = [{} for _ in runs]
    policies = len({id(run.policy) for run in runs})
    for found in data.rows.sums(partial(sums_of, runs, step), data.most, policies):
        for mine, one in zip(total, found, strict=True):
            add(mine, one)
    return total


def sums_of(runs: list[Run], step: str, pieces: Iterable[Piece]) -> list[Sums]:
    """Return the sums of a step of each run over some pieces."""
    found: list[Sums] = [{} for _ in runs]
    for piece in pieces if runs else ():
        for run, sums in zip(runs, found, strict=True):
            getattr(run, step)(sums, piece)
    return found


def batches(run: Run) -> Iterator[tuple[Piece, Any, Any, Array]]:
    """Yield pieces of a log with φ and ψ' as sparse rows, and the weight of each row; count them as processed."""
    for piece in run.data.rows.pieces(run.design.rows):
        own = run.prepared(piece)
        rows, back = own.rows, np.argsort(own.rows.order)
        there = (own.choices.there * ~piece.ended[:, None])[rows.order]
        phi, ahead = (sparse.csr_matrix(run.design.matrix(X, u))[back] for X, u in ((rows.X, own.U), (rows.X2, there)))
        yield piece, phi, ahead, rows.unsorted(own.weight)
        run.data.rows.progress.add(len(piece))


def learnt_weights(
    data: LogData, policy: TargetPolicy, learner: str | Rule, parameters: dict[str, Any]
) -> tuple[Array, int, str]:
    """Return a learner's mean weights over its last pass, the update of its divergence (or 0), and its description."""
    rule = find(learner)
    if rule.natural:
        raise bad_request("'learner'", "be a learner with linear cost per step", rule.name)
    run = Run(data, policy, data.maps[0])
    if "alpha" not in parameters:  # 0.1 / mean of |φ|²
        _, phi, *_ = next(batches(run))
        parameters = {"alpha": 0.1 / max(float(phi.multiply(phi).sum() / phi.shape[0]), 1e-300), **parameters}
    rule.setting(**parameters).rule.check_known("The evaluation of logs", PLAIN_SIGNALS, PLAIN_MOVES)
    agent = Learner(rule, run.design.q, **parameters)
    passes = int(np.clip(-(-200_000 // data.rows.n), 1, 50))  # a short log is replayed
    data.rows.progress.plan(passes * data.rows.n)
    total, count = np.zeros(run.design.q), 0
    try:
        for turn in range(passes):
            for piece, phi, ahead, weight in batches(run):
                for begin in range(0, len(piece), AVERAGED):
                    part = slice(begin, begin + AVERAGED)
                    columns = piece.signals[part, 0], piece.discount[part]
                    agent.update_many(phi[part], *columns, ahead[part], weight[part])
                    if turn == passes - 1:
                        total, count = total + agent.w, count + 1
    except DivergedError:
        return np.array(agent.w), agent.updates + 1, str(agent.setting)
    return total / count, 0, str(agent.setting)


def by_learner(
    data: LogData, found: PolicyValue, learner: str | Rule, parameters: dict[str, Any]
) -> tuple[PolicyValue, list[Finding], str]:
    """Return the value from a learner's weights instead of LSTD-Q's, findings on the learner, and its description.

    LSTD-Q's interval is kept, and widened if it does not include the new value.
    """
    w, diverged, words = learnt_weights(data, found.policy, learner, parameters)
    value = float(np.clip(float(found.start @ w), *data.rows.bounds(0)))
    moved = found._replace(w=w, value=value, low=min(found.low, value), high=max(found.high, value))
    return moved, findings_of("learner", (words, diverged, value, found)), words


@finding("learner", "divergence", "not", "Use a smaller step size, or another learner.")
def divergence(seen: tuple[str, int, float, PolicyValue]) -> Found:
    """The named learner diverged."""
    words, diverged, *_ = seen
    if diverged:
        yield f"{words} diverged at update {diverged:,}, so its value is arbitrary."


@finding("learner", "least squares", "not", "Use another step size, or the default learner.")
def far_from_solution(seen: tuple[str, int, float, PolicyValue]) -> Found:
    """The named learner is far from the least-squares solution."""
    words, diverged, value, found = seen
    if diverged:
        return
    apart, inside = value - float(found.q.value), found.low <= value <= found.high
    side = "above" if apart > 0 else "below"
    words = f"{words} is {abs(apart):.3g} {side} the least-squares solution, {found.q.value:.4g}"
    if inside and abs(apart) <= 0.1 * max(abs(found.value), abs(value)):
        yield "fine", f"{words}: it has converged, within the interval."
    else:
        level = "with care" if inside else "not"
        yield level, f"{words}: it has not converged, so its value is not the policy's value."


def auto_value(data: LogData, policy: TargetPolicy, confidence: float) -> list[PolicyValue]:
    """Return the value of a policy according to `AutoLearner`, for every signal."""
    run, signals = Run(data, policy, data.maps[0]), len(data.rows.lowest)
    agents = [[AutoLearner(run.design.q) for _ in range(1 + AUTO_GROUPS)] for _ in range(signals)]
    sums: Sums = {}
    for piece, phi, ahead, weight in batches(run):
        run.initial(sums, piece)
        for g in range(-1, AUTO_GROUPS):
            used = np.flatnonzero(piece.group % AUTO_GROUPS != g)
            for k in range(signals if len(used) else 0):
                columns = piece.signals[used, k], piece.discount[used]
                agents[k][g + 1].update_many(phi[used], *columns, ahead[used], weight[used])
    w = np.array([[agent.w for agent in several] for several in agents])  # (signals, 1 + groups, q)
    without = w[:, 1 + np.arange(data.rows.groups) % AUTO_GROUPS].transpose(1, 2, 0)
    run.begin(sums, Solution(w[:, 0].T, without, np.zeros_like))
    (sums,) = later_passes(data, [run])
    start, counts = run.starts
    deal = np.arange(len(counts))[None] % AUTO_GROUPS == np.arange(AUTO_GROUPS)[:, None]
    firsts = (start.sum(axis=0) - deal @ start) / np.maximum(1.0, counts.sum() - deal @ counts)[:, None]
    units = np.arange(data.rows.units)
    unit = units if data.rows.few else dealt_groups(units, data.rows.seed)
    found = []
    for k in range(signals):
        left = ((np.broadcast_to(run.start, firsts.shape) if data.rows.few else firsts) * w[k, 1:]).sum(axis=1)
        pulls = (AUTO_GROUPS - 1) / AUTO_GROUPS * (left.mean() - left)

        def summed(psi: Array, pulls: Array = pulls) -> Array:
            own = [np.bincount(unit % AUTO_GROUPS, psi[:, j], minlength=AUTO_GROUPS) for j in range(2)]
            return np.column_stack([pulls, pulls + own[1] - own[0]])

        found.append(chosen([run.result(sums, k, summed)], data.rows.bounds(k), confidence))
    return found
