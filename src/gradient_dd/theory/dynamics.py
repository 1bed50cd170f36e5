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

Along a trajectory weights and state are correlated, so this equation does not hold. But the chain is Markov, and the
means *by state*, m_s = E[z 1{s}] and p_s = P(s), obey an exact linear recursion:

    m'_s' = Σ_{o: s→s'} q_o (M_o m_s + c_o p_s),     p'_s' = Σ_{o: s→s'} q_o p_s,     q_o = μ(a|s) P(s'|s,a)

An outcome that ends its episode leads to the start distribution. E[z] is the sum of m_s over s. The same operator
serves both cases: independent draws are a chain with a single group of outcomes.
"""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gradient_dd.arrays import LARGEST, Array, Integers, numbers
from gradient_dd.engine.horizon import LONGEST, Horizon
from gradient_dd.engine.trajectories import SAMPLINGS
from gradient_dd.errors import GradientDDError, Unquoted, bad_request, one_of, whole_number
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task
from gradient_dd.tasks.exact import inverse

P = ParamSpec("P")
R = TypeVar("R")
TYPES: dict[str, tuple[type, str]] = {  # types of the arguments of public functions
    "task": (Task, "a Task, e.g. tasks.random_walk(20)"),
    "setting": (Setting, "a setting, e.g. LEARNERS['td'].setting(alpha=0.1)"),
    "horizon": (Horizon, "a Horizon, e.g. Horizon(steps=10_000)"),
}
LINEAR_SIGNALS = ("delta", "x_eta", "x_change")  # the signals that depend on the weights
SIGNALS_OF_THEORY = ("alpha", "beta", "rho", "rho_x", "discount", *LINEAR_SIGNALS)
DIRECTED_MOVES = ("w_x", "w_next", "eta_x")  # the moves along a feature vector
PROBES = ((0.7, -1.3, 2.1), (-40.0, 30.0, -20.0), (1e6, 2e6, -3e6))  # signals that check that a rule is affine
PRECISION = 1e-9  # relative precision of that check
POINTS = 200  # default number of points of a learning curve


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return a public function that checks its arguments; numbers that overflow floats are a bad request too."""
    parameters = signature(function)

    @wraps(function)
    def entered(*arguments: P.args, **keywords: P.kwargs) -> R:
        bound = parameters.bind(*arguments, **keywords)
        given = bound.arguments
        for name in given.keys() & TYPES.keys():
            if not isinstance(given[name], TYPES[name][0]):
                raise bad_request(f"{name!r}", f"be {TYPES[name][1]}", given[name])
        if "task" in given:
            given["task"].check_asked_everywhere("the theory")
        if "sampling" in given:
            one_of("'sampling'", given["sampling"], SAMPLINGS)
        if "v" in given:
            given["v"], shape = numbers("'v'", given["v"], LARGEST), (given["task"].n_features,)
            if given["v"].shape != shape:
                raise bad_request("The shape of 'v'", f"be {shape}", given["v"].shape)
        try:
            with np.errstate(all="ignore"):
                return function(*bound.args, **bound.kwargs)
        except (ArithmeticError, ValueError) as error:  # including NumPy's: a LinAlgError is a ValueError
            if isinstance(error, GradientDDError):
                raise
            rule = "be within the range of floating-point arithmetic"
            raise bad_request(f"The numbers given to {function.__name__}", rule, Unquoted(error)) from None

    return entered


class SampleMaps:
    """The affine maps z ↦ M_o z + c_o of a setting on a task, in factored form.

    parts        the parts of z, of p entries each: "eta" and "w_prev" only if the rule has them
    initial      (size,) z at the first step: η = 0 and w_prev = w, the task's initial weights
    carried      (size, size) I': the map of z if nothing moves; w_prev becomes w
    only_eta     (size, size) I_η: the identity on η, zero elsewhere
    functionals  a sparse (outcomes, size) matrix for each of LINEAR_SIGNALS
    directions   a sparse (outcomes, size) matrix for each of DIRECTED_MOVES
    """

    def __init__(self, task: Task, setting: Setting) -> None:
        self.task, self.setting = task, setting
        rule, p = setting.rule, task.n_features
        task.check_asked_everywhere("the theory")
        rule.check_known("The theory", SIGNALS_OF_THEORY, (*DIRECTED_MOVES, "eta_eta"))
        self.parts = parts = ("eta",) * rule.has_eta + ("w",) + ("w_prev",) * ("x_change" in rule.arguments)
        self.size = len(parts) * p
        self.initial = np.concatenate([np.zeros(p) if part == "eta" else task.initial_weights for part in parts])
        before = np.eye(len(parts))[[parts.index("w" if part == "w_prev" else part) for part in parts]]
        self.carried = sp.kron(before, sp.identity(p), format="csr")
        self.only_eta = sp.diags(np.repeat([float(part == "eta") for part in parts], p))
        x, x_next = (task.row_features[rows] for rows in task.transitions[:2])
        metric = inverse(task.moments.C) if rule.natural else sp.identity(p)
        self.functionals = (
            self._placed(w=sp.diags(task.transitions.discount) @ x_next - x),
            self._placed(eta=x),
            self._placed(w=x, w_prev=-x) if "w_prev" in parts else self._placed(),
        )
        self.directions = (
            self._placed(w=sp.csr_matrix(x @ metric)),
            self._placed(w=sp.csr_matrix(x_next @ metric)),
            self._placed(eta=x),
        )

    def part(self, name: str) -> slice:
        """Return the slice of a part in z; empty if the rule does not have the part."""
        if name not in self.parts:
            return slice(0, 0)
        begin = self.parts.index(name) * self.task.n_features
        return slice(begin, begin + self.task.n_features)

    def coefficients(self, factor: float = 1.0) -> tuple[Array, Array, Array]:
        """Return the moves of every outcome, with alpha multiplied by `factor`.

        These are the slopes (moves, signals, outcomes) of DIRECTED_MOVES in LINEAR_SIGNALS, the constants
        (moves, outcomes) at zero signals, and the shrinkage (outcomes,) of η.
        """
        transitions = self.task.transitions
        pairs, which = np.unique(np.column_stack([transitions.rho, transitions.discount]), axis=0, return_inverse=True)
        probed = np.array([self._probe(factor, float(rho), float(discount)) for rho, discount in pairs])
        by_outcome = np.moveaxis(probed[which.ravel()], 0, -1)  # (moves and shrink, constant and signals, outcomes)
        return by_outcome[:-1, 1:], by_outcome[:-1, 0], by_outcome[-1, 0]

    def changes(self, factor: float = 1.0) -> list[sp.csr_matrix]:
        """Return M_o − I' of every outcome, (size, size) each, with alpha multiplied by `factor`."""
        slopes, _, shrink = self.coefficients(factor)
        found = []
        for o in range(len(shrink)):
            along, of = (
                sp.vstack([rows[[o]] for rows in matrices], "csr") for matrices in (self.directions, self.functionals)
            )
            found.append(sp.csr_matrix(along.T @ sp.csr_matrix(slopes[..., o]) @ of + shrink[o] * self.only_eta))
        return found

    def _placed(self, **blocks: sp.csr_matrix) -> sp.csr_matrix:
        """Return (outcomes, size) with the given blocks in the columns of their parts."""
        empty = sp.csr_matrix((len(self.task.transitions.row), self.task.n_features))
        return sp.hstack([blocks.get(part, empty) for part in self.parts], format="csr")

    def _probe(self, factor: float, rho: float, discount: float) -> Array:
        """Return (4, 4): the constant and the three slopes of each directed move and of the shrinkage of η."""
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

    Along trajectories a group is a state; independent draws have a single group.

    maps   the sample maps of the setting
    flow   (groups, groups) sparse: p' = flow p
    shape  (groups, size) of m
    """

    def __init__(self, task: Task, setting: Setting, sampling: str = "trajectory") -> None:
        self.maps = maps = SampleMaps(task, setting)
        group, self._start, self._after = groups(task, sampling)
        outcome = np.arange(len(group))
        self._drawn = sp.csr_matrix((np.ones(len(group)), (outcome, group)), shape=self._after.shape[::-1])
        self.flow = sp.csr_matrix(self._after @ self._drawn)
        self.shape = self.flow.shape[0], maps.size
        wide = (len(group), self.flow.shape[0] * maps.size)
        lifted = []  # each row of the functionals, in the columns of its outcome's group
        for rows in maps.functionals:
            column = rows.indices + maps.size * np.repeat(group, np.diff(rows.indptr))
            lifted.append(sp.csr_matrix((rows.data, column, rows.indptr), shape=wide))
        self._functionals = sp.vstack(lifted, "csr")
        self._directions = sp.hstack([spread(rows, self._after) for rows in maps.directions], "csr")

    def start(self) -> tuple[Array, Array]:
        """Return m, as one vector, and p before the first step."""
        return np.outer(self._start, self.maps.initial).ravel(), self._start

    def matrix(self, factor: float = 1.0) -> sp.csr_matrix:
        """Return M of m' = M m + offsets p, sparse (groups × size, groups × size)."""
        return sp.csr_matrix(sp.kron(self.flow, self.maps.carried) + self.moves(factor))

    def offsets(self, factor: float = 1.0) -> sp.csr_matrix:
        """Return the matrix that multiplies p in m' = M m + offsets p, sparse (groups × size, groups)."""
        slopes, constants, _ = self.maps.coefficients(factor)
        moved = constants + slopes[:, 0] * self.maps.task.transitions.reward  # the reward enters with delta
        return sp.csr_matrix(self._directions @ sp.vstack([sp.diags(one) @ self._drawn for one in moved]))

    def generator(self, factor: float = 1.0) -> sp.csr_matrix:
        """Return matrix − I. Terms with alpha are never added to 1, so small step sizes keep their precision."""
        still = sp.kron(self.flow, self.maps.carried) - sp.identity(self._functionals.shape[1])
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
    one_of("'sampling'", sampling, SAMPLINGS)
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

    steps    (points,) numbers of steps
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
