"""Shards: the questions of one process, or those that a Dask worker has. ShardLanes do not depend on each other."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4
from weakref import finalize

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.engine.questions import QuestionData, QuestionMemory
from gradient_dd.engine.single import FeatureRows
from gradient_dd.errors import GradientDDError, bad_request
from gradient_dd.learners import Setting
from gradient_dd.stream.question import AskedQuestions
from gradient_dd.stream.question_quality import rupee


class ShardLanes:
    """The memory of some of the questions, and which columns of a batch they read.

    lanes  which questions these are
    """

    def __init__(
        self, lanes: Integers, asked: tuple[Integers, ...], setting: Setting, w: Array, precision: str
    ) -> None:
        signal, group, view = asked
        self.signal = signal[lanes]
        self.groups, own_group = np.unique(group[lanes], return_inverse=True)
        self.views, own_view = np.unique(view[self.groups], return_inverse=True)
        dtype = np.dtype(precision).type
        self.memory = QuestionMemory([setting] * len(lanes), own_group, own_view, w, dtype, measured=True)

    def advance(self, x: FeatureRows, x_next: FeatureRows, data: QuestionData) -> None:
        """Learn from transitions; `data` has the columns of all questions, and distinct signals for rewards."""
        by_group = {name: getattr(data, name)[:, self.groups] for name in ("discount", "rho", "pi", "mu")}
        own = data._replace(reward=data.reward[:, self.signal], seen=data.seen[:, self.views], **by_group)
        self.memory.advance(x, x_next, own)

    def values(self, x: FeatureRows) -> Array:
        """Return the predictions for n rows, (n, lanes)."""
        memory, begin = self.memory.memory[:, 0], x.begin
        found = np.zeros((len(begin) - 1, len(self.signal)))
        for t in range(len(found)):
            cut = slice(begin[t], begin[t + 1])
            rows = memory if x.dense else memory[x.indices[cut]]
            found[t] = (x.values[cut] @ rows)[self.memory.slot]
        return found

    def read(self, name: str) -> Any:
        """Return what is known of the lanes: "w", "eta", "stopped_at" or "state"."""
        kept, slot = self.memory, self.memory.slot
        if name == "stopped_at":
            return kept.stopped[slot] + 1
        if name == "state":
            return {one: getattr(kept, one) for one in kept.saved}
        return getattr(kept, name)

    def quality(self, diagonal: Array) -> tuple[Array, Array]:
        """Return the projected error of each lane, (lanes,), and the numbers of QUALITY for each."""
        kept = self.memory
        of_slot = np.zeros(kept.slots, np.int64)
        for run, view in enumerate(kept.run_view):
            of_slot[kept.begin[run] : kept.begin[run + 1]] = self.views[view]
        return rupee(kept, diagonal.T[:, of_slot] if len(diagonal) > 1 else diagonal.T), kept.quality[:, kept.slot]

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state that `read` gave."""
        for name, value in state.items():
            if isinstance(value, np.ndarray):
                getattr(self.memory, name)[...] = value
            else:
                setattr(self.memory, name, value)


class Shard:
    """Lanes of this process."""

    def __init__(self, lanes: ShardLanes) -> None:
        self._lanes = lanes

    def call(self, name: str, *arguments: Any) -> Any:
        """Return what a method of the lanes gives."""
        return getattr(self._lanes, name)(*arguments)

    def begin(self, name: str, *arguments: Any) -> Callable[[], Any]:
        """Call a method of the lanes; return a function that waits for it."""
        done = self.call(name, *arguments)
        return lambda: done


KEPT: dict[str, ShardLanes] = {}  # in the process of a Dask worker: the lanes of its shards


class RemoteShard(Shard):
    """Lanes in the process of a Dask worker, which stay there from batch to batch."""

    def __init__(self, client: Any, worker: str, make: Callable[[], ShardLanes]) -> None:
        self._client, self._worker, self._key = client, worker, uuid4().hex
        self._submit(put, self._key, make).result()
        finalize(self, forget, client, worker, self._key)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, workers=[self._worker], pure=False)

    def call(self, name: str, *arguments: Any) -> Any:
        """Return what a method of the lanes gives."""
        return self.begin(name, *arguments)()

    def begin(self, name: str, *arguments: Any) -> Callable[[], Any]:
        """Call a method of the lanes; return a function that waits for it."""
        there = self._client.scatter([arguments], workers=[self._worker], hash=False)[0]
        return self._submit(call_kept, self._key, name, there).result


def put(key: str, make: Callable[[], ShardLanes]) -> None:
    """Make the lanes of a shard, on its worker."""
    KEPT[key] = make()


def call_kept(key: str, name: str, arguments: tuple[Any, ...]) -> Any:
    """Return what a method of the lanes of a shard gives, on its worker."""
    if key not in KEPT:
        raise GradientDDError("A Dask worker was lost with what its questions had learnt. Load them from a file.")
    return getattr(KEPT[key], name)(*arguments)


def forget(client: Any, worker: str, key: str) -> None:
    """Let a worker forget the lanes of a shard that is no longer used."""
    if client.status == "running":
        client.submit(KEPT.pop, key, None, workers=[worker], pure=False)


def make_shards(asked: AskedQuestions, setting: Setting, w: Array, precision: str, client: Any) -> list[Shard]:
    """Return the questions as one shard, or dealt out to the workers of a Dask client, in order."""
    everything = np.arange(len(asked.questions))
    make = partial(ShardLanes, asked=(asked.signal, asked.group, asked.view), setting=setting, w=w, precision=precision)
    if client is None:
        return [Shard(make(everything))]
    if not hasattr(client, "scheduler_info") or not hasattr(client, "submit"):
        raise bad_request("'client'", "be a Dask client, e.g. distributed.Client()", client)
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    if not workers:
        raise bad_request("'client'", "have at least one worker", client)
    parts = [part for part in np.array_split(everything, len(workers)) if part.size]
    return [RemoteShard(client, worker, partial(make, part)) for part, worker in zip(parts, workers, strict=False)]
