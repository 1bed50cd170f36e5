"""Estimated propensities for logs that do not record them.

The estimate uses counts if the features are a table, otherwise multinomial logistic regression of the action on the
features of the state, with a small ridge. Every value depends on the estimate: `gradient`, `direction` and `pulls` turn
the derivative of a value with respect to log μ(a|s) into the influence of each row through the estimate.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import minimize

from gradient_dd.arrays import Array, Integers
from gradient_dd.evaluation.maps import FeatureMap
from gradient_dd.evaluation.pieces import Piece

RIDGE = 1e-4  # ridge of the regression, relative to the number of rows
SMALLEST = 1e-3  # smaller probabilities are raised to this limit, because their ratios would be mostly noise


class Behaviour:
    """Estimated action probabilities of the logging policy.

    words  the method;  gap  the mean difference between predicted and actual shares over bins of
    predictions;  worst  the largest difference
    """

    def __init__(self, one: FeatureMap, pieces: Sequence[Piece], actions: int) -> None:
        self.map, self.actions = one, actions
        X = one.matrix(np.concatenate([piece.seen for piece in pieces]))
        action = np.concatenate([piece.taken for piece in pieces])
        if one.table:
            self.words = "the counts of each state"
            self.counts = np.zeros((one.p, actions))
            np.add.at(self.counts, (cells(X), action), 1.0)
        else:
            self.words = "logistic regression on the features"
            scale = np.sqrt((X * X).mean(axis=0))
            self.scale = np.where(scale > 0, scale, 1.0)
            self._regress(X / self.scale, action)
        self.gap, self.worst = calibration(self._chances(X), action)

    def __call__(self, piece: Piece) -> Array:
        """Return the estimated probability of the action taken in each row, (n,), at least SMALLEST."""
        chances = self._chances(self.map.matrix(piece.seen))
        return np.maximum(chances[np.arange(len(piece)), piece.taken], SMALLEST)

    def _chances(self, X: Any) -> Array:
        if self.map.table:
            total = self.counts.sum(axis=1, keepdims=True)
            return np.asarray((self.counts / np.where(total > 0, total, 1.0))[cells(X)])
        return softmax((X / self.scale) @ self.theta)

    def _regress(self, X: Array, action: Integers) -> None:
        """Fit theta (p, actions), and compute the second derivative of the total loss, (p actions, p actions)."""
        hot, n, p = np.eye(self.actions)[action], len(action), X.shape[1]

        def loss(flat: Array) -> tuple[float, Array]:
            theta = flat.reshape(p, self.actions)
            chances = softmax(X @ theta)
            surprise = -np.log(np.maximum(chances[np.arange(n), action], 1e-300)).mean()
            slope = X.T @ (chances - hot) / n + RIDGE * theta
            return float(surprise + RIDGE * (theta**2).sum() / 2), slope.ravel()

        found = minimize(loss, np.zeros(p * self.actions), jac=True, method="L-BFGS-B", options={"maxiter": 200})
        self.theta = np.asarray(found.x).reshape(p, self.actions)
        chances, self.curve = softmax(X @ self.theta), RIDGE * n * np.eye(p * self.actions)
        for a in range(self.actions):
            for b in range(self.actions):
                each = chances[:, a] * ((a == b) - chances[:, b])
                self.curve[a * p : (a + 1) * p, b * p : (b + 1) * p] += X.T @ (each[:, None] * X)

    def _scores(self, piece: Piece) -> tuple[Array, Array]:
        """Return scaled features (n, p), and ∂ log μ(a|s) / ∂ score for the scores of all actions, (n, actions)."""
        X = self.map.matrix(piece.seen) / self.scale
        return X, np.eye(self.actions)[piece.taken] - softmax(X @ self.theta)

    def gradient(self, piece: Piece, slope: Array) -> Array:
        """Return Σ slope ∂ log μ(a|s) / ∂θ over the rows of a piece, for slopes (n, signals)."""
        if self.map.table:
            found = np.zeros((*self.counts.shape, slope.shape[1]))
            np.add.at(found, (cells(self.map.matrix(piece.seen)), piece.taken), slope)
            return found
        X, scores = self._scores(piece)
        return np.stack([(scores * one[:, None]).T @ X for one in slope.T], axis=-1)

    def direction(self, gradient: Array) -> Array:
        """Return gradient / curvature, the influence on the estimate per unit of a row's ∂ log μ(a|s) / ∂θ."""
        if self.map.table:
            here, total = gradient.sum(axis=1), self.counts.sum(axis=1)
            own = gradient / np.maximum(self.counts, 1.0)[:, :, None]
            return np.asarray(own - (here / np.maximum(total, 1.0)[:, None])[:, None, :])
        flat = gradient.reshape(-1, gradient.shape[-1])
        return np.asarray(np.linalg.solve(self.curve, flat)).reshape(gradient.shape)

    def pulls(self, piece: Piece, direction: Array) -> Array:
        """Return how much each row of a piece changes the estimate through the propensities, (n, signals)."""
        if self.map.table:
            return np.asarray(direction[cells(self.map.matrix(piece.seen)), piece.taken])
        X, scores = self._scores(piece)
        return np.stack([(scores * (X @ one.T)).sum(axis=1) for one in np.moveaxis(direction, -1, 0)], axis=1)


def cells(X: Any) -> Integers:
    """Return the table cell of each row; a row of an unknown state gets the cell of the constant."""
    assert sparse.issparse(X)
    first, known = X.indices.reshape(-1, 2)[:, 0], X.data.reshape(-1, 2)[:, 0] > 0
    return np.where(known, first, X.shape[1] - 1)


def softmax(scores: Array) -> Array:
    """Return the action probabilities (n, actions) that belong to scores."""
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def calibration(chances: Array, action: Integers) -> tuple[float, float]:
    """Return the mean and largest difference between predicted (n, actions) and actual shares, over ten equal bins."""
    predicted, happened = chances.ravel(), np.eye(chances.shape[1])[action].ravel()
    parts = np.array_split(np.argsort(predicted, kind="stable"), 10)
    gaps = [abs(float(predicted[part].mean() - happened[part].mean())) for part in parts if len(part)]
    return float(np.mean(gaps)), float(np.max(gaps))
