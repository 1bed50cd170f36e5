"""The value of a policy, its interval, and the products of ratios along episodes used by the estimates."""

from collections.abc import Mapping
from math import nan
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.evaluation.design import Design
from gradient_dd.evaluation.log_data import TargetPolicy
from gradient_dd.evaluation.maps import GIVEN, FeatureMap
from gradient_dd.evaluation.pieces import Piece
from gradient_dd.studies.intervals import Bounds, student_factor

LARGEST_LOG = 300.0  # largest logarithm of a product of ratios
CAUTION = 4.0  # variances of d − q attributed to chance


class PolicyEstimate(NamedTuple):
    """A value and its standard error."""

    value: float
    error: float

    def interval(self, factor: float) -> Bounds:
        """Return the interval of a half-width of `factor` standard errors."""
        return Bounds(self.value - factor * self.error, self.value + factor * self.error)


class PolicyValue(NamedTuple):
    """The value of a policy for one signal.

    value         the blend, limited to possible values
    q, d          LSTD-Q and the doubly robust estimate;  share  the weight of q in the value
    gap           how far d is from q, in standard errors of d − q
    steps, rest   number of steps covered by the ratios, and the weight of later steps
    effective     effective sample size, (Σρ)² / Σρ²; nan without ratios
    psi           (units, 3) influences on q, on d and on the value
    impossible    whether no map gave a possible LSTD-Q;  outside  whether the value had to be clipped
    map, design, w (q,), without (groups, q), start (q,), dual (q,)   the map, its form and the solution
    low, high     its interval;  by_map  the value for each map, by name;  apart  the largest difference among them
    """

    policy: TargetPolicy
    value: float
    q: PolicyEstimate
    d: PolicyEstimate
    share: float
    gap: float
    steps: int
    rest: float
    effective: float
    psi: Array
    impossible: bool
    outside: bool
    map: FeatureMap
    design: Design
    w: Array
    without: Array
    start: Array
    dual: Array
    low: float = nan
    high: float = nan
    by_map: Mapping[str, float] = MappingProxyType({})
    apart: float = 0.0

    def interval(self, confidence: float) -> Bounds:
        """Return the union of the intervals of q, d and their blend, before it is widened further."""
        factor, blend = student_factor(confidence, len(self.psi) - 1), self.blend
        each = [one.interval(factor) for one in (self.q, self.d, PolicyEstimate(blend, error_of(self.psi[:, 2])))]
        return Bounds(min(one.low for one in each), max(one.high for one in each))

    @property
    def blend(self) -> float:
        """The blend of both estimates, before it is limited to possible values."""
        return self.share * self.q.value + (1 - self.share) * self.d.value


def error_of(psi: Array) -> float:
    """Return the standard error for influences (units,)."""
    return float(np.sqrt((psi**2).sum() * len(psi) / max(1, len(psi) - 1)))


class RatioProducts(NamedTuple):
    """Products of ratios and of discounts along the episodes of a piece.

    product   (n,) R_t;  discount  (n,) D_t;  live  (n,) which rows the products can reach
    last      the last live row of each episode;  lengths  how many live rows the episode has
    """

    product: Array
    discount: Array
    live: Booleans
    last: Integers
    lengths: Integers


def ratio_products(piece: Piece, ratio: Array, most: int) -> RatioProducts:
    """Return the products of ratios and discounts along the episodes of a piece, for at most `most` steps."""
    live, (first, rows) = piece.step < most, piece.spans
    lengths = np.add.reduceat(live.astype(np.int64), first)
    known = lengths > 0

    def along(values: Array) -> Array:
        total = np.cumsum(np.log(np.maximum(values, 1e-300)))
        return total - np.repeat(np.concatenate([[0.0], total[first[1:] - 1]]), rows)

    product = np.exp(np.clip(along(ratio), -700.0, LARGEST_LOG))
    ahead = np.concatenate([[1.0], piece.discount[:-1]])
    ahead[first] = 1.0
    discount = np.exp(np.maximum(along(ahead), -700.0))
    return RatioProducts(product, discount, live, (first + lengths - 1)[known], lengths[known])


def step_sums(piece: Piece, seen: RatioProducts, most: int) -> Array:
    """Return Σ R_t and Σ R_t² of each step over the episodes of a piece, including ended ones, (2, steps)."""
    found = np.zeros((2, most))
    for k, values in enumerate((seen.product, seen.product**2)):
        found[k] = np.bincount(piece.step[seen.live], values[seen.live], minlength=most)
        after = np.zeros(most + 1)
        np.add.at(after, seen.lengths, values[seen.last])
        found[k] += np.cumsum(after)[:most]
    return found


def blend(q: float, d: float, variance: Array) -> tuple[float, float]:
    """Return the weight of LSTD-Q in the blend, and the difference of both estimates in standard errors."""
    of_q, of_d, both = float(variance[0, 0]), float(variance[1, 1]), float(variance[0, 1])
    apart = max(of_q + of_d - 2 * both, 0.0)
    bias = max(0.0, (d - q) ** 2 - CAUTION * apart)
    tiny = 1e-24 * max(1.0, q * q)
    share = 1.0 if apart + bias <= tiny else float(np.clip((of_d - both) / (apart + bias), 0.0, 1.0))
    return share, abs(d - q) / np.sqrt(max(apart, tiny))


def chosen(
    found: list[PolicyValue], bounds: Bounds, confidence: float, on_sample: PolicyValue | None = None
) -> PolicyValue:
    """Return the value with the first map that gives a possible value; its interval is extended by the other maps.

    The values of other maps estimate the bias of the features, so the interval is extended by the largest difference
    to them in each direction. `on_sample` is the choice on a sample of a long log, of which `found` has the same map.
    """
    if on_sample is not None:
        best = next(one for one in found if one.map is on_sample.map)
        there = on_sample.by_map
    else:
        possible = [one for one in found if not one.impossible]
        if not possible or found[0].map.name == GIVEN:
            possible = [found[0], *(one for one in possible if one is not found[0])]
        best, there = possible[0], {one.map.name: one.value for one in possible}
    away = {name: value - there[best.map.name] for name, value in there.items()}
    apart = max(map(abs, away.values()))
    low, high = best.interval(confidence)
    low, high = low + min(away.values()), high + max(away.values())
    value, low, high = (float(np.clip(one, *bounds)) for one in (best.value, low, high))
    by_map = {name: best.value + one for name, one in away.items()}
    return best._replace(value=value, low=low, high=high, by_map=by_map, apart=apart)
