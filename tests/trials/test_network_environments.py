"""The environments of the networks trial, written for JAX, are Gymnasium's."""

import gymnasium
import jax
import numpy as np
import pytest

from gradient_dd.errors import BadRequestError
from trials.networks.environments import ACROBOT, CART_POLE, MOUNTAIN_CAR, find_environment

NAMES = {"MountainCar-v0": MOUNTAIN_CAR, "Acrobot-v1": ACROBOT, "CartPole-v1": CART_POLE}


def visited(name, ours, steps=400):
    """Return states, actions, next states, rewards and ends of random episodes in Gymnasium's environment."""
    env, rng = gymnasium.make(name).unwrapped, np.random.default_rng(1)
    env.reset(seed=1)
    rows = []
    for _ in range(steps):
        before, action = np.array(env.state, float), int(rng.integers(ours.actions))
        _, reward, ended, *_ = env.step(action)
        rows.append((before, action, np.array(env.state, float), reward, ended))
        if ended:
            env.reset()
    return [np.array(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("name", NAMES)
def test_a_step_is_gymnasiums(name):
    ours = NAMES[name]
    states, actions, after, rewards, ends = visited(name, ours)
    if ours is MOUNTAIN_CAR:  # random actions do not leave the valley: both edges and the goal by hand
        extra = np.array([[-1.2, -0.05], [-1.19, -0.07], [0.49, 0.05], [0.6, 0.07]])
        env, rows = gymnasium.make(name).unwrapped, []
        for state in extra:
            env.state = tuple(state)
            _, reward, ended, *_ = env.step(2)
            rows.append((env.state, reward, ended))
        states, actions = np.concatenate([states, extra]), np.append(actions, [2] * 4)
        after = np.concatenate([after, np.array([row[0] for row in rows])])
        rewards, ends = np.append(rewards, [row[1] for row in rows]), np.append(ends, [row[2] for row in rows])
    with jax.enable_x64(True):
        found, reward, ended = map(np.asarray, jax.jit(jax.vmap(ours.step))(states, actions))
    assert np.abs(found - after).max() <= 2e-15 * max(1.0, np.abs(after).max())
    assert (reward == rewards).all()
    assert (ended == ends).all()


def test_an_observation_is_gymnasiums_scaled():
    with jax.enable_x64(True):
        state = np.array([0.3, -0.4, 2.0, -5.0])
        seen = np.asarray(ACROBOT.observe(state))
    env = gymnasium.make("Acrobot-v1").unwrapped
    env.state = state
    assert seen * [1, 1, 1, 1, 4 * np.pi, 9 * np.pi] == pytest.approx(env._get_ob(), abs=1e-6)
    with pytest.raises(BadRequestError, match="Did you mean 'cart_pole'"):
        find_environment("cartpole")
