"""The file from which a stopped evaluation goes on: the state of an `Evaluator`, and what it belongs to.

Every part of an evaluator names what changes in it in a class attribute `saved`. Here that becomes plain JSON and
arrays, and is put back into an evaluator that was made anew from the same request. Nothing else can be made from a
file, and everything that compiled code will read is checked: shapes, kinds of numbers, indices.
"""

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.stream_lanes import LaneMemory
from gradient_dd.errors import GradientDDError, Unquoted, bad_request, file_path, number, whole_number
from gradient_dd.evaluation.collect import Place, Steps, batch_of, one_round
from gradient_dd.evaluation.episodes import GROUPS
from gradient_dd.evaluation.stream import Evaluator
from gradient_dd.evaluation.transitions import Transitions, check_width, transitions_of
from gradient_dd.files import DamagedFileError, FileKind, open_saved, write_file
from gradient_dd.stream.features import Features, Own, Rows
from gradient_dd.stream.policies import Policy

EVALUATION_FILE = FileKind("evaluation", "a checkpoint of an evaluation", 5)
PROBE = 200  # steps of an environment by which it is recognised
RECORDS: dict[str, Any] = {"rows": Rows}  # the records that stand in a state beside batches
HINT = "Remove the file to begin anew."


Counts = tuple[int, int, int]  # rounds, rows and episodes so far


def write_checkpoint(path: Any, request: dict[str, Any], counts: Counts, evaluator: Evaluator) -> None:
    """Write the state of an evaluator, how far it is, and what it belongs to."""
    arrays: dict[str, Any] = {}
    state = packed(evaluator, arrays)
    header = {"request": request, "counts": counts, "n_features": evaluator.n_features, "state": state}
    write_file(path, EVALUATION_FILE, header, arrays)


def read_checkpoint(path: Any, request: dict[str, Any], **options: Any) -> tuple[Counts, Evaluator] | None:
    """Return how far an evaluation is, and its evaluator; None where there is no file.

    `options` are those from which the evaluator is made anew. A file that belongs to another request is refused.
    """
    if not file_path("'checkpoint'", path).exists():
        return None
    with open_saved(path, EVALUATION_FILE) as (header, arrays):
        for name, now in request.items():
            if (before := header["request"][name]) != now:
                if str(now).startswith("#"):
                    raise bad_request(
                        f"{name!r}", f"be that of the checkpoint {str(path)!r}", Unquoted("another one"), HINT
                    )
                raise bad_request(f"{name!r}", f"be {before!r}, as in the checkpoint {str(path)!r}", now, HINT)
        rounds, rows, episodes = (whole_number("'counts'", one) for one in header["counts"])
        p = header["n_features"]
        if not any(array.shape[-1:] == (p,) for array in arrays.values()):  # before an evaluator of that size is made
            raise DamagedFileError("another number of features")
        evaluator = Evaluator(p, **options)
        State(arrays, evaluator.n_features).put_into(evaluator, header["state"])
        if evaluator.rows != rows:
            raise DamagedFileError("other counts")
        return (rounds, rows, episodes), evaluator


# State as plain data ------------------------------------------------------------------------------------------


def packed(value: Any, arrays: dict[str, Any]) -> Any:
    """Return a value as JSON can hold it; arrays are added to `arrays`, and named in their place."""
    if hasattr(value, "saved"):
        return {name: packed(getattr(value, name), arrays) for name in value.saved}
    if isinstance(value, np.ndarray):
        arrays[name := f"a{len(arrays)}"] = value
        return {"array": name}
    for name, record in RECORDS.items():
        if isinstance(value, record):
            return {name: [packed(one, arrays) for one in value]}
    if isinstance(value, tuple) and value and isinstance(value[0], Transitions):
        batch, group = value
        columns = batch.reward, batch.discount, batch.rho, batch.episode, batch.cut
        return {"batch": [packed(one, arrays) for one in (batch.x, batch.x_next, *columns, group)]}
    if isinstance(value, tuple):
        return {"tuple": [packed(one, arrays) for one in value]}
    return [packed(one, arrays) for one in value] if isinstance(value, list) else value


class State:
    """The arrays of a file, and how many features its rows have: what a state is put together from."""

    def __init__(self, arrays: dict[str, Any], n_features: int) -> None:
        self.arrays, self.n_features = arrays, n_features

    def put_into(self, part: Any, data: dict[str, Any]) -> None:
        """Put what `packed` returned of a part of an evaluator into a new part of the same kind."""
        if set(data) != set(part.saved):
            raise DamagedFileError("another state")
        if data.get("unit") is not None:  # learning had begun: the lanes follow from the unit of the step sizes
            part.begin(number("'unit'", "be a positive number", data["unit"], low=0.0, positive=True))
        for name in part.saved:
            old = getattr(part, name)
            if hasattr(old, "saved"):
                self.put_into(old, data[name])
            elif isinstance(old, list) and old and hasattr(old[0], "saved"):
                for one, its_data in zip(old, data[name], strict=True):
                    self.put_into(one, its_data)
            else:
                new = self.unpacked(data[name])
                if not fits(old, new):
                    raise DamagedFileError(f"another {name}")
                setattr(part, name, new)
        if isinstance(part, LaneMemory) and len(part.sums) not in (0, len(part.memory)):
            raise DamagedFileError("other sums")

    def unpacked(self, data: Any) -> Any:
        """Return the value of which `packed` returned this."""
        if isinstance(data, list):
            return [self.unpacked(one) for one in data]
        if not isinstance(data, dict):
            return data
        ((kind, content),) = data.items()
        if kind == "array":
            return self.arrays[content]
        values = [self.unpacked(one) for one in content]
        if kind == "tuple":
            return tuple(values)
        return self.batch(*values) if kind == "batch" else RECORDS[kind](*values)

    def batch(self, x: Rows, x_next: Rows, *columns: Any) -> tuple[Transitions, Any]:
        """Return a batch and the group of each of its rows, both checked."""
        reward, discount, rho, episode, cut, group = columns
        batch = transitions_of(x, reward, discount, x_next, rho, episode, cut)
        check_width(batch, self.n_features)
        if group.shape != (len(batch),) or group.dtype != np.int64 or not ((group >= 0) & (group < GROUPS)).all():
            raise DamagedFileError("other groups")
        return batch, group


def fits(old: Any, new: Any) -> bool:
    """Return whether a value can take the place of that of a new part: same kind, same shape unless that was empty."""
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        same = old.shape == new.shape or (not old.size and old.shape[1:] == new.shape[1:])
        return old.dtype == new.dtype and same
    return old is None or new is None or type(old) is type(new)


# What a checkpoint belongs to ---------------------------------------------------------------------------------


class Asked(NamedTuple):
    """What an evaluation was asked for: the place, the two policies as given and as functions, and the feature map."""

    place: Place
    target: Any
    behaviour: Any
    wanted: Policy
    acting: Policy
    basis: Features


def fingerprint_of(asked: Asked, seed: int) -> dict[str, str]:
    """Return digests of the environment, the target, the behaviour and the features of an evaluation.

    A table and a feature map of this package are their numbers. An environment is its name and arguments, and what it
    does in its first steps; a function is what it gives for the observations of these steps. Where two attempts differ
    the name alone counts.
    """
    place = asked.place
    first = [first_steps(place, seed) for _ in range(2)]
    seen = [digest_of((batch_of(made.observation), made.reward, made.terminated, made.cut)) for made in first]
    observations = first[0].observation if seen[0] == seen[1] else []
    spec = getattr(place.env, "spec", None)
    spaces = repr((place.observation_space, place.action_space))
    name = type(getattr(place.env, "unwrapped", place.env)).__qualname__, spaces
    arguments = getattr(spec, "id", None), getattr(spec, "kwargs", None)
    own = isinstance(asked.basis, Own)
    return {
        "env": digest_of((name, arguments, seen[0] if observations else None)),
        "target": policy_digest(asked.target, asked.wanted, observations),
        "behaviour": policy_digest(asked.behaviour, asked.acting, observations),
        "features": steady_digest(lambda: copy(asked.basis).rows(observations), bool(observations), asked.basis)
        if own
        else digest_of(asked.basis.as_data()),
    }


def first_steps(place: Place, seed: int) -> Steps:
    """Return a few steps of an environment in which all actions are equally likely."""
    actions = int(place.action_space.n)

    def uniform(observations: Any, n: int) -> Array:
        return np.full((n, actions), 1 / actions)

    return one_round(place, uniform, uniform, seed % 2**31, np.random.default_rng(seed), PROBE)


def policy_digest(given: Any, policy: Policy, observations: list[Any]) -> str:
    """Return the digest of a policy: of the numbers of a table, of what a function gives for some observations."""
    if given is None:
        return digest_of("the target itself")
    if not callable(given):
        return digest_of(np.asarray(given, float))
    return steady_digest(lambda: policy(batch_of(observations), len(observations)), bool(observations), given)


def steady_digest(call: Callable[[], Any], possible: bool, owner: Any) -> str:
    """Return the digest of what a call gives, if it gives the same twice; else that of the name of its owner."""
    with suppress(GradientDDError):
        found = {digest_of(call()) for _ in range(2)} if possible else set()
        if len(found) == 1:
            return found.pop()
    return digest_of(getattr(owner, "__qualname__", type(owner).__qualname__))


def digest_of(value: Any) -> str:
    """Return a short name for nested lists, tuples and dictionaries of numbers, texts and arrays.

    An object of any other kind counts by its class.
    """
    found = sha256()

    def add(one: Any) -> None:
        if isinstance(one, dict):
            add(sorted((str(key), value) for key, value in one.items()))
        elif isinstance(one, list | tuple):
            found.update(f"{len(one)} values ".encode())
            for each in one:
                add(each)
        elif isinstance(one, np.ndarray) and one.dtype.hasobject:
            add(one.tolist())
        elif isinstance(one, np.ndarray):
            found.update(f"{one.dtype.str} {one.shape} ".encode() + np.ascontiguousarray(one).tobytes())
        else:
            plain = isinstance(one, str | int | float | np.generic | None)
            found.update((repr(one) if plain else type(one).__qualname__).encode())

    add(value)
    return f"#{found.hexdigest()[:24]}"
