"""Attacks on `gdd.evaluate`: environments that break Gymnasium's form, odd policies, and odd arguments."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import gymnasium
import numpy as np

import gradient_dd as gdd
from tests.adversary.odd import anything, array, changed, scalar
from tests.adversary.rule import Attack, Case, described

STEPS = 30  # of an evaluation
STATES, ACTIONS = 4, 2
COIN = np.full((STATES, ACTIONS), 0.5)


class Walk(gymnasium.Env):  # type: ignore[type-arg]
    """Walks round four states; an episode ends after six steps. `step_of` and `reset_of` may spoil what it returns."""

    observation_space: Any = gymnasium.spaces.Discrete(STATES)
    action_space: Any = gymnasium.spaces.Discrete(ACTIONS)

    def __init__(self, step_of: Callable[[Any], Any] = lambda step: step, reset_of: Callable[[Any], Any] | None = None):
        self.step_of, self.reset_of = step_of, reset_of or (lambda start: start)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at = 0
        return self.reset_of((0, {}))

    def step(self, action: Any) -> Any:
        self.at += 1
        return self.step_of(((self.at + int(action)) % STATES, 1.0, self.at == 6, False, {}))


class Observed(Walk):
    """The same walk, observed as an array, which may be one and the same object at every step."""

    observation_space: Any = gymnasium.spaces.Box(0, STATES, (2,), dtype=np.float64)

    def __init__(self, copies: bool, **odd: Any) -> None:
        super().__init__(**odd)
        self.copies, self.shown = copies, np.zeros(2)

    def _show(self, state: int) -> Any:
        self.shown[:] = state, 1.0
        return self.shown.copy() if self.copies else self.shown

    def reset(self, **words: Any) -> Any:
        _, info = super().reset(**words)
        return self._show(0), info

    def step(self, action: Any) -> Any:
        state, *others = super().step(action)
        return (self._show(state), *others)


def evaluated(env: Any, **words: Any) -> Any:
    """Return a short evaluation."""
    given = {"target": COIN, "discount": 0.9, "steps": STEPS, "learner": "auto", "round_steps": STEPS}
    return gdd.evaluate(env, **(given | words))


def replaced(place: int, value: Any) -> Callable[[Any], Any]:
    """Return a function that puts a value into one place of what an environment returns."""
    return lambda answer: (*answer[:place], value, *answer[place + 1 :])


def attack_environment_answers(rng: Random, folder: Path) -> Case:
    """An environment whose reset or step returns something odd; sometimes only late."""
    value = anything(rng)
    shapes: dict[str, Callable[[Any], Any]] = {
        "nothing": lambda answer: None,
        "four values": lambda answer: answer[:4],
        "six values": lambda answer: (*answer, 1),
        "a bare observation": lambda answer: answer[0],
        "a list": list,
        "an array": lambda answer: np.ones(3),
        "something else": lambda answer: value,
    }
    if rng.random() < 0.6:
        place = rng.randrange(5)
        value = rng.choice(["False", 0.5, 2, None, "a", np.nan, 10**30, -1, STATES, [True, False], 1j, {}])
        words, spoil = f"{described({'value': value})} in place {place}", replaced(place, value)
    else:
        words = rng.choice(list(shapes))
        spoil = shapes[words]
    late, seen = rng.choice([0, 0, 8]), [0]

    def sometimes(answer: Any) -> Any:
        seen[0] += 1
        return spoil(answer) if seen[0] > late else answer

    at_reset = rng.random() < 0.3
    env = Walk(reset_of=sometimes) if at_reset else Walk(sometimes)
    text = f"evaluate of an environment whose {'reset' if at_reset else 'step'} returns {words} from {late} on"
    no_flag = words.endswith(("in place 2", "in place 3")) and not at_reset and value in ("False", 0.5, None)
    took = lambda w: "took something else for a flag" if no_flag else finite_weights(w)  # noqa: E731
    return Case(text, lambda: evaluated(env).w, complaint=took)


def finite_weights(w: Any) -> str:
    """Return a complaint if weights are not finite."""
    return "" if np.isfinite(w).all() else "learnt weights that are not finite"


def attack_environment_reuses_its_array(rng: Random, folder: Path) -> Case:
    """An environment that returns one array at every step has the values of one that returns copies."""
    policy, seed = coin, rng.randrange(1000)
    basis = gdd.features.Polynomial([0.0, 0.0], [float(STATES), 1.0], degree=1)
    truth = evaluated(Observed(True), target=policy, features=basis, seed=seed).w
    same = lambda w: "" if np.array_equal(w, truth) else "has other values than with copies"  # noqa: E731
    call = lambda: evaluated(Observed(False), target=policy, features=basis, seed=seed).w  # noqa: E731
    return Case(f"evaluate of an environment that reuses its array, seed {seed}", call, complaint=same)


def coin(observations: Any) -> Any:
    """Return equal probabilities for a batch of observations."""
    return np.full((len(observations), ACTIONS), 0.5)


def attack_environment_spaces(rng: Random, folder: Path) -> Case:
    """An environment that is none, or whose spaces are odd."""
    spaces = gymnasium.spaces
    odd: list[Any] = [
        *(None, 3, spaces.Box(-1, 1, (1,)), spaces.Discrete(1), spaces.MultiDiscrete([2, 2]), spaces.Text(3)),
        *(spaces.Box(-np.inf, np.inf, (2,)), spaces.Dict({}), spaces.Tuple(()), spaces.Discrete(10**9)),
        *(spaces.Discrete(4, start=-2), spaces.Box(0, 255, (64, 64, 3), np.uint8), scalar(rng)),
    ]
    env: Any = Walk()
    which = rng.choice(["observation_space", "action_space", "none"])
    value = rng.choice(odd)
    if which == "none":
        env = rng.choice([value, "", "NoSuch-v0", "FrozenLake-v1:x", "a\0b", object(), Walk, lambda: Walk()])
    else:
        setattr(env, which, value)
    words = described({which: value if which != "none" else env})
    return Case(f"evaluate of an environment with {words}", lambda: evaluated(env).w, complaint=finite_weights)


def attack_policies(rng: Random, folder: Path) -> Case:
    """An odd policy to evaluate or to act by: a table, or a function that returns something odd."""
    which = rng.choice(["target", "behaviour"])
    tables = [COIN[:2], COIN.T, COIN * 2, COIN - 1, np.eye(4)[:, :2], np.full((STATES, ACTIONS), np.nan), COIN * 1j]
    table = rng.choice([*tables, array(rng, (STATES, ACTIONS)), anything(rng)])
    policy: Any = table
    if rng.random() < 0.5:
        one = rng.choice([COIN[0], np.ones(3), table])
        policy = rng.choice([lambda observations: table, lambda observations: one, lambda: 1, lambda a, b: COIN])
    words = {"target": COIN, "behaviour": COIN} | {which: policy}
    return Case(f"evaluate with {which} of {described({'_': table})}", lambda: evaluated(Walk(), **words).w)


def attack_evaluate_arguments(rng: Random, folder: Path) -> Case:
    """A sound environment and odd arguments."""
    good = {"features": None, "learner": "auto", "steps": STEPS, "discount": 0.9, "seed": 0, "round_steps": STEPS}
    good |= {"out": None, "progress": False, "confidence": 0.95}
    words = changed(rng, good)
    for name in ("steps", "round_steps"):  # a long evaluation is no mistake
        if isinstance(words[name], int | np.integer) and words[name] > STEPS:
            words[name] = STEPS
    if words["out"] is not None:  # no folder is made where an odd path leads
        words["out"] = folder / "log" if isinstance(words["out"], str) else words["out"]
    if rng.random() < 0.2:
        words["features"] = lambda observation: anything(rng, (2,))
    if rng.random() < 0.1:
        words[rng.choice(["alpha", "zeta", "x", "n_features"])] = scalar(rng)
    return Case(f"evaluate({described(words)})", lambda: evaluated(Walk(), **words).w, complaint=finite_weights)


ATTACKS: dict[str, Attack] = {
    name.removeprefix("attack_"): attack for name, attack in list(globals().items()) if name.startswith("attack_")
}
