"""An absolute check of the values: what episodes paid, weighted by the ratios, against the values where they begin.

    W_t = ρ_0 ⋯ ρ_t      D_t = γ_0 ⋯ γ_{t-1}
    V(s_0)  ≈  Σ_{t<h}  Σ W_t D_t r_t / Σ W_t   +   Σ W_{h-1} D_h V(s_h) / Σ W_{h-1}        (sums over starts)

Each step has weights that sum to 1: self-normalised, per-decision importance sampling. An episode that has ended pays 0
and keeps its weight. Products of ratios grow heavy, so h is the last step at which they leave enough effective starts
and average to 1, nearly; what follows is taken from the values themselves. Where h reaches the ends of the episodes the
check owes nothing to the values. Where an episode is cut, its value there stands for the rest.

There are two checks: from the beginnings of episodes, and from all rows, which are more. The Bellman error cannot see
a value that the features cannot carry, nor a wrong column of ends. These checks can.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.evaluation.blocks import GROUPS
from gradient_dd.evaluation.moments import lane_values
from gradient_dd.evaluation.sample import goes_on
from gradient_dd.evaluation.spread import Spread
from gradient_dd.evaluation.transitions import Transitions, rows_of
from gradient_dd.stream.features import Rows
from gradient_dd.studies.intervals import error_of_groups, student_factor

FEWEST_STARTS = 20
MOST_STARTS = 50_000  # of all rows
EPISODES_LEFT, ROWS_LEFT = 50.0, 100.0  # effective starts that the products must leave; half of all where they are few
OFF = 0.2  # by how much the mean of the products may miss 1
REST = 0.02  # the discount at which what follows no longer matters
MOST_STEPS = 2000


class ReturnCheck(NamedTuple):
    """What the returns say, and how far they are from the values.

    kind       "episodes" or "rows": where the returns begin;  starts  how many there are
    returns    their mean;  low, high  its interval
    value      the mean value of the same states;  gap  returns − value
    doubt      how far the two may be apart by chance: that of the returns, and that of the weights
    steps      h;  effective  starts that the products leave there;  rest  the weight of the values after h steps
    """

    kind: str
    starts: int
    returns: float
    low: float
    high: float
    value: float
    gap: float
    doubt: float
    steps: int
    effective: float
    rest: float

    @property
    def blind(self) -> float:
        """How wrong values may be, all of them alike, before it is noticed."""
        return self.doubt / (1 - self.rest) if self.rest < 1 - 1e-9 else float("inf")


def return_checks(batch: Transitions, group: Integers, w: Array, spread: Spread) -> tuple[ReturnCheck, ...]:
    """Return the checks of weights w (p,) on whole episodes, none where there are too few rows."""
    first = np.flatnonzero(np.diff(batch.episode, prepend=batch.episode[0] - 1))
    every = np.arange(0, len(batch), -(-len(batch) // MOST_STARTS))
    kinds = (("episodes", first, EPISODES_LEFT), ("rows", every, ROWS_LEFT))
    found, on = [], goes_on(batch)
    for name, starts, fewest in kinds:
        if len(starts) >= FEWEST_STARTS:
            walk = Walk(batch, on, group, w, starts, min(fewest, len(starts) / 2))
            found.append(walk.check(name, spread))
    return tuple(found)


class Walk:
    """Steps from all starts at once, one step of each at a time."""

    def __init__(
        self, batch: Transitions, on: Booleans, group: Integers, w: Array, starts: Integers, fewest: float
    ) -> None:
        self.batch, self.on, self.w, self.starts, self.fewest = batch, on, w, starts, fewest
        self.at, self.group = starts.copy(), group[starts]
        n = len(starts)
        self.product, self.discount, self.alive = np.ones(n), np.ones(n), np.ones(n, bool)
        self.total, self.rest, self.steps = 0.0, 0.0, 0
        self.effective = float(n)
        self.pull = np.zeros(GROUPS)  # of each group on the total
        self.taken = np.zeros(len(w))  # features whose values are in the total

    def check(self, name: str, spread: Spread) -> ReturnCheck:
        """Walk as far as the ratios allow, and compare."""
        n, here = len(self.starts), rows_of(self.batch.x, self.starts)
        while self.alive.any() and self.steps < MOST_STEPS and self.discount[self.alive].max() > REST:
            if not self._step():
                break
        if self.alive.any():
            self._take_values(self.alive, rows_of(self.batch.x, self.at[self.alive]))
        values = self._values(here)
        value = float(values.mean())
        of_value = np.bincount(self.group, values - value, minlength=GROUPS) / n
        count = len(np.unique(self.group))
        factor = student_factor(spread.confidence, max(1.0, min(count, self.effective) - 1))
        half, apart = (factor * error_of_groups(pull, count) for pull in (self.pull, self.pull - of_value))
        counted = total_of(here, np.full(n, 1 / n), len(self.w)) - self.taken  # the gap is a number − counted·w
        gap, own, bounds = self.total - value, float(counted @ self.w), spread.of_mean(counted, self.w)
        doubt = float(np.hypot(apart, bounds.high - own if gap > 0 else own - bounds.low))
        reached = (self.steps, self.effective, self.rest)
        return ReturnCheck(name, n, self.total, self.total - half, self.total + half, value, gap, doubt, *reached)

    def _step(self) -> bool:
        """Take one more step, unless the products become too heavy for it."""
        alive, batch = self.alive, self.batch
        at = self.at[alive]
        product = self.product.copy()
        product[alive] *= batch.rho[at]
        square = float((product**2).sum())
        effective = product.sum() ** 2 / square if square > 0 else 0.0
        if effective < self.fewest or abs(product.mean() - 1) > OFF:
            return False
        self.product, self.effective, self.steps = product, float(effective), self.steps + 1
        paid = np.zeros(len(product))
        paid[alive] = self.discount[alive] * batch.reward[at]
        self._add(paid)
        self.discount[alive] *= batch.discount[at]
        stays = np.zeros(len(product), bool)
        stays[alive] = self.on[at]
        stopped = alive & ~stays & (self.discount > 0)
        if stopped.any():
            self._take_values(stopped, rows_of(batch.x_next, self.at[stopped]))
        self.alive = stays & (self.discount > 0)
        self.at[self.alive] += 1
        return True

    def _take_values(self, these: Booleans, reached: Rows) -> None:
        """Let the values of the states that some starts have reached stand for all that follows there."""
        worth = np.where(these, self.discount, 0.0)
        weight = (self.product * worth)[these] / self.product.sum()
        worth[these] *= self._values(reached)
        self._add(worth)
        self.taken += total_of(reached, weight, len(self.w))
        self.rest += float(weight.sum())

    def _add(self, paid: Array) -> None:
        """Add the weighted mean of what each start was paid, and what each group pulls it by."""
        weight = self.product / self.product.sum()
        mean = float(weight @ paid)
        self.total += mean
        self.pull += np.bincount(self.group, weight * (paid - mean), minlength=GROUPS)

    def _values(self, rows: Rows) -> Array:
        return np.asarray(lane_values(rows, self.w[:, None])[:, 0])


def total_of(rows: Rows, weight: Array, p: int) -> Array:
    """Return the weighted sum of feature rows, (p,)."""
    if rows.indices is None:
        return np.asarray(weight @ rows.values)
    return np.bincount(rows.indices.ravel(), (weight[:, None] * rows.values).ravel(), minlength=p).astype(float)
