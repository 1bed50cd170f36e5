"""What a policy is worth: LSTD-Q, the limited doubly robust estimate, their blend, and influences for the interval.

    R_t = ρ_0 ⋯ ρ_t    D_t = γ_0 ⋯ γ_{t−1}    δ_t = r_t + γ_t V(s_{t+1}) − Q(s_t, a_t)    S_t = Σ R_t over episodes
    q = v̄₀·w                                   LSTD-Q; v̄₀ the mean features of the first states
    d = mean V(s_0) + Σ_{t<J} Σ R_t D_t δ_t / S_t   with Q and V from w₋g, without the group of the episode

An episode that has ended keeps its R and adds 0. Steps are followed while the products leave 20 effective episodes and
a tenth of all, (Σ R)² / Σ R². The influence of an episode on both estimates is

    ψ = (V(s_0) − mean) / n + Σ_{t<J} R_t (D_t δ_t − c_t) / S_t + uᵀ Σ φδ        c_t = Σ R_t D_t δ_t / S_t

where Aᵀu = v̄₀ + Σ_{t<J} R_t D_t (γψ' − φ) / S_t, and all δ are those of w₋g. J is 0 for q. The variances of q and d,
and the covariance C, follow from the sums of ψ². The headline is v = αq + (1 − α)d, with

    s² = V_q + V_d − 2C      b² = max(0, (d − q)² − 4s²)      α = (V_d − C) / (s² + b²), within [0, 1]

so that LSTD-Q, which is the more precise one, loses its weight where it differs from d by more than chance allows.

Jiang & Li (2016) and Thomas & Brunskill (2016) for doubly robust estimates; the limit and the blend are ours.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.design import GroupMoments, Solution, Taken, by_group, ridge_of, solved
from gradient_dd.evaluation.log_data import Choices, LogData, TargetPolicy
from gradient_dd.evaluation.maps import FeatureMap, taken_rows, too_wide
from gradient_dd.evaluation.policy_value import PolicyEstimate, PolicyValue, Walk, blend, chosen, step_sums, walk
from gradient_dd.evaluation.rows import Piece

FEWEST, SHARE = 20.0, 0.1  # effective episodes that the products must leave, and their share of all
MOST_STEPS = 2000  # that are followed
MANY_RETURNS = 100  # episodes from which on the mean return of the logging policy is its value
KEPT_MATRIX = 16_000_000  # entries of φ − γψ' that are kept from pass to pass
BEYOND = 0.01  # of the range of possible values, by which an estimate may miss it


class Run:
    """The sums of one policy with one map, over all pieces: equations, then slopes, then influences."""

    def __init__(self, data: LogData, policy: TargetPolicy, one: FeatureMap) -> None:
        self.data, self.policy, self.map = data, policy, one
        self.actions = None if policy.by_ratio else data.actions
        rows = data.rows
        self.signals = len(rows.lowest)
        self.design = one.design(self.actions, rows.n)
        self.moments = GroupMoments(rows.groups, self.design.q, self.signals)
        self.most = min(rows.longest, MOST_STEPS)
        self.steps = np.zeros((2, self.most))
        self.ratio = np.zeros(2)
        self.followed = 0
        self._kept: dict[int, Any] | None = {} if rows.kept and rows.n * self.design.q <= KEPT_MATRIX else None

    def matrices(self, piece: Piece) -> tuple[Choices, Taken, Any]:
        """Return what the policy does in a piece, φ, and φ − γψ'."""
        if self._kept is not None and piece.number in self._kept:
            return self._kept[piece.number]
        X, X2 = self.data.features(self.map, piece)
        choices = self.policy.choices(piece, self.data.propensities(piece))
        taken, _ = taken_rows(self.map, piece, self.actions, self.data.rows.n, X)
        ahead = self.design.mean(piece.discount[:, None] * choices.there, X2)
        found = choices, taken, taken.minus(ahead)
        if self._kept is not None:
            self._kept[piece.number] = found
        return found

    def add_equations(self, piece: Piece) -> None:
        """Add the sums of a piece to the equations."""
        choices, taken, M = self.matrices(piece)
        weight = choices.weight[:, None]
        weighted = M.multiply(weight).tocsr() if hasattr(M, "multiply") else M * weight
        A, b = taken.sums(weighted, weight * piece.signals, piece.group, self.data.rows.groups)
        square = taken.squares(choices.weight)
        self.moments.add(A, b, square)

    def add_starts(self, piece: Piece) -> None:
        """Add the first states of a piece, and the products of ratios at each step."""
        choices, taken, _ = self.matrices(piece)
        starts = piece.starts
        X = taken.X[starts]
        self.moments.add_starts(self.design.mean(choices.here[starts], X), piece.group[starts])
        if choices.ratio is not None:
            self.ratio += choices.ratio.sum(), (choices.ratio**2).sum()
            if not self.data.rows.few:
                self.steps += step_sums(piece, choices.ratio, self.most)

    def solve(self) -> None:
        """Solve the equations."""
        self.begin_slopes(solved(self.moments, ridge_of(self.design, self.moments.squares, self.map.ridge)))

    def begin_slopes(self, solution: Solution) -> None:
        """Take a solution, and find how many steps are followed."""
        rows, starts, self.solution = self.data.rows, self.moments.starts, solution
        self.start = self.moments.start.sum(axis=0) / max(1.0, starts.sum())
        total, square = self.steps
        effective = total**2 / np.maximum(square, 1e-300)
        enough = effective >= max(FEWEST, SHARE * rows.episodes)
        known = self.ratio[0] > 0 and not rows.few
        self.followed = 0 if not known else self.most if enough.all() else int(np.argmin(enough))
        self.slope = np.column_stack([self.start, self.start])
        self.mean = np.zeros((self.followed, self.signals))  # c_t

    def share(self, piece: Piece, choices: Choices) -> tuple[Walk, Integers, Array]:
        """Return the walk along a piece, the rows that are followed, and R_t / S_t of these."""
        assert choices.ratio is not None
        seen = walk(piece, choices.ratio, self.most)
        rows = np.flatnonzero(piece.step < self.followed)
        return seen, rows, seen.product[rows] / self.steps[0, piece.step[rows]]

    def errors(self, piece: Piece, M: Any) -> Array:
        """Return δ of each row, (n, signals), by the solution without the group of the row."""
        return piece.signals - by_group(M, self.solution.without, piece.group)

    def add_slope(self, piece: Piece) -> None:
        """Add what the doubly robust estimate owes to the weights, and the mean corrections c_t."""
        if not self.followed:
            return
        choices, _, M = self.matrices(piece)
        seen, rows, share = self.share(piece, choices)
        each = share * seen.discount[rows]
        self.slope[:, 1] -= np.asarray(each @ M[rows]).ravel()
        paid = each[:, None] * self.errors(piece, M)[rows]
        for k in range(self.signals):
            self.mean[:, k] += np.bincount(piece.step[rows], paid[:, k], minlength=self.followed)

    def begin_influences(self) -> None:
        """Solve for the directions along which rows pull both estimates."""
        units = self.data.rows.units
        self.dual = self.solution.dual(self.slope)
        self.psi = np.zeros((units, self.signals, 2))
        self.values = np.zeros((units, self.signals))  # Σ V(s_0)
        self.begun = np.zeros(units)
        self.corrected, self.rest = np.zeros(self.signals), 0.0

    def add_influences(self, piece: Piece) -> None:
        """Add the influences of a piece."""
        choices, taken, M = self.matrices(piece)
        unit, errors = self.data.rows.unit_of(piece), self.errors(piece, M)
        along = taken.times(self.dual) * choices.weight[:, None]
        for k in range(self.signals):
            for j in range(2):
                self.psi[:, k, j] += np.bincount(unit, along[:, j] * errors[:, k], minlength=len(self.psi))
        starts = piece.starts
        first = self.design.mean(choices.here[starts], taken.X[starts])
        values = by_group(first, self.solution.without, piece.group[starts])
        np.add.at(self.values, unit[starts], values)
        self.begun += np.bincount(unit[starts], minlength=len(self.begun))
        if self.followed:
            self._add_corrections(piece, choices, errors, unit)

    def _add_corrections(self, piece: Piece, choices: Choices, errors: Array, unit: Integers) -> None:
        """Add the corrections of the doubly robust estimate."""
        own, after, seen = self.corrections(piece, choices, errors)
        rows = np.flatnonzero(piece.step < self.followed)
        for k in range(self.signals):
            self.psi[:, k, 1] += np.bincount(unit[rows], own[rows, k], minlength=len(self.psi))
            self.psi[:, k, 1] += np.bincount(unit[seen.last], after[:, k], minlength=len(self.psi))
        total = self.steps[0, piece.step[rows]]
        self.corrected += ((seen.product[rows] * seen.discount[rows] / total)[:, None] * errors[rows]).sum(axis=0)
        at_end = (piece.step == self.followed - 1) & ~piece.ended
        self.rest += float(
            (seen.product * seen.discount * piece.discount)[at_end].sum() / self.steps[0, -1 + self.followed]
        )
        if self.data.behaviour is not None and not self.policy.by_ratio:
            pull = self.data.behaviour.pulls(piece, self.towards)
            for k in range(self.signals):
                self.psi[:, k, 1] += np.bincount(unit, pull[:, k], minlength=len(self.psi))

    def corrections(self, piece: Piece, choices: Choices, errors: Array) -> tuple[Array, Array, Walk]:
        """Return R_t (D_t δ_t − c_t) / S_t of each row, (n, signals), and −Σ R c_t / S_t after each episode."""
        seen, rows, share = self.share(piece, choices)
        own = np.zeros((len(piece), self.signals))
        own[rows] = share[:, None] * (seen.discount[rows, None] * errors[rows] - self.mean[piece.step[rows]])
        ahead = np.cumsum((self.mean / self.steps[0, : self.followed, None])[::-1], axis=0)[::-1]
        ahead = np.concatenate([ahead, np.zeros((1, self.signals))])
        after = -seen.product[seen.last, None] * ahead[np.minimum(seen.lengths, self.followed)]
        return own, after, seen

    def add_propensities(self, piece: Piece) -> None:
        """Add how the estimate depends on the estimated propensities: through the ratios of each row and later ones."""
        choices, _, M = self.matrices(piece)
        own, after, seen = self.corrections(piece, choices, self.errors(piece, M))
        own[seen.last] += after
        total = np.cumsum(own[::-1], axis=0)[::-1]
        _, last = np.unique(piece.episode, return_index=True)
        ends = np.append(last[1:], len(piece))
        beyond = np.concatenate([total, np.zeros((1, self.signals))])[np.repeat(ends, np.diff([*last, len(piece)]))]
        assert self.data.behaviour is not None
        self.towards = self.towards + self.data.behaviour.gradient(piece, -(total - beyond))

    towards: Any = 0.0

    def result(self, signal: int, summed: Callable[[Array], Array] = lambda psi: psi) -> PolicyValue:
        """Return the value by one signal, before it is limited to what rewards allow.

        `summed` turns the influences (units, 2) into those that make the interval.
        """
        rows = self.data.rows
        psi, begun = self.psi[:, signal].copy(), self.begun.sum()
        values, w = self.values[:, signal], self.solution.w[:, signal]
        mean = float(values.sum() / max(1.0, begun))
        q = float(self.start @ w)
        d = mean + float(self.corrected[signal]) if self.followed else q
        if not rows.few:
            psi += ((values - mean * self.begun) / begun)[:, None]
        if not self.followed:
            psi[:, 1] = psi[:, 0]
        psi = summed(psi)
        units = len(psi)
        variance = psi.T @ psi * units / max(1, units - 1)
        share, gap = blend(q, d, variance)
        if self.policy.logging and rows.episodes >= MANY_RETURNS and self.followed:
            share = 0.0
        psi = np.column_stack([psi, share * psi[:, 0] + (1 - share) * psi[:, 1]])
        low, high = rows.bounds(signal)
        room = BEYOND * (high - low)
        value = share * q + (1 - share) * d
        measured = self.ratio[1] == 0
        return PolicyValue(
            name=self.policy.name,
            value=value,
            low=value,
            high=value,
            q=PolicyEstimate(q, float(np.sqrt(variance[0, 0]))),
            d=PolicyEstimate(d, float(np.sqrt(variance[1, 1]))),
            share=share,
            gap=gap,
            steps=self.followed,
            rest=self.rest if self.followed else 1.0,
            effective=float("nan") if measured else float(self.ratio[0] ** 2 / max(1e-300, self.ratio[1])),
            psi=psi,
            by_map={self.map.name: value},
            apart=0.0,
            passed=False,
            impossible=not low - room <= q <= high + room,
            map=self.map,
            design=self.design,
            w=w,
            without=self.solution.without[:, :, signal],
            start=self.start,
            dual=self.dual[:, 0],
        )


def values_of(data: LogData, policies: Sequence[TargetPolicy], confidence: float) -> list[list[PolicyValue]]:
    """Return the values of policies, a list for each with one value for each signal."""
    found: list[list[PolicyValue]] = []
    largest = max(one.design(data.actions, data.rows.n).q for one in data.maps)
    count = 1 if data.rows.kept else max(1, int(BATCH_NUMBERS // (data.rows.groups * largest**2 * len(data.maps))))
    for begin in range(0, len(policies), count):
        some = policies[begin : begin + count]
        if any(too_wide(data.maps[0].design(None if one.by_ratio else data.actions, data.rows.n)) for one in some):
            from gradient_dd.evaluation.by_learner import auto_value

            found += [auto_value(data, one, confidence) for one in some]
            continue
        for policy in some:
            policy.keep(data.rows.kept)
        runs = [[Run(data, policy, one) for one in data.maps] for policy in some]
        run_all(data, [run for several in runs for run in several])
        for several in runs:
            found.append(
                [
                    chosen([run.result(k) for run in several], data.rows.bounds(k), confidence)
                    for k in range(several[0].signals)
                ]
            )
        for policy in some:
            policy.keep(False)
    return found


BATCH_NUMBERS = 64_000_000  # entries of the matrices of all policies that are summed in one pass


def run_all(data: LogData, runs: list[Run]) -> None:
    """Make all passes over the log for some runs."""
    rows = min(run.design.rows for run in runs)
    for piece in data.rows.pieces(rows):
        for run in runs:
            run.add_equations(piece)
            run.add_starts(piece)
    for run in runs:
        run.solve()
    follow_all(data, runs, rows)


def follow_all(data: LogData, runs: list[Run], rows: int) -> None:
    """Make the passes for slopes and influences, from solutions that are there."""
    sample = data.sample(rows)
    for piece in sample:
        for run in runs:
            run.add_slope(piece)
    share = data.sampled_share
    for run in runs:
        if run.followed and share < 1:
            run.slope[:, 1] = run.start + (run.slope[:, 1] - run.start) / share
            run.mean /= share
        run.begin_influences()
    uncertain = [run for run in runs if data.behaviour is not None and run.followed and not run.policy.by_ratio]
    for piece in sample if uncertain else ():
        for run in uncertain:
            run.add_propensities(piece)
    for run in uncertain:
        assert data.behaviour is not None
        run.towards = data.behaviour.direction(run.towards) / share
    for piece in data.rows.pieces(rows):
        for run in runs:
            run.add_influences(piece)
