"""Features that networks have learnt: the last hidden layers of several, side by side, with a 1 before them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers, numbers
from gradient_dd.errors import bad_request
from gradient_dd.stream.features.kind import Features, Rows, matrix


class Layers(Features):
    """Observations scaled by `centre` and `scale`, then through the tanh layers (W, b) of each member.

    members  one for each network: its layers, each a pair (W, b) of shapes (inputs, units) and (units,)
    """

    kind = "layers"

    def __init__(self, centre: Any, scale: Any, members: Sequence[Sequence[tuple[Any, Any]]]) -> None:
        self.centre, self.scale = numbers("'centre'", centre), numbers("'scale'", scale)
        self._layers = [[(numbers("W", W), numbers("b", b)) for W, b in member] for member in members]
        width = len(self.centre)
        for member in self._layers:
            shapes = [(width, *[len(b) for _, b in member])[place : place + 2] for place in range(len(member))]
            if not member or [W.shape for W, _ in member] != shapes:
                raise bad_request("The layers of a member", "fit each other", [W.shape for W, _ in member])
        self.n_features = self.nonzeros = 1 + sum(len(member[-1][1]) for member in self._layers)
        self.bound = float(self.n_features)

    @property
    def members(self) -> list[list[tuple[Any, Any]]]:
        """Their layers as plain data."""
        return [[(W.tolist(), b.tolist()) for W, b in member] for member in self._layers]

    @property
    def blocks(self) -> list[Integers]:
        """The places of the features of each member, the 1 among them."""
        ends = np.cumsum([1, *(len(member[-1][1]) for member in self._layers)])
        return [np.append(0, np.arange(begin, end)) for begin, end in pairwise(ends.tolist())]

    def rows(self, observations: Any) -> Rows:
        """Return the features of n observations, dense."""
        scaled = (matrix(observations, len(self.centre)) - self.centre) / self.scale
        return Rows(None, np.concatenate([np.ones((len(scaled), 1)), *(last(m, scaled) for m in self._layers)], axis=1))


def last(member: list[tuple[Array, Array]], s: Array) -> Array:
    """Return the last hidden layer of one network."""
    for W, b in member:
        s = np.tanh(s @ W + b)
    return s
