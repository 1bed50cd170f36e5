"""The tasks as Gymnasium environments."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gradient_dd import tasks
from gradient_dd.errors import BadRequestError
from gradient_dd.registration import environment_name
from gradient_dd.tasks import TASKS

ENVIRONMENTS = [environment_name(task) for task in TASKS]


def test_the_names_of_the_first_tasks_stay():
    """Programs of users have them."""
    names = [
        "gradient_dd/RandomWalk-v0",
        "gradient_dd/BoyanChain-v0",
        "gradient_dd/Baird-v0",
        "gradient_dd/RandomMDP-v0",
    ]
    assert [environment_name(task) for task in ("random_walk", "boyan_chain", "baird", "random_mdp")] == names
    assert set(names) <= set(ENVIRONMENTS)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_gymnasium_s_own_checker_passes(name):
    env = gymnasium.make(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=False)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_steps_have_the_table_s_frequencies_under_the_behaviour_policy(name):
    env = gymnasium.make(name).unwrapped
    task, outcome = env.task, env.task.outcomes
    counts = np.zeros((len(task.start), len(task.start)))
    state, _ = env.reset(seed=0)
    for _ in range(4_000):
        action = env.sample_action()
        entered, reward, terminated, truncated, info = env.step(action)
        match = (outcome.state == state) & (outcome.action == action) & (outcome.next_state == entered)
        assert reward == task.rewards[match]
        assert info["rho"] == task.rho[state, action]
        assert info["discount"] == task.discount[entered]
        assert not truncated
        counts[state, entered] += 1
        state = env.reset()[0] if terminated else entered
    P, _ = task.chain(task.behaviour)
    live = counts[np.ix_(task.states, task.states)]
    left = counts[task.states].sum(axis=1, keepdims=True)
    assert np.all(np.abs(live - left * P.toarray()) < 5 * np.sqrt(left + 1))


def test_the_parameters_of_the_task_are_those_of_the_environment():
    env = gymnasium.make("gradient_dd/Baird-v0", n_states=20, ratios="paper").unwrapped
    assert env.task.n_states == 20
    assert env.task.ratios is not None
    assert np.array_equal(env.behaviour, tasks.baird(20).behaviour)
    assert np.array_equal(env.target, tasks.baird(20).target)


def test_a_step_out_of_turn_gets_one_sentence():
    env = gymnasium.make("gradient_dd/RandomWalk-v0", n_states=1).unwrapped
    with pytest.raises(BadRequestError, match="must be started by reset\\(\\) before a step"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(BadRequestError, match=r"'action' must be a whole number from 0 to 1. Got 2."):
        env.step(2)
    env.step(0)
    with pytest.raises(BadRequestError, match="must be started by reset"):
        env.step(0)


def test_it_can_be_printed():
    env = gymnasium.make("gradient_dd/RandomWalk-v0", n_states=3, render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "random_walk(n_states=3): state 2"
