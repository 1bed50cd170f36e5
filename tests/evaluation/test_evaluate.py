"""`collect` and `evaluate`: transitions are what happened, in every way of resetting, and stopping changes no bit."""

import gymnasium
import numpy as np
import pandas as pd
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gradient_dd import BadRequestError, collect, evaluate, evaluate_log, features, tasks
from gradient_dd.evaluation.environment import one_round, place_of
from gradient_dd.stream.policies import drawn, policy_of

UNIFORM = np.full((16, 4), 0.25)
RIGHT = np.tile([0.1, 0.3, 0.5, 0.1], (16, 1))


class Counter(gymnasium.Env):
    """Counts its steps: episodes terminate at 3 and are truncated at 5, in turn. An observation names its episode."""

    observation_space = gymnasium.spaces.Box(0, 1e6, (2,), dtype=np.float64)
    action_space = gymnasium.spaces.Discrete(2, start=4)

    def __init__(self):
        self.episode = -1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.at = 0 if seed is not None else self.episode + 1, 0
        return self._observed(), {}

    def step(self, action):
        assert action in (4, 5)
        self.at += 1
        terminated, truncated = self.episode % 2 == 0 and self.at == 3, self.at == 5
        return self._observed(), float(self.at), terminated, truncated, {}

    def _observed(self):
        return np.array([self.episode, self.at], float)


def coin(observations):
    return np.full((len(observations), 2), 0.5)


def made_by(env, most):
    policy = policy_of("behaviour", coin, 2)
    return one_round(place_of(env), policy, 7, np.random.default_rng(0), most)


def wanted_rows(n):
    """Return n transitions of a Counter: (episode, at) before and after, whether it terminated, whether it was cut."""
    rows, episode = [], 0
    while len(rows) < n:
        length = 3 if episode % 2 == 0 else 5
        for at in range(length):
            last = at + 1 == length
            rows.append(((episode, at), (episode, at + 1), last and length == 3, last and length == 5))
        episode += 1
    *first, (here, there, terminated, _) = rows[:n]
    return [*first, (here, there, terminated, not terminated)]


def seen_rows(made):
    pairs = (
        list(zip(made[f"{name}_0"].astype(int).tolist(), made[f"{name}_1"].astype(int).tolist(), strict=True))
        for name in ("obs", "next_obs")
    )
    return list(zip(*pairs, made["terminated"].tolist(), made["truncated"].tolist(), strict=True))


def test_a_single_environment_tells_ends_from_cuts():
    made = made_by(Counter(), 19)
    assert seen_rows(made) == wanted_rows(11)  # the round ends with the first episode that is over after 9 steps
    assert made["reward"].tolist() == [there[1] for _, there, _, _ in wanted_rows(11)]
    assert set(made["action"]) == {0, 1}


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_all_ways_of_resetting_give_the_same_transitions(mode):
    env = SyncVectorEnv([Counter, Counter, Counter], autoreset_mode=mode)
    made = made_by(env, 36)
    each = 36 // 3
    rows = seen_rows(made)
    if mode is AutoresetMode.NEXT_STEP:  # copies reset together, so that all have as many transitions
        assert len(rows) == 36
    for copy in range(3):
        assert rows[copy * each : (copy + 1) * each] == wanted_rows(each)


def test_parts_of_an_observation_stay_together():
    class Parts(Counter):
        observation_space = gymnasium.spaces.Dict({"a": gymnasium.spaces.Discrete(6), "b": Counter.observation_space})

        def _observed(self):
            return {"a": self.at, "b": np.array([self.episode, self.at], float)}

    def first(observations):
        return np.full((len(observations["a"]), 2), 0.5)

    basis = features.features_of_space(Parts.observation_space, "polynomial", degree=1)
    for env in (Parts(), SyncVectorEnv([Parts, Parts], autoreset_mode=AutoresetMode.SAME_STEP)):
        found = evaluate(env, target=first, features=basis, steps=200)
        assert found.rows == 200


@pytest.fixture(scope="module")
def lake():
    return tasks.from_gymnasium(gymnasium.make("FrozenLake-v1"), target=RIGHT, discount=0.9)


def test_the_values_are_those_of_the_table(lake):
    found = evaluate("FrozenLake-v1", target=RIGHT, behaviour=UNIFORM, discount=0.9, steps=20_000, seed=1)
    errors = found.predict(lake.states) - lake.true_values
    assert np.sqrt(lake.visits @ errors**2) < 0.03
    low, high = found.predict_interval(lake.states)
    assert ((low <= lake.true_values) & (lake.true_values <= high)).mean() > 0.5
    assert found.verdict is not None


def test_a_function_a_table_and_a_vector_environment_agree(lake):
    def network(observations):
        return RIGHT[np.asarray(observations)].astype(np.float32)

    one = evaluate("FrozenLake-v1", target=RIGHT, discount=0.9, steps=3000, seed=2)
    other = evaluate("FrozenLake-v1", target=network, behaviour=RIGHT, discount=0.9, steps=3000, seed=2)
    assert np.allclose(one.w, other.w, atol=1e-4)
    many = evaluate(gymnasium.make_vec("FrozenLake-v1", 4), target=RIGHT, discount=0.9, steps=3000)
    assert many.rows == 3000


class StopError(Exception):
    """Raised by a progress function."""


def test_a_collection_that_was_stopped_continues_with_the_same_bits(tmp_path):
    given = {"steps": 2500, "round_steps": 1000, "seed": 3}
    seen = []
    whole = collect("FrozenLake-v1", UNIFORM, **given, progress=lambda done, steps: seen.append((done, steps)))
    assert seen[-1] == (2500, 2500)

    def stop(done, steps):
        raise StopError

    for _ in range(2):
        with pytest.raises(StopError):
            collect("FrozenLake-v1", UNIFORM, **given, out=tmp_path / "log", progress=stop)
    folder = collect("FrozenLake-v1", UNIFORM, **given, out=tmp_path / "log")
    frame = pd.concat([pd.read_parquet(file) for file in sorted(folder.iterdir())])
    assert all(np.array_equal(frame[name].to_numpy(), whole[name]) for name in whole)
    asked = {"target": RIGHT, "behaviour": UNIFORM, "discount": 0.9}
    one, two = (evaluate("FrozenLake-v1", **asked, **given, **more) for more in ({}, {"out": tmp_path / "log"}))
    assert np.array_equal(one.w, two.w)
    with pytest.raises(BadRequestError, match="'out' must be a folder"):
        collect("FrozenLake-v1", UNIFORM, 10, out=tmp_path / "no" / "folder")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"target": np.ones((16, 4))}, "The probabilities that 'target' gives must be zero or more and sum to 1."),
        ({"target": np.ones((16, 3))}, "'target' must be a table (states, 4), or a function of observations."),
        ({"target": UNIFORM[:3]}, "The table 'behaviour' must have a row for every state."),
        ({"target": lambda seen: seen.nothing}, "The policy 'behaviour' must run on a batch of observations."),
        ({"target": lambda seen: np.ones((2, 2))}, "The output of the policy 'behaviour' must be of shape (1, 4)"),
        ({"steps": 0}, "'steps' must be a whole number, 1 or more."),
        ({"discount": 2}, "'discount' must be in [0, 1]. Got 2."),
        ({"env": 3}, "'env' must be a Gymnasium environment, or its name. Got 3."),
        ({"env": "Nope-v0"}, "'env' must be the name of an environment that can be created. Got Environment `Nope`"),
        ({"features": lambda seen: 1 / 0}, "A feature map of your own must run on the observations. Got ZeroDivision"),
        ({"progress": 3}, "'progress' must be true or false. Got 3."),
        ({"env": "Pendulum-v1"}, "The action space must be Discrete"),
        ({"features": 3}, "A feature map of your own must be a function"),
        ({"learner": "tdd"}, "Unknown learner 'tdd'."),
    ],
)
def test_a_bad_request_gets_one_sentence(change, sentence):
    with pytest.raises(BadRequestError) as caught:
        evaluate(**{"env": "FrozenLake-v1", "target": UNIFORM, "steps": 50} | change)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_actions_are_drawn_as_often_as_they_should_be():
    among = np.tile([0.0, 0.2, 0.0, 0.8, 0.0], (20_000, 1))
    drawn_actions = drawn(among, np.random.default_rng(0))
    assert set(drawn_actions) == {1, 3}
    assert (drawn_actions == 1).mean() == pytest.approx(0.2, abs=0.01)


def test_one_policy_serves_an_environment_and_a_log():
    def target(observations):
        return RIGHT[np.ravel(observations).astype(int)]

    rng = np.random.default_rng(0)
    log = {
        "observation": rng.integers(0, 16, 300),
        "action": rng.integers(0, 4, 300),
        "reward": rng.random(300),
        "terminated": np.arange(300) % 3 == 2,
        "behaviour_probability": np.full(300, 0.25),
    }
    given = {"discount": 0.9, "features": features.OneHot(16)}
    found = evaluate_log(log, target=target, **given)
    both = evaluate_log(log, target=lambda observations, actions: target(observations), **given)
    assert np.array_equal(found.w, both.w)
    assert not np.array_equal(found.w, evaluate_log(log, **given).w)
    assert evaluate("FrozenLake-v1", target=target, steps=50).rows == 50
