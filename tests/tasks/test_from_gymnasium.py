"""Tables of Gymnasium: the values are those of an independent solution, and what was changed is said."""

import gymnasium
import numpy as np
import pytest

from gradient_dd import BadRequestError, Learner, tasks


def values_by_iteration(table, policy, discount, sweeps=20_000):
    """Return V of a policy by plain sweeps over the environment's own table, done flags obeyed."""
    V = np.zeros(len(table))
    for _ in range(sweeps):
        new = np.zeros_like(V)
        for s, actions in table.items():
            for a, outcomes in actions.items():
                for probability, there, reward, done in outcomes:
                    new[s] += policy[s, a] * probability * (reward + (0.0 if done else discount * V[there]))
        if np.abs(new - V).max() < 1e-13:
            return new
        V = new
    return V


def mixed(states, actions, seed):
    """Return a policy that takes every action, some more often."""
    return np.random.default_rng(seed).dirichlet(np.full(actions, 2.0), size=states)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking-v1", "Taxi-v4"])
def test_the_values_are_those_of_value_iteration(name):
    env = gymnasium.make(name)
    table, actions = env.unwrapped.P, env.action_space.n
    target = mixed(len(table), actions, 1)
    task = tasks.from_gymnasium(env, target=target, discount=0.9)
    wanted = values_by_iteration(table, target, 0.9)
    assert np.allclose(task.true_values, wanted[task.states], atol=1e-9)
    assert task.visits.sum() == pytest.approx(1)


def test_without_discount_the_goal_of_the_cliff_still_ends_the_episode():
    """The table lets the goal go on; obeying it without the done flag gives other values."""
    env = gymnasium.make("CliffWalking-v1")
    mostly_right = np.tile([0.2, 0.5, 0.2, 0.1], (48, 1))
    mostly_right[24:36] = [0.5, 0.4, 0.05, 0.05]  # beside the cliff
    task = tasks.from_gymnasium(env, target=mostly_right)
    wanted = values_by_iteration(env.unwrapped.P, mostly_right, 1.0)
    assert np.allclose(task.true_values, wanted[task.states], rtol=1e-8)
    assert 47 not in task.states
    assert "11 of 48 states are never reached or end episodes" in task.notes[0]


def test_states_that_the_behaviour_never_reaches_are_left_out():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    right = np.tile([0.0, 0.0, 1.0, 0.0], (16, 1))
    down = np.tile([0.0, 1.0, 0.0, 0.0], (16, 1))
    task = tasks.from_gymnasium(env, behaviour=(right + down) / 2, target=right, discount=0.9)
    assert 0 in task.states
    assert not set(task.states) & {5, 7, 11, 12, 15}  # holes and the goal


def test_the_limit_of_steps_is_said():
    env = gymnasium.wrappers.TimeLimit(gymnasium.make("FrozenLake-v1"), 100)
    assert "The limit of 100 steps is not in the table" in tasks.from_gymnasium(env).notes[-1]


class TwoRewards:
    """One state that pays 0 or 1 and ends half of the time."""

    spec = None
    P = {0: {0: [(0.25, 0, 0.0, False), (0.25, 0, 1.0, False), (0.5, 0, 2.0, True)]}}  # noqa: RUF012
    initial_state_distrib = (1.0,)

    @property
    def unwrapped(self):
        return self


def test_rewards_of_one_state_are_averaged_and_said():
    task = tasks.from_gymnasium(TwoRewards())
    # V = ¼ V + ¼ (1 + V) + ½ 2
    assert task.true_values == pytest.approx([2.5])
    assert task.notes == ("1 outcomes had several rewards, which were averaged; this preserves all values.",)


def test_features_may_have_a_row_for_every_state_of_the_environment():
    env = gymnasium.make("FrozenLake-v1")
    features = np.random.default_rng(0).normal(size=(16, 3))
    task = tasks.from_gymnasium(env, features=features, discount=0.9)
    assert np.array_equal(task.features, features[task.states])


def test_a_learner_reaches_the_values(tmp_path):
    task = tasks.from_gymnasium(gymnasium.make("FrozenLake-v1"), discount=0.9)
    from gradient_dd.engine import reference

    trace = reference.run(task, "td", episodes=300, alpha=0.05)
    assert trace.errors[-1] < trace.errors[0]
    assert Learner("td", task.n_features).n_features == 11


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"behaviour": np.ones((3, 3))}, "Task 'FrozenLake-v1': the shape of 'behaviour' must be (16, 4). Got (3, 3)."),
        ({"discount": 1.5}, "'discount' must be in [0, 1]. Got 1.5."),
        ({"start": 99}, "Task 'FrozenLake-v1': 'start' must be a state from 0 to 15. Got 99."),
    ],
)
def test_a_bad_request_gets_one_sentence(arguments, sentence):
    with pytest.raises(BadRequestError) as caught:
        tasks.from_gymnasium(gymnasium.make("FrozenLake-v1"), **arguments)
    assert str(caught.value) == sentence


def test_an_environment_without_a_table_is_refused():
    with pytest.raises(BadRequestError, match="'env' must have a table of outcomes"):
        tasks.from_gymnasium(gymnasium.make("CartPole-v1"))


def test_a_table_that_never_ends_is_refused():
    env = TwoRewards()
    env.P = {0: {0: [(1.0, 0, 1.0, False)]}}
    with pytest.raises(BadRequestError, match=r"must contain an outcome that ends the episode \(done\)\. Got none\."):
        tasks.from_gymnasium(env, discount=0.9)


@pytest.mark.parametrize(
    "table",
    [
        {},
        {1: {0: []}},
        {0: {0: [(1.0, 0)]}},
        {0: {0: [(1.0, 7, 0.0, False)]}},
        {0: {0: [(1.0, -1, 0.0, False)]}},
        {0: {0: [(1.0, "x", 0.0, False)]}},
        {0: {0: [("1", 0, 0.0, False)]}},
        {0: {0: [(1.0, 0, None, True)]}},
        {0: {0: [(1.0, 0, 10**400, True)]}},
        {0: {0: [(0.0, 0, 0.0, True)]}},
        {0: {0: []}},
        {0: 3},
        [[[1]]],
        3,
    ],
)
def test_a_table_of_another_form_is_refused(table):
    env = TwoRewards()
    env.P = table
    with pytest.raises(BadRequestError, match=r"table .*must ") as caught:
        tasks.from_gymnasium(env, discount=0.9)
    assert "\n" not in str(caught.value)
