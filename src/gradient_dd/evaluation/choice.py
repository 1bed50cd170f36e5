"""The candidates, and the error that each makes on groups of the stream that its copies have not seen."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.moments import GroupSums
from gradient_dd.evaluation.portfolio import Portfolio
from gradient_dd.evaluation.transitions import Transitions
from gradient_dd.learners import Setting

LARGEST_VALUE = 1e100
NOTHING = "initial weights"  # the candidate that learns nothing


@dataclass(frozen=True, eq=False)
class Candidate:
    """Weights that one way of learning gives.

    name      "lstd", a learner, or "initial weights"
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
    """Return the candidates: every setting, LSTD where it can be solved, and the initial weights.

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
