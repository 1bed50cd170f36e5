"""The value of a policy, its interval, and the products of ratios along episodes that the estimates are made of."""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.evaluation.design import Design
from gradient_dd.evaluation.maps import GIVEN, FeatureMap
from gradient_dd.evaluation.rows import Piece
from gradient_dd.studies.intervals import Bounds, student_factor

LARGEST_LOG = 300.0  # of a product of ratios
CAUTION = 4.0  # variances of d − q that are chance


class PolicyEstimate(NamedTuple):
    """A value and its standard error."""

    value: float
    error: float


class PolicyValue(NamedTuple):
    """What a policy is worth by one signal.

    value, low, high  the blend within what rewards allow, and its interval
    q, d          LSTD-Q and the doubly robust estimate;  share  the weight of q in the value
    gap           how far d is from q, in standard errors of d − q
    steps, rest   how many steps are followed, and the weight of what comes later
    effective     rows that ratios leave, (Σρ)² / Σρ²; nan without ratios
    psi           (units, 3) influences on q, on d and on the value
    by_map        the value by each map, by its name
    apart         the largest distance of the value by another map;  passed  whether the first map was passed over
    impossible    whether no map gave a value that rewards allow
    map, design, w (q,), without (groups, q), start (q,), dual (q,)   what the value was made of
    """

    name: str
    value: float
    low: float
    high: float
    q: PolicyEstimate
    d: PolicyEstimate
    share: float
    gap: float
    steps: int
    rest: float
    effective: float
    psi: Array
    by_map: dict[str, float]
    apart: float
    passed: bool
    impossible: bool
    map: FeatureMap
    design: Design
    w: Array
    without: Array
    start: Array
    dual: Array

    def interval(self, confidence: float) -> Bounds:
        """Return the union of the intervals of q, d and their blend, before anything else widens it."""
        factor = student_factor(confidence, len(self.psi) - 1)
        blend = self.share * self.q.value + (1 - self.share) * self.d.value
        each = [self.q, self.d, PolicyEstimate(blend, error_of(self.psi[:, 2]))]
        low, high = zip(
            *((one.value - factor * one.error, one.value + factor * one.error) for one in each), strict=True
        )
        return Bounds(min(low), max(high))


def error_of(psi: Array) -> float:
    """Return the standard error that influences (units,) give."""
    return float(np.sqrt((psi**2).sum() * len(psi) / max(1, len(psi) - 1)))


class Walk(NamedTuple):
    """The rows of a piece along their episodes.

    product   (n,) R_t;  discount  (n,) D_t;  live  (n,) which rows can be followed at all
    last      the last live row of each episode;  lengths  how many live rows the episode has
    """

    product: Array
    discount: Array
    live: Booleans
    last: Integers
    lengths: Integers


def walk(piece: Piece, ratio: Array, most: int) -> Walk:
    """Return the products of ratios and discounts along the episodes of a piece, for at most so many steps."""
    live = piece.step < most
    first = np.flatnonzero(np.diff(piece.episode, prepend=-1))
    lengths = np.add.reduceat(live.astype(np.int64), first)
    known = lengths > 0

    def along(values: Array) -> Array:
        total = np.cumsum(np.log(np.maximum(values, 1e-300)))
        before = np.concatenate([[0.0], total[first[1:] - 1]])
        return total - np.repeat(before, np.diff([*first, len(piece)]))

    product = np.exp(np.clip(along(ratio), -700.0, LARGEST_LOG))
    ahead = np.concatenate([[1.0], piece.discount[:-1]])
    ahead[first] = 1.0
    discount = np.exp(np.maximum(along(ahead), -700.0))
    return Walk(product, discount, live, (first + lengths - 1)[known], lengths[known])


def step_sums(piece: Piece, ratio: Array, most: int) -> Array:
    """Return Σ R_t and Σ R_t² of each step over the episodes of a piece, those that have ended too, (2, steps)."""
    seen = walk(piece, ratio, most)
    found = np.zeros((2, most))
    for k, values in enumerate((seen.product, seen.product**2)):
        found[k] = np.bincount(piece.step[seen.live], values[seen.live], minlength=most)
        after = np.zeros(most + 1)
        np.add.at(after, seen.lengths, values[seen.last])
        found[k] += np.cumsum(after)[:most]
    return found


def blend(q: float, d: float, variance: Array) -> tuple[float, float]:
    """Return the weight of LSTD-Q in the headline, and how far apart both estimates are in standard errors."""
    of_q, of_d, both = float(variance[0, 0]), float(variance[1, 1]), float(variance[0, 1])
    apart = max(of_q + of_d - 2 * both, 0.0)
    bias = max(0.0, (d - q) ** 2 - CAUTION * apart)
    tiny = 1e-24 * max(1.0, q * q)
    share = 1.0 if apart + bias <= tiny else float(np.clip((of_d - both) / (apart + bias), 0.0, 1.0))
    return share, abs(d - q) / np.sqrt(max(apart, tiny))


def chosen(found: list[PolicyValue], bounds: Bounds, confidence: float) -> PolicyValue:
    """Return the value by the first map that gives a possible one, with an interval that holds the others."""
    possible = [one for one in found if not one.impossible]
    if not possible or found[0].map.name == GIVEN:
        possible = [found[0], *(one for one in possible if one is not found[0])]
    best = possible[0]
    apart = max((abs(one.value - best.value) for one in possible[1:]), default=0.0)
    low, high = best.interval(confidence)
    low, high = min(low, best.value - apart), max(high, best.value + apart)
    value, low, high = (float(np.clip(one, *bounds)) for one in (best.value, low, high))
    by_map = {one.map.name: one.value for one in possible}
    return best._replace(value=value, low=low, high=high, by_map=by_map, apart=apart, passed=best is not found[0])
