"""Transitions of an environment, single or vector, round by round.

A round begins with a reset from a seed of its own, so that it does not depend on the rounds before: a collection that
was stopped continues with the same bits. Termination ends an episode; truncation, and the end of a round, cut it.
All three ways in which vector environments reset themselves are obeyed:

    next step   the step after an end is the reset, and no transition
    same step   the last observation of the episode is in `info["final_obs"]`
    disabled    environments that ended are reset by a mask

Observations are copied, for many environments return the same array at every step.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.errors import GradientDDError, Unquoted, bad_request, extra
from gradient_dd.stream.policies import Policy, drawn

NEXT_STEP, SAME_STEP, DISABLED = "NextStep", "SameStep", "Disabled"
STEP = "(observation, reward, terminated, truncated, info)"


class Steps(NamedTuple):
    """Transitions in the order of time, one environment after the other: observations as lists, numbers as arrays.

    `behaviour` (n,) is the probability with which the action was drawn.
    """

    observation: list[Any]
    next_observation: list[Any]
    reward: Array
    terminated: Booleans
    cut: Booleans
    action: Integers
    behaviour: Array


class PlayedStep(NamedTuple):
    """One transition: the observations, what the environment returned, the action and its probability."""

    observation: Any
    next_observation: Any
    reward: float
    terminated: bool
    cut: bool
    action: int
    behaviour: float


class EnvironmentBatch(NamedTuple):
    """An environment as a batch: how many copies, how it resets ("" if it is single), and the spaces of one copy."""

    env: Any
    copies: int
    mode: str
    observation_space: Any
    action_space: Any


def place_of(env: Any) -> EnvironmentBatch:
    """Return what is known of an environment, single or vector, with whole-number actions."""
    with extra("environments"):
        import gymnasium

    if isinstance(env, str):
        try:
            env = gymnasium.make(env)
        except Exception as error:  # making an environment runs code that is not ours
            raise bad_request("'env'", "be the name of an environment that can be made", Unquoted(error)) from None
    if isinstance(env, gymnasium.vector.VectorEnv):
        mode = env.metadata.get("autoreset_mode", NEXT_STEP)
        mode = getattr(mode, "value", mode)
        found = EnvironmentBatch(env, env.num_envs, mode, env.single_observation_space, env.single_action_space)
    elif hasattr(env, "reset") and hasattr(env, "step") and hasattr(env, "action_space"):
        found = EnvironmentBatch(env, 1, "", env.observation_space, env.action_space)
    else:
        raise bad_request("'env'", "be a Gymnasium environment, or the name of one", env)
    if type(found.action_space).__name__ != "Discrete":
        rule = "be Discrete, so that a policy can give a probability for each action"
        raise bad_request("The space of actions", rule, Unquoted(type(found.action_space).__name__))
    return found


def one_round(place: EnvironmentBatch, behaviour: Policy, seed: int, rng: np.random.Generator, most: int) -> Steps:
    """Return the transitions of one round, at most `most` of them.

    A single environment ends a round with an episode, if that takes no longer than half of `most`.
    """
    runner = Round(place, seed)
    while runner.count < most and not (runner.count >= most // 2 and runner.between_episodes):
        probabilities = behaviour(batch_of(runner.seen), place.copies)
        runner.step(drawn(probabilities, rng), probabilities)
    return joined_steps(runner.tracks, most)


def joined_steps(tracks: list[list[PlayedStep]], most: int) -> Steps:
    """Return the first transitions of all copies, one copy after the other; the last of each is cut if it goes on."""
    kept: list[PlayedStep] = []
    for track in tracks:
        kept += track[: most - len(kept)]
        kept[-1] = kept[-1]._replace(cut=not kept[-1].terminated)
    here, there, reward, terminated, cut, action, among = zip(*kept, strict=True)
    numbers = np.array(reward), np.array(terminated), np.array(cut), np.array(action, np.int64), np.array(among)
    return Steps(list(here), list(there), *numbers)


class Round:
    """A round of an environment: `seen` are the present observations of its copies, `tracks` what each copy did."""

    def __init__(self, place: EnvironmentBatch, seed: int) -> None:
        self.place, self.env, self.count = place, place.env, 0
        self.tracks: list[list[PlayedStep]] = [[] for _ in range(place.copies)]
        self.resets = np.zeros(place.copies, bool)  # whose next step is a reset, and no transition
        self.between_episodes = False  # of a single environment
        self.seen = self._reset(seed=seed)

    def _reset(self, **options: Any) -> list[Any]:
        """Reset the environment, and return the observations of its copies."""
        made = run(self.env.reset, "reset", **options)
        if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], Mapping)):
            raise bad_request("What the environment's reset returns", "be (observation, info)", made)
        return self._singles(made[0])

    def _singles(self, seen: Any) -> list[Any]:
        """Return the observations of all copies one by one, copied."""
        return single_observations(seen, self.place.copies) if self.place.mode else [single_observation(seen)]

    def step(self, action: Integers, among: Array) -> None:
        """Take a step in all copies, with actions drawn `among` probabilities; episodes that are over begin anew."""
        chosen: Any = action + int(self.place.action_space.start)
        chosen = chosen.astype(self.env.action_space.dtype) if self.place.mode else int(chosen[0])
        made = run(self.env.step, "take a step", chosen)
        if not (isinstance(made, tuple | list) and len(made) == 5):
            raise bad_request("What the environment's step returns", f"be {STEP}", made)
        after = self._singles(made[0])
        reward = self._each("The reward", made[1], reward_of)
        terminated = self._each("'terminated'", made[2], flag_of)
        truncated = self._each("'truncated'", made[3], flag_of)
        over = np.logical_or(terminated, truncated)
        for i, track in enumerate(self.tracks):
            if not self.resets[i]:
                there = final_observation(made[4], i) if self.place.mode == SAME_STEP and over[i] else after[i]
                cut = truncated[i] and not terminated[i]
                chance = float(among[i, action[i]])
                track.append(PlayedStep(self.seen[i], there, reward[i], terminated[i], cut, int(action[i]), chance))
                self.count += 1
        self.seen = after
        if self.place.mode == DISABLED and over.any():
            self.seen = self._reset(options={"reset_mask": over})
        elif not self.place.mode and over[0]:
            self.seen = self._reset()
        self.resets = over & (self.place.mode == NEXT_STEP)
        self.between_episodes = not self.place.mode and bool(over[0])

    def _each(self, what: str, values: Any, check: Callable[[str, Any], Any]) -> list[Any]:
        """Return what a step gave for each copy, checked."""
        if not self.place.mode:
            return [check(f"{what} of a step", values)]
        found = np.asarray(values)
        if found.shape != (self.place.copies,):
            rule = f"have one entry for each of {self.place.copies} environments"
            raise bad_request(f"{what} of a step", rule, values)
        return [check(f"{what} of a step", one) for one in found]


def run(call: Callable[..., Any], what: str, *arguments: Any, **options: Any) -> Any:
    """Return what a function of the environment returns; an error that it raises becomes one sentence."""
    try:
        return call(*arguments, **options)
    except GradientDDError:
        raise
    except Exception as error:  # the environment is the user's, and may raise anything
        raise bad_request("The environment", what, Unquoted(f"{type(error).__name__}: {error}")) from error


def reward_of(what: str, value: Any) -> float:
    """Return a reward if it is one finite number, else raise."""
    if isinstance(value, float) and isfinite(value):
        return float(value)
    try:
        plain = np.asarray(value)
    except ValueError:  # lists of several lengths
        plain = np.empty(0)
    if plain.size != 1 or plain.dtype.kind not in "biuf" or not np.isfinite(plain).all():
        raise bad_request(what, "be one finite number", value)
    return float(plain.item())


def flag_of(what: str, value: Any) -> bool:
    """Return a flag if it is true or false, 1 or 0, else raise."""
    plain = value.item() if isinstance(value, np.ndarray | np.generic) and value.size == 1 else value
    if not isinstance(plain, bool | int) or plain not in (0, 1):
        raise bad_request(what, "be true or false", value)
    return bool(plain)


def final_observation(info: Any, i: int) -> Any:
    """Return the last observation of an episode that ended in a vector environment that resets in the same step."""
    for name in ("final_obs", "final_observation"):
        if isinstance(info, Mapping) and name in info and info[name][i] is not None:
            return single_observation(info[name][i])
    raise bad_request("A vector environment that resets in the same step", "give 'final_obs' in its info", info)


def single_observation(seen: Any) -> Any:
    """Return a copy of one observation."""
    if seen is None:
        raise bad_request("An observation of the environment", "be given", None)
    return deepcopy(seen)


def single_observations(seen: Any, n: int) -> list[Any]:
    """Return the observations of a batch one by one, as copies."""
    if isinstance(seen, dict):
        parts = {key: single_observations(part, n) for key, part in seen.items()}
        return [{key: part[i] for key, part in parts.items()} for i in range(n)]
    if isinstance(seen, tuple):
        columns = [single_observations(part, n) for part in seen]
        return [tuple(column[i] for column in columns) for i in range(n)]
    found = np.array(seen)
    if found.shape[:1] != (n,):
        raise bad_request("The observations of a step", f"have one entry for each of {n} environments", seen)
    return list(found)


def batch_of(observations: list[Any]) -> Any:
    """Return single observations as a batch, as a vector environment gives it."""
    first = observations[0]
    try:
        if isinstance(first, dict):
            return {key: batch_of([one[key] for one in observations]) for key in first}
        if isinstance(first, tuple):
            return tuple(batch_of([one[i] for one in observations]) for i in range(len(first)))
        return np.asarray(observations)
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise bad_request("Observations of the environment", "have one shape", Unquoted(error)) from None
