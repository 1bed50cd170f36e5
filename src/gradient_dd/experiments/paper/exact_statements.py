"""Statements that need no run: exact statements of the paper, checked on the tasks, and claims of theory.

`gradient_dd.theory` computes the numbers behind the claims.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from gradient_dd import tasks
from gradient_dd.engine.schedules import Schedule, constant, tapered
from gradient_dd.experiments.verdicts import Ask, ClaimQuestion, exactly
from gradient_dd.learners import LEARNERS
from gradient_dd.studies.study import task_size
from gradient_dd.tasks import Task
from gradient_dd.theory import check_assumptions, expected_run, natural_relation, recursion_eigenvalues

WALKS, CHAINS = (10, 20, 40), (20, 50, 100)  # sizes
STEPS = 1000  # number of steps in which changes of the values are measured
NEAR = 0.05  # radians: a smaller angle counts as the same direction
LESS = 0.9  # share of GTD2's largest change below which drastic changes count as prevented


class ExactStatement(NamedTuple):
    """One statement of the paper: its place, its content, our result, and the verdict."""

    where: str
    paper: str
    ours: str
    verdict: str


def check_statements() -> list[ExactStatement]:
    """Return every exact statement with its verdict."""
    found = ((where, paper, ours, "holds" if holds else "does not hold") for where, paper, ours, holds in statements())
    return list(map(ExactStatement._make, found))


def statements() -> Iterator[tuple[str, str, str, bool]]:
    """Yield the place and content of every exact statement, our result, and whether the statement holds."""
    for m in WALKS:  # section 5.1: the true values are (1, …, m)/(m + 1)
        gap = np.abs(tasks.random_walk(m).true_values - np.arange(1, m + 1) / (m + 1)).max()
        yield f"5.1 walk, m = {m}", "values i/(m+1)", f"largest gap {gap:.1e}", gap < 1e-12
    for p in CHAINS:  # section 5.2: the optimal weights are −4(p − i)/5
        gap = np.abs(tasks.boyan_chain(p).fixed_point + 4 * (p - np.arange(1, p + 1)) / 5).max()
        yield f"5.2 Boyan, p = {p}", "weights −4(p−i)/5", f"largest gap {gap:.1e}", gap < 1e-9
    # Section 5.2 gives the terminal a feature; bootstrapping from it breaks (A2) of the theorem.
    smallest = np.linalg.svd(bootstrapped_boyan(20), compute_uv=False)[-1]
    ours = f"smallest singular value of A {smallest:.0e}"
    yield "5.2 Boyan, terminal feature e_p", "A non-singular (A2)", ours, smallest > 1e-12
    # Figure walk-linear: p = 5 features, one at each of S_1, S_5, …, S_{4p+1}
    features = tasks.random_walk(20, features="linear", n_features=5).features
    last = int(np.flatnonzero(features[:, -1] == 1)[0]) + 1
    yield "A.5 linear walk, p = 5", "anchors S_1 … S_21", f"anchors S_1 … S_{last}", last == 21
    for n in (7, 20):  # section 5.3: the ratios, the projection error, and TD's divergence
        standard, printed, where = tasks.baird(n), tasks.baird(n, ratios="paper"), f"5.3 Baird, N = {n}, "
        mean = float((printed.behaviour * printed.rho)[0].sum())
        yield where + "ratios ((N−1)/N, N)", "a ratio of two policies", f"E[ρ|s] = {mean:.3f}", abs(mean - 1) < 1e-9
        gap = float(np.abs(standard.features @ standard.fixed_point - standard.true_values).max())
        yield where + "residual error", "a projection error remains", f"V = V_w* to {gap:.0e}", gap > 1e-9
        rank = int(np.linalg.matrix_rank(standard.moments.A))
        yield where + "(A2)", "A, C non-singular", f"rank {rank} of {n + 1}", rank == n + 1
        for named, task in (("standard", standard), ("printed", printed)):
            values = np.linalg.eigvals(task.moments.A)  # TD is unstable in the mean if a real part is negative
            least = float(values[np.abs(values) > 1e-12].real.min())
            ours = f"{'unstable' if least < 0 else 'stable'} in the mean: Re λ(A) ≥ {least:.3f}"
            yield f"{where}{named} ratios", "TD diverges", ours, least < 0


def bootstrapped_boyan(p: int) -> np.ndarray:
    """Return A of the Boyan chain when the terminal's feature is bootstrapped with discount 1."""
    task = tasks.boyan_chain(p)
    X = task.feature_rows.toarray()
    outcome = task.outcomes
    weight = task.visits[task.row[outcome.state]] * task.behaviour[outcome.state, outcome.action]
    here, there = X[outcome.state], X[outcome.next_state]
    return (here.T * (weight * outcome.probability)) @ (here - there)


def exact_question(task: Task, value: float, side: str, bound: float, text: str) -> ClaimQuestion:
    """Return the question of whether a computed number is on a side of a bound."""
    facts: dict[str, Any] = {"task": str(task), "size": task_size(task), "text": text}
    return ClaimQuestion("exact", (), side, bound, tuned_for="", answer=exactly(value), facts=facts)


def gradient_dd(alpha: float) -> Any:
    """Return a setting of Gradient-DD with κ = 1."""
    return LEARNERS["gradient_dd"].setting(alpha=alpha, kappa=1.0)


def mean_is_stable(_: Any) -> list[ClaimQuestion]:
    """Ask whether the mean of the combined recursion is stable on tasks where (A0) to (A4) hold."""
    text = "smallest real part of the eigenvalues of G"
    return [
        exact_question(task, float(recursion_eigenvalues(task, gradient_dd(0.3)).real.min()), "above", 0.0, text)
        for task in (*map(tasks.random_walk, WALKS), *map(tasks.boyan_chain, CHAINS))
    ]


def assumptions_hold(_: Any) -> list[ClaimQuestion]:
    """Ask how many of (A0) to (A4) fail in each type of experiment, at the middle step size of its grid."""
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


def is_related(_: Any) -> list[ClaimQuestion]:
    """Ask whether the constrained problem follows the natural gradient, and whether Gradient-DD's steps deviate.

    The paper claims both: its problem uses the natural gradient, and its method differs from the natural gradient.
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


def less_drastic(_: Any) -> list[ClaimQuestion]:
    """Ask whether the largest change of values in one step is clearly below GTD2's at the same step size."""
    questions, samplings = [], (("iid", "independent draws"), ("trajectory", "trajectories"))
    chosen = (tasks.random_walk(10), 0.3), (tasks.boyan_chain(20), 0.3), (tasks.baird(7), 0.01)
    for (task, alpha), (sampling, named) in product(chosen, samplings):
        largest = []  # changes of the expected values, in the norm of D
        for learner in ("gradient_dd", "gtd2"):
            setting = LEARNERS[learner].setting(alpha=alpha)
            run = expected_run(task, setting, STEPS, sampling=sampling, points=np.arange(STEPS + 1))
            changes = np.diff(run.weights, axis=0) @ task.features.T
            largest.append(float(np.sqrt((changes**2 @ task.visits).max())))
        text = f"largest change of the values over GTD2's, {task.name}, {named}"
        questions.append(exact_question(task, largest[0] / largest[1], "below", LESS, text))
    return questions


MEAN_IS_STABLE = Ask("the mean recursion is stable for small steps: smallest real part above 0", (), mean_is_stable)
ASSUMPTIONS_HOLD = Ask("none of its assumptions fails in the experiments", (), assumptions_hold)
IS_RELATED = Ask("angle below 0.05 in the constrained problem, above it in Gradient-DD's steps", (), is_related)
LESS_DRASTIC = Ask("largest change in one step below 0.9 of GTD2's", (), less_drastic)
