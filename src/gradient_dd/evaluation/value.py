"""The value of a policy: LSTD-Q, the limited doubly robust estimate, their blend, and influences for the interval.

    R_t = ρ_0 ⋯ ρ_t    D_t = γ_0 ⋯ γ_{t−1}    δ_t = r_t + γ_t V(s_{t+1}) − Q(s_t, a_t)    S_t = Σ R_t over episodes
    q = v̄₀·w                                   LSTD-Q; v̄₀ the mean features of the first states
    d = mean V(s_0) + Σ_{t<J} Σ R_t D_t δ_t / S_t   with Q and V from w₋g, without the group of the episode

An ended episode keeps its R and adds 0. Steps are covered as long as the products have an effective sample size,
(Σ R)² / Σ R², of 20 episodes and a tenth of all. The influence of an episode on both estimates is

    ψ = (V(s_0) − mean) / n + Σ_{t<J} R_t (D_t δ_t − c_t) / S_t + uᵀ Σ φδ        c_t = Σ R_t D_t δ_t / S_t

where Aᵀu = v̄₀ + Σ_{t<J} R_t D_t (γψ' − φ) / S_t, and all δ use w₋g. J is 0 for q. The variances of q and d,
and the covariance C, follow from the sums of ψ². The value is v = αq + (1 − α)d, with

    s² = V_q + V_d − 2C      b² = max(0, (d − q)² − 4s²)      α = (V_d − C) / (s² + b²), within [0, 1]

so that LSTD-Q, the more precise estimate, loses its weight if it differs from d by more than chance allows.

Jiang & Li (2016) and Thomas & Brunskill (2016) for doubly robust estimates; the limit and the blend are ours.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.design import Solution, SortedFeatures, no_equations, ridge_of, solved, squared
from gradient_dd.evaluation.log_data import Choices, LogData, TargetPolicy
from gradient_dd.evaluation.maps import FeatureMap, too_wide
from gradient_dd.evaluation.pieces import Piece
from gradient_dd.evaluation.policy_value import (
    PolicyEstimate,
    PolicyValue,
    RatioProducts,
    blend,
    chosen,
    ratio_products,
    step_sums,
)
from gradient_dd.evaluation.rows import EvaluationRows

FEWEST, SHARE = 20.0, 0.1  # effective sample size that the products must keep, in episodes and as a share
MOST_STEPS = 2000  # most steps covered
MANY_RETURNS = 100  # episodes above which the mean return of the logging policy is its value
BEYOND = 0.01  # of the range of possible values: tolerance of an estimate
FIXED_NUMBERS = 8_000_000  # entries of Σ φφᵀ, up to which it is cached for all policies
BATCH_NUMBERS = 64_000_000  # entries of the matrices of all policies summed in one pass

Sums = dict[str, Any]  # arrays by name, added up over pieces and parts


class Prepared(NamedTuple):
    """A piece for one policy, in the order of `rows`: its choices, φ = U ⊗ X, γψ' = V ⊗ X2, and weights.

    products  those of its ratios along episodes, None if they are not used
    errors  δ of each row in the order of the piece, once they are known
    """

    rows: SortedFeatures
    U: Array
    V: Array
    weight: Array
    choices: Choices
    products: RatioProducts | None
    errors: list[Array]


class Run:
    """The sums of one policy with one map: equations, then slopes, then influences.

    Each step adds the sums of a piece to `Sums`; between the steps, `begin` and `later_passes` turn sums into what the
    next step needs. The runs of a policy share its choices.
    """

    def __init__(self, data: LogData, policy: TargetPolicy, one: FeatureMap) -> None:
        self.data, self.policy, self.map = data, policy, one
        self.design = one.design(None if policy.by_ratio else data.actions, data.rows.n)
        self.signals = len(data.rows.lowest)
        self.most = self.followed = min(data.rows.longest, MOST_STEPS)
        self.towards: Any = 0.0
        self._last: dict[Any, Prepared] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what a worker needs."""
        return self.__dict__ | {"_last": {}}

    def prepared(self, piece: Piece) -> Prepared:
        """Return a piece for the policy; cached for a log in memory, else until the next piece."""
        if piece.key not in self._last:
            if not self.data.rows.kept:
                self._last.clear()
            rows, (choices, seen) = self.data.features(self.map, piece), self._chosen(piece)
            U = np.ones((len(rows), 1)) if self.policy.by_ratio else rows.U
            V = (piece.discount[:, None] * choices.there)[rows.order]
            weight = np.ones(len(rows))
            if self.policy.by_ratio and choices.ratio is not None:
                weight = choices.ratio[rows.order]
            self._last[piece.key] = Prepared(rows, U, V, weight, choices, seen, [])
        return self._last[piece.key]

    def _chosen(self, piece: Piece) -> tuple[Choices, RatioProducts | None]:
        """Return the policy's choices in a piece, and the products of their ratios along episodes."""
        known = self.data.known(self.policy)
        if piece.key not in known:
            if not self.data.rows.kept:
                known.clear()
            choices = self.policy.choices(piece, self.data.propensities(piece))
            ratio = None if self.data.rows.few or not self.followed else choices.ratio
            known[piece.key] = choices, None if ratio is None else ratio_products(piece, ratio, self.most)
        found: tuple[Choices, RatioProducts | None] = known[piece.key]
        return found

    def equations(self, sums: Sums, piece: Piece) -> None:
        """Add the sums of the equations and of initial states."""
        design, groups, signals = self.design, self.data.rows.groups, piece.signals
        rows, U, V, weight, *_ = self.prepared(piece)
        right = weight[:, None] * signals[rows.order]
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
        sums["A"] = rows.outer(A, design, U, V, weight)
        add(sums, {"b": b, "squares": squares})
        self.initial(sums, piece)

    def initial(self, sums: Sums, piece: Piece) -> None:
        """Add the sums of initial states, and of the products of ratios at each step."""
        design, groups = self.design, self.data.rows.groups
        rows, _, _, _, choices, seen, _ = self.prepared(piece)
        start, starts = np.zeros((groups, design.q)), np.zeros(groups)
        for g, some, places in started(rows, piece):
            start[g] = design.total(rows.X[some], choices.here[places], np.ones(len(some)))
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
        enough = effective >= max(FEWEST, SHARE * rows.episodes)
        known = self.ratio[0] > 0 and not rows.few
        self.followed = 0 if not known else self.most if enough.all() else int(np.argmin(enough))
        self.slope = self.dual = np.column_stack([self.start, self.start])
        self.mean = np.zeros((self.followed, self.signals))  # c_t

    def share(self, piece: Piece) -> tuple[RatioProducts, Integers, Array]:
        """Return the products along a piece, the rows that are covered, and R_t / S_t of these."""
        seen, rows = self.prepared(piece).products, np.flatnonzero(piece.step < self.followed)
        assert seen is not None
        return seen, rows, seen.product[rows] / self.total[piece.step[rows]]

    def errors(self, piece: Piece) -> Array:
        """Return δ of each row, (n, signals), with the solution without the group of the row."""
        rows, U, V, _, _, _, known = self.prepared(piece)
        if not known:
            W = self.solution.without
            apart = rows.by_group(self.design, rows.X2, V, W) - rows.by_group(self.design, rows.X, U, W)
            known.append(piece.signals + rows.unsorted(apart))
        return known[0]

    def slopes(self, sums: Sums, piece: Piece) -> None:
        """Add the derivative of the doubly robust estimate by the weights, and the mean corrections c_t."""
        rows, U, V, *_ = self.prepared(piece)
        seen, covered, share = self.share(piece)
        each = np.zeros(len(piece))
        each[covered] = share * seen.discount[covered]
        paid, sorted_each = each[covered, None] * self.errors(piece)[covered], each[rows.order]
        slope = self.design.total(rows.X2, V, sorted_each) - self.design.total(rows.X, U, sorted_each)
        add(sums, {"slope": slope, "mean": by_place(piece.step[covered], paid, self.followed)})

    def influences(self, sums: Sums, piece: Piece) -> None:
        """Add the influences of a piece on both estimates, initial values, and what the ratios correct."""
        rows, U, _, weight, choices, *_ = self.prepared(piece)
        units, unit, errors = self.data.rows.units, self.data.rows.unit_of(piece), self.errors(piece)
        along = rows.unsorted(self.design.times(rows.X, U, self.dual) * weight[:, None])
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
            if self.estimated:
                assert self.data.behaviour is not None
                psi[:, :, 1] += by_place(unit, self.data.behaviour.pulls(piece, self.towards), units)
        add(sums, {"psi": psi, "values": values, "begun": begun, "corrected": corrected, "rest": rest})

    @property
    def estimated(self) -> bool:
        """Whether the doubly robust estimate uses estimated propensities."""
        return self.followed > 0 and self.data.behaviour is not None and not self.policy.by_ratio

    def corrections(self, piece: Piece) -> tuple[Array, Array, RatioProducts]:
        """Return R_t (D_t δ_t − c_t) / S_t of each row, (n, signals), and −Σ R c_t / S_t after each episode."""
        seen, rows, share = self.share(piece)
        own = np.zeros((len(piece), self.signals))
        paid = seen.discount[rows, None] * self.errors(piece)[rows]
        own[rows] = share[:, None] * (paid - self.mean[piece.step[rows]])
        ahead = np.cumsum((self.mean / self.total[: self.followed, None])[::-1], axis=0)[::-1]
        ahead = np.concatenate([ahead, np.zeros((1, self.signals))])
        after = -seen.product[seen.last, None] * ahead[np.minimum(seen.lengths, self.followed)]
        return own, after, seen

    def propensities(self, sums: Sums, piece: Piece) -> None:
        """Add the derivative by the estimated propensities, through the ratios of each row and later rows."""
        own, after, seen = self.corrections(piece)
        own[seen.last] += after
        total, (first, rows) = np.cumsum(own[::-1], axis=0)[::-1], piece.spans
        beyond = np.concatenate([total, np.zeros((1, self.signals))])[np.repeat(first + rows, rows)]
        assert self.data.behaviour is not None
        add(sums, {"towards": self.data.behaviour.gradient(piece, beyond - total)})

    def result(self, sums: Sums, signal: int, summed: Callable[[Array], Array] = lambda psi: psi) -> PolicyValue:
        """Return the value for one signal, before it is limited to possible values.

        `summed` aggregates the influences (units, 2) for the interval.
        """
        rows = self.data.rows
        psi, begun, values = sums["psi"][:, signal].copy(), sums["begun"], sums["values"][:, signal]
        w = self.solution.w[:, signal]
        mean = float(values.sum() / max(1.0, begun.sum()))
        q = float(self.start @ w)
        d = mean + float(sums["corrected"][signal]) if self.followed else q
        if not rows.few:
            psi += ((values - mean * begun) / begun.sum())[:, None]
        if not self.followed:
            psi[:, 1] = psi[:, 0]
        psi = summed(psi)
        variance = psi.T @ psi * len(psi) / max(1, len(psi) - 1)
        share, gap = blend(q, d, variance)
        if self.policy.logging and rows.episodes >= MANY_RETURNS and self.followed:
            share = 0.0
        psi = np.column_stack([psi, share * psi[:, 0] + (1 - share) * psi[:, 1]])
        low, high = rows.bounds(signal)
        room = BEYOND * (high - low)
        value = share * q + (1 - share) * d
        measured = self.ratio[1] == 0
        return PolicyValue(
            policy=self.policy,
            value=value,
            q=PolicyEstimate(q, float(np.sqrt(variance[0, 0]))),
            d=PolicyEstimate(d, float(np.sqrt(variance[1, 1]))),
            share=share,
            gap=gap,
            steps=self.followed,
            rest=sums["rest"] if self.followed else 1.0,
            effective=float("nan") if measured else float(self.ratio[0] ** 2 / max(1e-300, self.ratio[1])),
            psi=psi,
            impossible=not low - room <= q <= high + room,
            outside=not low - room <= value <= high + room,
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


# All passes -------------------------------------------------------------------------------------------------


def values_of(data: LogData, policies: Sequence[TargetPolicy], confidence: float) -> Iterator[list[PolicyValue]]:
    """Yield the values of policies: for each policy a list with one value per signal.

    A long log chooses among the maps by its sample, and only the choice is computed from all rows.
    """
    actions, n = data.actions, data.rows.n
    largest = max(one.design(actions, n).q for one in data.maps)
    count = 1 if data.rows.kept else max(1, int(BATCH_NUMBERS // (data.rows.groups * largest**2)))
    on_sample = None if data.rows.kept or len(data.maps) == 1 else data.on_sample()
    for begin in range(0, len(policies), count):
        some = policies[begin : begin + count]
        if any(too_wide(data.maps[0].design(None if one.by_ratio else actions, n)) for one in some):
            from gradient_dd.evaluation.by_learner import auto_value

            yield from (auto_value(data, one, confidence) for one in some)
            continue
        first = [[]] * len(some) if on_sample is None else list(values_of(on_sample, some, confidence))
        runs = []
        for policy, values in zip(some, first, strict=True):
            maps = list({id(one.map): one.map for one in values}.values()) or data.maps
            runs.append([Run(data, policy, one) for one in maps])
        flat = [run for several in runs for run in several]
        for run, equations in zip(flat, over_log(data, flat, "equations"), strict=True):
            run.begin(equations)
        sums = iter(later_passes(data, flat))
        for several, values in zip(runs, first, strict=True):
            own = [(run, next(sums)) for run in several]
            yield [
                chosen([run.result(one, k) for run, one in own], data.rows.bounds(k), confidence, *values[k : k + 1])
                for k in range(several[0].signals)
            ]


def later_passes(data: LogData, runs: list[Run]) -> list[Sums]:
    """Make the passes for slopes and influences, from given solutions, and return the sums of the last one."""
    following = [run for run in runs if run.followed]
    sample, share = data.sample()
    for run, sums in zip(following, sums_of(following, "slopes", data.rows, sample), strict=True):
        run.slope[:, 1] += sums["slope"] / share
        run.mean = sums["mean"] / share
    for run in runs:
        run.dual = run.solution.dual(run.slope)
    uncertain = [run for run in following if run.estimated]
    for run, sums in zip(uncertain, sums_of(uncertain, "propensities", data.rows, sample), strict=True):
        assert data.behaviour is not None
        run.towards = data.behaviour.direction(sums["towards"]) / share
    return over_log(data, runs, "influences")


def over_log(data: LogData, runs: list[Run], step: str) -> list[Sums]:
    """Return the sums of a step of each run over the whole log."""
    total: list[Sums] = [{} for _ in runs]
    policies = len({id(run.policy) for run in runs})
    for found in data.rows.each(partial(sums_of, runs, step), data.most, policies):
        for mine, one in zip(total, found, strict=True):
            add(mine, one)
    return total


def sums_of(runs: list[Run], step: str, rows: EvaluationRows, pieces: Iterable[Piece]) -> list[Sums]:
    """Return the sums of a step of each run over some pieces."""
    found: list[Sums] = [{} for _ in runs]
    for piece in pieces if runs else ():
        for run, sums in zip(runs, found, strict=True):
            getattr(run, step)(sums, piece)
    return found
