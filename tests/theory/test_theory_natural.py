"""The natural gradient: what does not depend on the features' coordinates, and how Gradient-DD relates to it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd import tasks
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import exact
from gradient_dd.testing import expected_move
from gradient_dd.theory.trust_region import angle, natural_relation, penalised_step

seeds = st.integers(0, 10**6)


def random_case(seed):
    """Return a task, weights, and a change of features with singular values from ½ to 2."""
    task = tasks.random_mdp(n_states=6, n_actions=2, n_features=3, seed=seed)
    rng = np.random.default_rng(seed + 1)
    left, right = (np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2))
    return task, rng.standard_normal(3), left @ np.diag([0.5, 1.0, 2.0]) @ right


def plain_direction(moments, w):
    """Return AᵀC⁻¹(b − A w): the mean step of GTD2 with η at rest."""
    return -0.5 * exact.mspbe_gradient(w, *moments)


def natural_direction(moments, w):
    """Return C⁻¹AᵀC⁻¹(b − A w): the mean step of natural GTD2 with η at rest."""
    return exact.inverse(moments.C) @ plain_direction(moments, w)


def change_features(task, T):
    """Return A, b, C after x → Tᵀx; the weights T⁻¹w have the values of w."""
    A, b, C = task.moments
    return exact.Moments(T.T @ A @ T, T.T @ b, T.T @ C @ T)


def value_changes(direction, task, w, T):
    """Return the change of the values by a direction, in the task's features and in those changed by T."""
    changed = change_features(task, T)
    X = task.features
    return X @ direction(task.moments, w), X @ T @ direction(changed, np.linalg.solve(T, w))


@given(seeds)
def test_the_natural_direction_does_not_depend_on_the_coordinates(seed):
    """X → Tᵀx, w → T⁻¹w: the same change of every value."""
    task, w, T = random_case(seed)
    here, there = value_changes(natural_direction, task, w, T)
    assert np.allclose(here, there, rtol=0, atol=1e-7 * np.abs(here).max())


@given(seeds)
def test_the_plain_direction_does(seed):
    task, w, T = random_case(seed)
    here, there = value_changes(plain_direction, task, w, T)
    assert np.abs(here - there).max() > 1e-2 * np.abs(here).max()


def test_an_orthogonal_change_is_invisible_to_both():
    """The plain direction is steepest descent in the Euclidean norm of w, which a rotation keeps."""
    task, w, T = random_case(1)
    rotation = np.linalg.qr(T)[0]
    for direction in (plain_direction, natural_direction):
        here, there = value_changes(direction, task, w, rotation)
        assert np.allclose(here, there, rtol=0, atol=1e-10)


@given(seeds)
def test_changed_features_have_the_moments_of_their_task(seed):
    """TᵀA T, Tᵀb, TᵀC T are A, b, C of the features X T."""
    task, _, T = random_case(seed)
    discount = task.discount[task.states]
    built = exact.moments(task.features @ T, task.visits, task.P, task.r, discount)
    for ours, theirs in zip(change_features(task, T), built, strict=True):
        assert np.allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize(("name", "direction"), [("gtd2", plain_direction), ("natural_gtd2", natural_direction)])
def test_the_directions_are_the_mean_steps_of_the_learners(name, direction):
    """With η at rest, C⁻¹(b − A w), GTD2 moves along the plain direction and natural GTD2 along the natural one."""
    task, w, _ = random_case(2)
    A, b, C = task.moments
    move, _ = expected_move(LEARNERS[name], task, w, np.linalg.solve(C, b - A @ w), w, alpha=0.1)
    assert np.allclose(move, 0.1 * direction(task.moments, w), atol=1e-12)


@given(seeds)
def test_a_shrinking_trust_region_moves_along_the_natural_direction(seed):
    """A.2, what is right: κ (w(κ) − v) → C⁻¹AᵀC⁻¹(b − A v), with an error that falls as 1/κ."""
    task, v, _ = random_case(seed)
    natural = natural_direction(task.moments, v)
    gaps = [np.abs(kappa * (penalised_step(task, v, kappa) - v) - natural).max() for kappa in (1e4, 1e5)]
    assert gaps[0] < 1e-2 * np.abs(natural).max()
    assert gaps[1] == pytest.approx(gaps[0] / 10, rel=0.01)


@pytest.mark.parametrize("task", [tasks.random_walk(10), tasks.boyan_chain(5), tasks.baird(7)], ids=str)
def test_gradient_dd_does_not_follow_the_natural_gradient(task):
    """A.2, what is not: the trust region's angle goes to 0 with μ; that of the algorithm's steps does not depend on μ.

    Its first step is the plain gradient's; once settled, at the edge of stability, it is nearer but not there.
    """
    v = task.initial_weights + 0.1 * np.random.default_rng(0).standard_normal(task.n_features)
    alpha, largest = 0.5, np.linalg.eigvalsh(task.moments.C)[-1]
    kappa = 0.99 / (alpha * largest)
    steps = [penalised_step(task, v, penalty) - v for penalty in (1e2, 1e4)]
    wide, narrow = (natural_relation(task, v, step @ task.moments.C @ step, alpha, kappa) for step in steps)
    plain = angle(task.moments.C, plain_direction(task.moments, v), natural_direction(task.moments, v))
    assert narrow.trust_region < wide.trust_region / 50
    assert narrow.trust_region < 1e-3
    assert narrow.first_step == pytest.approx(plain)
    assert 0.5 * plain < narrow.settled < 0.9 * plain
    assert narrow[1:] == wide[1:]


def mean_path(task, w, alpha, kappa, steps):
    """Return w_0 … w_steps of Gradient-DD's mean step with η at rest, [ng-TDD]."""
    path = [w, w]
    for _ in range(steps):
        path.append(path[-1] - 0.5 * alpha * exact.j_gdd_gradient(path[-1], path[-2], kappa, *task.moments))
    return np.array(path[1:])


def test_the_mean_step_settles_where_it_is_said_to():
    """Δ = α (I + ακC)⁻¹AᵀC⁻¹(b − A w) when w drifts slowly: here to 1 %; the plain direction is off by over 5 %."""
    task, alpha = tasks.random_walk(10), 0.2
    kappa = 0.8 / (alpha * np.linalg.eigvalsh(task.moments.C)[-1])
    path = mean_path(task, task.initial_weights, alpha, kappa, 600)
    made = (path[-1] - path[-2]) / alpha
    plain = plain_direction(task.moments, path[-2])
    settled = np.linalg.solve(np.eye(10) + alpha * kappa * task.moments.C, plain)
    assert np.linalg.norm(made - settled) < 0.01 * np.linalg.norm(made)
    assert np.linalg.norm(made - plain) > 0.05 * np.linalg.norm(made)


@pytest.mark.parametrize(("part", "stable"), [(0.95, True), (1.05, False)])
def test_stability_ends_before_the_settled_step_is_natural(part, stable):
    """ακ times the largest eigenvalue of C must stay below 1, so the eigenvalues of I + ακC differ by less than 2."""
    task, alpha = tasks.random_walk(10), 0.2
    spectrum = np.linalg.eigvalsh(task.moments.C)
    kappa = part / (alpha * spectrum[-1])
    path = mean_path(task, task.initial_weights, alpha, kappa, 2000)
    assert bool(np.abs(path[-1]).max() < 10) == stable
    evened = (1 + alpha * kappa * spectrum[-1]) / (1 + alpha * kappa * spectrum[0])
    assert (evened < 2) or not stable
    assert evened < 0.4 * spectrum[-1] / spectrum[0]


def test_angles_are_right_in_a_case_by_hand():
    C = np.diag([1.0, 4.0])
    assert angle(C, np.array([1.0, 0.0]), np.array([0.0, 3.0])) == pytest.approx(np.pi / 2)
    assert angle(C, np.array([2.0, 0.0]), np.array([2.0, 1.0])) == pytest.approx(np.pi / 4)
    assert angle(C, np.array([1.0, 1.0]), np.array([-1.0, -1.0])) == pytest.approx(np.pi)
