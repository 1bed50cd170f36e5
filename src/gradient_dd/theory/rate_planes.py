"""Rates over a plane: Gradient-DD over alpha and one of its parameters, where single calls would take too long.

The moves are linear in alpha and affine in κ and in ζ. With v one of these,

    mean            T − I = S + α (K₀ + v K₁)
    mean square     T − I = S + α (L₀ + v L₁) + α² (Q₀ + v Q₁ + v² Q₂)

so the matrices are made once, and a point of the plane costs its eigenvalues alone, or one solution. `stability` and
`mean_square` say what the numbers mean, and give the same ones.
"""

from math import inf
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from gradient_dd.arrays import Array
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.tasks import Task
from gradient_dd.theory.dynamics import MeanOperator
from gradient_dd.theory.effective import averaged_matrix, flow_rate
from gradient_dd.theory.mean_square import SquareOperator, powers_of_alpha
from gradient_dd.theory.stability import SMALL, bisected, contraction, in_row_space

PARAMETERS = ("kappa", "zeta")
PRECISION = 1e-3  # relative, of an edge of the mean


class RatePlane:
    """The rate of the slowest mode of Gradient-DD as a function of alpha and κ, or of alpha and ζ.

    parameter  "kappa" or "zeta"; the other one is among `others`, or has its default
    """

    def __init__(self, task: Task, parameter: str, sampling: str = "trajectory", **others: Any) -> None:
        reduced = in_row_space(task)
        one, two = (MeanOperator(reduced, setting(parameter, v, others), sampling) for v in (1.0, 2.0))
        unknowns = one.shape[0] * one.shape[1]
        if unknowns > SMALL:
            raise bad_request("The mean of a map", f"have at most {SMALL} unknowns", Unquoted(f"{unknowns} on {task}"))
        first, second = one.moves().toarray(), two.moves().toarray()
        self._still, self._slope = one.generator().toarray() - first, second - first
        self._base = first - self._slope

    def rates(self, alphas: ArrayLike, values: ArrayLike) -> Array:
        """Return 1 − |q| of the slowest mode at every pair of the two, broadcast; negative where the mean diverges."""
        alpha, value = np.broadcast_arrays(np.asarray(alphas, float), np.asarray(values, float))
        pairs = zip(alpha.ravel(), value.ravel(), strict=True)
        found = [contraction(np.linalg.eigvals(self._at(*pair)).astype(complex)).min() for pair in pairs]
        return np.array(found).reshape(alpha.shape)

    def edge(self, alphas: Array, rates: Array, value: float) -> float:
        """Return where the mean first becomes unstable, to a relative 1e-3: `rates` at `alphas` say between which two.

        0 where it is unstable at the first of them, inf where it is stable at all.
        """
        unstable = np.flatnonzero(rates <= 0)
        if not len(unstable) or unstable[0] == 0:
            return 0.0 if len(unstable) else inf
        place = unstable[0]
        return bisected(lambda alpha: bool(self.rates(alpha, value) > 0), alphas[place - 1], alphas[place], PRECISION)

    def _at(self, alpha: float, value: float) -> Array:
        return self._still + alpha * (self._base + value * self._slope)


class SquarePlane(SquareOperator):
    """The operator of the second moments as a function of alpha and of κ or ζ, which is `value`."""

    def __init__(self, task: Task, parameter: str, sampling: str = "trajectory", **others: Any) -> None:
        reduced, self.value = in_row_space(task), 1.0
        super().__init__(reduced, setting(parameter, 1.0, others), sampling)
        at = [SquareOperator(reduced, setting(parameter, v, others), sampling) for v in (1.0, 2.0, 3.0)]
        self._still = at[0].generator(0.0)
        powers = (powers_of_alpha(self._still, one.generator(1.0), one.generator(2.0)) for one in at)
        linear, square = zip(*powers, strict=True)
        bend = (square[2] - 2 * square[1] + square[0]) / 2
        slope = square[1] - square[0] - 3 * bend
        self._linear = 2 * linear[0] - linear[1], linear[1] - linear[0]
        self._square = square[0] - slope - bend, slope, bend

    def generator(self, factor: float = 1.0) -> sp.csc_matrix:
        """Return T − I at alpha = `factor`."""
        linear, square = (
            sum(self.value**k * part for k, part in enumerate(parts)) for parts in (self._linear, self._square)
        )
        return sp.csc_matrix(self._still + factor * linear + factor**2 * square)

    def edge(self, low: float, high: float, value: float) -> float:
        """Return where the mean square becomes unstable between two step sizes; 0 where it is at the first one."""
        self.value = value
        return bisected(self.is_stable, low, high, precision=0.02) if self.is_stable(low) else 0.0


def flow_edge(task: Task) -> float:
    """Return the κα at which the mean flow of `effective` first becomes unstable, or 1/max ‖x‖² if it stays stable.

    It is the limit for step sizes that go to zero, to a relative 1e-3.
    """
    reduced = in_row_space(task)
    grid = np.append(np.geomspace(1e-4, 0.999, 25), 1.0) / float((reduced.features**2).sum(axis=1).max())

    def stable(kappa_alpha: float) -> bool:
        return flow_rate(reduced, averaged_matrix(reduced, kappa_alpha)) > 0

    first = next((i for i, value in enumerate(grid[:-1]) if not stable(value)), len(grid) - 1)
    return (
        bisected(stable, grid[first - 1], grid[first], PRECISION) if 0 < first < len(grid) - 1 else float(grid[first])
    )


def setting(parameter: str, value: float, others: dict[str, Any]) -> Setting:
    """Return Gradient-DD with alpha = 1 and one parameter at a value."""
    if parameter not in PARAMETERS:
        raise bad_request("'parameter'", "be 'kappa' or 'zeta'", parameter)
    chosen: dict[str, Any] = {"alpha": 1.0, parameter: value} | others
    return LEARNERS["gradient_dd"].setting(**chosen)
