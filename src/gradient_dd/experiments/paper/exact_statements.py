"""What the paper states as exact, next to what its own tables give.

The empirical claims of the paper need whole sweeps; these need none.
"""

from typing import NamedTuple

import numpy as np

from gradient_dd import tasks
from gradient_dd.tasks import Task


class Statement(NamedTuple):
    """One statement of the paper: where it stands, what it says, what we get, whether it holds."""

    where: str
    paper: str
    ours: str
    verdict: str


def check_statements() -> list[Statement]:
    """Return every exact statement with its verdict."""
    return [*walk_values(), *boyan_weights(), boyan_terminal_feature(), linear_walk(), *baird_statements()]


def verdict(holds: bool) -> str:
    """Return the verdict in words."""
    return "holds" if holds else "does not hold"


def walk_values() -> list[Statement]:
    """Section 5.1: the true values are (1, …, m)/(m + 1)."""
    gaps = {m: np.abs(tasks.random_walk(m).true_values - np.arange(1, m + 1) / (m + 1)).max() for m in (10, 20, 40)}
    return [
        Statement(f"5.1 walk, m = {m}", "values i/(m+1)", f"largest gap {gap:.1e}", verdict(gap < 1e-12))
        for m, gap in gaps.items()
    ]


def boyan_weights() -> list[Statement]:
    """Section 5.2: the optimal weights are −4(p − i)/5."""
    statements = []
    for p in (20, 50, 100):
        printed = -4 * (p - np.arange(1, p + 1)) / 5
        gap = np.abs(tasks.boyan_chain(p).fixed_point - printed).max()
        statements.append(
            Statement(f"5.2 Boyan, p = {p}", "weights −4(p−i)/5", f"largest gap {gap:.1e}", verdict(gap < 1e-9))
        )
    return statements


def boyan_terminal_feature() -> Statement:
    """Section 5.2 gives the terminal a feature; bootstrapping from it breaks (A2) of the theorem."""
    smallest = np.linalg.svd(bootstrapped_boyan(20), compute_uv=False)[-1]
    ours = f"smallest singular value of A {smallest:.0e}"
    return Statement("5.2 Boyan, terminal feature e_p", "A non-singular (A2)", ours, verdict(smallest > 1e-12))


def bootstrapped_boyan(p: int) -> np.ndarray:
    """Return A of the Boyan chain when the terminal's feature is bootstrapped with discount 1."""
    task = tasks.boyan_chain(p)
    X = task.feature_rows.toarray()
    outcome = task.outcomes
    weight = task.visits[task.row[outcome.state]] * task.behaviour[outcome.state, outcome.action]
    here, there = X[outcome.state], X[outcome.next_state]
    return (here.T * (weight * outcome.probability)) @ (here - there)


def linear_walk() -> Statement:
    """Figure walk-linear: p = 5 features, one at each of S_1, S_5, …, S_{4p+1}."""
    features = tasks.random_walk(20, features="linear", n_features=5).features
    last = int(np.flatnonzero(features[:, -1] == 1)[0]) + 1
    return Statement("A.5 linear walk, p = 5", "anchors S_1 … S_21", f"anchors S_1 … S_{last}", verdict(last == 21))


def baird_statements() -> list[Statement]:
    """Section 5.3: the ratios, the projection error, and TD's divergence."""
    statements = []
    for n in (7, 20):
        standard, printed = tasks.baird(n), tasks.baird(n, ratios="paper")
        mean = float((printed.behaviour * printed.rho)[0].sum())
        gap = float(np.abs(standard.features @ standard.fixed_point - standard.true_values).max())
        rank = int(np.linalg.matrix_rank(standard.moments.A))
        for what, paper, ours, holds in (
            ("ratios ((N−1)/N, N)", "a ratio of two policies", f"E[ρ|s] = {mean:.3f}", abs(mean - 1) < 1e-9),
            ("residual error", "a projection error remains", f"V = V_w* to {gap:.0e}", gap > 1e-9),
            ("(A2)", "A, C non-singular", f"rank {rank} of {n + 1}", rank == n + 1),
            ("standard ratios", "TD diverges", in_words(slowest(standard)), slowest(standard) < 0),
            ("printed ratios", "TD diverges", in_words(slowest(printed)), slowest(printed) < 0),
        ):
            statements.append(Statement(f"5.3 Baird, N = {n}, {what}", paper, ours, verdict(holds)))
    return statements


def slowest(task: Task) -> float:
    """Return the smallest real part of the non-zero eigenvalues of A: TD is unstable in the mean below 0."""
    values = np.linalg.eigvals(task.moments.A)
    return float(values[np.abs(values) > 1e-12].real.min())


def in_words(eigenvalue: float) -> str:
    """Return what that eigenvalue says of TD."""
    return f"{'unstable' if eigenvalue < 0 else 'stable'} in the mean: Re λ(A) ≥ {eigenvalue:.3f}"
