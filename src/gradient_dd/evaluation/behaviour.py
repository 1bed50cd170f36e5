"""The probabilities of the actions taken, estimated where the log does not have them.

Counts where a state has one feature that is 1; else multinomial logistic regression of the action on the features of
the state, with a tiny ridge.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.action_rows import ActionRows, as_matrix

RIDGE = 1e-4  # of the regression, over the rows
SWEEPS = 200  # of the regression
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

    def fit(self) -> Array:
        """Return the probabilities of all actions in every row, (n, actions)."""
        if self.counts:
            return self._counted(np.ones(self.n))
        self.theta = self._regress(self.theta)
        return self._chances(self.theta)

    def _counted(self, each: Array) -> Array:
        table = np.zeros((self.p, self.actions))
        np.add.at(table, (self.state, self.action), each)
        total = table.sum(axis=1, keepdims=True)
        return np.asarray((table / np.where(total > 0, total, 1.0))[self.state])

    def of_samples(self, group: Integers, weights: Array) -> Iterator[Array]:
        """Yield the probabilities of the actions taken, (n,), for each column of weights of the groups (groups, k).

        Counts are counted again. The regression takes one step of Newton's method from the first fit.
        """
        if self.counts:
            for weight in weights.T:
                yield self.of_taken(self._counted(weight[group]))
            return
        chances = self._chances(self.theta)
        X = np.column_stack([np.asarray(self.X @ np.diag(1 / self.scale)), np.ones(self.n)])
        away = np.eye(self.actions)[self.action] - chances
        width = X.shape[1] * self.actions
        scores = np.zeros((len(weights), width))
        np.add.at(scores, group, (away[:, :, None] * X[:, None, :]).reshape(self.n, -1))
        curve = RIDGE * self.n * np.eye(width)
        for a in range(self.actions):
            for b in range(self.actions):
                each = chances[:, a] * ((a == b) - chances[:, b])
                rows, columns = (slice(c * X.shape[1], (c + 1) * X.shape[1]) for c in (a, b))
                curve[rows, columns] += X.T @ (each[:, None] * X)
        for step in np.linalg.solve(curve, scores.T @ (weights - 1)).T:
            yield self.of_taken(self._chances(self.theta + step.reshape(self.actions, -1).T))

    def _chances(self, theta: Array) -> Array:
        scores = np.asarray(self.X @ (theta[:-1] / self.scale[:, None])) + theta[-1]
        scores -= scores.max(axis=1, keepdims=True)
        chances = np.exp(scores)
        return np.asarray(chances / chances.sum(axis=1, keepdims=True))

    def _regress(self, begin: Array) -> Array:
        hot = np.eye(self.actions)[self.action]

        def loss(flat: Array) -> tuple[float, Array]:
            theta = flat.reshape(begin.shape)
            chances = self._chances(theta)
            taken = np.maximum(chances[np.arange(self.n), self.action], 1e-300)
            away = (chances - hot) / self.n
            slope = np.vstack([np.asarray(self.X.T @ away) / self.scale[:, None], away.sum(axis=0)])
            size = float(-np.log(taken).mean() + RIDGE * (theta**2).sum() / 2)
            return size, (slope + RIDGE * theta).ravel()

        found = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": SWEEPS})
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
