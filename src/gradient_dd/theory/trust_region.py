"""The trust region: the problem that Gradient-DD's objective stands for, solved exactly. [Q-TDD], [Q-TDD-2], A.1

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
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from gradient_dd.arrays import Array, check_memory
from gradient_dd.errors import Words, must, number, show, whole_number
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
        raise must("The shapes of A, b and C", "be (p, p), (p,) and (p, p)", (A.shape, b.shape, C.shape))
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
        """z(κ), shape (r,): σ g / (σ² + κ) in every mode, and 0 where σ is 0."""
        weight = self.singular**2 + kappa
        return np.divide(self.singular * self.target, weight, out=np.zeros_like(weight), where=self.singular > 0)


def ridge(problem: Problem, v: Array) -> Ridge:
    """Return the problem about v in the coordinates where C is the identity and B is diagonal."""
    A, b, C = moments_of(problem)
    v = np.asarray(v, dtype=float)
    if v.shape != b.shape:
        raise must("The shape of 'v'", f"be {b.shape}", v.shape)
    values, vectors = np.linalg.eigh(C)
    seen = values > CUT * values[-1]
    if np.abs(A @ vectors[:, ~seen]).max(initial=0.0) > 1e-6 * np.abs(A).max():
        got, hint = Words("a direction in which C alone is 0"), "Scale the features, or add a ridge to C."
        raise must("A", "vanish wherever C does, as it does for every task", got, hint)
    T = vectors[:, seen] / np.sqrt(values[seen])
    left, singular, right = np.linalg.svd(T.T @ A @ T)
    singular[singular <= CUT * singular.max(initial=0.0)] = 0.0
    return Ridge(T @ right.T, singular, left.T @ T.T @ (b - A @ v))


def penalised_step(problem: Problem, v: Array, kappa: float) -> Array:
    """w(κ) = (AᵀC⁻¹A + κC)⁻¹ (AᵀC⁻¹b + κC v), shape (p,): the minimiser of J(w) + κ‖w − v‖²_C."""
    kappa = number("'kappa'", "be a number that is zero or more", kappa, low=0.0)
    modes = ridge(problem, v)
    return v + modes.basis @ modes.solution(kappa)


def mu_of_kappa(problem: Problem, v: Array, kappa: float) -> float:
    """μ(κ) = ‖w(κ) − v‖²_C: the radius, squared, of the trust region that a penalty κ amounts to at v."""
    kappa = number("'kappa'", "be a number that is zero or more", kappa, low=0.0)
    z = ridge(problem, v).solution(kappa)
    return float(z @ z)


def kappa_of_mu(problem: Problem, v: Array, mu: float) -> float:
    """The κ with μ(κ) = μ: the multiplier of the constraint; 0 where the constraint does not bind, μ ≥ μ(0)."""
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
    """The optimum of min J(w) subject to ‖w − v‖²_C ≤ μ, shape (p,). [Q-TDD-2]"""
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
    """λ of AᵀC⁻¹A u = λ C u, shape (r,), r being the rank of C; largest first."""
    return ridge(problem, np.zeros(len(moments_of(problem).b))).singular ** 2


def contraction_factors(problem: Problem, kappa: float) -> Array:
    """κ / (κ + λ), shape (r,), the smallest first: what one proximal step leaves of w − w* in every mode.

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
