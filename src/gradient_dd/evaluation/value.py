"""The value of a policy: LSTD-Q, the limited doubly robust estimate, their blend, and influences for the interval.

    R_t = ρ_0 ⋯ ρ_t    D_t = γ_0 ⋯ γ_{t−1}    δ_t = r_t + γ_t V(s_{t+1}) − Q(s_t, a_t)    S_t = Σ R_t over episodes
    q = v̄₀·w                                   LSTD-Q; v̄₀ the mean features of initial states
    d = mean V(s_0) + Σ_{t<J} Σ R_t D_t δ_t / S_t   with Q and V from w₋g, without the group of the episode

After its end, an episode keeps its R and adds 0. The estimate covers all steps whose products have an effective sample
size, (Σ R)² / Σ R², of at least 20 and at least a tenth of the episodes. An episode's influence on both estimates is

    ψ = (V(s_0) − mean) / n + Σ_{t<J} R_t (D_t δ_t − c_t) / S_t + uᵀ Σ φδ        c_t = Σ R_t D_t δ_t / S_t

where Aᵀu = v̄₀ + Σ_{t<J} R_t D_t (γψ' − φ) / S_t, and all δ use w₋g. J is 0 for q. The variances of q and d,
and the covariance C, follow from the sums of ψ². The value is v = αq + (1 − α)d, with

    s² = V_q + V_d − 2C      b² = max(0, (d − q)² − 4s²)      α = (V_d − C) / (s² + b²), within [0, 1]

so that LSTD-Q, the more precise estimate, loses its weight if it differs from d by more than chance allows.

Jiang & Li (2016) and Thomas & Brunskill (2016) for doubly robust estimates; the limit and the blend are ours.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import nan
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.design import Design, Solution, SortedFeatures, no_equations, ridge_of, solved, squared
from gradient_dd.evaluation.log_data import Choices, LogData, TargetPolicy
from gradient_dd.evaluation.maps import GIVEN, FeatureMap
from gradient_dd.evaluation.pieces import Piece, RatioProducts, ratio_products, step_sums
from gradient_dd.studies.intervals import Bounds, student_factor

MOST_STEPS = 2000  # largest number of steps covered by the ratios
FIXED_NUMBERS = 8_000_000  # entries of Σ φφᵀ, up to which it is cached for all policies

Sums = dict[str, Any]  # arrays by name, added up over pieces and parts


class PolicyEstimate(NamedTuple):
    """A value and its standard error."""

    value: float
    error: float

    def interval(self, factor: float) -> Bounds:
        """Return the interval with a half-width of `factor` standard errors."""
        return Bounds(self.value - factor * self.error, self.value + factor * self.error)


class PolicyValue(NamedTuple):
    """The value of a policy for one signal.

    value         the blend, limited to possible values
    q, d          LSTD-Q and the doubly robust estimate;  share  the weight of q in the value
    gap           |d − q| in standard errors of d − q
    steps, rest   number of steps covered by the ratios, and the weight of later steps
    effective     effective sample size, (Σρ)² / Σρ²; nan without ratios
    psi           (units, 3) influences on q, on d and on the value
    impossible    whether no map gave a possible LSTD-Q;  outside  whether the value had to be clipped
    map, design, w (q,), without (groups, q), start (q,), dual (q,)   the map, its form and the solution
    low, high     interval of the value;  by_map  the value for each map, by name;  apart  their largest difference
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

    @property
    def blend(self) -> float:
        """The blend of both estimates, before it is limited to possible values."""
        return self.share * self.q.value + (1 - self.share) * self.d.value


def error_of(psi: Array) -> float:
    """Return the standard error of an estimate with these influences, (units,)."""
    return float(np.sqrt((psi**2).sum() * len(psi) / max(1, len(psi) - 1)))


@dataclass
class Prepared:
    """A piece for one policy, in the order of `rows`: its choices, φ = U ⊗ X, γψ' = V ⊗ X2, and weights.

    products  products of the ratios along episodes, None if they are not used
    errors    δ of each row in the order of the piece, once they are known
    """

    rows: SortedFeatures
    U: Array
    V: Array
    weight: Array
    choices: Choices
    products: RatioProducts | None
    errors: Array | None = None


class Run:
    """The sums of one policy with one map: equations, then slopes, propensities and influences.

    Each step adds the sums of a piece to `Sums`. Between steps, `begin` and `passes.later_passes` prepare the next step
    from these sums.
    """

    def __init__(self, data: LogData, policy: TargetPolicy, one: FeatureMap) -> None:
        self.data, self.policy, self.map = data, policy, one
        self.design = one.design(None if policy.by_ratio else data.actions, data.rows.n)
        self.signals = len(data.rows.lowest)
        self.most = self.followed = min(data.rows.longest, MOST_STEPS)
        self.towards: Any = 0.0
        self.behaviour = None if policy.by_ratio else data.behaviour
        self._last: dict[Any, Prepared] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that a worker needs."""
        return self.__dict__ | {"_last": {}}

    def prepared(self, piece: Piece) -> Prepared:
        """Return a piece prepared for the policy; all pieces are cached for a log in memory, else only the last."""
        if piece.key not in self._last:
            if not self.data.rows.kept:
                self._last.clear()
            rows, choices = self.data.features(self.map, piece), self.data.choices(self.policy, piece)
            U, V, weight = rows.U, (piece.discount[:, None] * choices.there)[rows.order], np.ones(len(rows))
            if self.policy.by_ratio:
                U = np.ones((len(rows), 1))
                weight = weight if choices.ratio is None else choices.ratio[rows.order]
            products = None
            if choices.ratio is not None and self.followed and not self.data.rows.few:
                products = ratio_products(piece, choices.ratio, self.most)
            self._last[piece.key] = Prepared(rows, U, V, weight, choices, products)
        return self._last[piece.key]

    def equations(self, sums: Sums, piece: Piece) -> None:
        """Add the sums of the equations and of initial states."""
        design, groups, own = self.design, self.data.rows.groups, self.prepared(piece)
        rows, U, weight = own.rows, own.U, own.weight
        right = weight[:, None] * piece.signals[rows.order]
        A = sums["A"] if "A" in sums else no_equations(design, groups)
        unweighted = self.policy.logging or not self.policy.by_ratio
        if unweighted and self.data.rows.kept and groups * design.q**2 <= FIXED_NUMBERS:
            if design not in rows.fixed:
                empty = no_equations(design, groups)
                sides = rows.totals(design, U, right, groups), design.total(squared(rows.X), U**2, weight)
                rows.fixed[design] = rows.outer(empty, design, U, None, weight), *sides
            fixed, b, squares = rows.fixed[design]
            A = A + fixed
        else:
            A = rows.outer(A, design, U, None, weight)
            b, squares = rows.totals(design, U, right, groups), design.total(squared(rows.X), U**2, weight)
        sums["A"] = rows.outer(A, design, U, own.V, weight)
        add(sums, {"b": b, "squares": squares})
        self.initial(sums, piece)

    def initial(self, sums: Sums, piece: Piece) -> None:
        """Add the sums of initial states, and of the products of ratios at each step."""
        design, groups = self.design, self.data.rows.groups
        own, start, starts = self.prepared(piece), np.zeros((groups, design.q)), np.zeros(groups)
        choices, seen = own.choices, own.products
        for g, some, places in started(own.rows, piece):
            start[g] = design.total(own.rows.X[some], choices.here[places], np.ones(len(some)))
            starts[g] = len(some)
        ratio = np.zeros(2) if choices.ratio is None else np.array([choices.ratio.sum(), (choices.ratio**2).sum()])
        steps = np.zeros((2, self.most)) if seen is None else step_sums(piece, seen, self.most)
        add(sums, {"start": start, "starts": starts, "ratio": ratio, "steps": steps})

    def begin(self, sums: Sums, solution: Solution | None = None) -> None:
        """Solve the equations unless the solution is given, and determine how many steps are covered."""
        if solution is None:
            solution = solved(sums["A"], sums["b"], ridge_of(self.design, sums["squares"], self.map.ridge))
        rows, self.solution, self.ratio = self.data.rows, solution, sums["ratio"]
        self.starts = sums["start"], sums["starts"]  # by group
        self.start = sums["start"].sum(axis=0) / max(1.0, sums["starts"].sum())
        self.total, square = sums["steps"]
        effective = self.total**2 / np.maximum(square, 1e-300)
        enough = effective >= max(20.0, 0.1 * rows.episodes)
        known = self.ratio[0] > 0 and not rows.few
        self.followed = 0 if not known else self.most if enough.all() else int(np.argmin(enough))
        self.slope = self.dual = np.column_stack([self.start, self.start])
        self.mean = np.zeros((self.followed, self.signals))  # c_t

    def share(self, piece: Piece) -> tuple[RatioProducts, Integers, Array]:
        """Return the products along a piece, the covered rows, and R_t / S_t of these rows."""
        seen, rows = self.prepared(piece).products, np.flatnonzero(piece.step < self.followed)
        assert seen is not None
        return seen, rows, seen.product[rows] / self.total[piece.step[rows]]

    def errors(self, piece: Piece) -> Array:
        """Return δ of each row, (n, signals), with the solution without the group of the row."""
        own, W = self.prepared(piece), self.solution.without
        if own.errors is None:
            rows = own.rows
            apart = rows.by_group(self.design, rows.X2, own.V, W) - rows.by_group(self.design, rows.X, own.U, W)
            own.errors = piece.signals + rows.unsorted(apart)
        return own.errors

    def slopes(self, sums: Sums, piece: Piece) -> None:
        """Add the gradient of the doubly robust estimate with respect to the weights, and the mean corrections c_t."""
        own, (seen, covered, share), each = self.prepared(piece), self.share(piece), np.zeros(len(piece))
        rows, each[covered] = own.rows, share * seen.discount[covered]
        paid, sorted_each = each[covered, None] * self.errors(piece)[covered], each[rows.order]
        slope = self.design.total(rows.X2, own.V, sorted_each) - self.design.total(rows.X, own.U, sorted_each)
        add(sums, {"slope": slope, "mean": by_place(piece.step[covered], paid, self.followed)})

    def influences(self, sums: Sums, piece: Piece) -> None:
        """Add the influences of a piece on both estimates, initial values, and the corrections by ratios."""
        units, unit, errors = self.data.rows.units, self.data.rows.unit_of(piece), self.errors(piece)
        prepared = self.prepared(piece)
        rows, choices = prepared.rows, prepared.choices
        along = rows.unsorted(self.design.times(rows.X, prepared.U, self.dual) * prepared.weight[:, None])
        psi = np.stack([by_place(unit, along[:, [j]] * errors, units) for j in range(2)], axis=2)
        values, begun = np.zeros((units, self.signals)), np.zeros(units)
        for g, some, places in started(rows, piece):
            own = self.design.times(rows.X[some], choices.here[places], self.solution.without[g])
            values += by_place(unit[places], own, units)
            begun += np.bincount(unit[places], minlength=units)
        corrected, rest = np.zeros(self.signals), 0.0
        if self.followed:
            own, after, seen = self.corrections(piece)
            psi[:, :, 1] += by_place(unit, own, units) + by_place(unit[seen.last], after, units)
            _, covered, share = self.share(piece)
            corrected = ((share * seen.discount[covered])[:, None] * errors[covered]).sum(axis=0)
            at_end = (piece.step == self.followed - 1) & ~piece.ended
            left = seen.product[at_end] * seen.discount[at_end] * piece.discount[at_end]
            rest = float(left.sum() / self.total[self.followed - 1])
            if self.behaviour is not None:
                psi[:, :, 1] += by_place(unit, self.behaviour.pulls(piece, self.towards), units)
        add(sums, {"psi": psi, "values": values, "begun": begun, "corrected": corrected, "rest": rest})

    def corrections(self, piece: Piece) -> tuple[Array, Array, RatioProducts]:
        """Return R_t (D_t δ_t − c_t) / S_t of each row, (n, signals), and −Σ R c_t / S_t after each episode."""
        seen, rows, share = self.share(piece)
        own = np.zeros((len(piece), self.signals))
        own[rows] = share[:, None] * (
            seen.discount[rows, None] * self.errors(piece)[rows] - self.mean[piece.step[rows]]
        )
        ahead = np.cumsum((self.mean / self.total[: self.followed, None])[::-1], axis=0)[::-1]
        ahead = np.concatenate([ahead, np.zeros((1, self.signals))])
        return own, -seen.product[seen.last, None] * ahead[np.minimum(seen.lengths, self.followed)], seen

    def propensities(self, sums: Sums, piece: Piece) -> None:
        """Add the gradient with respect to estimated propensities, through the ratios of each row and later rows."""
        own, after, seen = self.corrections(piece)
        own[seen.last] += after
        total, (first, rows) = np.cumsum(own[::-1], axis=0)[::-1], piece.spans
        beyond = np.concatenate([total, np.zeros((1, self.signals))])[np.repeat(first + rows, rows)]
        assert self.behaviour is not None
        add(sums, {"towards": self.behaviour.gradient(piece, beyond - total)})

    def result(self, sums: Sums, signal: int, summed: Callable[[Array], Array] = lambda psi: psi) -> PolicyValue:
        """Return the value for one signal, before it is limited to possible values.

        `summed` aggregates the influences (units, 2) for the interval.
        """
        rows, w = self.data.rows, self.solution.w[:, signal]
        psi, begun, values = sums["psi"][:, signal].copy(), sums["begun"], sums["values"][:, signal]
        mean = float(values.sum() / max(1.0, begun.sum()))
        q = d = float(self.start @ w)
        if self.followed:
            d = mean + float(sums["corrected"][signal])
        if not rows.few:
            psi += ((values - mean * begun) / begun.sum())[:, None]
        if not self.followed:
            psi[:, 1] = psi[:, 0]
        psi = summed(psi)
        variance = psi.T @ psi * len(psi) / max(1, len(psi) - 1)
        share, gap = blend(q, d, variance)
        if self.policy.logging and rows.episodes >= 100 and self.followed:
            share = 0.0  # the mean return of many episodes is the value
        value, (low, high) = share * q + (1 - share) * d, rows.bounds(signal)
        tolerance = 0.01 * (high - low)
        impossible, outside = (not low - tolerance <= one <= high + tolerance for one in (q, value))
        of_q, of_d = (PolicyEstimate(one, float(np.sqrt(variance[k, k]))) for k, one in enumerate((q, d)))
        return PolicyValue(
            policy=self.policy,
            value=value,
            q=of_q,
            d=of_d,
            share=share,
            gap=gap,
            steps=self.followed,
            rest=sums["rest"] if self.followed else 1.0,
            effective=nan if self.ratio[1] == 0 else float(self.ratio[0] ** 2 / max(1e-300, self.ratio[1])),
            psi=np.column_stack([psi, share * psi[:, 0] + (1 - share) * psi[:, 1]]),
            impossible=impossible,
            outside=outside,
            map=self.map,
            design=self.design,
            w=w,
            without=self.solution.without[:, :, signal],
            start=self.start,
            dual=self.dual[:, 0],
        )


def add(sums: Sums, more: Sums) -> None:
    """Add arrays to the sums of the same names."""
    for name, array in more.items():
        sums[name] = sums[name] + array if name in sums else array


def by_place(place: Integers, values: Array, size: int) -> Array:
    """Return the sums of values (n, k) by place, (size, k)."""
    return np.column_stack([np.bincount(place, column, minlength=size) for column in values.T])


def started(rows: SortedFeatures, piece: Piece) -> Iterator[tuple[int, Integers, Integers]]:
    """Yield for each group its initial rows: their places among the sorted rows, and in the piece."""
    begun = np.flatnonzero(piece.step[rows.order] == 0)
    for g, begin, end in rows.groups:
        some = begun[slice(*np.searchsorted(begun, [begin, end]))]
        if len(some):
            yield g, some, rows.order[some]


def blend(q: float, d: float, variance: Array) -> tuple[float, float]:
    """Return the weight of LSTD-Q in the blend, and the difference of both estimates in standard errors."""
    of_q, of_d, both = float(variance[0, 0]), float(variance[1, 1]), float(variance[0, 1])
    apart = max(of_q + of_d - 2 * both, 0.0)
    bias = max(0.0, (d - q) ** 2 - 4.0 * apart)
    tiny = 1e-24 * max(1.0, q * q)
    share = 1.0 if apart + bias <= tiny else float(np.clip((of_d - both) / (apart + bias), 0.0, 1.0))
    return share, abs(d - q) / np.sqrt(max(apart, tiny))


def chosen(
    found: list[PolicyValue], bounds: Bounds, confidence: float, on_sample: PolicyValue | None = None
) -> PolicyValue:
    """Return the value of the preferred map with a possible value; the values of other maps extend its interval.

    The values of other maps estimate the bias of the features: the largest difference in each direction extends the
    interval. `on_sample` is the choice on the sample of a long log; `found` includes the value of its map.
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
    factor, both = student_factor(confidence, len(best.psi) - 1), PolicyEstimate(best.blend, error_of(best.psi[:, 2]))
    lows, highs = zip(*(one.interval(factor) for one in (best.q, best.d, both)), strict=True)
    ends = best.value, min(lows) + min(away.values()), max(highs) + max(away.values())
    value, low, high = (float(np.clip(one, *bounds)) for one in ends)
    by_map = {name: best.value + one for name, one in away.items()}
    return best._replace(value=value, low=low, high=high, by_map=by_map, apart=apart)
