"""The natural gradient of the MSPBE, and what the paper's appendix A.2 says of it and Gradient-DD.

    plain      −½ ∇J(w)     = AᵀC⁻¹(b − A w)
    natural    −½ C⁻¹∇J(w)  = C⁻¹AᵀC⁻¹(b − A w)           the metric is C = XᵀDX: ‖u‖²_C = ‖V_u‖²_D

The natural direction is steepest descent when steps are measured by the change of the values, so it does not depend on
how the features are written: under x → Tᵀx, w → T⁻¹w it gives the same change of V. The plain one does.

A.2 claims that Gradient-DD "makes use of the natural gradient of the objective around w_{n−1}". Of this

  - right: the *constrained problem* [Q-TDD-2], as its region shrinks, moves from w_{n−1} along the natural direction
    at w_{n−1}: κ (w(κ) − w_{n−1}) → natural as κ → ∞. The limit is μ → 0; with μ fixed and ε → 0, as printed, the
    constraint is void.
  - not right: the *algorithm* [SQ-GDD] does not solve that problem. Its mean step under (A1), with η at rest, is
    α (AᵀC⁻¹(b − A w_n) − κ C (w_n − w_{n−1})): the plain gradient at w_n, and C where the natural gradient has C⁻¹.
    It depends on how the features are written.
  - what remains: once successive steps Δ are nearly equal, the same equation gives
    Δ = α (I + ακC)⁻¹AᵀC⁻¹(b − A w), which turns from plain to natural as ακC grows. But a mode of C with eigenvalue c
    has a root near −ακc, so stability asks for ακc < 1, about, and the eigenvalues of (I + ακC)⁻¹ then differ by
    less than a factor of 2, where those of C⁻¹ differ as C's do.
"""

from math import asin, sqrt
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import number
from gradient_dd.tasks import exact
from gradient_dd.theory.trust_region import Problem, constrained_step, moments_of


def plain_direction(problem: Problem, w: Array) -> Array:
    """AᵀC⁻¹(b − A w), shape (p,): the mean step of GTD2 with η at rest, [ng]."""
    return -0.5 * exact.mspbe_gradient(w, *moments_of(problem))


def natural_direction(problem: Problem, w: Array) -> Array:
    """C⁻¹AᵀC⁻¹(b − A w), shape (p,): the mean step of natural GTD2 and natural TDC with η at rest."""
    return exact.inverse(moments_of(problem).C) @ plain_direction(problem, w)


def settled_direction(problem: Problem, w: Array, alpha: float, kappa: float) -> Array:
    """(I + ακC)⁻¹AᵀC⁻¹(b − A w), shape (p,): what Gradient-DD's mean step settles to when w drifts slowly."""
    alpha = number("'alpha'", "be a positive number", alpha, low=0.0, positive=True)
    kappa = number("'kappa'", "be a number that is zero or more", kappa, low=0.0)
    C = moments_of(problem).C
    return np.asarray(np.linalg.solve(np.eye(len(C)) + alpha * kappa * C, plain_direction(problem, w)))


def angle(problem: Problem, first: Array, second: Array) -> float:
    """The angle, in radians, between the changes of the values that two changes of w make, in the norm of D."""
    C = moments_of(problem).C
    gap = first / sqrt(first @ C @ first) - second / sqrt(second @ C @ second)
    return 2 * asin(min(sqrt(gap @ C @ gap) / 2, 1.0))


class NaturalRelation(NamedTuple):
    """How far from the natural direction at v, as an angle in radians of the change of the values.

    trust_region   the constrained optimum's step from v; goes to 0 with μ: the appendix is right
    first_step     Gradient-DD's mean step from w_n = w_{n−1} = v, η at rest: the plain gradient's angle, whatever κ
    settled        Gradient-DD's mean step once successive steps are nearly equal: between the plain gradient's and 0
    """

    trust_region: float
    first_step: float
    settled: float


def natural_relation(problem: Problem, v: Array, mu: float, alpha: float, kappa: float) -> NaturalRelation:
    """Return the angles that decide the claim of A.2 at v, for a region of size μ and a setting of Gradient-DD."""
    natural = natural_direction(problem, v)
    return NaturalRelation(
        trust_region=angle(problem, constrained_step(problem, v, mu) - v, natural),
        first_step=angle(problem, -0.5 * exact.j_gdd_gradient(v, v, kappa, *moments_of(problem)), natural),
        settled=angle(problem, settled_direction(problem, v, alpha, kappa), natural),
    )
