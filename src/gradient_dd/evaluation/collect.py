"""Transitions of an environment, single or vector, round by round.

A round begins with a reset from a seed of its own, so that it does not depend on the rounds before: a run that was
stopped goes on with the same bits. Termination gives discount 0; truncation, and the end of a round, cut an episode,
which goes on in the eyes of the learner. All three ways in which vector environments reset themselves are obeyed:

    next step   the step after an end is the reset, and no transition
    same step   the last observation of the episode is in `info["final_obs"]`
    disabled    environments that ended are reset by a mask
"""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.errors import Words, extra, must
from gradient_dd.stream.policies import Policy, drawn, ratios

NEXT_STEP, SAME_STEP, DISABLED = "NextStep", "SameStep", "Disabled"


class Steps(NamedTuple):
    """Transitions in the order of time, one environment after the other: observations as lists, numbers as arrays.

    `behaviour` (n, actions) are the probabilities with which the actions were drawn.
    """

    observation: list[Any]
    next_observation: list[Any]
    reward: Array
    terminated: Booleans
    cut: Booleans
    action: Integers
    behaviour: Array
    rho: Array


class Place(NamedTuple):
    """An environment as a batch: how many copies, how it resets, and the spaces of one copy."""

    env: Any
    copies: int
    mode: str
    observation_space: Any
    action_space: Any

    @property
    def is_vector(self) -> bool:
        return self.mode != ""


def place_of(env: Any) -> Place:
    """Return what is known of an environment, single or vector, with whole-number actions."""
    with extra("environments"):
        import gymnasium

    if isinstance(env, str):
        try:
            env = gymnasium.make(env)
        except gymnasium.error.Error as error:
            raise must("'env'", "be the name of an environment that can be made", Words(error)) from None
    if isinstance(env, gymnasium.vector.VectorEnv):
        mode = env.metadata.get("autoreset_mode", NEXT_STEP)
        found = Place(
            env, env.num_envs, getattr(mode, "value", mode), env.single_observation_space, env.single_action_space
        )
    elif hasattr(env, "reset") and hasattr(env, "step") and hasattr(env, "action_space"):
        found = Place(env, 1, "", env.observation_space, env.action_space)
    else:
        raise must("'env'", "be a Gymnasium environment, or the name of one", env)
    if type(found.action_space).__name__ != "Discrete":
        rule = "be Discrete, so that a policy can give a probability for each action"
        raise must("The space of actions", rule, Words(type(found.action_space).__name__))
    return found


def one_round(place: Place, behaviour: Policy, target: Policy, seed: int, rng: np.random.Generator, most: int) -> Steps:
    """Return the transitions of one round, at most `most` of them.

    A single environment ends a round with an episode, if that takes no longer than half of `most`.
    """
    runner = VectorRound(place) if place.is_vector else SingleRound(place)
    runner.begin(seed)
    while runner.count < most and not (runner.count >= most // 2 and runner.between_episodes):
        probabilities = behaviour(runner.seen, place.copies)
        runner.step(drawn(probabilities, rng), probabilities)
    made = joined_steps(runner.tracks, most)
    if target is behaviour:
        return made
    wanted = target(batch_of(made.observation), len(made.observation))  # once for all: networks like batches
    return made._replace(rho=ratios(wanted, made.behaviour, made.action))


class Track:
    """What one copy of the environment has been through in a round."""

    def __init__(self) -> None:
        self.observations: list[Any] = []
        self.following: list[Any] = []
        self.probabilities: list[Array] = []
        self.numbers: list[tuple[float, bool, bool, int]] = []  # reward, terminated, cut, action

    def add(
        self, here: Any, there: Any, reward: Any, terminated: Any, truncated: Any, action: Any, among: Array
    ) -> None:
        """Add one transition, in which an action was drawn `among` probabilities."""
        self.observations.append(here)
        self.following.append(there)
        self.probabilities.append(among)
        self.numbers.append((float(reward), bool(terminated), bool(truncated) and not terminated, int(action)))


def joined_steps(tracks: list[Track], most: int) -> Steps:
    """Return the first transitions of all copies, one copy after the other; the last of each is cut if it goes on."""
    here, there, among = [], [], []
    numbers: list[tuple[float, bool, bool, int]] = []
    for track in tracks:
        first = slice(most - len(numbers))
        here += track.observations[first]
        there += track.following[first]
        among += track.probabilities[first]
        numbers += track.numbers[first]
        reward, terminated, _, action = numbers[-1]
        numbers[-1] = reward, terminated, not terminated, action
    reward, terminated, cut, action = np.array(numbers).T
    ones = np.ones(len(numbers))
    return Steps(here, there, reward.copy(), terminated > 0, cut > 0, action.astype(np.int64), np.array(among), ones)


class SingleRound:
    """A round of a single environment."""

    def __init__(self, place: Place) -> None:
        self.env, self.first_action, self.tracks = place.env, int(place.action_space.start), [Track()]
        self.between_episodes = False

    @property
    def count(self) -> int:
        """How many transitions there are."""
        return len(self.tracks[0].numbers)

    @property
    def seen(self) -> Any:
        """The present observation, as a batch of one."""
        return batch_of([self.observation])

    def begin(self, seed: int) -> None:
        """Start the first episode."""
        self.observation, _ = self.env.reset(seed=seed)

    def step(self, action: Integers, among: Array) -> None:
        """Take a step, and start a new episode where one is over."""
        there, reward, terminated, truncated, _ = self.env.step(int(action[0]) + self.first_action)
        self.tracks[0].add(self.observation, there, reward, terminated, truncated, action[0], among[0])
        self.between_episodes = bool(terminated or truncated)
        self.observation = self.env.reset()[0] if self.between_episodes else there


class VectorRound:
    """A round of a vector environment."""

    between_episodes = False  # of all copies at once: never

    def __init__(self, place: Place) -> None:
        self.place, self.env = place, place.env
        self.tracks = [Track() for _ in range(place.copies)]
        self.resets = np.zeros(place.copies, bool)  # whose next step is a reset, and no transition

    @property
    def count(self) -> int:
        """How many transitions there are."""
        return sum(len(track.numbers) for track in self.tracks)

    def begin(self, seed: int) -> None:
        """Start all copies."""
        self.seen, _ = self.env.reset(seed=seed)

    def step(self, action: Integers, among: Array) -> None:
        """Take a step in all copies."""
        before = single_observations(self.seen, self.place.copies)
        chosen = (action + int(self.place.action_space.start)).astype(self.env.action_space.dtype)
        self.seen, reward, terminated, truncated, info = self.env.step(chosen)
        after, over = single_observations(self.seen, self.place.copies), terminated | truncated
        for i, track in enumerate(self.tracks):
            if not self.resets[i]:
                there = final_observation(info, i) if self.place.mode == SAME_STEP and over[i] else after[i]
                track.add(before[i], there, reward[i], terminated[i], truncated[i], action[i], among[i])
        if self.place.mode == DISABLED and over.any():
            self.seen, _ = self.env.reset(options={"reset_mask": over})
        self.resets = over & (self.place.mode == NEXT_STEP)


def final_observation(info: Any, i: int) -> Any:
    """Return the last observation of an episode that ended in a vector environment that resets in the same step."""
    for name in ("final_obs", "final_observation"):
        if name in info and info[name][i] is not None:
            return info[name][i]
    raise must("A vector environment that resets in the same step", "give 'final_obs' in its info", sorted(info))


def single_observations(seen: Any, n: int) -> list[Any]:
    """Return the observations of a batch one by one, as copies."""
    if isinstance(seen, dict):
        parts = {key: single_observations(part, n) for key, part in seen.items()}
        return [{key: part[i] for key, part in parts.items()} for i in range(n)]
    if isinstance(seen, tuple):
        columns = [single_observations(part, n) for part in seen]
        return [tuple(column[i] for column in columns) for i in range(n)]
    return list(np.array(seen))


def batch_of(observations: list[Any]) -> Any:
    """Return single observations as a batch, as a vector environment gives it."""
    first = observations[0]
    if isinstance(first, dict):
        return {key: batch_of([one[key] for one in observations]) for key in first}
    if isinstance(first, tuple):
        return tuple(batch_of([one[i] for one in observations]) for i in range(len(first)))
    return np.asarray(observations)
