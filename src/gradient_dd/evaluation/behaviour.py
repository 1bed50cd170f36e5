"""The probabilities of the actions taken, estimated where the log does not have them.

Counts where a state has one feature that is 1; else multinomial logistic regression of the action on the features of
the state, with a tiny ridge.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.action_rows import ActionRows, as_matrix

RIDGE = 1e-4  # of the regression, over the rows
SWEEPS, MORE_SWEEPS = 200, 10  # of the first fit, and of a fit to a bootstrap sample that begins there
BINS = 10  # of the calibration
SMALLEST = 1e-3  # a probability below this is taken for this: its ratio would be nothing but noise


class Behaviour(NamedTuple):
    """Estimated probabilities of the actions taken.

    taken  (n,) the probabilities;  words  how they were estimated
    gap    the mean difference between predicted and actual shares over bins of predictions;  worst  the largest one
    """

    taken: Array
    words: str
    gap: float
    worst: float


class BehaviourModel:
    """Estimates what the policy that made the log does, from the log itself; again for weights of the rows."""

    def __init__(self, rows: ActionRows, actions: int, p: int) -> None:
        self.action, self.actions, self.n = rows.action[:, 0].astype(np.int64), actions, len(rows)
        x = rows.x
        self.counts = x.indices is not None and x.values.shape[1] == 1 and bool((x.values == 1).all())
        self.state: Integers = x.indices[:, 0] if x.indices is not None and self.counts else np.zeros(0, np.int64)
        if not self.counts:
            X = as_matrix(x, p)
            self.X: Any = X
            scale = np.sqrt(np.asarray((X * X).mean(axis=0)).ravel()) if x.indices is None else np.ones(p)
            self.scale = np.where(scale > 0, scale, 1.0)
            self.theta = np.zeros((p + 1, actions))
        self.p = p

    def fit(self, weights: Array | None = None) -> Array:
        """Return the probabilities of all actions in every row, (n, actions), where row i counts weights[i] times."""
        each = np.ones(self.n) if weights is None else weights
        if self.counts:
            table = np.zeros((self.p, self.actions))
            np.add.at(table, (self.state, self.action), each)
            total = table.sum(axis=1, keepdims=True)
            return np.asarray((table / np.where(total > 0, total, 1.0))[self.state])
        first = weights is None
        found = self._regress(each, self.theta, SWEEPS if first else MORE_SWEEPS)
        if first:
            self.theta = found
        return self._chances(found)

    def _chances(self, theta: Array) -> Array:
        scores = np.asarray(self.X @ (theta[:-1] / self.scale[:, None])) + theta[-1]
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def _regress(self, each: Array, begin: Array, sweeps: int) -> Array:
        total = max(1e-300, float(each.sum()))
        hot = np.eye(self.actions)[self.action]

        def loss(flat: Array) -> tuple[float, Array]:
            theta = flat.reshape(begin.shape)
            chances = self._chances(theta)
            taken = np.maximum(chances[np.arange(self.n), self.action], 1e-300)
            away = each[:, None] * (chances - hot) / total
            slope = np.vstack([np.asarray(self.X.T @ away) / self.scale[:, None], away.sum(axis=0)])
            return float(-(each @ np.log(taken)) / total + RIDGE * (theta**2).sum() / 2), (slope + RIDGE * theta).ravel()

        found = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": sweeps})
        return np.asarray(found.x).reshape(begin.shape)

    def of_taken(self, chances: Array) -> Array:
        """Return the probabilities of the actions taken, (n,), none of them below SMALLEST."""
        return np.maximum(chances[np.arange(self.n), self.action], SMALLEST)

    def estimate(self) -> Behaviour:
        """Return the estimate, and how well it is calibrated."""
        chances = self.fit()
        gap, worst = calibration(chances, self.action)
        how = "the counts of each state" if self.counts else "logistic regression on the features"
        return Behaviour(self.of_taken(chances), how, gap, worst)


def calibration(chances: Array, action: Integers) -> tuple[float, float]:
    """Return how far predicted shares (n, actions) are from actual ones, over bins of equal size: mean and largest."""
    predicted, happened = chances.ravel(), np.eye(chances.shape[1])[action].ravel()
    parts = np.array_split(np.argsort(predicted, kind="stable"), BINS)
    gaps = [abs(float(predicted[part].mean() - happened[part].mean())) for part in parts if len(part)]
    return float(np.mean(gaps)), float(np.max(gaps))
