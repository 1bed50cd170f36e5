"""What needs no run: statements that the paper gives as exact, next to what its own tables give, and claims of theory.

The empirical claims of the paper need whole sweeps; these need none. `gradient_dd.theory` computes the claims.
"""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from gradient_dd import tasks
from gradient_dd.engine.schedules import Schedule, constant, tapered
from gradient_dd.experiments.claims import Ask
from gradient_dd.experiments.verdicts import ClaimQuestion, exactly
from gradient_dd.learners import LEARNERS
from gradient_dd.studies.study import task_size
from gradient_dd.tasks import Task
from gradient_dd.theory import check_assumptions, expected_run, natural_relation, recursion_eigenvalues

STEPS = 1000  # over which changes of the values are followed
NEAR = 0.05  # radians: what counts as the same direction
LESS = 0.9  # of the largest change that GTD2 makes: what counts as preventing drastic ones


class ExactStatement(NamedTuple):
    """One statement of the paper: where it stands, what it says, what we get, whether it holds."""

    where: str
    paper: str
    ours: str
    verdict: str


def check_statements() -> list[ExactStatement]:
    """Return every exact statement with its verdict."""
    return [*walk_values(), *boyan_weights(), boyan_terminal_feature(), linear_walk(), *baird_statements()]


def stated(where: str, paper: str, ours: str, holds: bool) -> ExactStatement:
    """Return a statement with its verdict in words."""
    return ExactStatement(where, paper, ours, "holds" if holds else "does not hold")


def walk_values() -> list[ExactStatement]:
    """Section 5.1: the true values are (1, …, m)/(m + 1)."""
    gaps = {m: np.abs(tasks.random_walk(m).true_values - np.arange(1, m + 1) / (m + 1)).max() for m in (10, 20, 40)}
    return [
        stated(f"5.1 walk, m = {m}", "values i/(m+1)", f"largest gap {gap:.1e}", gap < 1e-12) for m, gap in gaps.items()
    ]


def boyan_weights() -> list[ExactStatement]:
    """Section 5.2: the optimal weights are −4(p − i)/5."""
    gaps = {
        p: np.abs(tasks.boyan_chain(p).fixed_point + 4 * (p - np.arange(1, p + 1)) / 5).max() for p in (20, 50, 100)
    }
    return [
        stated(f"5.2 Boyan, p = {p}", "weights −4(p−i)/5", f"largest gap {gap:.1e}", gap < 1e-9)
        for p, gap in gaps.items()
    ]


def boyan_terminal_feature() -> ExactStatement:
    """Section 5.2 gives the terminal a feature; bootstrapping from it breaks (A2) of the theorem."""
    smallest = np.linalg.svd(bootstrapped_boyan(20), compute_uv=False)[-1]
    ours = f"smallest singular value of A {smallest:.0e}"
    return stated("5.2 Boyan, terminal feature e_p", "A non-singular (A2)", ours, smallest > 1e-12)


def bootstrapped_boyan(p: int) -> np.ndarray:
    """Return A of the Boyan chain when the terminal's feature is bootstrapped with discount 1."""
    task = tasks.boyan_chain(p)
    X = task.feature_rows.toarray()
    outcome = task.outcomes
    weight = task.visits[task.row[outcome.state]] * task.behaviour[outcome.state, outcome.action]
    here, there = X[outcome.state], X[outcome.next_state]
    return (here.T * (weight * outcome.probability)) @ (here - there)


def linear_walk() -> ExactStatement:
    """Figure walk-linear: p = 5 features, one at each of S_1, S_5, …, S_{4p+1}."""
    features = tasks.random_walk(20, features="linear", n_features=5).features
    last = int(np.flatnonzero(features[:, -1] == 1)[0]) + 1
    return stated("A.5 linear walk, p = 5", "anchors S_1 … S_21", f"anchors S_1 … S_{last}", last == 21)


def baird_statements() -> list[ExactStatement]:
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
            statements.append(stated(f"5.3 Baird, N = {n}, {what}", paper, ours, holds))
    return statements


def slowest(task: Task) -> float:
    """Return the smallest real part of the non-zero eigenvalues of A: TD is unstable in the mean below 0."""
    values = np.linalg.eigvals(task.moments.A)
    return float(values[np.abs(values) > 1e-12].real.min())


def in_words(eigenvalue: float) -> str:
    """Return what that eigenvalue says of TD."""
    return f"{'unstable' if eigenvalue < 0 else 'stable'} in the mean: Re λ(A) ≥ {eigenvalue:.3f}"


def exact_question(task: Task, value: float, side: str, bound: float, text: str) -> ClaimQuestion:
    """Return the question on which side of a bound a computed number is."""
    facts: dict[str, Any] = {"task": str(task), "size": task_size(task), "text": text}
    return ClaimQuestion("exact", (), side, bound, tuned_for="", answer=exactly(value), facts=facts)


def gradient_dd(alpha: float, kappa: float = 1.0) -> Any:
    """Return a setting of Gradient-DD."""
    return LEARNERS["gradient_dd"].setting(alpha=alpha, kappa=kappa)


def mean_flow_is_stable() -> list[ClaimQuestion]:
    """Where (A0) to (A4) hold, the mean of the combined recursion goes to the fixed point."""
    covered = [*(tasks.random_walk(m) for m in (10, 20, 40)), *(tasks.boyan_chain(p) for p in (20, 50, 100))]
    text = "smallest real part of the eigenvalues of G"
    return [
        exact_question(task, float(recursion_eigenvalues(task, gradient_dd(0.3)).real.min()), "above", 0.0, text)
        for task in covered
    ]


def assumptions_hold_in_the_experiments() -> list[ClaimQuestion]:
    """How many of (A0) to (A4) fail in each type of experiment, at a step size in the middle of its grid."""
    experiments: list[tuple[Task, float, Schedule, str]] = [
        (tasks.random_walk(10), 0.3, tapered(1000), "tapered steps"),
        (tasks.random_walk(10), 0.3, constant, "constant steps"),
        (tasks.boyan_chain(20), 0.3, tapered(2000), "tapered steps"),
        (tasks.baird(7), 0.01, constant, "constant steps"),
    ]
    questions = []
    for task, alpha, schedule, named in experiments:
        failing = [one.name for one in check_assumptions(task, gradient_dd(alpha), schedule) if not one.holds]
        text = f"assumptions that fail on {task.name}, {named} ({', '.join(failing) or 'none'}):"
        questions.append(exact_question(task, float(len(failing)), "below", 0.5, text))
    return questions


def related_to_the_natural_gradient() -> list[ClaimQuestion]:
    """The angle to the natural gradient: none for the constrained problem, some for Gradient-DD's own steps.

    The paper says both, that its problem makes use of the natural gradient and that the method is distinct from it.
    """
    walk = tasks.random_walk(10)
    relation = natural_relation(walk, walk.initial_weights, mu=1e-9, alpha=0.3, kappa=1.0)
    names = {
        "angle of the constrained problem as its region shrinks": "below",
        "angle of Gradient-DD's first step": "above",
        "angle of Gradient-DD once settled": "above",
    }
    return [
        exact_question(walk, value, side, NEAR, text)
        for value, (text, side) in zip(relation, names.items(), strict=True)
    ]


def largest_change(task: Task, learner: str, alpha: float, sampling: str) -> float:
    """Return the largest change of the expected values in one step, in the norm of D."""
    run = expected_run(
        task, LEARNERS[learner].setting(alpha=alpha), STEPS, sampling=sampling, points=np.arange(STEPS + 1)
    )
    changes = np.diff(run.weights, axis=0) @ task.features.T
    return float(np.sqrt((changes**2 @ task.visits).max()))


def changes_are_less_drastic() -> list[ClaimQuestion]:
    """The largest change of the values in one step, over that of GTD2 with the same step size."""
    questions, samplings = [], (("iid", "independent draws"), ("trajectory", "trajectories"))
    chosen = (tasks.random_walk(10), 0.3), (tasks.boyan_chain(20), 0.3), (tasks.baird(7), 0.01)
    for (task, alpha), (sampling, named) in product(chosen, samplings):
        ours, theirs = (largest_change(task, learner, alpha, sampling) for learner in ("gradient_dd", "gtd2"))
        text = f"largest change of the values over GTD2's, {task.name}, {named}"
        questions.append(exact_question(task, ours / theirs, "below", LESS, text))
    return questions


def from_theory(words: str, compute: Callable[[], list[ClaimQuestion]]) -> Ask:
    """Return the questions of a claim that no evidence is needed for."""
    return Ask(words, (), lambda evidence: compute())


MEAN_IS_STABLE = from_theory(
    "the mean recursion is stable for small steps: smallest real part above 0", mean_flow_is_stable
)
ASSUMPTIONS_HOLD = from_theory("none of its assumptions fails in them", assumptions_hold_in_the_experiments)
IS_RELATED = from_theory(
    "angle below 0.05 in the constrained problem, above it in Gradient-DD's steps", related_to_the_natural_gradient
)
LESS_DRASTIC = from_theory("largest change in one step below 0.9 of that of GTD2", changes_are_less_drastic)
