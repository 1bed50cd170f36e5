"""Logs in which something is wrong about the value of a target policy, one for each finding on policies."""

from collections.abc import Callable
from typing import Any

import numpy as np

EPISODES, STEPS = 200, 10
Log = dict[str, Any]


def log_of(
    seed: int, chance: Callable[[np.ndarray, np.ndarray], np.ndarray], pays: Any, episodes: int = EPISODES
) -> Log:
    """Return episodes of ten steps: `chance` of action 1 at (time, mood), and what (time, mood, action) pays."""
    rng = np.random.default_rng(seed)
    time, episode = np.tile(np.arange(STEPS), episodes), np.repeat(np.arange(episodes), STEPS)
    mood = rng.standard_normal(len(time))
    action = (rng.random(len(time)) < chance(time, mood)).astype(int)
    probability = np.where(action == 1, chance(time, mood), 1 - chance(time, mood))
    columns = {"time": time, "mood": mood, "action": action, "episode": episode, "terminated": time == STEPS - 1}
    columns |= {"reward": pays(time, mood, action, rng), "propensity": probability}
    return {name: np.asarray(column, float) for name, column in columns.items()}


def even(time: np.ndarray, mood: np.ndarray) -> np.ndarray:
    """Take both actions equally often."""
    return np.full(len(time), 0.5)


def target(one: float, actions: int = 2) -> Callable[[np.ndarray], np.ndarray]:
    """Return the policy that takes action 1 with this probability, and the others equally often."""
    rest = np.full(actions, (1 - one) / (actions - 1))
    rest[1] = one
    return lambda seen: np.tile(rest, (len(seen), 1))


def noise(seed: int) -> Log:
    """Thirty episodes whose rewards are noise."""
    return log_of(seed, even, lambda time, mood, action, rng: rng.standard_normal(len(time)), 30)


def late_rewards(seed: int) -> Log:
    """Action 1 pays in the first step alone; features that do not know the time cannot carry that."""
    return log_of(seed, even, lambda time, mood, action, rng: 10.0 * action * (time == 0) + 1.0)


def same_rewards(seed: int) -> Log:
    """Every step pays 1."""
    return log_of(seed, even, lambda time, mood, action, rng: np.ones(len(time)))


def doubling(seed: int) -> Log:
    """Every step pays 1 and doubles the only feature, and is cut: LSTD-Q solves w = 1 + 2γw, which is negative."""
    action = np.random.default_rng(seed).integers(0, 2, size=EPISODES)
    one = np.ones(EPISODES)
    columns = {"obs": one, "next_obs": 2 * one, "action": action, "reward": one, "terminated": 0 * one}
    return columns | {"truncated": one, "episode": np.arange(EPISODES), "propensity": one / 2}


def odd_behaviour(seed: int) -> Log:
    """The behaviour depends on the sign of a mood that has huge values: logistic regression cannot follow."""
    made = log_of(seed, lambda time, mood: np.where(mood > 0, 0.9, 0.1), lambda time, mood, action, rng: action * 1.0)
    made["mood"] = np.sign(made["mood"]) * np.exp(3 * np.abs(made["mood"]))
    del made["propensity"]
    return made


def narrow_behaviour(seed: int) -> Log:
    """Where the mood is good, one action alone is taken."""
    return log_of(seed, lambda time, mood: np.where(mood > 0, 0.0, 0.5), lambda time, mood, action, rng: action * 1.0)


def narrow_states(seed: int) -> Log:
    """The same with the sign of the mood as the state."""
    made = narrow_behaviour(seed)
    return made | {"place": (made["mood"] > 0).astype(int)}


AUTO: dict[str, Any] = {
    "discount": 0.95,
    "columns": {"observation": ["time", "mood"]},
}
STATE = {**AUTO, "columns": {"observation": ["place"]}}
LINEAR = {**AUTO, "target": target(0.9), "features": "standard"}
MOOD = {**AUTO, "columns": {"observation": ["mood"]}, "features": "standard"}
POLICIES: dict[str, tuple[Callable[[int], Log], str, dict[str, Any]]] = {
    "rewards that are noise, with a policy": (noise, "interval", {**AUTO, "target": target(0.6)}),
    "values that features do not carry, with a policy": (
        late_rewards,
        "doubly_robust",
        {**MOOD, "target": target(0.9)},
    ),
    "a policy far from the log": (same_rewards, "horizon", {**AUTO, "target": target(0.999)}),
    "values that features do not carry": (late_rewards, "logging_policy", {**MOOD, "target": target(0.5)}),
    "visits without data": (
        narrow_behaviour,
        "lonely_visits",
        {**AUTO, "target": target(0.5), "features": lambda seen: np.eye(2)[int(seen[1] > 0)]},
    ),
    "an action that is never taken": (same_rewards, "untried_actions", {**AUTO, "target": target(0.5, 3)}),
    "a value that is impossible": (
        doubling,
        "possible_values",
        {**AUTO, "columns": None, "features": "raw", "target": target(0.6)},
    ),
    "actions never tried in some states": (narrow_states, "never_tried_cells", {**STATE, "target": target(0.5)}),
    "features that give other values": (late_rewards, "other_features", LINEAR),
    "a behaviour that regression cannot follow": (odd_behaviour, "propensities", {**MOOD, "target": target(0.5)}),
}
