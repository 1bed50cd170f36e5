"""`gdd.collect` and `gdd.evaluate`: a log of a policy that acts in an environment, and values from it."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, file_path, number, whole_number
from gradient_dd.evaluation.collect import EnvironmentBatch, Steps, batch_of, one_round, place_of
from gradient_dd.evaluation.log import evaluate_log
from gradient_dd.evaluation.result import Evaluation
from gradient_dd.learners import Rule
from gradient_dd.stream.features import Features, Own, Rows
from gradient_dd.stream.policies import Policy, policy_of

Log = dict[str, Any]


def collect(
    env: Any,
    behaviour: Any,
    steps: int,
    *,
    out: str | PathLike[str] | None = None,
    seed: int = 0,
    round_steps: int = 10_000,
    on_progress: Callable[[int, int], None] | None = None,
) -> Any:
    """Return a log of a policy that acts in an environment with whole-number actions.

    env          a Gymnasium environment, single or vector, or the name of one
    behaviour    the policy that acts: a table (states, actions) of probabilities, or a function of a batch of
                 observations that returns (n, actions) probabilities, such as a network
    steps        how many transitions
    out          a folder, to which every round is written as a Parquet file. If it has files of earlier rounds, the
                 collection continues after them, and gives the log of one that never stopped if the environment obeys
                 the seed of its reset. Without it the log is returned as columns
    round_steps  a round has at most so many transitions, and begins with a reset from a seed of its own. What
                 continues at the end of a round is cut, as by a time limit
    on_progress  is called after every round with the transitions done and wanted

    Parts of observations stand side by side, in columns obs_0, obs_1, …

    >>> log = collect("FrozenLake-v1", np.full((16, 4), 0.25), 100)
    >>> sorted(log)
    ['action', 'episode', 'next_obs', 'obs', 'propensity', 'reward', 'terminated', 'truncated']
    """
    place, asked = place_of(env), whole_number("'steps'", steps)
    acting = policy_in(place, "behaviour", behaviour)
    seed, full = whole_number("'seed'", seed, at_least=0), whole_number("'round_steps'", round_steps)
    if on_progress is not None and not callable(on_progress):
        raise bad_request("'on_progress'", "be a function of two numbers", on_progress)
    folder = None if out is None else checked_out(out)
    parts: list[Log] = []
    rows = rounds = episodes = 0
    while rows < asked:
        file = None if folder is None else folder / f"round-{rounds:06}.parquet"
        held = None if file is None or not file.exists() else rows_in(file)
        if held is None:
            seeds = np.random.SeedSequence([seed, rounds])
            reset = int(seeds.generate_state(1)[0] % 2**31)
            made = one_round(place, acting, reset, np.random.default_rng(seeds), min(full, asked - rows))
            part = as_columns(made, place.observation_space, episodes)
            if file is None:
                parts.append(part)
            else:
                write_part(file, part)
            held = len(made.reward), int(part["episode"][-1]) + 1
        rows, episodes, rounds = rows + held[0], held[1], rounds + 1
        if on_progress is not None:
            on_progress(rows, asked)
    return folder if folder is not None else {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def evaluate(
    env: Any,
    *,
    target: Any,
    behaviour: Any = None,
    features: Any = None,
    learner: str | Rule = "auto",
    steps: int = 100_000,
    discount: float = 0.99,
    seed: int = 0,
    round_steps: int = 10_000,
    out: str | PathLike[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Evaluation:
    """Return the value of `target` from a log of `behaviour` in an environment: `collect`, then `evaluate_log`.

    target       the policy whose values are wanted, as `behaviour` is given
    behaviour    the policy that acts; default `target` itself
    features     as `evaluate_log` takes them; a function gets one observation of the environment
    out          a folder that keeps the log, so that a collection that was stopped continues
    options      of `evaluate_log`: alpha and other parameters of the learner, confidence, at

    The other arguments are those of `collect`.

    >>> import gymnasium, numpy as np
    >>> right = np.tile([0.1, 0.1, 0.7, 0.1], (16, 1))
    >>> found = evaluate(gymnasium.make("FrozenLake-v1"), target=right, discount=0.9, steps=2_000)
    >>> found.values.shape
    (1,)
    """
    place = place_of(env)
    space = place.observation_space
    wanted = policy_in(place, "target", target)
    gamma = number("'discount'", "be in [0, 1]", discount, low=0.0, high=1.0)
    if features is not None and not isinstance(features, str):
        features = Observed(features if isinstance(features, Features) else Own(features), space)
    acting = target if behaviour is None else behaviour
    log = collect(env, acting, steps, out=out, seed=seed, round_steps=round_steps, on_progress=on_progress)
    asked = {"features": features, "learner": learner, "seed": seed, **options}
    return evaluate_log(log, target=lambda seen: wanted(structured(space, seen), len(seen)), discount=gamma, **asked)


class Observed(Features):
    """A map of observations of an environment, for observations that stand side by side in columns."""

    kind = "observed"

    def __init__(self, inner: Features, space: Any) -> None:
        self.inner, self.space = inner, space
        if inner.n_features == 0:
            inner.rows(single_ones(space, np.asarray(flat(space, batch_of([space.sample()]), 1), float)))
        self.n_features, self.nonzeros, self.bound = inner.n_features, inner.nonzeros, inner.bound

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations."""
        seen = np.asarray(observations, float)
        each = type(self.space).__name__ in ("Dict", "Tuple") or isinstance(self.inner, Own)
        return self.inner.rows(single_ones(self.space, seen) if each else structured(self.space, seen))


def policy_in(place: EnvironmentBatch, name: str, given: Any) -> Policy:
    """Return a policy for the actions and observations of an environment."""
    space = place.observation_space
    first = int(getattr(space, "start", 0)) if hasattr(space, "n") else 0
    return policy_of(name, given, int(place.action_space.n), first)


def as_columns(made: Steps, space: Any, episodes: int) -> Log:
    """Return the transitions of a round as columns of a log, its episodes numbered from `episodes` on."""
    n, over = len(made.reward), made.terminated | made.cut
    columns: Log = {}
    for name, seen in (("obs", made.observation), ("next_obs", made.next_observation)):
        wide = flat(space, batch_of(seen), n)
        columns |= {name if wide.shape[1] == 1 else f"{name}_{i}": wide[:, i] for i in range(wide.shape[1])}
    columns |= {"action": made.action, "reward": made.reward, "terminated": made.terminated, "truncated": made.cut}
    return columns | {"episode": episodes + np.cumsum(over) - over, "propensity": made.behaviour}


def flat(space: Any, batch: Any, n: int) -> Array:
    """Return a batch of observations as (n, numbers): parts of a dictionary or a tuple side by side."""
    name = type(space).__name__
    if name in ("Dict", "Tuple"):
        keys = list(space.spaces) if name == "Dict" else range(len(space.spaces))
        if not keys:
            raise bad_request("A space of observations", "have at least one part", Unquoted(f"{name}()"))
        return np.concatenate([flat(space.spaces[key], batch[key], n) for key in keys], axis=1)
    if name not in ("Box", "Discrete", "MultiDiscrete", "MultiBinary"):
        rule = "be Discrete, MultiDiscrete, MultiBinary, Box, Dict or Tuple"
        raise bad_request("The space of observations", rule, Unquoted(name))
    found = np.asarray(batch)
    if found.dtype.kind not in "biuf" or found.size % max(1, n) or not found.size:
        raise bad_request("Observations of the environment", "be numbers of one shape", Unquoted(str(found.dtype)))
    return np.asarray(found.reshape(n, -1), float)


def structured(space: Any, seen: Any) -> Any:
    """Return columns (n, numbers) as a batch of observations of a space."""
    name, n = type(space).__name__, len(seen)
    if name in ("Dict", "Tuple"):
        keys, parts, at = list(space.spaces) if name == "Dict" else range(len(space.spaces)), [], 0
        for key in keys:
            width = width_of(space.spaces[key])
            parts.append(structured(space.spaces[key], seen[:, at : at + width]))
            at += width
        return dict(zip(keys, parts, strict=True)) if name == "Dict" else tuple(parts)
    values = np.asarray(seen, float)
    return values[:, 0].astype(np.int64) if name == "Discrete" else values.reshape(n, *space.shape).astype(space.dtype)


def width_of(space: Any) -> int:
    """Return how many numbers an observation of a space has."""
    name = type(space).__name__
    if name in ("Dict", "Tuple"):
        parts = space.spaces.values() if name == "Dict" else space.spaces
        return sum(width_of(part) for part in parts)
    return 1 if name == "Discrete" else int(np.prod(space.shape, dtype=int))


def single_ones(space: Any, seen: Array) -> list[Any]:
    """Return columns (n, numbers) as single observations of a space."""
    batch = structured(space, seen)

    def one(part: Any, i: int) -> Any:
        if isinstance(part, dict):
            return {key: one(value, i) for key, value in part.items()}
        return tuple(one(value, i) for value in part) if isinstance(part, tuple) else part[i]

    return [one(batch, i) for i in range(len(seen))]


def checked_out(out: Any) -> Path:
    """Return the folder of a log, made if it is not there."""
    folder = file_path("'out'", out)
    if (folder.exists() and not folder.is_dir()) or not folder.absolute().parent.is_dir():
        raise bad_request("'out'", "be a folder, or a new one in a folder that exists", str(out))
    folder.mkdir(exist_ok=True)
    return folder


def rows_in(file: Path) -> tuple[int, int]:
    """Return how many rows a round has, and how many episodes there are up to its end."""
    import pyarrow.parquet as pq

    try:
        episode = pq.read_table(file, columns=["episode"]).column("episode")
    except Exception as error:  # readers raise many types
        raise BadRequestError(f"Cannot read {file}: {error}. Remove the file to collect this round again.") from None
    return len(episode), int(episode[-1].as_py()) + 1


def write_part(file: Path, columns: Log) -> None:
    """Write the rows of a round; a file is there whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = file.with_name(f".{file.name}.part")
    pq.write_table(pa.table(columns), part)
    part.replace(file)
