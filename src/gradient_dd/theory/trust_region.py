"""The trust region and the natural gradient: what the paper's appendix says of Gradient-DD's objective, exactly.

A.1, the trust region [Q-TDD], [Q-TDD-2].

    penalised      w(κ) = argmin_w J(w) + κ ‖w − v‖²_C         J = MSPBE,  ‖u‖²_C = uᵀC u = ‖V_u‖²_D
                        = (AᵀC⁻¹A + κC)⁻¹ (AᵀC⁻¹b + κC v)
    constrained    min_w J(w)  subject to  ‖w − v‖²_C ≤ μ
    one for one    μ(κ) = ‖w(κ) − v‖²_C falls strictly from μ(0) to 0 as κ goes from 0 to ∞, so the constrained
                   optimum is w(κ) with μ(κ) = μ, or w(0) where μ ≥ μ(0)

All of it is ridge regression in coordinates z, w = v + T z, in which C is the identity: with C = QSQᵀ, T = QS^{−½},
B = TᵀA T and g = Tᵀ(b − A v),

    J = ‖g − B z‖²,    ‖w − v‖²_C = ‖z‖²,    z(κ) = (BᵀB + κI)⁻¹Bᵀg

and the squared singular values of B are the generalised eigenvalues λ of (AᵀC⁻¹A, C). Where C is singular the columns
of T span its range alone: w keeps the part of v that the values do not see. Where B is singular w(0) is the minimiser
nearest to v in the norm of C.

Gradient-DD itself solves none of these: it makes one gradient step on J + κ‖· − w_{n−1}‖²_C from w_n.

A.2, the natural gradient of the MSPBE.

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
from scipy.optimize import brentq

from gradient_dd.arrays import Array, check_memory
from gradient_dd.errors import Unquoted, bad_request, number, show, whole_number
from gradient_dd.tasks import Task, exact
from gradient_dd.tasks.exact import Moments

CUT = 1e-13  # singular values below this fraction of the largest count as zero, as in exact.inverse

Problem = Task | Moments | tuple[Array, Array, Array]


def moments_of(problem: Problem) -> Moments:
    """Return A, b and C of a task, or the three arrays themselves."""
    if isinstance(problem, Task):
        return problem.moments
    A, b, C = (np.asarray(array, dtype=float) for array in problem)
    p = b.size
    if (A.shape, b.shape, C.shape) != ((p, p), (p,), (p, p)):
        raise bad_request("The shapes of A, b and C", "be (p, p), (p,) and (p, p)", (A.shape, b.shape, C.shape))
    return Moments(A, b, C)


class Ridge(NamedTuple):
    """The problem about v as ridge regression, in the singular vectors of B: one number per mode.

    basis         (p, r) w − v = basis @ z, r being the rank of C
    singular      (r,) singular values of B; their squares are the generalised eigenvalues of (AᵀC⁻¹A, C)
    target        (r,) g along the left singular vectors
    """

    basis: Array
    singular: Array
    target: Array

    def solution(self, kappa: float) -> Array:
        """Return z(κ), shape (r,): σ g / (σ² + κ) in every mode, and 0 where σ is 0."""
        weight = self.singular**2 + kappa
        return np.divide(self.singular * self.target, weight, out=np.zeros_like(weight), where=self.singular > 0)


def ridge(problem: Problem, v: Array) -> Ridge:
    """Return the problem about v in the coordinates where C is the identity and B is diagonal."""
    A, b, C = moments_of(problem)
    v = np.asarray(v, dtype=float)
    if v.shape != b.shape:
        raise bad_request("The shape of 'v'", f"be {b.shape}", v.shape)
    values, vectors = np.linalg.eigh(C)
    seen = values > CUT * values[-1]
    if np.abs(A @ vectors[:, ~seen]).max(initial=0.0) > 1e-6 * np.abs(A).max():
        got, hint = Unquoted("a direction in which C alone is 0"), "Scale the features, or add a ridge to C."
        raise bad_request("A", "vanish wherever C does, as it does for every task", got, hint)
    T = vectors[:, seen] / np.sqrt(values[seen])
    left, singular, right = np.linalg.svd(T.T @ A @ T)
    singular[singular <= CUT * singular.max(initial=0.0)] = 0.0
    return Ridge(T @ right.T, singular, left.T @ T.T @ (b - A @ v))


def penalised_step(problem: Problem, v: Array, kappa: float) -> Array:
    """Return w(κ) = (AᵀC⁻¹A + κC)⁻¹ (AᵀC⁻¹b + κC v), shape (p,): the minimiser of J(w) + κ‖w − v‖²_C."""
    kappa = number("'kappa'", "be a number that is zero or more", kappa, low=0.0)
    modes = ridge(problem, v)
    return v + modes.basis @ modes.solution(kappa)


def mu_of_kappa(problem: Problem, v: Array, kappa: float) -> float:
    """Return μ(κ) = ‖w(κ) − v‖²_C: the squared radius of the trust region that a penalty κ amounts to at v."""
    kappa = number("'kappa'", "be a number that is zero or more", kappa, low=0.0)
    z = ridge(problem, v).solution(kappa)
    return float(z @ z)


def kappa_of_mu(problem: Problem, v: Array, mu: float) -> float:
    """Return the κ with μ(κ) = μ: the multiplier of the constraint; 0 where the constraint does not bind, μ ≥ μ(0)."""
    mu = number("'mu'", "be a positive number", mu, low=0.0, positive=True)
    modes = ridge(problem, v)

    def radius(kappa: float) -> float:
        z = modes.solution(kappa)
        return float(np.sqrt(z @ z))

    if radius(0.0) <= np.sqrt(mu):
        return 0.0
    beyond = 2 * np.linalg.norm(modes.singular * modes.target) / np.sqrt(mu)  # since ‖z(κ)‖ ≤ ‖σ g‖ / κ
    # 1/√μ(κ) is nearly a straight line in κ, where μ(κ) spans decades.
    return float(brentq(lambda kappa: 1 / radius(kappa) - 1 / np.sqrt(mu), 0.0, beyond, xtol=1e-300, rtol=1e-15))


def constrained_step(problem: Problem, v: Array, mu: float) -> Array:
    """Return the optimum of min J(w) subject to ‖w − v‖²_C ≤ μ, shape (p,). [Q-TDD-2]"""
    return penalised_step(problem, v, kappa_of_mu(problem, v, mu))


class KKT(NamedTuple):
    """By how much each Karush-Kuhn-Tucker condition of [Q-TDD-2] is missed; all are 0 at the optimum.

    stationarity  ‖∇J(w) + κ ∇‖w − v‖²_C‖
    feasibility   ‖w − v‖²_C − μ, where positive
    multiplier    −κ, where positive
    slackness     |κ (‖w − v‖²_C − μ)|
    """

    stationarity: float
    feasibility: float
    multiplier: float
    slackness: float


def kkt(problem: Problem, v: Array, w: Array, mu: float, kappa: float) -> KKT:
    """Return the residuals of the conditions at w with multiplier κ.

    The paper's last line has μ in the place of κ in the first condition; κ is right.
    """
    A, b, C = moments_of(problem)
    excess = float((w - v) @ C @ (w - v)) - mu
    return KKT(
        stationarity=float(np.linalg.norm(exact.j_gdd_gradient(w, v, kappa, A, b, C))),
        feasibility=max(excess, 0.0),
        multiplier=max(-kappa, 0.0),
        slackness=abs(kappa * excess),
    )


def generalised_eigenvalues(problem: Problem) -> Array:
    """Return λ of AᵀC⁻¹A u = λ C u, shape (r,), r being the rank of C; largest first."""
    return ridge(problem, np.zeros(len(moments_of(problem).b))).singular ** 2


def contraction_factors(problem: Problem, kappa: float) -> Array:
    """Return κ / (κ + λ), shape (r,), the smallest first: what one proximal step leaves of w − w* in every mode.

    All are below 1 whatever κ, so the proximal step is stable without condition; where λ is 0, nothing is learnt
    and the factor is 1.
    """
    kappa = number("'kappa'", "be a number that is zero or more", kappa, low=0.0)
    eigenvalues = generalised_eigenvalues(problem)
    return np.divide(kappa, kappa + eigenvalues, out=np.ones_like(eigenvalues), where=eigenvalues > 0)


def prox_run(task: Task, kappa: float, steps: int) -> Array:
    """Return w_0 … w_steps of the exact proximal step w_{n+1} = w(κ) about v = w_n, shape (steps + 1, p).

    This is what the paper's Figure 1 draws: the best w in a region around the last one. The price is O(p³) a step.
    """
    path = [np.array(task.initial_weights, dtype=float)]
    steps = whole_number("'steps'", steps, at_least=0)
    check_memory(f"The weights of {show(steps)} steps", 8 * task.n_features * steps, "Make fewer.")
    for _ in range(steps):
        path.append(penalised_step(task, path[-1], kappa))
    return np.array(path)


# The natural gradient


def plain_direction(problem: Problem, w: Array) -> Array:
    """Return AᵀC⁻¹(b − A w), shape (p,): the mean step of GTD2 with η at rest, [ng]."""
    return -0.5 * exact.mspbe_gradient(w, *moments_of(problem))


def natural_direction(problem: Problem, w: Array) -> Array:
    """Return C⁻¹AᵀC⁻¹(b − A w), shape (p,): the mean step of natural GTD2 and natural TDC with η at rest."""
    return exact.inverse(moments_of(problem).C) @ plain_direction(problem, w)


def settled_direction(problem: Problem, w: Array, alpha: float, kappa: float) -> Array:
    """Return (I + ακC)⁻¹AᵀC⁻¹(b − A w), shape (p,): Gradient-DD's mean step once w drifts slowly."""
    alpha = number("'alpha'", "be a positive number", alpha, low=0.0, positive=True)
    kappa = number("'kappa'", "be a number that is zero or more", kappa, low=0.0)
    C = moments_of(problem).C
    return np.asarray(np.linalg.solve(np.eye(len(C)) + alpha * kappa * C, plain_direction(problem, w)))


def angle(problem: Problem, first: Array, second: Array) -> float:
    """Return the angle, in radians, between the changes of the values that two changes of w make, in the norm of D."""
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
