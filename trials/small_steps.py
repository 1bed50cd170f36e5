"""Errors of a run in the limit of small steps: the start that is not yet forgotten, and the noise.

In time counted as n α the mean of e = (η, w − w*) follows e' = F e, and its covariance P' = F P + P Fᵀ + α Q, with

    F = [ −ζ C     −ζ A ]     Q = [ ζ² E[ρ² δ² x xᵀ]   0 ]      at w*
        [ A_effᵀ     0  ]         [ 0                  0 ]

A_eff is A for GTD2, and Aᵀ becomes Aᵀ + c (C − Aᵀ) for `gtd2_to_td`; Gradient-DD has `averaged_matrix` at κα. TD has
w alone, F = −A and Q without ζ². It is first order: products of successive steps, noise that the size of η or w makes,
and limits on α are not in it.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.schedules import Schedule
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import Setting
from gradient_dd.tasks import Task
from gradient_dd.theory.effective import AveragedFlow

KNOWN = ("td", "gtd2", "gtd2_to_td", "gradient_dd")
PIECES = 16  # of a run, in each of which α stands still; they grow with the run


class PredictedErrors(NamedTuple):
    """Root of the mean squared error at the end of a run, and its mean over all episodes; inf where it diverges."""

    end: float
    area: float


class SmallSteps:
    """A task, a schedule and a number of episodes, for which the errors of settings are predicted."""

    def __init__(self, task: Task, schedule: Schedule, episodes: int) -> None:
        row, next_row, reward, discount, rho, _ = task.transitions
        rest, X = task.fixed_point, task.row_features.toarray()
        outcomes = task.outcomes
        likely = task.visits[row] * task.behaviour[outcomes.state, outcomes.action] * outcomes.probability
        delta = reward + discount * (X[next_row] @ rest) - X[row] @ rest
        self.A, _, self.C = task.moments
        self.noise = (X[row].T * (likely * (rho * delta) ** 2)) @ X[row]
        self.weighing = task.features.T @ (task.visits[:, None] * task.features)
        self.start, self.averaged = task.initial_weights - rest, AveragedFlow(task)
        ends = np.unique(np.round(np.geomspace(1, episodes, PIECES)).astype(int))
        self.pieces = np.diff(ends, prepend=0)
        self.factors = schedule.factors(ends - (self.pieces - 1) // 2)
        self.length = float(task.expected_length)

    def flow(self, setting: Setting, alpha: float) -> Array:
        """Return F of a setting whose step size is now α."""
        values, p = setting.values, len(self.A)
        if setting.rule.name == "td":
            return -self.A
        moved = self.A.T + values.get("c", 0.0) * (self.C - self.A.T)
        if setting.rule.name == "gradient_dd":
            moved = self.averaged.matrix(alpha * values["kappa"]).T
        zeta = values["zeta"]
        return np.block([[-zeta * self.C, -zeta * self.A], [moved, np.zeros((p, p))]])

    def errors(self, setting: Setting) -> PredictedErrors:
        """Return what is predicted of a setting."""
        if setting.rule.name not in KNOWN:
            raise bad_request("The learner", f"be one of {', '.join(KNOWN)}", Unquoted(setting.rule.name))
        p, alone = len(self.A), setting.rule.name == "td"
        size = p if alone else 2 * p
        mean, covariance, noise = np.zeros(size, complex), np.zeros((size, size), complex), np.zeros((size, size))
        mean[-p:], noise[:p, :p] = self.start, self.noise * (1.0 if alone else setting.values["zeta"] ** 2)
        found = []
        for episodes, factor in zip(self.pieces, self.factors, strict=True):
            alpha = factor * setting.values["alpha"]
            rates, modes = np.linalg.eig(self.flow(setting, alpha))
            if rates.real.max() >= 0:
                return PredictedErrors(np.inf, np.inf)
            inverse, passed = np.linalg.inv(modes), alpha * episodes * self.length
            sums = rates[:, None] + rates.conj()
            kept = np.exp(sums * passed)
            mean = modes @ (np.exp(rates * passed) * (inverse @ mean))
            added = alpha * (inverse @ noise @ inverse.conj().T) * (kept - 1) / sums
            covariance = modes @ (kept * (inverse @ covariance @ inverse.conj().T) + added) @ modes.conj().T
            w, spread = mean[-p:].real, covariance[-p:, -p:].real
            found.append(np.sqrt(w @ self.weighing @ w + np.trace(self.weighing @ spread)))
        return PredictedErrors(float(found[-1]), float(np.average(found, weights=self.pieces)))
