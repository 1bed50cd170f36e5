"""Where learners with traces converge to: the errors on Collision, and least squares."""

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.errors import BadRequestError
from gradient_dd.stream.least_squares import LSTD, RecursiveLSTD
from gradient_dd.tasks import exact

DRAWS = [tasks.collision(seed) for seed in range(60)]
KNOWN = [  # mean RMSVE of the fixed points over draws of the features, from an independent run of ours
    ("td", 0.5, 0.143),
    ("td", 0.9, 0.074),
    ("td", 1.0, 0.071),
    ("etd", 0.0, 0.111),
    ("etd", 0.5, 0.093),
    ("etd", 0.9, 0.075),
    ("etd", 1.0, 0.071),
]


def closed_form(task, lam, emphatic=False):
    """Return the fixed point from the table alone."""
    discount = task.discount[task.states]
    emphasis = exact.emphatic_weights(task.visits, task.P, discount, lam) if emphatic else None
    A, b = exact.trace_moments(task.features, task.visits, task.P, task.r, discount, lam, emphasis)
    return exact.fixed_point(A, b)


@pytest.mark.parametrize(("name", "lam", "known"), KNOWN)
def test_the_errors_of_the_fixed_points_on_collision_are_those_of_another_run(name, lam, known):
    errors = [task.rmsve(closed_form(task, lam, name == "etd")) for task in DRAWS]
    assert np.mean(errors) == pytest.approx(known, abs=2 * np.std(errors) / np.sqrt(len(DRAWS)) + 5e-4)


# Least squares -------------------------------------------------------------------------------------------------------


def fed(agent, task, steps, seed=0):
    """Return the agent after some steps of a task."""
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    for o in OutcomeSampler(task, seed).take(steps):
        agent.update(X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
    return agent


@pytest.mark.parametrize("emphatic", [False, True])
@pytest.mark.parametrize("lam", [0.0, 0.9])
def test_least_squares_comes_to_the_fixed_point(lam, emphatic):
    task = tasks.collision(6)
    assert np.linalg.matrix_rank(task.features) == 6
    agent, wanted = fed(LSTD(6, lam, emphatic), task, 6_000), closed_form(task, lam, emphatic)
    gap = task.features @ (agent.w - wanted)
    assert np.sqrt(task.visits @ gap**2) < 0.05


@pytest.mark.parametrize("emphatic", [False, True])
def test_recursive_least_squares_is_least_squares_with_a_ridge(emphatic):
    task = tasks.collision(6)
    batch, online = (
        fed(one, task, 300) for one in (LSTD(6, 0.8, emphatic), RecursiveLSTD(6, 0.8, emphatic, ridge=0.5))
    )
    assert online.w == pytest.approx(np.linalg.solve(0.5 * np.eye(6) + batch.A, batch.b), rel=1e-9)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LSTD(0), "'n_features' must be a whole number, 1 or more"),
        (lambda: LSTD(3, lam=2), r"'lam' of td must be in \[0, 1\]"),
        (lambda: RecursiveLSTD(3, ridge=0), "'ridge' must be a positive number"),
        (lambda: LSTD(3).update([1, 0], 1.0, 0.9, [0, 1, 0]), r"The shape of 'x' must be \(3,\)"),
    ],
)
def test_bad_input_gets_one_sentence(make, sentence):
    with pytest.raises(BadRequestError, match=sentence):
        make()
