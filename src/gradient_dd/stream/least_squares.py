"""LSTD(λ), LSETD(λ) and recursive LSTD(λ): the rest point of a learner with a trace, straight from its data.

    z ← ρ (γ λ z + x)                         or the emphatic trace of ETD(λ)
    LSTD       A ← A + z (x − γ x')ᵀ,  b ← b + r z;   w = A⁺ b
    recursive  k = P z / (1 + uᵀP z) with u = x − γ x';  w ← w + k (r − u·w),  P ← P − k uᵀP,  P at first I / ridge

They take O(p²) numbers and steps, so they are references for small p rather than learners.

Bradtke & Barto (1996), Linear least-squares algorithms for temporal difference learning. Boyan (2002), Technical
update: least-squares temporal difference learning. The emphatic one: Yu (2015), On convergence of emphatic TD learning.
"""

from typing import Any

import numpy as np

from gradient_dd.arrays import Array, check_memory
from gradient_dd.engine.traces import START, Before, memory_at_first, trace_numbers
from gradient_dd.errors import boolean, number, whole_number
from gradient_dd.learners import LEARNERS
from gradient_dd.stream.transitions import NONE, checked_features


class TraceOfData:
    """A trace that transitions are fed to; what LSTD and recursive LSTD share."""

    def __init__(self, n_features: int, lam: float = 0.0, emphatic: bool = False) -> None:
        p = self.n_features = whole_number("'n_features'", n_features)
        check_memory(f"A matrix of {p} × {p} numbers", 24 * p * p, "Use fewer features, or a learner of linear time.")
        learner = LEARNERS["etd"] if boolean("'emphatic'", emphatic) else LEARNERS["td"]
        self._setting = learner.traced.setting(lam=lam)
        self._memory, self._before, self.z = memory_at_first(self._setting.rule), START, np.zeros(p)
        self.updates = 0

    def _next(self, x: Any, reward: float, discount: float, x_next: Any, rho: float) -> tuple[Array, Array, float]:
        """Take a transition into the trace, and return z, x − γ x' and the reward."""
        reward = number("'reward'", "be a finite number", reward)
        discount = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
        rho = number("'rho'", "be a number that is zero or more", rho, low=0.0)
        here = checked_features("x", x, self.n_features)
        there = NONE if discount == 0 else checked_features("x_next", x_next, self.n_features)
        now, change = np.zeros((2, self.n_features))
        now[here.where] = here.values
        change[there.where] = discount * there.values
        (trace,) = self._setting.rule.traces
        signals = self._setting.signals(1.0, rho)
        decay, gain, self._memory[trace.name] = trace_numbers(
            trace, signals, self._before, self._memory[trace.name], 0.0
        )
        self.z = decay * self.z + gain * now
        self._before = Before(discount, rho, 0.0, 0.0) if discount else START
        self.updates += 1
        return self.z, now - change, reward


class LSTD(TraceOfData):
    """LSTD(λ), or LSETD(λ) with `emphatic`: sums of A and b over the data, solved when `w` is asked for.

    >>> agent = LSTD(n_features=2, lam=0.9)
    >>> agent.update([1, 0], reward=1.0, discount=0.0, x_next=None)
    >>> agent.w
    array([1., 0.])
    """

    def __init__(self, n_features: int, lam: float = 0.0, emphatic: bool = False) -> None:
        super().__init__(n_features, lam, emphatic)
        self.A, self.b = np.zeros((self.n_features, self.n_features)), np.zeros(self.n_features)

    def update(self, x: Any, reward: float, discount: float, x_next: Any, rho: float = 1.0) -> None:
        """Take one transition; arguments as in `Learner.update`."""
        z, u, paid = self._next(x, reward, discount, x_next, rho)
        self.A += np.outer(z, u)
        self.b += paid * z

    @property
    def w(self) -> Array:
        """(p,) the solution of A w = b, of least norm where it is not unique."""
        return np.asarray(np.linalg.pinv(self.A, rcond=1e-13) @ self.b)


class RecursiveLSTD(TraceOfData):
    """LSTD(λ) that keeps the inverse of ridge × I + A, and w, by Sherman-Morrison; O(p²) a step."""

    def __init__(self, n_features: int, lam: float = 0.0, emphatic: bool = False, ridge: float = 1.0) -> None:
        super().__init__(n_features, lam, emphatic)
        ridge = number("'ridge'", "be a positive number", ridge, low=0.0, positive=True)
        self.inverse, self.w = np.eye(self.n_features) / ridge, np.zeros(self.n_features)

    def update(self, x: Any, reward: float, discount: float, x_next: Any, rho: float = 1.0) -> float:
        """Take one transition, and return its TD error before the step; arguments as in `Learner.update`."""
        z, u, paid = self._next(x, reward, discount, x_next, rho)
        along = self.inverse @ z
        gain = along / (1.0 + u @ along)
        delta = paid - float(u @ self.w)
        self.w = self.w + gain * delta
        self.inverse = self.inverse - np.outer(gain, u @ self.inverse)
        return delta
