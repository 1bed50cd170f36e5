"""Mean dynamics: how the expected weights of a learner move, exactly, without sampling.

One step is z ← M_o z + c_o, o being the outcome (`sample_maps`). Where outcomes are drawn independently, the mean obeys

    E[z'] = M E[z] + c,     M = Σ_o q_o M_o,   c = Σ_o q_o c_o,   q_o = d(s) μ(a|s) P(s'|s,a)

Along a trajectory weights and state are correlated, and M does not hold. But the chain is Markov, so the means *by
state*, m_s = E[z 1{s}] and p_s = P(s), obey a linear recursion without any approximation:

    m'_s' = Σ_{o: s→s'} q_o (M_o m_s + c_o p_s),     p'_s' = Σ_{o: s→s'} q_o p_s,     q_o = μ(a|s) P(s'|s,a)

where an outcome that ends its episode leads to the start distribution. E[z] is the sum of m_s over s. Both cases are
one operator here: independent draws are a chain with a single group of outcomes to draw from.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gradient_dd.arrays import Array, Integers
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.engine.trajectories import SAMPLINGS
from gradient_dd.errors import bad_request, one_of, whole_number
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task
from gradient_dd.theory.sample_maps import Coefficients, SampleMaps

POINTS = 200  # of a learning curve, by default


class Means(NamedTuple):
    """Where a learner is on average.

    mean         (groups, size) m: E[z 1{group}]
    probability  (groups,) p: of each group of outcomes to be drawn from next
    """

    mean: Array
    probability: Array


class MeanOperator:
    """The recursion of m and p. A group is a state along trajectories; i.i.d. draws have one group in all.

    maps   the sample maps of the setting
    flow   (groups, groups) sparse: p' = flow p
    """

    def __init__(self, task: Task, setting: Setting, sampling: str = "trajectory") -> None:
        one_of("'sampling'", sampling, SAMPLINGS)
        self.maps = maps = SampleMaps(task, setting)
        self._from, self._start, after = groups(task, sampling)
        self._after = after
        self._drawn = sp.csr_matrix(
            (np.ones(len(self._from)), (np.arange(len(self._from)), self._from)), shape=after.shape[::-1]
        )
        self.flow = sp.csr_matrix(after @ self._drawn)
        self._functionals = sp.vstack([lifted(rows, self._from, after.shape[0]) for rows in maps.functionals], "csr")
        self._directions = sp.hstack([spread(rows, after) for rows in maps.directions], "csr")

    @property
    def shape(self) -> tuple[int, int]:
        """(groups, size) of m."""
        return self.flow.shape[0], self.maps.size

    def start(self) -> Means:
        """Return m and p before the first step."""
        return Means(np.outer(self._start, self.maps.initial), self._start)

    def apply(self, means: Means, coefficients: Coefficients) -> Means:
        """Return m and p one step later; `coefficients` are those of `maps` at the step size of this step."""
        m, p = means
        slopes, constants, shrink = coefficients
        drawn = p[self._from]
        signals = (self._functionals @ m.ravel()).reshape(slopes.shape[1:])
        signals[0] += self.maps.task.transitions.reward * drawn
        moves = np.einsum("mjo,jo->mo", slopes, signals) + constants * drawn
        later = self.flow @ m
        if "w_prev" in self.maps.parts:
            later[:, self.maps.part("w_prev")] = later[:, self.maps.part("w")]
        if shrink.any():
            eta = self.maps.part("eta")
            later[:, eta] += self._after @ (shrink[:, None] * m[self._from, eta])
        later += (self._directions @ moves.ravel()).reshape(later.shape)
        return Means(later, self.flow @ p)

    def matrix(self, factor: float = 1.0) -> sp.csr_matrix:
        """Return the homogeneous part of m', sparse (groups × size, groups × size)."""
        return sp.csr_matrix(sp.kron(self.flow, self.maps.carried) + self.moves(factor))

    def generator(self, factor: float = 1.0) -> sp.csr_matrix:
        """Return matrix − I. What alpha multiplies is never added to 1, so small step sizes keep their digits."""
        groups, size = self.shape
        still = sp.kron(self.flow, self.maps.carried) - sp.identity(groups * size)
        return sp.csr_matrix(still + self.moves(factor))

    def offset(self, probability: Array, factor: float = 1.0) -> Array:
        """Return Σ_o q_o c_o p_s, the part of m' that does not depend on m, (groups, size)."""
        nothing = Means(np.zeros(self.shape), probability)
        return self.apply(nothing, self.maps.coefficients(factor)).mean

    def moves(self, factor: float = 1.0) -> sp.csr_matrix:
        """Return the part of the matrix that the moves make, without what is carried over."""
        slopes, _, shrink = self.maps.coefficients(factor)
        between = sp.block_array([[sp.diags(slope) for slope in move] for move in slopes], format="csr")
        shrinking = sp.kron(self._after @ sp.diags(shrink) @ self._drawn, self.maps.only_eta)
        return sp.csr_matrix(self._directions @ between @ self._functionals + shrinking)


def groups(task: Task, sampling: str) -> tuple[Integers, Array, sp.csr_matrix]:
    """Return each outcome's group (outcomes,), the first group's distribution, and (groups, outcomes) `after`.

    after[g, o] is the probability of outcome o in its group, times that of g being the group to draw from next.
    """
    outcome, moved = task.outcomes, task.transitions
    likely = task.behaviour[outcome.state, outcome.action] * outcome.probability
    if sampling == "iid":
        return np.zeros_like(moved.row), np.ones(1), sp.csr_matrix((task.visits[moved.row] * likely)[None, :])
    start = task.start[task.states]
    inside, ends = np.flatnonzero(~moved.ends), np.flatnonzero(moved.ends)
    begin = np.flatnonzero(start)
    row = np.concatenate([moved.next_row[inside], np.repeat(begin, len(ends))])
    column = np.concatenate([inside, np.tile(ends, len(begin))])
    value = np.concatenate([likely[inside], np.outer(start[begin], likely[ends]).ravel()])
    return moved.row, start, sp.csr_matrix((value, (row, column)), shape=(task.n_states, len(likely)))


def lifted(rows: sp.csr_matrix, group: Integers, groups: int) -> sp.csr_matrix:
    """Return (outcomes, groups × size): each row moved to the columns of its outcome's group."""
    size = rows.shape[1]
    column = rows.indices + size * np.repeat(group, np.diff(rows.indptr))
    return sp.csr_matrix((rows.data, column, rows.indptr), shape=(rows.shape[0], groups * size))


def spread(rows: sp.csr_matrix, after: sp.csr_matrix) -> sp.csr_matrix:
    """Return (groups × size, outcomes): each row as a column, in the groups its outcome leads to, by their weight."""
    entry = after.tocoo()
    chosen = rows[entry.col]
    length = np.diff(chosen.indptr)
    place = chosen.indices + rows.shape[1] * np.repeat(entry.row, length)
    value = chosen.data * np.repeat(entry.data, length)
    shape = (after.shape[0] * rows.shape[1], rows.shape[0])
    return sp.csr_matrix((value, (place, np.repeat(entry.col, length))), shape=shape)


class ExpectedRun(NamedTuple):
    """The mean of all runs of a setting.

    steps    (points,) how many steps had been made
    weights  (points, p) E[w]
    errors   (points,) RMSVE of E[w]. By convexity no more than the mean RMSVE of runs, which has their noise in it
    """

    steps: Integers
    weights: Array
    errors: Array


def expected_run(
    task: Task,
    setting: Setting,
    steps: int,
    *,
    sampling: str = "trajectory",
    schedule: Schedule = constant,
    points: ArrayLike | None = None,
) -> ExpectedRun:
    """Return the mean weights of a learner after the numbers of steps in `points`, by default 200 of them.

    Exact for a constant step size and for schedules per step. A schedule per episode would tie the step size to the
    number of episodes so far, which differs from run to run: step n is taken to be in episode 1 + (n − 1) / expected
    length, rounded down.
    """
    check_schedule(schedule)
    whole_number("'steps'", steps)
    wanted = np.unique(np.linspace(0, steps, POINTS + 1).astype(int)[1:] if points is None else np.asarray(points))
    if wanted.dtype.kind not in "iu" or not len(wanted) or wanted[0] < 0 or wanted[-1] > steps:
        raise bad_request("'points'", f"be whole numbers from 0 to {steps}", points)
    operator = MeanOperator(task, setting, sampling)
    means, weights = operator.start(), np.empty((len(wanted), task.n_features))
    factor, coefficients = None, operator.maps.coefficients()
    for step in range(wanted[-1] + 1):
        if step:
            now = schedule.factor(step if schedule.per == "step" else 1 + int((step - 1) / task.expected_length))
            if now != factor:
                factor, coefficients = now, operator.maps.coefficients(now)
            means = operator.apply(means, coefficients)
        place = np.searchsorted(wanted, step)
        if wanted[place] == step:
            weights[place] = means.mean[:, operator.maps.part("w")].sum(axis=0)
    return ExpectedRun(wanted, weights, np.array([task.rmsve(w) for w in weights]))
