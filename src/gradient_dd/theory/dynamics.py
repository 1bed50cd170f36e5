"""Mean dynamics: the exact expected weights of a learner, without sampling.

A step of a learner is an affine map of its weights, one map for each outcome o of a task:

    z = (η, w, w_prev)          without the parts that a rule does not have
    z ← M_o z + c_o

The maps are computed from the rule. If its moves are affine in the signals that depend on the weights,

    move_m = constant_m + Σ_j slope_mj signal_j,     signals:  δ = r + (γx' − x)·w,   x·η,   x·(w − w_prev)

then the step at zero and at unit signals gives the constants and slopes; other signals check that the rule is affine.
Each signal is a linear function of z (plus r) and each move has one direction, so M_o is the identity, with w_prev
replaced by w, plus a term of low rank and the shrinking of η:

    M_o = I' + Σ_mj direction_m slope_mj functional_jᵀ + shrink_o I_η

The metric of a natural rule, the running mean of x xᵀ, is replaced by its limit C = E[x xᵀ], so w moves along C⁺x and
C⁺x'. The ridge, which vanishes as 1/n, is omitted.

If outcomes are drawn independently, the mean obeys

    E[z'] = M E[z] + c,     M = Σ_o q_o M_o,   c = Σ_o q_o c_o,   q_o = d(s) μ(a|s) P(s'|s,a)

Along a trajectory weights and state are correlated, and this does not hold. But the chain is Markov, so the means *by
state*, m_s = E[z 1{s}] and p_s = P(s), obey an exact linear recursion:

    m'_s' = Σ_{o: s→s'} q_o (M_o m_s + c_o p_s),     p'_s' = Σ_{o: s→s'} q_o p_s,     q_o = μ(a|s) P(s'|s,a)

An outcome that ends its episode leads to the start distribution. E[z] is the sum of m_s over s. The same operator
serves both cases: independent draws are a chain with a single group of outcomes.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gradient_dd.arrays import Array, Integers
from gradient_dd.engine.horizon import LONGEST
from gradient_dd.engine.trajectories import SAMPLINGS
from gradient_dd.errors import Unquoted, bad_request, one_of, whole_number
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task
from gradient_dd.tasks.exact import inverse
from gradient_dd.theory.arguments import checked

LINEAR_SIGNALS = ("delta", "x_eta", "x_change")  # the signals that depend on the weights
SIGNALS_OF_THEORY = ("alpha", "beta", "rho", "rho_x", "discount", *LINEAR_SIGNALS)
DIRECTED_MOVES = ("w_x", "w_next", "eta_x")  # the moves along a feature vector
PROBES = ((0.7, -1.3, 2.1), (-40.0, 30.0, -20.0), (1e6, 2e6, -3e6))  # signals that check affinity
PRECISION = 1e-9  # of that check, relative
POINTS = 200  # of a learning curve, by default


class Coefficients(NamedTuple):
    """The moves of each outcome.

    slopes     (moves, signals, outcomes) of DIRECTED_MOVES in LINEAR_SIGNALS
    constants  (moves, outcomes) at zero signals
    shrink     (outcomes,) of η along itself
    """

    slopes: Array
    constants: Array
    shrink: Array


class SampleMaps:
    """The affine maps z ↦ M_o z + c_o of a setting on a task, in factored form.

    parts        the parts of z, of p entries each: "eta" and "w_prev" only if the rule has them
    functionals  a sparse (outcomes, size) matrix for each of LINEAR_SIGNALS
    directions   a sparse (outcomes, size) matrix for each of DIRECTED_MOVES
    """

    def __init__(self, task: Task, setting: Setting) -> None:
        self.task, self.setting = task, setting
        rule = setting.rule
        task.check_asked_everywhere("the theory")
        rule.check_known("The theory", SIGNALS_OF_THEORY, (*DIRECTED_MOVES, "eta_eta"))
        has_change = "x_change" in rule.arguments
        self.parts = ("eta",) * rule.has_eta + ("w",) + ("w_prev",) * has_change
        self.size = len(self.parts) * task.n_features
        features = task.row_features
        row, next_row, _, discount, _, _ = task.transitions
        x, x_next = features[row], features[next_row]
        along = self._metric(x), self._metric(x_next)
        self.functionals = (
            self._placed(w=sp.diags(discount) @ x_next - x),
            self._placed(eta=x),
            self._placed(w=x, w_prev=-x) if has_change else self._placed(),
        )
        self.directions = (self._placed(w=along[0]), self._placed(w=along[1]), self._placed(eta=x))

    def part(self, name: str) -> slice:
        """Return the slice of a part in z; empty if the rule does not have the part."""
        if name not in self.parts:
            return slice(0, 0)
        begin = self.parts.index(name) * self.task.n_features
        return slice(begin, begin + self.task.n_features)

    @cached_property
    def initial(self) -> Array:
        """(size,) z at the first step: η = 0 and w_prev = w, the task's initial weights."""
        z = np.zeros(self.size)
        for name in set(self.parts) - {"eta"}:
            z[self.part(name)] = self.task.initial_weights
        return z

    @cached_property
    def carried(self) -> sp.csr_matrix:
        """(size, size) I': the map of z if nothing moves; w_prev becomes w."""
        source = np.arange(self.size)
        if "w_prev" in self.parts:
            source[self.part("w_prev")] = source[self.part("w")]
        return sp.csr_matrix((np.ones(self.size), (np.arange(self.size), source)), shape=(self.size, self.size))

    def coefficients(self, factor: float = 1.0) -> Coefficients:
        """Return the coefficients of every outcome, with alpha multiplied by `factor`."""
        transitions = self.task.transitions
        pairs, which = np.unique(np.column_stack([transitions.rho, transitions.discount]), axis=0, return_inverse=True)
        probed = np.array([self._probe(factor, float(rho), float(discount)) for rho, discount in pairs])
        by_outcome = np.moveaxis(probed[which.ravel()], 0, -1)  # (moves and shrink, constant and signals, outcomes)
        return Coefficients(by_outcome[:-1, 1:], by_outcome[:-1, 0], by_outcome[-1, 0])

    def changes(self, factor: float = 1.0) -> list[sp.csr_matrix]:
        """Return M_o − I' of every outcome, (size, size) each, with alpha multiplied by `factor`."""
        slopes, _, shrink = self.coefficients(factor)
        found = []
        for o in range(len(shrink)):
            along, of = (
                sp.vstack([rows[[o]] for rows in matrices], "csr") for matrices in (self.directions, self.functionals)
            )
            moves = along.T @ sp.csr_matrix(slopes[..., o]) @ of
            found.append(sp.csr_matrix(moves + shrink[o] * self.only_eta))
        return found

    @cached_property
    def only_eta(self) -> sp.dia_matrix:
        """(size, size) I_η: the identity on η, zero elsewhere."""
        diagonal = np.zeros(self.size)
        diagonal[self.part("eta")] = 1.0
        return sp.diags(diagonal)

    def _metric(self, rows: sp.csr_matrix) -> sp.csr_matrix:
        """Return C⁺ times each row for a natural rule, else the rows themselves."""
        return sp.csr_matrix(rows @ inverse(self.task.moments.C)) if self.setting.rule.natural else rows

    def _placed(self, **blocks: sp.csr_matrix) -> sp.csr_matrix:
        """Return (outcomes, size) with the given blocks in the columns of their parts."""
        empty = sp.csr_matrix((len(self.task.transitions.row), self.task.n_features))
        return sp.hstack([blocks.get(part, empty) for part in self.parts], format="csr")

    def _probe(self, factor: float, rho: float, discount: float) -> Array:
        """Return (4, 4): for each directed move, then the shrink of η, its constant and its three slopes."""
        rule = self.setting.rule
        fixed = self.setting.signals(factor, rho) | {"discount": discount}

        def moves(signals: tuple[float, ...]) -> Array:
            made = rule.coefficients(fixed | dict(zip(LINEAR_SIGNALS, signals, strict=True)))
            return np.array([*(made[name] for name in DIRECTED_MOVES), made["eta_eta"]], dtype=float)

        zero = moves((0.0, 0.0, 0.0))
        slopes = np.column_stack([moves(tuple(map(float, unit))) - zero for unit in np.eye(3)])
        for probe in PROBES:
            gap = np.abs(moves(probe) - zero - slopes @ probe)
            room = PRECISION * (np.abs(zero) + np.abs(slopes) @ np.abs(probe))
            if slopes[-1].any() or not (gap <= room).all():
                what = "be affine in delta, x_eta and x_change, and shrink η by a constant, for its mean to be exact"
                raise bad_request(f"The step of the rule {rule.name!r}", what, Unquoted("another function"))
        return np.column_stack([zero, slopes])


class MeanOperator:
    """The recursion of m, E[z 1{group}], and p, the probabilities of the groups.

    Along trajectories a group is a state; i.i.d. draws have a single group.

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

    def start(self) -> tuple[Array, Array]:
        """Return m, as one vector, and p before the first step."""
        return np.outer(self._start, self.maps.initial).ravel(), self._start

    def matrix(self, factor: float = 1.0) -> sp.csr_matrix:
        """Return M of m' = M m + offsets p, sparse (groups × size, groups × size)."""
        return sp.csr_matrix(sp.kron(self.flow, self.maps.carried) + self.moves(factor))

    def offsets(self, factor: float = 1.0) -> sp.csr_matrix:
        """Return the part of m' that does not depend on m, as a sparse (groups × size, groups) matrix that p enters."""
        slopes, constants, _ = self.maps.coefficients(factor)
        moved = constants + slopes[:, 0] * self.maps.task.transitions.reward  # the reward enters with delta
        return sp.csr_matrix(self._directions @ sp.vstack([sp.diags(one) @ self._drawn for one in moved]))

    def generator(self, factor: float = 1.0) -> sp.csr_matrix:
        """Return matrix − I. Terms with alpha are never added to 1, so small step sizes keep their digits."""
        groups, size = self.shape
        still = sp.kron(self.flow, self.maps.carried) - sp.identity(groups * size)
        return sp.csr_matrix(still + self.moves(factor))

    def moves(self, factor: float = 1.0) -> sp.csr_matrix:
        """Return the part of the matrix that the moves add to the carried weights."""
        slopes, _, shrink = self.maps.coefficients(factor)
        between = sp.block_array([[sp.diags(slope) for slope in move] for move in slopes], format="csr")
        shrinking = sp.kron(self._after @ sp.diags(shrink) @ self._drawn, self.maps.only_eta)
        return sp.csr_matrix(self._directions @ between @ self._functionals + shrinking)


def groups(task: Task, sampling: str) -> tuple[Integers, Array, sp.csr_matrix]:
    """Return each outcome's group (outcomes,), the distribution of the first group, and `after` (groups, outcomes).

    after[g, o] is the probability of outcome o in its group, times the probability that g is the next group.
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
    """Return (groups × size, outcomes): each row as a column, weighted in each group that its outcome leads to."""
    entry = after.tocoo()
    chosen = rows[entry.col]
    length = np.diff(chosen.indptr)
    place = chosen.indices + rows.shape[1] * np.repeat(entry.row, length)
    value = chosen.data * np.repeat(entry.data, length)
    shape = (after.shape[0] * rows.shape[1], rows.shape[0])
    return sp.csr_matrix((value, (place, np.repeat(entry.col, length))), shape=shape)


class ExpectedRun(NamedTuple):
    """The mean of all runs of a setting.

    steps    (points,)
    weights  (points, p) E[w]
    errors   (points,) RMSVE of E[w], by convexity at most the mean RMSVE of runs, which includes their noise
    """

    steps: Integers
    weights: Array
    errors: Array


@checked
def expected_run(
    task: Task, setting: Setting, steps: int, *, sampling: str = "trajectory", points: ArrayLike | None = None
) -> ExpectedRun:
    """Return the mean weights of a learner after the numbers of steps in `points`, by default 200 points."""
    whole_number("'steps'", steps, at_most=LONGEST)
    wanted = np.unique(np.linspace(0, steps, POINTS + 1).astype(int)[1:] if points is None else np.asarray(points))
    if wanted.dtype.kind not in "iu" or not len(wanted) or wanted[0] < 0 or wanted[-1] > steps:
        raise bad_request("'points'", f"be whole numbers from 0 to {steps}", points)
    operator = MeanOperator(task, setting, sampling)
    matrix, offsets, (m, p) = operator.matrix(), operator.offsets(), operator.start()
    made, weights = 0, []
    for point in wanted:
        for _ in range(made, point):
            m, p = matrix @ m + offsets @ p, operator.flow @ p
        weights.append(m.reshape(operator.shape)[:, operator.maps.part("w")].sum(axis=0))
        made = point
    return ExpectedRun(wanted, np.array(weights), np.array([task.rmsve(w) for w in weights]))
