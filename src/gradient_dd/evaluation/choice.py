"""The candidates, the error that each makes on groups of the stream that its copies have not seen, and the interval.

An interval is made of weights that are not shrunk, and of copies of them from bootstrap samples.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.moments import GroupSums
from gradient_dd.evaluation.portfolio import Portfolio
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.learners import Setting
from gradient_dd.studies.intervals import Bounds, poisson_resamples, student_factor

LARGEST_VALUE = 1e100
NOTHING = "initial weights"  # the candidate that learns nothing
AUTO = "AutoLearner"  # the candidate with nothing to tune, where no LSTD can be solved


@dataclass(frozen=True, eq=False)
class Candidate:
    """Weights that one way of learning gives.

    name      "lstd", a learner, "AutoLearner", or "initial weights"
    words     the learner and its parameters
    w         (p,) from the whole stream;  copies (k, p) from bootstrap samples of it
    errors    (copies,) √MSPBE on the groups that each copy has not seen
    diverged  the update at which the candidate or a copy diverged, or 0
    setting   of a learner;  ridge  of LSTD
    """

    name: str
    words: str
    w: Array
    copies: Array
    errors: Array
    diverged: int = 0
    setting: Setting | None = None
    ridge: float | None = None

    @property
    def error(self) -> float:
        """The held-out error: the root mean square of the errors of the copies; inf if one of them diverged."""
        return float("inf") if self.diverged else float(np.sqrt(np.mean(self.errors**2)))


class Solver(Protocol):
    """What solves LSTD: the sums of the groups, or rows that were kept."""

    @property
    def ridges(self) -> tuple[float, ...]:
        """The ridges that are tried."""
        ...

    def solutions(self, weights: Array, ridge: float, initial: Array) -> Array:
        """Return LSTD weights (p, k) for weights of the groups (groups, k)."""
        ...


def candidates_of(
    portfolio: Portfolio, sums: GroupSums, first: tuple[Transitions, Integers], solver: Solver | None
) -> list[Candidate]:
    """Return the candidates: every setting, LSTD or `AutoLearner` where there is one, and the initial weights.

    `first` are the first rows of the stream and their groups, from which errors are taken where A is not summed.
    """
    averages, diverged, none = portfolio.averages(), portfolio.diverged(), np.empty(0)
    weights, initial_w = portfolio.weights, portfolio.initial_w
    found = [
        Candidate(one.rule.name, str(one), averages[k, 0], averages[k, 1:], none, diverged[k], one)
        for k, one in enumerate(portfolio.settings)
    ]
    if solver is not None:
        each = np.column_stack([np.ones(len(weights)), weights])
        for ridge in solver.ridges:
            w, *copies = solver.solutions(each, ridge, initial_w).T
            found.append(Candidate("lstd", f"lstd(ridge={ridge:g})", w, np.array(copies), none, ridge=ridge))
    for autos in portfolio.autos:
        w, *copies = (agent.w for agent in autos.agents)
        found.append(Candidate(AUTO, AUTO, w, np.array(copies), none))
    still = np.broadcast_to(initial_w, (portfolio.copies, len(initial_w)))
    found.append(Candidate(NOTHING, NOTHING, initial_w, still, none))
    root, errors = sums.metric(), np.empty((len(found), portfolio.copies))
    for r in range(portfolio.copies):
        W = np.stack([one.copies[r] for one in found], axis=1)
        large = (np.abs(W) >= LARGEST_VALUE).any(axis=0)
        W[:, large] = 0.0
        residuals, rows = sums.residuals(W, first)
        unseen = (weights[:, r] == 0) & (rows > 0)
        mean = residuals[unseen].sum(axis=0) / max(1.0, rows[unseen].sum())
        errors[:, r] = np.where(large, np.inf, np.sqrt(((root.T @ mean) ** 2).sum(axis=0)))
    return [replace(one, errors=error) for one, error in zip(found, errors, strict=True)]


BOOTSTRAPS = 200  # of the LSTD solution


class Spread(NamedTuple):
    """What makes an interval: weights that are not shrunk towards anything, and copies of them.

    anchor  (p,) where A is small the plain LSTD solution, else the weights themselves
    copies  (copies, p) the same from bootstrap samples;  starts  (copies, p) the mean first features in them
    drift   (p,) how far the weights moved from one window of the average to the next; 0 for LSTD
    factor  on the root mean square of the deviations, or 0 where there are enough copies for their own quantile
    """

    anchor: Array
    copies: Array
    starts: Array
    drift: Array
    factor: float
    confidence: float

    def around(self, values: Array, anchors: Array, copies: Array, drifts: Array) -> Bounds:
        """Return the interval about anchors (n,) with copies (n, copies), made wide enough to hold the values too."""
        away = np.abs(copies - anchors[:, None])
        if self.factor:
            half = self.factor * np.sqrt((away**2).mean(axis=1))
        else:
            half = np.quantile(away, self.confidence, axis=1)
        half = half + np.abs(drifts)
        return Bounds(np.minimum(values, anchors - half), np.maximum(values, anchors + half))

    def of_mean(self, x: Array, w: Array, samples: Array | None = None) -> Bounds:
        """Return the interval of x·w for one feature vector (p,), the mean over some states, say.

        `samples` (copies, p) are the vectors in the place of x in the bootstrap samples, where they differ.
        """
        value, anchor, drift = (np.array([x @ one]) for one in (w, self.anchor, self.drift))
        copies = self.copies @ x if samples is None else (samples * self.copies).sum(axis=1)
        low, high = self.around(value, anchor, copies[None], drift)
        return Bounds(float(low[0]), float(high[0]))


def spread_of(
    chosen: Candidate,
    lstd: Candidate | None,
    portfolio: Portfolio,
    moved: tuple[Array, Array] | None,
    sums: GroupSums,
    confidence: float,
) -> Spread:
    """Return the interval's makings: LSTD and its bootstrap where it was solved, else the copies of the chosen lane.

    A learner that stopped early, or a ridge, shrinks values and their spread: the plain solution, `lstd`, does not.
    """
    nothing = np.zeros(len(chosen.w))
    if lstd is not None and sums.small:
        weights = poisson_resamples(len(sums.rows), BOOTSTRAPS, [portfolio.seed, 1])
        copies = sums.solutions(weights, lstd.ridge or 0.0, portfolio.initial_w).T
        return Spread(lstd.w, copies, sums.mean_starts(weights), nothing, 0.0, confidence)
    factor = student_factor(confidence, portfolio.copies)
    starts = sums.mean_starts(portfolio.weights)
    if lstd is not None:
        return Spread(lstd.w, lstd.copies, starts, nothing, factor, confidence)
    drift = nothing if moved is None else moved[1] - moved[0]
    return Spread(chosen.w, chosen.copies, starts, drift, factor, confidence)
