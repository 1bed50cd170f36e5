"""How much more one policy is worth than another, with intervals that hold for all policies of a log at once.

    d, d'   the difference by LSTD-Q, and by the limited doubly robust estimate
    reach   standard errors of d from paired bootstrap samples, times the largest studentised deviation over all
            policies (max-t)
    fixed   what no sample mends: 1 % of the range of all values, and how far a value was beyond what rewards allow
    from    min(d, d') − reach − fixed        to    max(d, d') + reach + fixed

What policies have in common cancels, for the samples are the same. So does the error of features that both values
share; what is left of it grows with the difference itself, and a fifth of each bound is added for it. It makes an
interval wider and never moves a bound across zero: whether a policy is better is said by both estimates and by chance.
Policies that differ by less than 1 % of the range of all values are not ranked.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation.policy_values import PolicyValue

SHARE = 0.2  # of a bound, for the features' own error
CLOSE = 0.01  # of the range of the values of all policies, below which a difference does not count
USUAL, NORMAL = 0.9, 1.645  # a share of the copies, and how many standard errors they reach


class Gap(NamedTuple):
    """How much more one policy is worth than another.

    apart        by LSTD-Q;  least, most  the smaller and the larger one of both estimates
    reach        what chance adds to either side: less with more episodes
    fixed        what is added whatever the number of episodes
    """

    apart: float
    least: float
    most: float
    reach: float
    fixed: float

    @property
    def low(self) -> float:
        """The lower bound."""
        bound = self.least - self.reach - self.fixed
        return bound - SHARE * abs(bound)

    @property
    def high(self) -> float:
        """The upper bound."""
        bound = self.most + self.reach + self.fixed
        return bound + SHARE * abs(bound)


def gap_of(first: PolicyValue, second: PolicyValue, factor: float, width: float) -> Gap:
    """Return how much more the first policy is worth than the second.

    factor  that of `max_t_factor`;  width  the range of the values of all policies
    """
    if first is second:
        return Gap(0.0, 0.0, 0.0, 0.0, 0.0)
    apart, robust = first.value - second.value, first.robust.value - second.robust.value
    reach = factor * spread_of_difference(first.action_values.copies - second.action_values.copies, apart)
    fixed = CLOSE * width + first.impossible + second.impossible
    return Gap(apart, min(apart, robust), max(apart, robust), reach, fixed)


def spread_of_difference(copies: Array, centre: float) -> float:
    """Return the standard error of a difference from its bootstrap copies; a few wild copies do not count."""
    return float(np.quantile(np.abs(copies - centre), USUAL) / NORMAL)


def max_t_factor(found: Sequence[PolicyValue], confidence: float) -> float:
    """Return how many standard errors a simultaneous interval of all differences to the first policy reaches."""
    base = found[0]
    largest = np.zeros(len(base.action_values.copies))
    for one in found[1:]:
        apart = one.value - base.value
        copies = one.action_values.copies - base.action_values.copies
        spread = spread_of_difference(copies, apart)
        if spread > 0:
            largest = np.maximum(largest, np.abs(copies - apart) / spread)
    return float(np.quantile(largest, confidence))
