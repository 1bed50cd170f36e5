"""What an environment returns is kept as it was, or refused in one sentence."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gradient_dd import BadRequestError, evaluate


class Ring(gymnasium.Env):
    """Walks over five places, and pays the place; `returned` changes what its step returns."""

    observation_space = gymnasium.spaces.Box(0, 5, (1,), dtype=np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, same_array=False, returned=None, at_reset=None, lists=False):
        self.same_array, self.returned, self.at_reset, self.lists = same_array, returned, at_reset, lists
        self.seen = [0.0] if lists else np.zeros(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return (self._observed(), {}) if self.at_reset is None else self.at_reset

    def step(self, action):
        self.place += 1 + int(action)
        made = self._observed(), float(self.place), self.place >= 5, False, {}
        return made if self.returned is None else self.returned(*made)

    def _observed(self):
        if not self.same_array:
            self.seen = np.zeros(1)
        self.seen[0] = min(self.place, 5)
        return self.seen


def coin(observations):
    return np.full((len(observations), 2), 0.5)


def place(observation):
    return np.eye(6)[int(observation[0])]


def values_of(env, **options):
    return evaluate(env, target=coin, **{"features": place, "steps": 600, "discount": 0.9} | options)


@pytest.mark.parametrize("lists", [False, True])
def test_an_environment_that_returns_the_same_array_at_every_step_is_evaluated_like_any_other(lists):
    fresh = values_of(Ring())
    assert np.array_equal(values_of(Ring(same_array=True, lists=lists)).w, fresh.w)


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_a_vector_environment_may_return_the_same_array_too(mode):
    def made(copy):
        makers = [lambda: Ring(same_array=not copy)] * 3
        return values_of(SyncVectorEnv(makers, copy=copy, autoreset_mode=mode)).w

    assert np.array_equal(made(True), made(False))


def answer(*values):
    return lambda *made: values


BAD = {
    "nothing": (
        lambda *made: None,
        "The result of the environment's step must be (observation, reward, terminated,",
    ),
    "an array": (lambda *made: np.ones(5), "The result of the environment's step must be (observation, reward,"),
    "four values": (lambda *made: made[:4], "The result of the environment's step must be (observation, reward,"),
    "an observation": (
        lambda *made: made[0],
        "The result of the environment's step must be (observation, reward,",
    ),
    "no observation": (
        lambda *made: (None, *made[1:]),
        "Observations of the environment must be 1 × 1 numbers, as its space says. Got None.",
    ),
    "no reward": (
        lambda *made: (made[0], None, *made[2:]),
        "The reward of a step must be one finite number. Got None.",
    ),
    "two rewards": (lambda *made: (made[0], np.ones(2), *made[2:]), "The reward of a step must be one finite number."),
    "nan": (lambda *made: (made[0], np.nan, *made[2:]), "The reward of a step must be one finite number. Got nan."),
    "text": (
        lambda *made: (*made[:2], "False", *made[3:]),
        "'terminated' of a step must be true or false. Got 'False'.",
    ),
    "a share": (lambda *made: (*made[:3], 0.5, made[4]), "'truncated' of a step must be true or false. Got 0.5."),
    "another shape": (
        lambda seen, reward, *rest: (seen if reward < 3 else np.ones(2), reward, *rest),
        "Observations of the environment must be 1 × 1 numbers, as its space says.",
    ),
    "an error": (lambda *made: 1 / 0, "The environment must take a step. Got ZeroDivisionError: division by zero."),
}


@pytest.mark.parametrize("name", BAD)
def test_an_odd_step_is_refused_in_one_sentence(name):
    returned, sentence = BAD[name]
    features = {"features": None} if name == "another shape" else {}
    with pytest.raises(BadRequestError) as caught:
        values_of(Ring(returned=returned), **features)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("at_reset", [np.zeros(1), np.zeros(2), (np.zeros(1),), (np.zeros(1), 3), "start"])
def test_an_odd_reset_is_refused_in_one_sentence(at_reset):
    with pytest.raises(BadRequestError, match="The result of the environment's reset must be \\(observation, info\\)"):
        values_of(Ring(at_reset=at_reset))


class OddVector(gymnasium.vector.VectorEnv):
    """A vector environment of two copies whose step returns something else."""

    num_envs = 2
    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012
    single_observation_space, single_action_space = Ring.observation_space, Ring.action_space
    action_space = gymnasium.spaces.MultiDiscrete([2, 2])

    def __init__(self, returned):
        self.returned = returned

    def reset(self, *, seed=None, options=None):
        return np.zeros((2, 1)), {}

    def step(self, actions):
        return self.returned(np.zeros((2, 1)), np.ones(2), np.zeros(2, bool), np.zeros(2, bool), {})


@pytest.mark.parametrize(
    "returned",
    [
        lambda *made: None,
        lambda *made: made[:4],
        lambda *made: (np.zeros((3, 1)), *made[1:]),
        lambda *made: (None, *made[1:]),
        lambda *made: (made[0], np.ones(3), *made[2:]),
        lambda *made: (made[0], 1.0, *made[2:]),
        lambda *made: (*made[:2], np.array(["False", "True"]), *made[3:]),
        lambda *made: (*made[:2], np.zeros(3, bool), *made[3:]),
        lambda *made: (*made[:3], None, made[4]),
    ],
)
def test_an_odd_step_of_a_vector_environment_is_refused_in_one_sentence(returned):
    with pytest.raises(BadRequestError):
        values_of(OddVector(returned))


@pytest.mark.parametrize("flag", [bool, int, np.bool_, np.int64, np.array])
def test_flags_are_true_and_false_however_they_are_written(flag):
    def returned(seen, reward, terminated, truncated, info):
        return seen, np.float32(reward), flag(terminated), flag(truncated), info

    assert np.array_equal(values_of(Ring(returned=returned)).w, values_of(Ring()).w)
