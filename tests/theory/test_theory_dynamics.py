"""Mean dynamics and their stability, against the reference engine's steps added up over everything that can happen."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from gradient_dd import LEARNERS, BadRequestError, tasks
from gradient_dd.engine.reference import Weights
from gradient_dd.learners import Rule
from gradient_dd.learners.rule import ALPHA, ZETA
from gradient_dd.testing import modes
from gradient_dd.theory import (
    MeanOperator,
    SampleMaps,
    expected_run,
    largest_stable_alpha,
    rate,
    stability,
)

SETTINGS = [
    pytest.param(rule.setting(alpha=0.2, rho_mode=mode), id=f"{rule.name}-{mode}")
    for rule in LEARNERS.values()
    if rule.is_plain and rule.affine
    for mode in modes(rule)
]


class StandingMetric:
    """The metric of a natural learner in its mean-field limit: C, whatever it observes."""

    def __init__(self, C):
        self.inverse = np.linalg.inv(C)

    def observe(self, x):
        pass

    def direction(self, x):
        return self.inverse @ x


def damped(alpha, rho, delta):
    """A rule that is not linear in alpha: it never steps by more than the error."""
    return (alpha / (1 + alpha) * rho * delta,)


DAMPED = Rule("damped", "damped TD", damped, ("w_x",), (ALPHA,), "A test.", module=__name__)


def small_task(seed):
    return tasks.random_mdp(n_states=3, n_actions=2, n_features=2, seed=seed, episodic=bool(seed % 2))


def fresh_weights(task, setting):
    weights = Weights(setting, task.initial_weights)
    if setting.rule.natural:
        weights.metric = StandingMetric(task.moments.C)
    return weights


def stepped(task, setting, weights, o, factor=1.0):
    """Return the reference engine's weights after outcome o."""
    after = copy(weights)
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    after.advance(setting, factor, X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
    return after


def flat(parts, weights):
    return np.concatenate([getattr(weights, part) for part in parts])


def likelihood(task):
    return task.behaviour[task.outcomes.state, task.outcomes.action] * task.outcomes.probability


def mean_step(task, setting):
    """Return M and c of the i.i.d. mean step E[z'] = M E[z] + c."""
    operator = MeanOperator(task, setting, "iid")
    return operator.matrix().toarray(), operator.offsets().toarray()[:, 0]


def enumerated(task, setting, steps):
    """Return E[w] after so many steps, (p,), by following every trajectory there is."""
    likely, row, next_row = likelihood(task), task.transitions.row, task.transitions.next_row

    def follow(weights, state, made):
        if made == steps:
            return weights.w
        if state == task.n_states:
            return sum(start * follow(weights, s, made) for s, start in enumerate(task.start[task.states]) if start)
        possible = np.flatnonzero((row == state) & (likely > 0))
        after = {o: stepped(task, setting, weights, o) for o in possible}
        return sum(likely[o] * follow(after[o], next_row[o], made + 1) for o in possible)

    return follow(fresh_weights(task, setting), task.n_states, 0)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_sample_map_of_every_outcome_is_the_learner_s_step(setting, seed):
    task, rng = small_task(seed), np.random.default_rng(seed)
    maps, weights = SampleMaps(task, setting), fresh_weights(task, setting)
    weights.w, weights.eta, weights.w_prev = rng.standard_normal((3, task.n_features))
    slopes, constants, _ = maps.coefficients(0.7)
    before = flat(maps.parts, weights)
    for o, change in enumerate(maps.changes(0.7)):
        along = np.vstack([rows[[o]].toarray() for rows in maps.directions])
        c = along.T @ (constants[:, o] + slopes[:, 0, o] * task.transitions.reward[o])
        made = flat(maps.parts, stepped(task, setting, weights, o, factor=0.7))
        assert np.allclose(maps.carried @ before + change @ before + c, made, rtol=0, atol=1e-12)


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", [3, 4])
def test_the_mean_step_is_the_mean_of_the_learner_s_steps(setting, seed):
    task, rng = small_task(seed), np.random.default_rng(seed)
    weights = fresh_weights(task, setting)
    weights.w, weights.eta, weights.w_prev = rng.standard_normal((3, task.n_features))
    parts = SampleMaps(task, setting).parts
    q = task.visits[task.transitions.row] * likelihood(task)
    mean = sum(q[o] * flat(parts, stepped(task, setting, weights, o)) for o in range(len(q)))
    M, c = mean_step(task, setting)
    assert np.abs(M @ flat(parts, weights) + c - mean).max() < 1e-10


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", [5, 6])
def test_the_mean_over_successive_steps_is_that_of_every_trajectory(setting, seed):
    """Four steps: η moves in the first, w in the second, and only in the fourth is w_prev not the w of the start."""
    task = tasks.random_mdp(n_states=2, n_actions=2, n_features=2, seed=seed, episodic=bool(seed % 2))
    run = expected_run(task, setting, 4, points=[4])
    assert np.abs(run.weights[0] - enumerated(task, setting, 4)).max() < 1e-10


def test_along_a_trajectory_the_mean_is_not_that_of_independent_draws():
    """Were the correlation of successive steps left out, the test above would fail."""
    task, setting = small_task(5), LEARNERS["gradient_dd"].setting(alpha=0.2)
    M, c = mean_step(task, setting)
    z = MeanOperator(task, setting).maps.initial
    for _ in range(3):
        z = M @ z + c
    assert np.abs(z[2:4] - enumerated(task, setting, 3)).max() > 1e-3


@pytest.mark.parametrize("rule", [LEARNERS["gradient_dd"], LEARNERS["tdrc"], DAMPED], ids=lambda rule: rule.name)
def test_an_expected_run_is_the_mean_of_all_runs(rule):
    """Of a walk of three states, long enough for episodes to end: 2⁹ trajectories."""
    task, setting = tasks.random_walk(3), rule.setting(alpha=0.6)
    run = expected_run(task, setting, 9, points=[0, 4, 9])
    assert np.array_equal(run.weights[0], task.initial_weights)
    for weights, error, steps in zip(run.weights[1:], run.errors[1:], (4, 9), strict=True):
        mean = enumerated(task, setting, steps)
        assert np.allclose(weights, mean, rtol=0, atol=1e-13)
        assert error == pytest.approx(task.rmsve(mean), abs=1e-13)


@pytest.mark.parametrize("sampling", ["iid", "trajectory"])
def test_the_generator_is_the_matrix_without_the_identity(sampling):
    task, setting = small_task(1), LEARNERS["tdrc"].setting(alpha=0.3)
    operator = MeanOperator(task, setting, sampling)
    matrix = operator.matrix(0.5).toarray()
    assert np.allclose(operator.generator(0.5).toarray(), matrix - np.eye(len(matrix)), atol=1e-15)
    assert (operator.flow @ operator.start()[1]).sum() == pytest.approx(1)


def test_a_rule_that_is_not_affine_is_refused():
    def clipped(alpha, rho, delta):
        return (alpha * rho * max(-1.0, min(1.0, delta)),)

    def fading(alpha, beta, rho, delta, x_eta):
        return alpha * rho * delta, beta * (rho * delta - x_eta), -beta * x_eta

    for step, moves in ((clipped, ("w_x",)), (fading, ("w_x", "eta_x", "eta_eta"))):
        rule = Rule("mine", "mine", step, moves, (ALPHA, ZETA), "A test.", module=__name__)
        with pytest.raises(BadRequestError, match="The step of the rule 'mine' must be affine in delta"):
            MeanOperator(small_task(0), rule.setting(), "iid").matrix()


def test_bad_requests_are_one_sentence():
    task, setting = small_task(0), LEARNERS["td"].setting()
    with pytest.raises(BadRequestError, match="'sampling' must be 'trajectory' or 'iid'"):
        expected_run(task, setting, 5, sampling="both")
    with pytest.raises(BadRequestError, match="'points' must be whole numbers from 0 to 5"):
        expected_run(task, setting, 5, points=[6])
    for steps in (0, 10**30):
        with pytest.raises(BadRequestError, match="'steps' must be a whole number"):
            expected_run(task, setting, steps)
    with pytest.raises(BadRequestError, match="'alpha' must be omitted"):
        largest_stable_alpha(task, "td", alpha=0.1)


# Stability -----------------------------------------------------------------------------------------------

LARGEST = [
    (tasks.random_walk(10), {0: 1.87, 1: 3.70}),
    (tasks.random_walk(20), {0: 3.18, 1: 6.09}),
    (tasks.random_walk(40), {1: 10.8}),
    (tasks.boyan_chain(20), {0: 38.4, 1: 19.2, 4: 4.79}),
    (tasks.baird(7), {0: 0.579, 1: 0.564}),
    (tasks.baird(20), {0: 0.564, 1: 0.736}),
]


@pytest.mark.parametrize(("task", "known"), LARGEST, ids=[str(task) for task, _ in LARGEST])
def test_the_largest_stable_alpha_has_the_known_values(task, known):
    for kappa, alpha in known.items():
        assert largest_stable_alpha(task, "gradient_dd", "iid", kappa=kappa) == pytest.approx(alpha, rel=3e-3)


ITERATED = [tasks.random_walk(m) for m in (10, 20, 40)]
ITERATED += [tasks.boyan_chain(p) for p in (3, 20)] + [tasks.baird(n) for n in (4, 7, 20)]
MOST_STATES = 10  # of those iterated along trajectories too


def grows(matrix):
    """Return whether the powers of a matrix grow without bound, by squaring it until they vanish or explode."""
    for _ in range(60):
        matrix = matrix @ matrix
        size = np.abs(matrix).max()
        if size > 1e6 or size < 1e-6:
            return size > 1
    raise AssertionError("neither")


@pytest.mark.parametrize("kappa", [0, 0.25, 1, 4])
@pytest.mark.parametrize("task", ITERATED, ids=str)
def test_iterated_means_converge_below_the_largest_alpha_and_diverge_above(task, kappa):
    rule, reduced = LEARNERS["gradient_dd"], stability.in_row_space(task)
    for sampling in ("iid", "trajectory") if task.n_states <= MOST_STATES else ("iid",):
        largest = largest_stable_alpha(task, "gradient_dd", sampling, kappa=kappa)
        for factor in (0.999, 1.001):
            operator = MeanOperator(reduced, rule.setting(alpha=factor * largest, kappa=kappa), sampling)
            assert grows(operator.matrix().toarray()) == (factor > 1)


def test_no_stable_alpha_and_no_largest_one():
    assert largest_stable_alpha(tasks.baird(7), "td", "iid") == 0
    assert largest_stable_alpha(tasks.baird(7), "td", "trajectory") == 0
    assert largest_stable_alpha(tasks.random_walk(5), DAMPED, "iid") == np.inf


@pytest.mark.parametrize(
    ("m", "alpha", "known"), [(10, 0.3, (5.5e-5, 5.3e-5, 1.3e-3)), (40, 0.3, (7.6e-8, 7.5e-8, 2.5e-5))]
)
def test_independent_rates_have_the_known_values(m, alpha, known):
    for learner, value in zip(("gtd2", "gradient_dd", "td"), known, strict=True):
        assert rate(tasks.random_walk(m), LEARNERS[learner].setting(alpha=alpha), "iid") == pytest.approx(
            value, rel=0.02
        )


def test_along_trajectories_gradient_dd_gains_and_independently_it_does_not():
    task = tasks.random_walk(20)
    gtd2, gradient_dd = LEARNERS["gtd2"].setting(alpha=0.3), LEARNERS["gradient_dd"].setting(alpha=0.3)
    assert rate(task, gradient_dd, "iid") < rate(task, gtd2, "iid")
    assert rate(task, gradient_dd, "trajectory") > 20 * rate(task, gtd2, "trajectory")


def test_a_tiny_rate_keeps_its_digits():
    """With one mode c the rate of GTD2 is known: q² − (2 − αζc) q + 1 − αζc + α²ζa² = 0. Here a = c = 1, zeta = 1e7."""
    task = replace(
        tasks.random_mdp(n_states=1, n_features=1, discount=0.0), feature_rows=tasks.random_walk(1).sparse_features
    )
    alpha, zeta = 1e-9, 1e7
    exact = 0.5 * alpha * zeta * (1 - np.sqrt(1 - 4 / zeta))
    for learner, extra in (("gtd2", {}), ("gradient_dd", {"kappa": 0.0})):
        setting = LEARNERS[learner].setting(alpha=alpha, zeta=zeta, **extra)
        assert rate(task, setting, "iid") == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("alpha", [1e-3, 0.3, 1.0, 2.0])
def test_large_operators_are_solved_as_small_ones(monkeypatch, alpha):
    """Slow modes at 1e-3, an unstable complex pair near 1 at alpha = 1, one far from it at 2."""
    setting = LEARNERS["gradient_dd"].setting(alpha=alpha)
    for task in (tasks.random_walk(6), tasks.boyan_chain(4)):
        monkeypatch.setattr(stability, "SMALL", 10**6)
        dense = rate(task, setting)
        monkeypatch.setattr(stability, "SMALL", 0)
        assert rate(task, setting) == pytest.approx(dense, rel=1e-6)
