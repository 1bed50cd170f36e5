"""The mean of a rule's step over the transitions of a task, its traces standing at their mean, exactly.

Along a trajectory in its steady state, with o' the outcome before o, the mean of a trace is

    E[z | o] = Σ_o' P(o' | o) decay(o', o) E[z | o'] + E[gain | o] x(o),    P(o' | o) = p(o') / d(s)  if o' enters s,

p being how often an outcome happens. What is missing to 1 is the share of episodes that start in s, where all that is
`before` is 0. This is a linear system with one unknown vector for each outcome. The numbers in the memory of
a trace, such as F of the emphatic learners, follow from a system of the same kind: they are affine in their old values.

Updates that are linear in z have their mean at this z. Those that are not (PGTD2), and traces that depend on
themselves (true-online TD), are refused.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers, check_memory
from gradient_dd.engine.reference import KNOWN_MOVES, KNOWN_SIGNALS, START, Before, Sample, signals_of, trace_numbers
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import Setting
from gradient_dd.learners.trace import Trace
from gradient_dd.tasks import Task


def sample_move(setting: Setting, sample: Sample, w: Array, eta: Array, w_prev: Array) -> tuple[Array, Array]:
    """Return by how much one transition moves w and η, (p,) each; the M⁻¹ of a natural rule is left out."""
    setting.rule.check_known("The mean update", KNOWN_SIGNALS, KNOWN_MOVES)
    x, _, _, x_next, _, z, _ = sample
    move = setting.rule.coefficients(signals_of(setting, 1.0, sample, w, eta, w - w_prev))
    w_move = move["w_x"] * x + move["w_next"] * x_next + move["w_z"] * z + move["w_change"] * (w - w_prev)
    return w_move, move["eta_x"] * x + move["eta_next"] * x_next + move["eta_z"] * z + move["eta_eta"] * eta


def samples(task: Task, setting: Setting) -> list[tuple[float, Sample]]:
    """Return every transition of a task with how often it happens, its traces at their mean."""
    row, next_row, reward, discount, rho, _ = task.transitions
    X, weight = task.row_features.toarray(), outcome_weights(task)
    x, x_next = X[row], X[next_row]
    traces = {"z": rho[:, None] * x, "b": x} | (mean_traces(task, setting) if setting.rule.traces else {})
    return [
        (weight[o], Sample(x[o], reward[o], discount[o], x_next[o], rho[o], traces["z"][o], traces["b"][o]))
        for o in np.flatnonzero(weight)
    ]


def mean_move(
    setting: Setting, weighted: list[tuple[float, Sample]], w: Array, eta: Array, w_prev: Array
) -> tuple[Array, Array]:
    """Return the weighted sum of the moves of samples."""
    w_move, eta_move = np.zeros_like(w), np.zeros_like(w)
    for weight, sample in weighted:
        on_w, on_eta = sample_move(setting, sample, w, eta, w_prev)
        w_move += weight * on_w
        eta_move += weight * on_eta
    return w_move, eta_move


class Pairs(NamedTuple):
    """Outcomes that may follow each other: `earlier` and `later` of each pair, and P(earlier | later)."""

    earlier: Integers
    later: Integers
    share: Array


def outcome_weights(task: Task) -> Array:
    """Return how often each outcome happens among those that a learner sees, (outcomes,); sums to 1."""
    outcome = task.outcomes
    likely = task.behaviour[outcome.state, outcome.action] * outcome.probability
    return task.visits[task.transitions.row] * likely


def following(task: Task, weight: Array) -> Pairs:
    """Return the pairs of outcomes that follow each other within an episode."""
    row, next_row, _, discount, _, _ = task.transitions
    goes_on: Booleans = (weight > 0) & (discount > 0)
    earlier, later = np.nonzero(goes_on[:, None] & (weight > 0) & (next_row[:, None] == row))
    return Pairs(earlier, later, weight[earlier] / task.visits[row[later]])


def mean_traces(task: Task, setting: Setting) -> dict[str, Array]:
    """Return E[z | outcome] of every trace of a setting, (outcomes, p) each; 0 for outcomes that never happen."""
    count = len(task.outcomes.state)
    check_memory(f"The mean traces of {task}", 32 * count**2, "Take a task with fewer outcomes.")
    weight = outcome_weights(task)
    pairs = following(task, weight)
    return {trace.name: mean_trace(task, setting, trace, weight, pairs) for trace in setting.rule.traces}


def mean_trace(task: Task, setting: Setting, trace: Trace, weight: Array, pairs: Pairs) -> Array:
    """Return E[z | outcome] of one trace."""
    if "x_trace" in trace.arguments:
        what = f"The trace of {setting.rule.name}"
        raise bad_request(
            what, "not depend on itself, or its mean does not follow a linear equation", Unquoted("'x_trace'")
        )
    _, _, _, discount, rho, _ = task.transitions
    pi, mu = task.action_probabilities
    count = len(weight)

    def numbers(before: Before, now: int, memory: float) -> Array:
        old = (memory,) * len(trace.memory)
        decay, gain, new = trace_numbers(trace, setting.signals(1.0, rho[now]), before, old, 0.0)
        return np.array([decay, gain, *new, *([0.0] if not new else [])])

    seen = np.flatnonzero(weight > 0)
    first = np.zeros((count, 3))
    first[seen] = [numbers(START, int(o), 0.0) for o in seen]
    befores = [Before(discount[o], rho[o], pi[o], mu[o]) for o in range(count)]
    ends = list(zip(pairs.earlier, pairs.later, strict=True))
    low, high = (np.array([numbers(befores[a], b, memory) for a, b in ends]).reshape(-1, 3) for memory in (0.0, 1.0))
    started = 1.0 - np.bincount(pairs.later, pairs.share, minlength=count)
    identity = np.eye(count)

    def spread(values: Array) -> Array:
        """Return the matrix that sums values of pairs, times P(earlier | later), over the earlier outcomes."""
        matrix = np.zeros((count, count))
        np.add.at(matrix, (pairs.later, pairs.earlier), pairs.share * values)
        return matrix

    def constant(column: int) -> Array:
        return np.bincount(pairs.later, pairs.share * low[:, column], minlength=count) + started * first[:, column]

    slope = high - low
    memory = np.linalg.solve(identity - spread(slope[:, 2]), constant(2))
    gain = constant(1) + spread(slope[:, 1]) @ memory
    X = task.row_features.toarray()[task.transitions.row]
    z = np.linalg.solve(identity - spread(low[:, 0]), gain[:, None] * X)
    z[weight == 0] = 0.0
    return z
