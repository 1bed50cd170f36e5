"""What one would write first: NumPy, one step and one setting at a time, dense vectors."""

from collections.abc import Callable

import numpy as np

from gradient_dd.tasks import Task


def plain_call(task: Task, name: str, column: np.ndarray, alpha: float) -> Callable[[], np.ndarray]:
    """Return a call that runs one setting (zeta, kappa and reg being 1) over a column of outcomes."""
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = (array[column] for array in task.transitions)

    def call() -> np.ndarray:
        w, eta = task.initial_weights.copy(), np.zeros(task.n_features)
        w_prev = w.copy()
        for t in range(len(column)):
            x, x_next = X[row[t]], X[next_row[t]]
            g, p = discount[t], rho[t]
            delta = reward[t] + g * np.dot(x_next, w) - np.dot(x, w)
            if name == "td":
                w += alpha * p * delta * x
                continue
            x_eta = np.dot(x, eta)
            if name == "gtd2":
                w += alpha * p * x_eta * (x - g * x_next)
            elif name == "gradient_dd":
                change = np.dot(x, w - w_prev)
                w_prev = w.copy()
                w += alpha * (p * x_eta * (x - g * x_next) - change * x)
            else:
                w += alpha * p * (delta * x - g * x_eta * x_next)
            eta += alpha * (p * delta - x_eta) * x - (alpha * eta if name == "tdrc" else 0.0)
        return w

    return call
