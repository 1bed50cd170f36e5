"""Sample maps: one step of a learner as an exact affine map of its weights, one map for each outcome of a task.

    z = (η, w, w_prev)          the parts a rule does not have are left out
    z ← M_o z + c_o             the step that outcome o makes

Nothing here is derived by hand. A rule is a function of scalars; where its moves are affine in the signals that depend
on the weights,

    move_m = constant_m + Σ_j slope_mj signal_j,     signals:  δ = r + (γx' − x)·w,   x·η,   x·(w − w_prev)

the constants and slopes are found by calling the step at zero and at unit signals, and checked by calling it elsewhere.
Each signal is a linear function of z (plus r) and each move has one direction, so M_o is the identity, with w_prev
replaced by w, plus a term of low rank and the shrinking of η:

    M_o = I' + Σ_mj direction_m slope_mj functional_jᵀ + shrink_o I_η

A natural rule is taken in its mean-field limit: its metric M, the running mean of x xᵀ, stands at C = E[x xᵀ], so that
w moves along C⁺x and C⁺x'. The ridge, which fades as 1/n, is not seen.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gradient_dd.arrays import Array
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task
from gradient_dd.tasks.exact import inverse

LINEAR_SIGNALS = ("delta", "x_eta", "x_change")  # the signals that depend on the weights
SIGNALS_OF_THEORY = ("alpha", "beta", "rho", "rho_x", "discount", *LINEAR_SIGNALS)
DIRECTED_MOVES = ("w_x", "w_next", "eta_x")  # the moves along a feature vector
PROBES = ((0.7, -1.3, 2.1), (-40.0, 30.0, -20.0), (1e6, 2e6, -3e6))  # where affinity is checked
PRECISION = 1e-9  # of that check, relative


class Coefficients(NamedTuple):
    """How far each outcome moves the weights.

    slopes     (moves, signals, outcomes) of DIRECTED_MOVES in LINEAR_SIGNALS
    constants  (moves, outcomes) of the moves at zero signals
    shrink     (outcomes,) of η along itself
    """

    slopes: Array
    constants: Array
    shrink: Array


class SampleMaps:
    """The affine maps z ↦ M_o z + c_o of a setting on a task, in factored form.

    parts        the parts of z, of p entries each: "eta" and "w_prev" only where the rule has them
    functionals  one (outcomes, size) sparse matrix for each of LINEAR_SIGNALS
    directions   one (outcomes, size) sparse matrix for each of DIRECTED_MOVES
    """

    def __init__(self, task: Task, setting: Setting) -> None:
        self.task, self.setting = task, setting
        rule = setting.rule
        task.check_asked_everywhere("the theory")
        rule.check_known("The theory", SIGNALS_OF_THEORY, (*DIRECTED_MOVES, "eta_eta"))
        has = {"eta": rule.has_eta, "w": True, "w_prev": "x_change" in rule.arguments}
        self.parts = tuple(part for part in has if has[part])
        self.size = len(self.parts) * task.n_features
        features = task.row_features
        row, next_row, _, discount, _, _ = task.transitions
        x, x_next = features[row], features[next_row]
        along = self._metric(x), self._metric(x_next)
        self.functionals = (
            self._placed(w=sp.diags(discount) @ x_next - x),
            self._placed(eta=x),
            self._placed(w=x, w_prev=-x) if has["w_prev"] else self._placed(),
        )
        self.directions = (self._placed(w=along[0]), self._placed(w=along[1]), self._placed(eta=x))

    def part(self, name: str) -> slice:
        """Return the slice of z that holds a part; an empty slice if the rule does not have the part."""
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
        """(size, size) I': what z becomes where nothing moves, the old w standing as w_prev."""
        source = np.arange(self.size)
        if "w_prev" in self.parts:
            source[self.part("w_prev")] = source[self.part("w")]
        return sp.csr_matrix((np.ones(self.size), (np.arange(self.size), source)), shape=(self.size, self.size))

    def coefficients(self, factor: float = 1.0) -> Coefficients:
        """Return the coefficients of every outcome, alpha being multiplied by `factor`."""
        transitions = self.task.transitions
        pairs, which = np.unique(np.column_stack([transitions.rho, transitions.discount]), axis=0, return_inverse=True)
        probed = np.array([self._probe(factor, float(rho), float(discount)) for rho, discount in pairs])
        by_outcome = np.moveaxis(probed[which.ravel()], 0, -1)  # (moves and shrink, constant and signals, outcomes)
        return Coefficients(by_outcome[:-1, 1:], by_outcome[:-1, 0], by_outcome[-1, 0])

    def changes(self, factor: float = 1.0) -> list[sp.csr_matrix]:
        """Return M_o − I' of every outcome, (size, size) each, alpha being multiplied by `factor`."""
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
