"""Effective dynamics: along trajectories, Gradient-DD is GTD2 with a modified matrix, between GTD2 and TD.

A step of Gradient-DD changes w by

    Δ_{n+1} = α ρ (x·η) u − κα x x·Δ_n,     u = x − γx'

Along a trajectory the x of a step, x⁺, is the x' of the step before, so x⁺·Δ is correlated with Δ. To leading order in
κα the mean of w therefore moves by α A_effᵀη instead of αAᵀη,

    A_effᵀ = E[ρ (I − κα x⁺x⁺ᵀ) u xᵀ] = Aᵀ + κα (E[ρ γ x' x'ᵀx' xᵀ] − E[ρ x' x'ᵀx xᵀ])

where x⁺ = x'; at the end of an episode x' is 0 and x⁺ belongs to the first state of the next episode. To all orders,
if the step size goes to zero with κα fixed, the means by state V_s η = E[Δ/α 1{s}] converge to the solution of

    V_s' = Σ_{o: s→s'} q_o (d_s ρ u xᵀ − κα x xᵀ V_s),     A_effᵀ = Σ_s V_s

On tabular tasks without self loops both are C − (1 − κα) E[ρ γ x' xᵀ]: the bootstrapped half of GTD2 is scaled by
1 − κα. At κα = 1 this half is 0 and w' = C η, which is TD if η = C⁻¹(b − A w). In the mean flow, with time n α,

    η' = ζ (b − A w − C η),     w' = A_effᵀ η

The flow of GTD2 (κα = 0) is stable for any policies. Where TD's flow is unstable, Gradient-DD's flow becomes unstable
at some κα‖x‖² < 1 on each of the first 30 `diverging_mdps`, but not on Baird's counterexample. With independent draws
κα changes only the speed, as long as κα λ(C) < 1.
"""

from collections.abc import Callable
from itertools import count as counting
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gradient_dd.arrays import Array, numbers
from gradient_dd.engine.horizon import LONGEST
from gradient_dd.errors import Unquoted, bad_request, number, whole_number
from gradient_dd.tasks import Task, random_mdp
from gradient_dd.theory.dynamics import checked, groups
from gradient_dd.theory.stability import EDGE_PRECISION, bisected, in_row_space


class Interpolation(NamedTuple):
    """The rates of the slowest modes of three mean flows, per unit of n α.

    kappa_alpha  (n,)
    gtd2, td     the rates of GTD2 and TD, which do not depend on κα
    effective    (n,) Gradient-DD along trajectories; negative if the flow is unstable
    """

    kappa_alpha: Array
    gtd2: float
    effective: Array
    td: float


def effective_matrix(task: Task, alpha: float, kappa: float) -> Array:
    """Return A_eff (p, p), to leading order in κα; A if κ = 0."""
    alpha = number("'alpha'", "be a positive number", alpha, low=0.0, positive=True)
    kappa = number("'kappa'", "be a number that is zero or more", kappa, low=0.0)
    V, X = moves_by_next_state(task), task.features
    return (V.sum(axis=0) - kappa * alpha * np.einsum("si,sj,sjk->ik", X, X, V)).T


def averaged_flow(task: Task) -> Callable[[float], Array]:
    """Return A_eff (p, p) as a function of κα, to all orders, in the limit of small step sizes with κα fixed.

    The changes Δ must converge, as they do if κα‖x‖² < 1. V_s enters only as x·V_s, so the unknowns are n rows.
    """
    X, V = task.features, moves_by_next_state(task)
    group, _, after = groups(task, "trajectory")
    flow = (after @ np.eye(task.n_states)[group]).T  # (n, n) from each state to the next
    plain, moved, overlap = V.sum(axis=0), np.einsum("si,sij->sj", X, V), flow.T * (X @ X.T)
    radius = float(np.abs(np.linalg.eigvals(overlap)).max())

    def matrix(kappa_alpha: float) -> Array:
        kappa_alpha = number("'kappa_alpha'", "be a number that is zero or more", kappa_alpha, low=0.0)
        if kappa_alpha * radius >= 1:
            rule = f"be so small that the changes of w converge, as they do below {1 / (X**2).sum(axis=1).max():.4g}"
            raise bad_request("'kappa_alpha'", rule, kappa_alpha)
        settled = np.linalg.solve(np.eye(len(X)) + kappa_alpha * overlap, moved)  # (n, p): x·V_s
        return np.asarray((plain - kappa_alpha * X.T @ settled).T)

    return matrix


def moves_by_next_state(task: Task) -> Array:
    """Return Σ_{o: s→s'} q_o d_s ρ u xᵀ for every s', (n, p, p): the moves of GTD2 by the next state."""
    row, next_row, _, discount, rho, _ = task.transitions
    _, _, after = groups(task, "trajectory")
    X = task.row_features.toarray()
    u = X[row] - discount[:, None] * X[next_row]
    moved = np.einsum("o,oi,oj->oij", task.visits[row] * rho, u, X[row])
    return (after @ moved.reshape(len(row), -1)).reshape(task.n_states, task.n_features, task.n_features)


def flow_rate(task: Task, A_eff: Array, zeta: float = 1.0) -> float:
    """Return the slowest rate of η' = ζ (b − A w − C η), w' = A_effᵀη per unit of n α; negative if it is unstable.

    The matrix and the task must have full column rank, see `in_row_space`.
    """
    A, _, C = task.moments
    field = np.block([[-zeta * C, -zeta * A], [A_eff.T, np.zeros_like(A)]])
    return float(-np.linalg.eigvals(field).real.max())


@checked
def interpolation(task: Task, kappa_alphas: ArrayLike, zeta: float = 1.0) -> Interpolation:
    """Return the slowest rates of GTD2, of Gradient-DD's flow to all orders in κα, and of TD, in the row space of X."""
    reduced, values = in_row_space(task), numbers("'kappa_alphas'", kappa_alphas)
    zeta = number("'zeta'", "be a number that is zero or more", zeta, low=0.0)
    if values.ndim != 1:
        raise bad_request("'kappa_alphas'", "be a vector", Unquoted(f"shape {values.shape}"))
    A, A_eff = reduced.moments.A, averaged_flow(reduced)
    return Interpolation(
        kappa_alpha=values,
        gtd2=flow_rate(reduced, A, zeta),
        effective=np.array([flow_rate(reduced, A_eff(value), zeta) for value in values]),
        td=float(np.linalg.eigvals(A).real.min()),
    )


@checked
def flow_edge(task: Task) -> float:
    """Return the κα at which the mean flow first becomes unstable, or 1/max ‖x‖² if it stays stable.

    The edge holds in the limit of small step sizes, to a relative 1e-3.
    """
    reduced = in_row_space(task)
    A_eff = averaged_flow(reduced)
    grid = np.append(np.geomspace(1e-4, 0.999, 25), 1.0) / float((reduced.features**2).sum(axis=1).max())

    def stable(kappa_alpha: float) -> bool:
        return flow_rate(reduced, A_eff(kappa_alpha)) > 0

    first = next((i for i, value in enumerate(grid[:-1]) if not stable(value)), len(grid) - 1)
    is_inside = 0 < first < len(grid) - 1
    return bisected(stable, grid[first - 1], grid[first], EDGE_PRECISION) if is_inside else float(grid[first])


@checked
def diverging_mdps(count: int) -> list[Task]:
    """Return the first `count` random MDPs of 3 states and 2 features on which TD diverges: Re λ(A) < 0 for some λ.

    About 3 % of the seeds give such a task; the first is 8.
    """
    made = (random_mdp(n_states=3, n_actions=2, n_features=2, discount=0.99, seed=seed) for seed in counting())
    diverging = (task for task in made if np.linalg.eigvals(task.moments.A).real.min() < 0)
    return list(islice(diverging, whole_number("'count'", count, at_least=1, at_most=LONGEST)))
