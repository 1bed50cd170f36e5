"""The choice among candidates, by the error that each makes on groups of the stream it has not seen."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.evaluation.moments import GroupSums
from gradient_dd.evaluation.portfolio import Portfolio
from gradient_dd.learners import Setting
from gradient_dd.studies.intervals import poisson_resamples

BOOTSTRAPS = 200  # of the LSTD solution, for its interval
LARGEST_VALUE = 1e100
NOTHING = "initial weights"  # the candidate that learns nothing


@dataclass(frozen=True, eq=False)
class Candidate:
    """Weights that one way of learning gives.

    name      "lstd", a learner, or "initial weights"
    words     the learner and its parameters
    w         (p,) from the whole stream;  copies (k, p) from bootstrap samples of it
    errors    (copies,) √MSPBE on the groups that each copy has not seen
    diverged  the update at which it or a copy diverged, or 0
    """

    name: str
    words: str
    w: Array
    copies: Array
    errors: Array
    diverged: int = 0
    setting: Setting | None = None

    @property
    def error(self) -> float:
        """The held-out error: the root of the mean square of those of the copies; inf if one diverged."""
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
    portfolio: Portfolio, sums: GroupSums, initial_w: Array, solver: Solver | None = None
) -> list[Candidate]:
    """Return the candidates: every setting, LSTD where it can be solved, and the initial weights."""
    averages, diverged = portfolio.averages(), portfolio.diverged()
    found = [
        Candidate(one.rule.name, str(one), averages[k, 0], averages[k, 1:], np.empty(0), diverged[k], one)
        for k, one in enumerate(portfolio.settings)
    ]
    weights = portfolio.weights
    if solver is not None:
        each = np.column_stack([np.ones(len(weights)), weights])
        for ridge in solver.ridges:
            w, *copies = solver.solutions(each, ridge, initial_w).T
            found.append(Candidate("lstd", f"lstd(ridge={ridge:g})", w, np.array(copies), np.empty(0)))
    still = np.broadcast_to(initial_w, (portfolio.copies, len(initial_w)))
    found.append(Candidate(NOTHING, NOTHING, initial_w, still, np.empty(0)))
    return with_errors(found, sums, weights)


def with_errors(candidates: list[Candidate], sums: GroupSums, weights: Array) -> list[Candidate]:
    """Return the candidates with the errors of their copies on groups of weight 0."""
    root, errors = sums.metric(), np.empty((len(candidates), weights.shape[1]))
    for r in range(weights.shape[1]):
        W = np.stack([one.copies[r] for one in candidates], axis=1)
        large = (np.abs(W) >= LARGEST_VALUE).any(axis=0)
        W[:, large] = 0.0
        found, rows = sums.residuals(W)
        unseen = (weights[:, r] == 0) & (rows > 0)
        mean = found[unseen].sum(axis=0) / max(1.0, rows[unseen].sum())
        errors[:, r] = np.where(large, np.inf, np.sqrt(((root.T @ mean) ** 2).sum(axis=0)))
    return [
        Candidate(one.name, one.words, one.w, one.copies, error, one.diverged, one.setting)
        for one, error in zip(candidates, errors, strict=True)
    ]


def bootstrapped(candidate: Candidate, sums: GroupSums, initial_w: Array, seed: int) -> tuple[Array, Array]:
    """Return more bootstrap copies of an LSTD solution, (BOOTSTRAPS, p), and the weights of the groups in each."""
    weights = poisson_resamples(len(sums.rows), BOOTSTRAPS, [seed, 1])
    ridge = float(candidate.words.partition("=")[2].rstrip(")"))
    return sums.solutions(weights, ridge, initial_w).T, weights
