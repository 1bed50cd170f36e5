"""The spiral of Tsitsiklis and Van Roy: a value function of one weight on which TD diverges although it is on-policy.

There are three states in a ring; each stays or moves on with probability ½. There are no rewards, and γ = 0.9. The
values of the three states spiral around the origin, V = (a cos(ω w) − b sin(ω w)) e^{ε w}, and approach 0 only as
w → −∞. For every rule the spiral is a network; only `values` differs. Maei et al. (2009) give the constants.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
import numpy as np

from gradient_dd.learners import LEARNERS
from gradient_dd.networks.network import Network
from trials.networks.lanes import Lane, LaneMeasure, Streams, run_lanes

OMEGA, GROWTH, DISCOUNT = 0.75**0.5, 0.05, 0.9
A = np.array([100.0, -70.0, -30.0])
B = -np.array([[1.0, 0.5, 1.5], [1.5, 1.0, 0.5], [0.5, 1.5, 1.0]]) @ A / OMEGA  # so that V rotates with the ring
ALPHAS, ZETAS = (1e-6, 3e-6, 1e-5), (1.0, 4.0, 16.0)  # ‖∇V‖² is about 7,000 at first
UPDATES = 20_000
LEARNERS_HERE = {"TD": ("td", False), "GTD2": ("gtd2", False), "TDC": ("tdc", False)} | {
    "GTD2 with ψ": ("gtd2", True), "TDC with ψ": ("tdc", True),
}  # fmt: skip


@dataclass(frozen=True)
class Spiral(Network):
    """The spiral as a network with one weight; its input is the one-hot state."""

    inputs: int = 3
    hidden: tuple[int, ...] = ()
    second: str = "tangent"
    precision: str = "float64"

    @cached_property
    def n_weights(self) -> int:
        """One weight."""
        return 1

    @property
    def n_second_weights(self) -> int:
        """One secondary weight."""
        return 1

    def values(self, w: Any, s: Any) -> Any:
        """Return the values of states s (n, 3), (n, 1)."""
        angle = OMEGA * w[0]
        return (s @ (A * jnp.cos(angle) - B * jnp.sin(angle)) * jnp.exp(GROWTH * w[0]))[:, None]


def all_outcomes() -> Streams:
    """Return the six equally likely outcomes of the ring: a batch of all six gives the exact mean update."""
    state = np.repeat(np.arange(3), 2)
    after = np.where(np.arange(6) % 2, state - 1, state) % 3  # it stays or moves backwards
    none = np.zeros((1, 6))
    return Streams(np.eye(3)[state][None], none, none + DISCOUNT, np.eye(3)[after][None], none + 1.0)


def spiral_cell(updates: int = UPDATES) -> dict[str, Any]:
    """Return the largest and last relative errors of mean updates for every learner and setting."""
    measure = LaneMeasure(np.eye(3), np.zeros(3), np.full(3, 1 / 3))
    batches, first = np.broadcast_to(np.arange(6), (updates, 1, 6)), float(np.sqrt((A**2).mean()))
    found = {}
    for label, (name, correction) in LEARNERS_HERE.items():
        zetas: list[dict[str, Any]] = [{"zeta": zeta} for zeta in ZETAS] if LEARNERS[name].has_eta else [{}]
        lanes = [Lane(LEARNERS[name].setting(alpha=alpha, **zeta)) for alpha in ALPHAS for zeta in zetas]
        how: dict[str, Any] = {"batches": batches, "every": max(1, updates // 200), "correction": correction}
        errors = run_lanes(Spiral(), lanes, all_outcomes(), measure, **how).errors / first
        settings = [dict(lane.setting.values) for lane in lanes]
        found[label] = {"settings": settings, "largest": errors.max(axis=1).tolist(), "last": errors[:, -1].tolist()}
    return found
