"""The trust region and the natural gradient: exact computations for the statements of the paper's appendix.

A.1, the trust region [Q-TDD], [Q-TDD-2].

    penalised      w(κ) = argmin_w J(w) + κ ‖w − v‖²_C         J = MSPBE,  ‖u‖²_C = uᵀC u = ‖V_u‖²_D
                        = (AᵀC⁻¹A + κC)⁻¹ (AᵀC⁻¹b + κC v)
    constrained    min_w J(w)  subject to  ‖w − v‖²_C ≤ μ
    one to one     μ(κ) = ‖w(κ) − v‖²_C falls strictly from μ(0) to 0 as κ goes from 0 to ∞, so the constrained
                   optimum is w(κ) with μ(κ) = μ, or w(0) if μ ≥ μ(0)

This is ridge regression in coordinates z, with w = v + T z, in which C is the identity: for C = QSQᵀ, T = QS^{−½},
B = TᵀA T and g = Tᵀ(b − A v),

    J = ‖g − B z‖²,    ‖w − v‖²_C = ‖z‖²,    z(κ) = (BᵀB + κI)⁻¹Bᵀg

If C is singular, the columns of T span only its range: w keeps the part of v that does not affect the values. If B is
singular, w(0) is the minimiser nearest to v in the norm of C. Gradient-DD itself makes one gradient step on
J + κ‖· − w_{n−1}‖²_C from w_n.

A.2 claims that Gradient-DD "makes use of the natural gradient of the objective around w_{n−1}".

    plain      −½ ∇J(w)     = AᵀC⁻¹(b − A w)
    natural    −½ C⁻¹∇J(w)  = C⁻¹AᵀC⁻¹(b − A w)           the metric is C = XᵀDX

The natural direction does not depend on the coordinates of the features: under x → Tᵀx, w → T⁻¹w it gives the same
change of V.

  - The solution of [Q-TDD-2] follows it as the trust region shrinks: κ (w(κ) − w_{n−1}) → natural as κ → ∞. The
    limit is μ → 0; with μ fixed and ε → 0, as printed in the paper, the constraint has no effect.
  - The algorithm [SQ-GDD] does not follow this direction. Its mean step under (A1), with η at its fixed point, is
    α (AᵀC⁻¹(b − A w_n) − κ C (w_n − w_{n−1})): the plain gradient at w_n, and C in place of C⁻¹.
  - If successive steps Δ are nearly equal, Δ = α (I + ακC)⁻¹AᵀC⁻¹(b − A w), which turns from plain to natural as ακC
    grows. But stability requires about ακc < 1 for every eigenvalue c of C, so the eigenvalues of (I + ακC)⁻¹ differ
    by less than a factor of 2, while C⁻¹ has the condition number of C.
"""

from collections.abc import Callable
from math import asin, sqrt
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from gradient_dd.arrays import Array
from gradient_dd.errors import number
from gradient_dd.tasks import Task, exact
from gradient_dd.theory.dynamics import checked

CUT = 1e-13  # singular values below this fraction of the largest count as zero, as in exact.inverse


def ridge(task: Task, v: Array) -> tuple[Array, Callable[[float], Array], float]:
    """Return the problem at v in coordinates where C, of rank r, is the identity and B is diagonal.

    The result is the basis (p, r) with w − v = basis @ z, the function z(κ) = σ g / (σ² + κ), (r,), which is 0 where
    the singular value σ of B is 0, and ‖σ g‖.
    """
    A, b, C = task.moments
    values, vectors = np.linalg.eigh(C)
    seen = values > CUT * values[-1]
    T = vectors[:, seen] / np.sqrt(values[seen])
    left, singular, right = np.linalg.svd(T.T @ A @ T)
    singular[singular <= CUT * singular.max(initial=0.0)] = 0.0
    pull = singular * (left.T @ T.T @ (b - A @ v))

    def solution(kappa: float) -> Array:
        weight = singular**2 + kappa
        return np.divide(pull, weight, out=np.zeros_like(weight), where=singular > 0)

    return T @ right.T, solution, float(np.linalg.norm(pull))


@checked
def penalised_step(task: Task, v: Array, kappa: float) -> Array:
    """Return w(κ) = (AᵀC⁻¹A + κC)⁻¹ (AᵀC⁻¹b + κC v), shape (p,): the minimiser of J(w) + κ‖w − v‖²_C."""
    kappa = number("'kappa'", "be a number that is zero or more", kappa, low=0.0)
    basis, solution, _ = ridge(task, v)
    return v + basis @ solution(kappa)


@checked
def kappa_of_mu(task: Task, v: Array, mu: float) -> float:
    """Return the multiplier κ of the constraint, with μ(κ) = μ; 0 if the constraint does not bind (μ ≥ μ(0))."""
    mu = number("'mu'", "be a positive number", mu, low=0.0, positive=True)
    _, solution, size = ridge(task, v)

    def radius(kappa: float) -> float:
        return float(np.linalg.norm(solution(kappa)))

    if radius(0.0) <= np.sqrt(mu):
        return 0.0
    beyond = 2 * size / np.sqrt(mu)  # since ‖z(κ)‖ ≤ ‖σ g‖ / κ
    # 1/√μ(κ) is nearly linear in κ, while μ(κ) spans decades.
    return float(brentq(lambda kappa: 1 / radius(kappa) - 1 / np.sqrt(mu), 0.0, beyond, xtol=1e-300, rtol=1e-15))


@checked
def constrained_step(task: Task, v: Array, mu: float) -> Array:
    """Return the optimum of min J(w) subject to ‖w − v‖²_C ≤ μ, shape (p,). [Q-TDD-2]"""
    return penalised_step(task, v, kappa_of_mu(task, v, mu))


class NaturalRelation(NamedTuple):
    """The angles, in radians, between the changes of the values by the natural direction at v and by other steps.

    trust_region   the step from v to the constrained optimum; the angle goes to 0 with μ, as the appendix says
    first_step     Gradient-DD's mean step from w_n = w_{n−1} = v, η at its fixed point: for any κ the plain gradient
    settled        Gradient-DD's mean step once successive steps are nearly equal: between plain and natural
    """

    trust_region: float
    first_step: float
    settled: float


@checked
def natural_relation(task: Task, v: Array, mu: float, alpha: float, kappa: float) -> NaturalRelation:
    """Return the angles that test claim A.2 at v, for a region of size μ and Gradient-DD's parameters alpha and κ."""
    alpha = number("'alpha'", "be a positive number", alpha, low=0.0, positive=True)
    kappa = number("'kappa'", "be a number that is zero or more", kappa, low=0.0)
    A, b, C = task.moments
    plain = -0.5 * exact.mspbe_gradient(v, A, b, C)
    natural = exact.inverse(C) @ plain
    steps = (
        constrained_step(task, v, mu) - v,
        -0.5 * exact.j_gdd_gradient(v, v, kappa, A, b, C),
        np.asarray(np.linalg.solve(np.eye(len(C)) + alpha * kappa * C, plain), dtype=float),
    )
    return NaturalRelation(*(angle(C, step, natural) for step in steps))


def angle(C: Array, first: Array, second: Array) -> float:
    """Return the angle, in radians and in the norm of D, between the changes of the values by two changes of w."""
    gap = first / sqrt(first @ C @ first) - second / sqrt(second @ C @ second)
    return 2 * asin(min(sqrt(gap @ C @ gap) / 2, 1.0))
