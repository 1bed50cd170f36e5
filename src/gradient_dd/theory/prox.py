"""The exact proximal step, as a learner to compare Gradient-DD with.

    w_{n+1} = argmin_w J(w) + κ ‖w − w_n‖²_C = (AᵀC⁻¹A + κC)⁻¹ (AᵀC⁻¹b + κC w_n)

This is what the paper's Figure 1 draws: the best w in a region around the last one. It shrinks w − w* by κ/(κ + λ) in
every mode, whatever κ > 0 (`trust_region.contraction_factors`), where Gradient-DD makes one gradient step on the same
objective. The price is O(p²) memory and O(p³) time a step.
"""

from typing import Any

import numpy as np

from gradient_dd.arrays import Array, check_memory
from gradient_dd.errors import Words, must, number, show, whole_number
from gradient_dd.stream.learner import Learner
from gradient_dd.stream.transitions import checked_features
from gradient_dd.tasks import Task
from gradient_dd.tasks.exact import Moments
from gradient_dd.theory.trust_region import penalised_step


class Prox:
    """A learner that keeps the means of A, b, C and makes the exact proximal step on them: O(p³) an update.

    n_features  length of the feature vectors
    kappa       weight of the change of the values, positive; towards 0 this becomes LSTD
    ridge       ε: the mean of x xᵀ starts at ε times the identity, as the metric of the natural learners does
    initial_w   (n_features,) or a number

    After n transitions  A = Σ ρ x (x − γx')ᵀ / (n + 1),  b = Σ ρ r x / (n + 1),  C = (ε I + Σ x xᵀ) / (n + 1). The
    ridge makes C regular and, where A is regular too, does not move the solution of A w = b. Scale features alike:
    along a direction whose mean square is below 1e-13 of the largest, w stays where it is.

    >>> agent = Prox(n_features=2, kappa=1.0)
    >>> agent.update([1, 0], reward=1.0, discount=0.0, x_next=None)
    1.0
    >>> agent.w.round(3).tolist()
    [0.2, 0.0]
    """

    def __init__(self, n_features: int, kappa: float, ridge: float = 1.0, initial_w: Any = 0.0) -> None:
        self._values = Learner("td", n_features, initial_w=initial_w)  # holds w, reads features, predicts
        self.kappa = number("'kappa' of Prox", "be a positive number", kappa, low=0.0, positive=True)
        ridge = number("'ridge' of Prox", "be a positive number", ridge, low=0.0, positive=True)
        p = self._values.n_features
        check_memory(f"A Prox of {p} features", 32 * p * p, "Use fewer features.")
        self._moments = Moments(np.zeros((p, p)), np.zeros(p), ridge * np.eye(p))
        self.updates = 0

    def __repr__(self) -> str:
        return f"<Prox kappa={self.kappa:g}, {self._values.n_features} features, {self.updates} updates>"

    @property
    def w(self) -> Array:
        """(p,) the weights; read only, and a view: copy it to keep it."""
        return self._values.w

    @property
    def moments(self) -> Moments:
        """A, b, C so far."""
        return self._moments

    def predict(self, x: Any) -> Any:
        """Return x·w: a number for one feature vector, (n,) for the n rows of a dense or SciPy sparse matrix."""
        return self._values.predict(x)

    def update(self, x: Any, reward: float, discount: float, x_next: Any, rho: float = 1.0) -> float:
        """Take one transition into the means, make the proximal step, and return the TD error before it.

        The arguments are those of `Learner.update`. Nothing changes if one is refused.
        """
        reward = number("'reward'", "be a finite number", reward)
        discount = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
        rho = number("'rho'", "be a number that is zero or more", rho, low=0.0)
        here = self._dense("x", x)
        u = here if x_next is None and discount == 0 else here - discount * self._dense("x_next", x_next)
        delta = reward - float(u @ self.w)
        with np.errstate(over="ignore", invalid="ignore"):
            sample = rho * np.outer(here, u), rho * reward * here, np.outer(here, here)
            pairs = zip(self._moments, sample, strict=True)
            moments = Moments(*(mean + (new - mean) / (self.updates + 2) for mean, new in pairs))
        if not all(np.isfinite(mean).all() for mean in moments):
            raise must("The products of 'x', 'x_next', 'reward' and 'rho'", "be finite", Words("an overflow"))
        self._values._w[:] = penalised_step(moments, self.w, self.kappa)
        self._moments = moments
        self.updates += 1
        return delta

    def _dense(self, name: str, x: Any) -> Array:
        return self._values._dense(checked_features(name, x, self._values.n_features))


def prox_run(task: Task, kappa: float, steps: int) -> Array:
    """Return w_0 … w_steps of the proximal step on the exact A, b, C of a task, shape (steps + 1, p)."""
    path = [np.array(task.initial_weights, dtype=float)]
    steps = whole_number("'steps'", steps, at_least=0)
    check_memory(f"The weights of {show(steps)} steps", 8 * task.n_features * steps, "Make fewer.")
    for _ in range(steps):
        path.append(penalised_step(task, path[-1], kappa))
    return np.array(path)
