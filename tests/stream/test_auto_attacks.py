"""What once broke AutoLearner, each with the reason why it does not any more."""

from dataclasses import replace

import numpy as np
import pytest

from gradient_dd import tasks
from gradient_dd.engine.auto import MULTIPLES
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.stream.auto import AutoLearner
from gradient_dd.stream.learner import Learner


def transitions(task, steps, run=0):
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    o = OutcomeSampler(task, 5, run).take(steps)
    return [X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o]]


def distance(task, w):
    """Return the distance of values from those of the fixed point."""
    return float(np.sqrt(task.visits @ (task.features @ (w - task.fixed_point)) ** 2))


def end(task, steps=20_000, run=0, noise=None, quadratic=True):
    """Return the error at the end over the first error; of rungs alone unless `quadratic`."""
    data = transitions(task, steps, run)
    if noise is not None:
        data[1] = data[1] + noise
    agent = AutoLearner(task.n_features, quadratic=quadratic, initial_w=task.initial_weights)
    agent.update_many(*data)
    return distance(task, agent.w) / distance(task, task.initial_weights)


def test_where_td_diverges_it_ends_below_where_it_began():
    """Baird's: least squares do not iterate. Rungs that burst start again with smaller steps."""
    task = tasks.baird(7)
    assert max(end(task, run=run) for run in range(4)) < 0.05
    assert max(end(task, run=run, quadratic=False) for run in range(4)) < 2
    td = Learner("td", task.n_features, alpha=0.02, initial_w=task.initial_weights)
    td.update_many(*transitions(task, 20_000))
    assert distance(task, td.w) > 1e6


@pytest.mark.parametrize("quadratic", [True, False])
def test_where_all_weights_are_as_good_it_stands_still(quadratic):
    """γ x' = x: every w has the same TD error, so A is 0, and no size of v explains what is seen."""
    agent = AutoLearner(1, quadratic=quadratic, initial_w=3.0)
    agent.update_many(np.ones((5000, 1)), 1.0, 0.5, np.full((5000, 1), 2.0))
    assert agent.w[0] == pytest.approx(3.0, abs=1e-6)


@pytest.mark.parametrize("seed", [33000102, 33000311])
def test_where_a_is_nearly_singular_it_does_not_run_away(seed):
    task = tasks.random_mdp(3, 2, 2, 0.99, seed=seed)
    assert np.linalg.svd(task.moments.A)[1].min() < 0.003
    assert max(end(task, run=run) for run in range(3)) < 1.5


def test_rewards_that_are_only_noise_are_not_learnt():
    """The size of v that makes b most likely is 0 where b is no larger than its noise."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4001, 5))
    far = []
    for run in range(8):
        agent = AutoLearner(5)
        agent.update_many(x[:-1], np.random.default_rng(run).standard_normal(4000), 0.9, x[1:])
        far.append(np.linalg.norm(agent.w))
    assert np.median(far) < 0.01
    assert max(far) < 0.05


def test_a_single_large_reward_is_no_signal():
    """One of 10⁶ in 20,000 is noise to the sums, and rungs whose TD errors it drives up start again."""
    task = tasks.random_mdp(12, 3, 5, 0.95, seed=701)
    noise = np.zeros(20_000)
    noise[10_000] = 1e6
    assert end(task) < 0.6
    assert end(task, noise=noise) < 1.1
    assert end(task, noise=noise, quadratic=False) < 3


def test_heavy_tails_do_not_send_it_away():
    task = tasks.random_mdp(12, 3, 5, 0.95, seed=700)
    tails = [np.random.default_rng(run).standard_t(1.5, 20_000) for run in range(5)]
    assert max(end(task, run=run, noise=tails[run]) for run in range(5)) < 2


def test_weights_that_start_far_off_come_back():
    task = tasks.random_mdp(12, 3, 5, 0.95, seed=800)
    far = replace(task, initial_weights=10 * task.fixed_point)
    assert max(end(far, run=run) for run in range(3)) < 0.1
    assert max(end(far, run=run, quadratic=False) for run in range(3)) < 0.5


@pytest.mark.parametrize("seed", range(4))
def test_one_feature_alone(seed):
    """With one feature the size of v is found from one number: where that is not above its noise, v is 0."""
    rng = np.random.default_rng(seed)
    P, target = rng.dirichlet(np.full(3, 0.3), size=(3, 2)), rng.dirichlet([0.3, 0.3], size=3)
    R, X = rng.standard_normal((3, 2, 3)), rng.random((3, 1)) + 0.1
    task = tasks.from_tables(P, R, 0.95, np.full((3, 2), 0.5), target, features=X)
    assert max(end(task, run=run) for run in range(5)) < 1.5


def test_a_change_of_the_stream_is_seen_and_forgotten():
    task = tasks.random_mdp(12, 3, 5, 0.9, seed=900)
    x, reward, discount, x_next, rho = transitions(task, 20_000)
    agent, fresh = AutoLearner(5), AutoLearner(5)
    agent.update_many(x, reward, discount, x_next, rho)
    assert agent.resets == 0
    errors = []
    for part in np.array_split(np.arange(20_000), 100):
        for one in (agent, fresh):
            one.update_many(x[part], -5 * reward[part], discount[part], x_next[part], rho[part])
        errors.append([distance(task, one.w / -5) for one in (agent, fresh)])
    assert agent.resets == 1
    assert np.divide(*np.mean(errors, axis=0)) < 2.5


def test_a_stream_that_stays_as_it_is_is_not_forgotten():
    """Rare rewards, heavy tails, a slow chain, and a single large reward: none of them is a change."""
    task = tasks.random_mdp(12, 3, 5, 0.95, seed=702)
    x, reward, discount, x_next, rho = transitions(task, 20_000)
    tails, one = np.random.default_rng(0).standard_t(1.5, 20_000), np.zeros(20_000)
    one[15_000] = 1e6
    for noise in (0.0, tails, one):
        agent = AutoLearner(5)
        agent.update_many(x, reward + noise, discount, x_next, rho)
        assert agent.resets == 0
    for quadratic in (True, False):
        agent = AutoLearner(30, quadratic=quadratic)
        agent.update_many(*transitions(tasks.random_walk(30), 20_000))
        assert agent.resets == 0


def test_what_was_forgotten_is_not_read_out():
    """All sums are 0, the first weights stay, and so do the step sizes and the weights of rungs."""
    task = tasks.random_mdp(12, 3, 5, 0.9, seed=900)
    for quadratic in (True, False):
        agent = AutoLearner(5, quadratic=quadratic, initial_w=1.5)
        agent.update_many(*transitions(task, 3000))
        before, rungs = agent._state.memory.copy(), agent.rungs
        agent._state.forget()
        assert np.array_equal(agent.w, np.full(5, 1.5))
        assert agent.updates == 3000
        assert agent.resets == 1
        assert agent.rungs == rungs
        assert np.array_equal(agent._state.memory[:, :4], before[:, :4])
        assert not agent._state.A.any()
        agent.update_many(*transitions(task, 3000, run=1))
        assert agent.shares[0] < 0.9


def test_many_sparse_features():
    """5,000 features, 8 in a row: three rungs are mixed."""
    rng = np.random.default_rng(0)
    tiles = np.sort(rng.integers(0, 625, (400, 8)) + 625 * np.arange(8), axis=1)
    states = rng.integers(0, 400, 60_001)
    value, one = rng.standard_normal(400), np.ones((60_000, 8))
    agent = AutoLearner(5000)
    agent.update_many((tiles[states[:-1]], one), value[states[:-1]], 0.0, None)
    predicted = agent.predict((tiles, np.ones((400, 8))))
    assert np.mean((predicted - value) ** 2) < 0.05 * np.mean(value**2)


def test_sparse_rewards_do_not_restart_rungs():
    """A block without a reward has no TD errors at the first weights, so the mean of all blocks counts too."""
    task = tasks.random_walk(30)
    agent = AutoLearner(30, quadratic=False)
    agent.update_many(*transitions(task, 20_000))
    slower = MULTIPLES / [rung.multiple for rung in agent.rungs[1:]]
    assert slower.max() <= 4
