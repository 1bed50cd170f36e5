"""`gdd.collect` and `gdd.evaluate`: logs of a policy in an environment, and values from these logs.

Transitions are collected in rounds. Each round starts with a reset from its own seed and does not depend on earlier
rounds: an interrupted collection continues with the same bits. Termination ends an episode; truncation and the end of
a round cut an episode. All three reset modes of vector environments are supported:

    next step   the step after an episode's end is the reset, and not a transition
    same step   the last observation of the episode is in `info["final_obs"]`
    disabled    environments whose episodes ended are reset by a mask
"""

from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import (
    BadRequestError,
    Unquoted,
    bad_request,
    checked_seed,
    extra,
    file_path,
    foreign,
    number,
    one_line,
    whole_number,
)
from gradient_dd.evaluation.log import evaluate_log
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.files import replaced
from gradient_dd.progress import Told, shown
from gradient_dd.stream.features import Features, Own, Rows
from gradient_dd.stream.policies import Policy, drawn, policy_of

Log = dict[str, Any]


def collect(
    env: Any,
    behaviour: Any,
    steps: int,
    *,
    out: str | PathLike[str] | None = None,
    seed: int = 0,
    round_steps: int = 10_000,
    progress: bool | Told = True,
) -> Any:
    """Return a log of a policy in an environment with discrete actions.

    env          a Gymnasium environment, single or vector, or its name
    behaviour    the behaviour policy: a table (states, actions) of probabilities, or a function of a batch of
                 observations that returns (n, actions) probabilities, such as a network
    steps        number of transitions
    out          a folder for the log, one Parquet file per round. If the folder has files of earlier rounds, the
                 collection continues after them; if the environment obeys the seed of its reset, the interruption
                 does not change the log. Without `out`, `collect` returns the log as columns
    round_steps  largest number of transitions per round. Each round starts with a reset from its own seed, and its
                 end cuts running episodes like a time limit
    progress     as for `evaluate_log`; the number of transitions is reported after every round

    Parts of observations become the columns obs_0, obs_1, …

    >>> log = collect("FrozenLake-v1", np.full((16, 4), 0.25), 100)
    >>> sorted(log)
    ['action', 'episode', 'next_obs', 'obs', 'propensity', 'reward', 'terminated', 'truncated']
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    place, asked = place_of(env), whole_number("'steps'", steps)
    acting = policy_in(place, "behaviour", behaviour)
    seed, full = checked_seed(seed), whole_number("'round_steps'", round_steps)
    folder = None if out is None else file_path("'out'", out)
    if folder is not None:
        if (folder.exists() and not folder.is_dir()) or not folder.absolute().parent.is_dir():
            raise bad_request("'out'", "be a folder, or a new folder in an existing folder", str(out))
        folder.mkdir(exist_ok=True)
    parts: list[Log] = []
    rows = rounds = episodes = 0
    with shown(progress, "Transitions") as told:
        while rows < asked:
            file = None if folder is None else folder / f"round-{rounds:06}.parquet"
            if file is not None and file.exists():
                try:
                    episode = pq.read_table(file, columns=["episode"]).column("episode").to_numpy()
                except Exception as error:  # readers raise many types
                    why = f"{one_line(str(error)).rstrip('.')}. Remove the file to collect this round again."
                    raise BadRequestError(f"Cannot read {file}: {why}") from None
            else:
                seeds = np.random.SeedSequence([seed, rounds])
                reset = int(seeds.generate_state(1)[0] % 2**31)
                part = one_round(place, acting, reset, np.random.default_rng(seeds), min(full, asked - rows), episodes)
                episode = part["episode"]
                if file is None:
                    parts.append(part)
                else:
                    with replaced(file) as unfinished:
                        pq.write_table(pa.table(part), unfinished)
            rows, episodes, rounds = rows + len(episode), int(episode[-1]) + 1, rounds + 1
            told(rows, asked)
    return folder if folder is not None else {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def evaluate(
    env: Any,
    *,
    target: Any,
    behaviour: Any = None,
    features: Any = None,
    steps: int = 100_000,
    discount: float = 0.99,
    seed: int = 0,
    round_steps: int = 10_000,
    out: str | PathLike[str] | None = None,
    progress: bool | Told = True,
    **options: Any,
) -> Evaluation:
    """Return the value of `target` from a log of `behaviour` in an environment: `collect`, then `evaluate_log`.

    target       the target policy, in the same form as `behaviour`
    behaviour    the behaviour policy; default: `target`
    features     as for `evaluate_log`; a function gets one observation of the environment
    out          a folder that keeps the log, so that an interrupted collection can continue
    options      other arguments of `evaluate_log`: learner and its parameters, confidence, at

    See `collect` for the other arguments.

    >>> import gymnasium, numpy as np
    >>> right = np.tile([0.1, 0.1, 0.7, 0.1], (16, 1))
    >>> found = evaluate(gymnasium.make("FrozenLake-v1"), target=right, discount=0.9, steps=2_000)
    >>> found.values.shape
    (1,)
    """
    place = place_of(env)
    wanted = policy_in(place, "target", target)
    gamma = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
    if features is not None and not isinstance(features, str):
        features = Observed(features if isinstance(features, Features) else Own(features), place.observations)
    acting = target if behaviour is None else behaviour
    log = collect(env, acting, steps, out=out, seed=seed, round_steps=round_steps, progress=progress)

    def policy(seen: Array) -> Array:
        return wanted(structured(place.observations, seen), len(seen))

    return evaluate_log(log, target=policy, discount=gamma, features=features, seed=seed, progress=progress, **options)


class Observed(Features):
    """A feature map of an environment's observations, applied to the columns of a log."""

    kind = "observed"

    def __init__(self, inner: Features, space: Any) -> None:
        self.inner, self.space = inner, space
        if inner.n_features == 0:
            inner.rows([structured(space, flat(space, space.sample(), 1)[0])])
        self.n_features, self.nonzeros, self.bound = inner.n_features, inner.nonzeros, inner.bound

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations."""
        seen: Any = np.asarray(observations, float)
        if isinstance(self.inner, Own):  # a function of one observation
            return self.inner.rows([structured(self.space, row) for row in seen])
        return self.inner.rows(structured(self.space, seen))


class EnvironmentBatch(NamedTuple):
    """An environment as a batch: its copies, the reset mode of Gymnasium ("" if single), and the spaces of one copy."""

    env: Any
    copies: int
    mode: str
    observations: Any
    actions: Any


def place_of(env: Any) -> EnvironmentBatch:
    """Return an environment with discrete actions, single or vector, as a batch."""
    with extra("environments"):
        import gymnasium

    if isinstance(env, str):
        try:
            env = gymnasium.make(env)
        except Exception as error:  # making an environment runs foreign code
            raise bad_request("'env'", "be the name of an environment that can be created", Unquoted(error)) from None
    if isinstance(env, gymnasium.vector.VectorEnv):
        mode = env.metadata.get("autoreset_mode", "NextStep")
        spaces = env.single_observation_space, env.single_action_space
        found = EnvironmentBatch(env, env.num_envs, getattr(mode, "value", mode), *spaces)
    elif all(hasattr(env, name) for name in ("reset", "step", "action_space")):
        found = EnvironmentBatch(env, 1, "", env.observation_space, env.action_space)
    else:
        raise bad_request("'env'", "be a Gymnasium environment, or its name", env)
    if type(found.actions).__name__ != "Discrete":
        rule = "be Discrete, so that a policy can give a probability for each action"
        raise bad_request("The action space", rule, Unquoted(type(found.actions).__name__))
    return found


def policy_in(place: EnvironmentBatch, name: str, given: Any) -> Policy:
    """Return a policy for the actions and observations of an environment."""
    first = int(getattr(place.observations, "start", 0)) if hasattr(place.observations, "n") else 0
    return policy_of(name, given, int(place.actions.n), first)


def one_round(
    place: EnvironmentBatch, behaviour: Policy, seed: int, rng: np.random.Generator, most: int, episodes: int = 0
) -> Log:
    """Return at most `most` transitions of one round as columns, ordered by copy of the environment.

    A round of a single environment stops at the end of an episode once the round has half of `most` transitions.
    Unfinished episodes are cut. Episodes are numbered from `episodes`.
    """
    space, copies = place.observations, place.copies
    seen = reset_by(place, seed=seed)
    played: list[tuple[Any, ...]] = []  # for each step, arrays over the copies
    resets, count, between = np.zeros(copies, bool), 0, False  # copies whose next step is a reset
    while count < most and not (count >= most // 2 and between):
        among = behaviour(structured(space, seen), copies)
        action = drawn(among, rng)
        chosen: Any = action + int(place.actions.start)
        chosen = chosen.astype(place.env.action_space.dtype) if place.mode else int(chosen[0])
        with foreign("The environment", "take a step"):
            made = place.env.step(chosen)
        if not (isinstance(made, tuple | list) and len(made) == 5):
            rule = "be (observation, reward, terminated, truncated, info)"
            raise bad_request("The result of the environment's step", rule, made)
        reward = column_of("The reward", made[1], place)
        ended = column_of("'terminated'", made[2], place, True)
        truncated = column_of("'truncated'", made[3], place, True)
        over, after = ended | truncated, flat(space, made[0], copies)
        there = after.copy()
        for i in np.flatnonzero(over) if place.mode == "SameStep" else ():
            info = made[4] if isinstance(made[4], Mapping) else {}
            final = [info[name][i] for name in ("final_obs", "final_observation") if name in info]
            if not final or final[0] is None:
                what = "A vector environment with same-step resets"
                raise bad_request(what, "give 'final_obs' in its info", made[4])
            there[i] = flat(space, final[0], 1)[0]
        chance = among[np.arange(copies), action]
        played.append((seen, there, action, reward, ended, truncated & ~ended, chance, ~resets))
        count, seen = count + int((~resets).sum()), after
        if place.mode == "Disabled" and over.any():
            seen = reset_by(place, options={"reset_mask": over})
        elif not place.mode and over[0]:
            seen = reset_by(place)
        resets, between = over & (place.mode == "NextStep"), not place.mode and bool(over[0])
    columns = [np.stack(column, axis=1) for column in zip(*played, strict=True)]
    kept = np.flatnonzero(columns.pop().ravel())[:most]
    copy = kept // len(played)
    seen, there, action, reward, ended, cut, chance = (one.reshape(-1, *one.shape[2:])[kept] for one in columns)
    cut |= np.append(np.diff(copy) > 0, True) & ~ended
    over = ended | cut
    found: Log = {}
    for name, wide in (("obs", seen), ("next_obs", there)):
        found |= {name if wide.shape[1] == 1 else f"{name}_{i}": column for i, column in enumerate(wide.T)}
    found |= {"action": action, "reward": reward, "terminated": ended, "truncated": cut}
    return found | {"episode": episodes + np.cumsum(over) - over, "propensity": chance}


def reset_by(place: EnvironmentBatch, **options: Any) -> Array:
    """Reset the environment, and return the observations of its copies."""
    with foreign("The environment", "reset"):
        made = place.env.reset(**options)
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], Mapping)):
        raise bad_request("The result of the environment's reset", "be (observation, info)", made)
    return flat(place.observations, made[0], place.copies)


def column_of(what: str, values: Any, place: EnvironmentBatch, flag: bool = False) -> Any:
    """Return a checked result of a step, (copies,): numbers, or booleans if `flag`."""
    found, rule = array_of(values), "be true or false" if flag else "be one finite number"
    right = found.shape == (place.copies,) if place.mode else found.size == 1
    right &= found.dtype.kind in ("biu" if flag else "biuf") and bool(np.isfinite(found).all())
    if not right:
        raise bad_request(f"{what} of a step", f"be {place.copies} values" if place.mode else rule, values)
    if flag and not np.isin(found, (0, 1)).all():
        raise bad_request(f"{what} of a step", rule, values)
    return found.reshape(place.copies).astype(bool if flag else float)


def array_of(values: Any) -> Any:
    """Return a copy of values as an array, empty for lists of different lengths."""
    try:
        return np.array(values)
    except ValueError:
        return np.empty(0, object)


def parts_of_space(space: Any) -> list[tuple[Any, Any]]:
    """Return the keys and spaces of the parts of a dictionary or a tuple; [] for a space of numbers."""
    name = type(space).__name__
    if name in ("Dict", "Tuple"):
        found = list(space.spaces.items()) if name == "Dict" else list(enumerate(space.spaces))
        if not found:
            raise bad_request("An observation space", "have at least one part", Unquoted(f"{name}()"))
        return found
    if name in ("Box", "Discrete", "MultiDiscrete", "MultiBinary"):
        return []
    rule = "be Discrete, MultiDiscrete, MultiBinary, Box, Dict or Tuple"
    raise bad_request("The observation space", rule, Unquoted(name))


def width_of(space: Any) -> int:
    """Return the length of a flat observation of a space."""
    parts = parts_of_space(space)
    return sum(width_of(part) for _, part in parts) if parts else int(np.prod(space.shape, dtype=int))


def flat(space: Any, seen: Any, n: int) -> Array:
    """Return copies of n observations as (n, numbers): parts of a dictionary or a tuple are concatenated."""
    what = "Observations of the environment"
    if parts := parts_of_space(space):
        try:
            return np.concatenate([flat(part, seen[key], n) for key, part in parts], axis=1)
        except (IndexError, KeyError, TypeError) as error:
            raise bad_request(what, "have the parts of its space", Unquoted(error)) from None
    found = array_of(seen)
    if found.dtype.kind not in "biuf" or found.size != n * width_of(space):
        raise bad_request(what, f"be {n} × {width_of(space)} numbers, as its space says", seen)
    return found.reshape(n, -1).astype(float)


def structured(space: Any, seen: Any) -> Any:
    """Return numbers as an observation of a space, or columns (n, numbers) as a batch of observations."""
    if parts := parts_of_space(space):
        ends = np.cumsum([width_of(part) for _, part in parts])
        cut = np.split(np.asarray(seen), ends[:-1], axis=-1)
        found = {key: structured(part, columns) for (key, part), columns in zip(parts, cut, strict=True)}
        return found if type(space).__name__ == "Dict" else tuple(found.values())
    values = np.asarray(seen, float)
    if type(space).__name__ == "Discrete":
        return values[..., 0].astype(np.int64)[()]
    return values.reshape(*values.shape[:-1], *space.shape).astype(space.dtype)
