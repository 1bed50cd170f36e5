"""Many transitions of a user's own for one learner, compiled: rows of features in, steps made.

`online.Learner` calls it. The memory is the learner's, and changes in place. The compiler is loaded by the first call.
"""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.learners import Setting

PARTS = 4  # numbers of memory for a feature: w, η, w − w_prev, and one so that no cache line is cut
CACHE_LINE = 64  # bytes
INDEX, NUMBER = np.dtype(np.int64), np.dtype(np.float64)
NO_INDICES = np.empty(0, np.int64)


class FeatureRows(NamedTuple):
    """Rows of features; row t has values[begin[t]:begin[t + 1]], at these indices.

    Where all rows have the same `width`, `begin` is empty, and row t begins at t × width. Dense rows have no indices.
    `largest` is the largest |value|.
    """

    begin: Integers
    width: int
    indices: Integers
    values: Array
    largest: float

    def row(self, t: int, dense: bool) -> tuple[Any, Array]:
        """Return the indices of one row, each once, and the values there."""
        begin, end = self.begin[t : t + 2] if self.begin.size else (t * self.width, (t + 1) * self.width)
        where, values = np.arange(self.width) if dense else self.indices[begin:end], self.values[begin:end]
        each, which = np.unique(where, return_inverse=True)
        return (where, values) if len(each) == len(where) else (each, np.bincount(which, values).astype(float))


class Transitions(NamedTuple):
    """n checked transitions: rows of features of both states, (n,) numbers. x_next is not used where discount is 0.

    `layout` says how the rows lie in memory: "rows", "pairs", "single" or "dense".
    """

    x: FeatureRows
    x_next: FeatureRows
    reward: Array
    discount: Array
    rho: Array
    layout: str


def blank_memory(p: int) -> Array:
    """Return the memory of a learner that knows nothing, (p, PARTS), beginning on a cache line."""
    raw = np.zeros(p * PARTS * 8 + CACHE_LINE, np.uint8)
    begin = -raw.ctypes.data % CACHE_LINE
    return raw[begin : begin + p * PARTS * 8].view(np.float64).reshape(p, PARTS)


def largest_value(values: Array, indices: Integers, p: int) -> float:
    """Return the largest |value| of flat arrays; NaN where one is not finite, or an index not from 0 to p − 1."""
    from gradient_dd.engine.kernels import row_checks

    largest = np.int64(row_checks.largest_bits(values.view(np.int64))).view(np.float64)
    return float(largest) if largest < np.inf and row_checks.within(indices, p) else np.nan


def columns_are_sound(reward: Array, discount: Array, rho: Array) -> bool:
    """Return whether rewards are finite, discounts in [0, 1], and ratios finite and not negative; (n,) each."""
    from gradient_dd.engine.kernels import row_checks

    return bool(row_checks.columns_are_sound(reward, discount, rho))


def constants_of(setting: Setting) -> tuple[Array, Array, bool]:
    """Return what `run` needs of a setting: its step sizes, its own parameters, whether ρ stands on x' alone."""
    rule, values = setting.rule, setting.values
    own = [values[p.name] for p in rule.parameters if p.name not in ("alpha", "zeta") and not p.shared]
    return np.array([values["alpha"], values.get("zeta", 0.0)]), np.array(own or [0.0]), setting.rho_mode == "T"


def advance(
    memory: Array,
    scale: Array,
    setting: Setting,
    data: Transitions,
    factor: Array,
    previous: Integers,
    deltas: Array,
    first: int,
) -> int:
    """Make the steps from row `first` on; return the row at which it stopped, or how many rows there are.

    memory    (p, 4) w, η over its scale, w − w_prev, and a part that is not used
    scale     (1,) of η
    factor    (n,) of the schedule, or (1,) for all rows
    previous  the features at which w changed in the step before
    deltas    (n,) is filled with the TD errors
    """
    from gradient_dd.engine.kernels.stream import stream_kernel

    kernel = stream_kernel(setting.rule, data.layout)
    *columns, _ = data
    return int(kernel(memory, scale, *constants_of(setting), *columns, factor, previous, deltas, first))


class QuickStep:
    """The compiled step of one setting for a single transition. It takes plain arrays only."""

    def __init__(self, setting: Setting, p: int) -> None:
        from gradient_dd.engine.kernels.row_checks import row_is_sound
        from gradient_dd.engine.kernels.stream import stream_kernel

        self.p, self.row_is_sound, self.constants = p, row_is_sound, constants_of(setting)
        self.dense, self.sparse = (stream_kernel(setting.rule, layout) for layout in ("dense", "pairs"))
        self.scale, self.reward, self.discount, self.rho, self.factor, self.delta = np.empty((6, 1))

    def row(self, x: Any) -> FeatureRows | None:
        """Return a feature vector as the only row, or None unless it is sound and made of plain arrays."""
        indices, values = x if type(x) is tuple and len(x) == 2 else (NO_INDICES, x)
        for array, kind in ((indices, INDEX), (values, NUMBER)):
            if type(array) is not np.ndarray or array.dtype != kind or array.ndim != 1 or not array.flags.c_contiguous:
                return None
        size = values.size
        if size != (self.p if indices is NO_INDICES else indices.size) or not self.row_is_sound(
            indices, values, self.p
        ):
            return None
        return FeatureRows(NO_INDICES, size, indices, values, np.inf)

    def step(
        self,
        memory: Array,
        x: FeatureRows,
        x_next: FeatureRows,
        numbers: tuple[float, float, float, float, float],
        previous: Integers,
    ) -> tuple[float, float] | None:
        """Make a step and return its TD error and the scale of η; or None, changing nothing, where it is too large.

        numbers   scale of η, reward, discount, ratio, and factor of the schedule
        previous  the features at which w changed in the step before
        """
        self.scale[0], self.reward[0], self.discount[0], self.rho[0], self.factor[0] = numbers
        kernel = self.dense if x.indices is NO_INDICES else self.sparse
        columns = x, x_next, self.reward, self.discount, self.rho, self.factor
        done = kernel(memory, self.scale, *self.constants, *columns, previous, self.delta, 0)
        return (float(self.delta[0]), float(self.scale[0])) if done else None
