"""Stability in mean square: against second moments added up over everything that can happen, and sampled runs."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from gradient_dd import LEARNERS, BadRequestError, tasks
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.reference import Weights
from gradient_dd.theory import exact_limits, largest_stable_alpha, rate, stability
from gradient_dd.theory.stability import SquareOperator

LINEAR = ["td", "gtd", "gtd2", "tdc", "tdrc", "gradient_dd"]


def silent(task):
    """Return the task without rewards: w* is 0, so that z itself is the error e."""
    return replace(task, outcomes=task.outcomes._replace(reward=np.zeros_like(task.outcomes.reward)))


def small_task(seed):
    task = tasks.random_mdp(n_states=3, n_actions=2, n_features=2, seed=seed, episodic=bool(seed % 2))
    return replace(silent(task), initial_weights=np.array([1.0, -2.0]))


def stepped(task, setting, weights, o):
    after, X = copy(weights), task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    after.advance(setting, 1.0, X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
    return after


def enumerated(task, setting, steps, sampling):
    """Return E[z zᵀ] after so many steps of the reference engine, by following every sequence of outcomes there is."""
    parts, (row, next_row) = SquareOperator(task, setting).maps.parts, task.transitions[:2]
    likely = task.behaviour[task.outcomes.state, task.outcomes.action] * task.outcomes.probability
    visits, start = task.visits, task.start[task.states]

    def follow(weights, state, made):
        if made == steps:
            z = np.concatenate([getattr(weights, part) for part in parts])
            return np.outer(z, z)
        first = visits if sampling == "iid" else start if state == task.n_states else np.eye(task.n_states)[state]
        chance = first[row] * likely
        return sum(
            chance[o] * follow(stepped(task, setting, weights, o), next_row[o], made + 1)
            for o in np.flatnonzero(chance)
        )

    return follow(Weights(setting, task.initial_weights), task.n_states, 0)


@pytest.mark.parametrize("sampling", ["iid", "trajectory"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", LINEAR)
def test_second_moments_are_those_of_every_sequence_of_outcomes(name, seed, sampling):
    task, setting = small_task(seed), LEARNERS[name].setting(alpha=0.2)
    operator = SquareOperator(task, setting, sampling)
    T = operator.generator() + sp.identity(operator.unknowns)
    size, z = operator.maps.size, operator.maps.initial
    groups = np.ones(1) if sampling == "iid" else task.start[task.states]
    upper = np.triu_indices(size)
    halves = np.outer(groups, np.outer(z, z)[upper]).ravel()
    for _ in range(3):
        halves = T @ halves
    made = halves.reshape(len(groups), -1).sum(axis=0)
    assert np.allclose(made, enumerated(task, setting, 3, sampling)[upper], rtol=0, atol=1e-9)


def radius(operator):
    """Return the largest modulus of an eigenvalue of T."""
    return np.abs(1 + np.linalg.eigvals(operator.generator().toarray())).max()


@pytest.mark.parametrize("sampling", ["iid", "trajectory"])
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 1.0])
def test_the_mean_square_is_stable_where_all_eigenvalues_are_below_one(alpha, sampling):
    """By Jensen's inequality the radius is at least the square of that of the mean."""
    for task in (small_task(2), tasks.random_walk(3), stability.in_row_space(tasks.baird(3))):
        for name in ("td", "gradient_dd"):
            setting = LEARNERS[name].setting(alpha=alpha)
            operator = SquareOperator(task, setting, sampling)
            assert operator.is_stable() == (radius(operator) < 1)
            assert radius(operator) > (1 - rate(task, setting, sampling)) ** 2 * (1 - 1e-12)


def test_alpha_scales_the_operator():
    for name in ("tdrc", "gradient_dd"):
        one, small = (SquareOperator(small_task(1), LEARNERS[name].setting(alpha=alpha)) for alpha in (1.0, 0.07))
        assert abs(one.generator(0.07) - small.generator()).max() < 1e-12


def test_without_chance_the_mean_square_is_the_square_of_the_mean():
    task = tasks.random_mdp(n_states=1, n_actions=1, n_features=1, discount=0.5)
    for name in ("td", "gradient_dd"):
        setting = LEARNERS[name].setting(alpha=0.7)
        assert radius(SquareOperator(task, setting)) == pytest.approx((1 - rate(task, setting)) ** 2, rel=1e-9)


def test_what_never_moves_is_not_stable():
    """At a factor of 0 nothing is learnt, T keeps what there is, and T − I is singular."""
    assert not SquareOperator(tasks.random_walk(3), LEARNERS["gradient_dd"].setting()).is_stable(0.0)


def test_gradient_dd_diverges_in_runs_although_its_mean_is_stable():
    """On the walk of 10 states: between 0.55 and 0.94 the mean is stable and the mean square is not."""
    task = tasks.random_walk(10)
    safe = exact_limits(task, LEARNERS["gradient_dd"].setting(alpha=0.1)).safe
    stable = largest_stable_alpha(task, "gradient_dd")
    assert safe == pytest.approx(0.551, rel=0.02)
    assert stable == pytest.approx(0.936, rel=0.002)
    alphas = np.array([0.9 * safe, 1.1 * safe, 0.7])
    settings = [LEARNERS["gradient_dd"].setting(alpha=alpha) for alpha in alphas]
    for run in range(3):
        lanes = LaneRun(task, settings, Horizon(steps=200_000, every=1000), run=run)
        lanes.advance()
        assert (lanes.results().diverged_step[0] > 0).tolist() == [False, True, True]


def test_safe_step_sizes_of_baird_are_far_below_the_stable_ones():
    assert exact_limits(tasks.baird(7), LEARNERS["td"].setting(alpha=0.01)).safe == 0
    found = exact_limits(tasks.baird(4), LEARNERS["gtd2"].setting(alpha=0.01), "iid")
    assert found.safe < found.stable / 5


def test_large_operators_are_refused():
    for task in (stability.in_row_space(tasks.baird(20)), tasks.boyan_chain(1000)):
        with pytest.raises(BadRequestError, match="The operator of the second moments must be small"):
            SquareOperator(task, LEARNERS["gradient_dd"].setting())
    with pytest.raises(BadRequestError, match="'sampling' must be 'trajectory' or 'iid'"):
        SquareOperator(tasks.random_walk(3), LEARNERS["td"].setting(), "both")
