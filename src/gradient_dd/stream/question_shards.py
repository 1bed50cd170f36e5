"""Shards: the questions of one process, or those that a Dask worker has. Lanes do not depend on each other."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.engine.questions import QuestionData, QuestionMemory
from gradient_dd.engine.stream import FeatureRows
from gradient_dd.errors import must
from gradient_dd.learners import Setting
from gradient_dd.stream.question import Asked
from gradient_dd.stream.question_quality import rupee


class Lanes:
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
        """Return the projected error of each lane, (lanes,), and the numbers of QUALITY, (8, lanes)."""
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
    """Lanes here, or an actor on a Dask worker that holds them; `advance` returns a function that waits."""

    def __init__(self, lanes: Any, remote: bool) -> None:
        self._lanes, self._remote = lanes, remote

    def _call(self, name: str, *arguments: Any) -> Callable[[], Any]:
        called = getattr(self._lanes, name)(*arguments)
        return called.result if self._remote else (lambda: called)

    def advance(self, x: FeatureRows, x_next: FeatureRows, data: QuestionData) -> Callable[[], Any]:
        """Begin to learn from transitions."""
        return self._call("advance", x, x_next, data)

    def values(self, x: FeatureRows) -> Array:
        """Return the predictions for n rows, (n, lanes)."""
        return self._call("values", x)()

    def read(self, name: str) -> Any:
        """Return what is known of the lanes."""
        return self._call("read", name)()

    def quality(self, diagonal: Array) -> tuple[Array, Array]:
        """Return the projected error of each lane, and the numbers of QUALITY."""
        return self._call("quality", diagonal)()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state that `read` gave."""
        self._call("restore", state)()


def make_shards(asked: Asked, setting: Setting, w: Array, precision: str, client: Any) -> list[Shard]:
    """Return the questions as one shard, or dealt out to the workers of a Dask client, in order."""
    everything = np.arange(len(asked.questions))
    make = partial(Lanes, asked=(asked.signal, asked.group, asked.view), setting=setting, w=w, precision=precision)
    if client is None:
        return [Shard(make(everything), remote=False)]
    if not hasattr(client, "scheduler_info") or not hasattr(client, "submit"):
        raise must("'client'", "be a Dask client, e.g. distributed.Client()", client)
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    if not workers:
        raise must("'client'", "have at least one worker", client)
    parts = [part for part in np.array_split(everything, len(workers)) if part.size]
    begun = [
        client.submit(make, part, actor=True, workers=[worker], pure=False)
        for part, worker in zip(parts, workers, strict=False)
    ]
    return [Shard(actor.result(), remote=True) for actor in begun]
