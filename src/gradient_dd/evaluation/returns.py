"""The returns of the log, weighted by the ratios: a second opinion on values, and an absolute check of them.

The Bellman error, by which candidates are compared first, says how well values agree with each other. It sees neither a
value that the features cannot carry nor a wrong column of ends. Returns do, but products of ratios grow heavy: a few
huge products carry the mean, and a sample that lacks them shows returns near 0. So returns count only where the
products of their ratios average to 1, nearly, and leave enough effective rows.

To choose among candidates, whole returns are compared with the values; they overrule only where they are sure:

    G_t = ρ_t (r_t + γ_t G_{t+1}),        E[G_t | s_t] = V(s_t)

To check the values that were chosen, the steps that follow some starts are taken for all starts at once:

    W_t = ρ_0 ⋯ ρ_t      D_t = γ_0 ⋯ γ_{t-1}
    V(s_0)  ≈  Σ_{t<h}  Σ W_t D_t r_t / Σ W_t   +   Σ W_{h-1} D_h V(s_h) / Σ W_{h-1}        (sums over starts)

Each step has weights that sum to 1: self-normalised, per-decision importance sampling. An episode that has ended pays 0
and keeps its weight. h is the last step at which the products can be used; what follows is taken from the values
themselves. Where h reaches the ends of the episodes the check owes nothing to the values. Where an episode is cut, its
value there stands for the rest. There are two checks: from the beginnings of episodes, and from all rows, which are
more.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import LARGEST, Array, Booleans, Integers
from gradient_dd.evaluation.choice import NOTHING, Candidate, Spread
from gradient_dd.evaluation.episodes import GROUPS, goes_on
from gradient_dd.evaluation.moments import lane_values, total_of
from gradient_dd.evaluation.transitions import Transitions, rows_of
from gradient_dd.stream.features import Rows
from gradient_dd.studies.intervals import error_of_groups, student_factor

REST = 0.02  # the discount at which what follows no longer matters
EPISODES_LEFT, ROWS_LEFT = 50.0, 100.0  # effective starts that the products must leave; half of all where they are few
OFF = 0.2  # by how much the mean of the products may miss 1
SURE = 4.0  # standard errors: some thirty candidates are compared, and returns have heavy tails
SURE_OF_NOTHING = 1.0  # the same, for the initial weights: what is learnt must not be worse than not learning
FEWEST_GROUPS = 20  # with known returns
FEWEST_STARTS = 20
MOST_STARTS = 50_000  # of all rows
MOST_STEPS = 2000


def returns_of(batch: Transitions, rho: Array) -> tuple[Array, Array, Array]:
    """Return G of each row, the discount of what the batch lacks of it, and the product of its ratios; (n,) each."""
    returns, rests, products = np.zeros((3, len(batch)))
    last = np.append(np.diff(batch.episode) != 0, True)  # rows of their episodes
    for row in range(len(batch) - 1, -1, -1):
        if last[row]:
            total, rest, product = 0.0, 1.0, 1.0
        total = rho[row] * (batch.reward[row] + batch.discount[row] * total)
        product = rho[row] * (product if batch.discount[row] > 0 else 1.0)
        rest *= batch.discount[row]
        returns[row], rests[row], products[row] = total, rest, product
    return returns, rests, products


def effective(products: Array) -> float:
    """Return (Σ W)² / Σ W²: the number of equal products that would be worth as much."""
    square = float((products**2).sum())
    return float(products.sum() ** 2 / square) if square > 0 else 0.0


def can_be_used(products: Array, fewest: float = ROWS_LEFT) -> bool:
    """Return whether products of ratios average to 1, nearly, and leave enough effective rows."""
    return effective(products) >= fewest and bool(abs(products.mean() - 1) <= OFF)


def value_losses(candidates: list[Candidate], batch: Transitions, group: Integers, weights: Array) -> Array:
    """Return Σ (V² − 2 V G) of every candidate and group, (candidates, groups), by copies that have not seen the group.

    Up to what all candidates share, this is the squared error of the values.
    """
    returns, rests, products = returns_of(batch, batch.rho)
    known = (rests < REST) & (np.abs(returns) < LARGEST) & (products < LARGEST)
    if not known.any() or not can_be_used(products[known]):
        return np.zeros((len(candidates), 0))
    batch, group, returns = batch.part(known), group[known], returns[known]
    losses, counts = np.zeros((len(candidates), GROUPS)), np.zeros(GROUPS)
    for r in range(weights.shape[1]):
        unseen = weights[group, r] == 0
        if not unseen.any():
            continue
        part, its_group = batch.part(unseen), group[unseen]
        with np.errstate(over="ignore", invalid="ignore"):
            values = lane_values(part.x, np.stack([one.copies[r] for one in candidates], axis=1))
            loss = values * (values - 2 * returns[unseen, None])
        for k in range(len(candidates)):
            losses[k] += np.bincount(its_group, loss[:, k], minlength=GROUPS)
        counts += np.bincount(its_group, minlength=GROUPS) > 0
    return losses[:, counts > 0] / counts[counts > 0]


def overruled(candidates: list[Candidate], chosen: Candidate, losses: Array) -> Candidate:
    """Return the candidate whose values the returns surely prefer to those of `chosen`, or `chosen` itself."""
    if losses.shape[1] < FEWEST_GROUPS:
        return chosen
    best, gain = chosen, 0.0
    losses = np.clip(losses, -LARGEST, LARGEST)
    at = next(k for k, one in enumerate(candidates) if one is chosen)
    for k, one in enumerate(candidates):
        if one.diverged or not (np.abs(losses[k]) < LARGEST).all():
            continue
        difference = losses[at] - losses[k]
        error = difference.std(ddof=1) * np.sqrt(len(difference))
        sure = SURE_OF_NOTHING if one.name == NOTHING else SURE
        if difference.sum() > max(gain, sure * error):
            best, gain = one, float(difference.sum())
    return best


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
        """The smallest error, the same in all values, that this check can detect."""
        return self.doubt / (1 - self.rest) if self.rest < 1 - 1e-9 else float("inf")


def return_checks(batch: Transitions, group: Integers, w: Array, spread: Spread) -> tuple[ReturnCheck, ...]:
    """Return the checks of weights w (p,) on whole episodes; a check that has too few starts is left out."""
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
    """Follows all starts at once, step by step, and adds up what the steps pay."""

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
        """Walk as far as the ratios allow, and return the mean return beside the mean value."""
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
        """Take one more step and return True, or return False where the products become too heavy for another step."""
        alive, batch = self.alive, self.batch
        at = self.at[alive]
        product = self.product.copy()
        product[alive] *= batch.rho[at]
        if not can_be_used(product, self.fewest):
            return False
        self.product, self.effective, self.steps = product, effective(product), self.steps + 1
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
