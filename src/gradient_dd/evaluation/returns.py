"""A second opinion on values: the returns of the log, weighted by the ratios of all steps that follow.

    G_t = ρ_t (r_t + γ_t G_{t+1}),        E[G_t | s_t] = V(s_t)

The Bellman error, by which candidates are compared first, says how well values agree with each other. It does not see a
value that the features cannot carry. Returns do, but they are noisy, the more so the more ratios are multiplied: a few
huge products carry the mean, and a sample that lacks them shows returns near 0. So returns count only where the
products of their ratios average to 1 and leave enough effective rows, and overrule only where they are sure.
"""

import numpy as np

from gradient_dd.arrays import LARGEST, Array, Booleans, Integers
from gradient_dd.evaluation.blocks import GROUPS
from gradient_dd.evaluation.choice import NOTHING, Candidate
from gradient_dd.evaluation.moments import lane_values
from gradient_dd.evaluation.transitions import Transitions

REST = 0.02  # a return whose missing rest is discounted by less counts as known
SURE = 4.0  # standard errors: some thirty candidates are compared, and returns have heavy tails
SURE_OF_NOTHING = 1.0  # the same, for the initial weights: what is learnt must not be worse than not learning
FEWEST_GROUPS = 20  # with known returns
FEWEST_ROWS, OFF = 100.0, 0.2  # effective rows that the products must leave, and by how much their mean may miss 1


def returns_of(batch: Transitions) -> tuple[Array, Booleans, Array]:
    """Return G of each row, whether enough of its episode is in the batch, and the product of the ratios in it."""
    n = len(batch)
    returns, rests, products = np.zeros(n), np.ones(n), np.ones(n)
    total, rest, product = 0.0, 1.0, 1.0
    for row in range(n - 1, -1, -1):
        if row == n - 1 or batch.episode[row + 1] != batch.episode[row]:
            total, rest, product = 0.0, 1.0, 1.0
        total = batch.rho[row] * (batch.reward[row] + batch.discount[row] * total)
        product = batch.rho[row] * (product if batch.discount[row] > 0 else 1.0)
        rest *= batch.discount[row]
        returns[row], rests[row], products[row] = total, rest, product
    return returns, (rests < REST) & (np.abs(returns) < LARGEST) & (products < LARGEST), products


def can_be_used(products: Array) -> bool:
    """Return whether products of ratios average to 1, nearly, and leave enough effective rows."""
    square = float((products**2).sum())
    return square > 0 and products.sum() ** 2 / square >= FEWEST_ROWS and abs(products.mean() - 1) <= OFF


def value_losses(candidates: list[Candidate], batch: Transitions, group: Integers, weights: Array) -> Array:
    """Return Σ (V² − 2 V G) of every candidate and group, (candidates, groups), by copies that have not seen the group.

    Up to what all candidates share, this is the squared error of the values.
    """
    returns, known, products = returns_of(batch)
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
