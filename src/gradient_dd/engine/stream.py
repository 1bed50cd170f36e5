"""Transitions of a user's own for one learner, compiled: rows of features in, steps made.

`stream.Learner` owns the memory, which changes in place. The compiler is loaded by the first call. Kernels get plain
tuples: Numba takes 1.7 µs to look through a named one.
"""

from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.learners import Setting

PARTS = 4  # numbers of memory for a feature: w, η, w − w_prev, and one so that no cache line is cut
CACHE_LINE = 64  # bytes
INDEX, NUMBER = np.dtype(np.int64), np.dtype(np.float64)
NO_INDICES = np.empty(0, np.int64)
IN_ORDER, UNORDERED, OUTSIDE = range(3)  # what `pairs_order` returns


class FeatureRows(NamedTuple):
    """Rows of features; row t has values[begin[t]:begin[t + 1]], at these indices, in order and each once.

    Where all rows have the same `width`, `begin` is empty, and row t begins at t × width. Dense rows have no indices.
    An index may stand again beside a value of 0. `largest` is the largest |value|.
    """

    begin: Integers
    width: int
    indices: Integers
    values: Array
    largest: float

    @property
    def dense(self) -> bool:
        """Whether every row has all features."""
        return bool(self.values.size) and not self.indices.size

    def row(self, t: int) -> Any:
        """Return one row as `Learner.update` takes it: a vector, or a pair (indices, values) with every index once."""
        begin, end = self.begin[t : t + 2] if self.begin.size else (t * self.width, (t + 1) * self.width)
        if self.dense:
            return self.values[begin:end]
        where, values = self.indices[begin:end], self.values[begin:end]
        once = np.diff(where, prepend=-1) != 0
        return where[once], values[once]


class FlatTransitions(NamedTuple):
    """n checked transitions: rows of features of both states, (n,) numbers. x_next is not used where discount is 0.

    `layout` says how the rows lie in memory: "rows", "pairs", "single" or "dense".
    """

    x: FeatureRows
    x_next: FeatureRows
    reward: Array
    discount: Array
    rho: Array
    layout: str


class StreamState(NamedTuple):
    """What a kernel changes.

    memory    (p, 4) w, η over its scale, w − w_prev, and a part that is not used
    scale     (1,) of η
    previous  the features at which w changed in the step before
    deltas    (n,) is filled with the TD errors
    """

    memory: Array
    scale: Array
    previous: Integers
    deltas: Array


def blank_memory(p: int, parts: int = PARTS) -> Array:
    """Return the memory of a learner that knows nothing, (p, parts), beginning on a cache line."""
    raw = np.zeros(p * parts * 8 + CACHE_LINE, np.uint8)
    begin = -raw.ctypes.data % CACHE_LINE
    return raw[begin : begin + p * parts * 8].view(np.float64).reshape(p, parts)


def plain(array: Any, kind: Any = np.float64) -> Any:
    """Return an array that is contiguous and may be written to: a kernel is compiled anew for any other."""
    return np.require(array, kind, ["C", "W"])


def largest_value(values: Array) -> float:
    """Return the largest |value| of an array; NaN where one is not finite."""
    from gradient_dd.engine.kernels import row_checks

    largest = np.int64(row_checks.largest_bits(values.ravel().view(np.int64))).view(np.float64)
    return float(largest) if largest < np.inf else np.nan


def pairs_order(indices: Integers, values: Array, p: int) -> int:
    """Return IN_ORDER, UNORDERED or OUTSIDE for (n, k) indices, each row by itself: OUTSIDE 0 to p − 1, or unordered.

    An index that stands again with a value of 0 is in order.
    """
    from gradient_dd.engine.kernels import row_checks

    return int(row_checks.pairs_order(indices.ravel(), values.ravel(), indices.shape[1], p))


def columns_are_sound(reward: Array, discount: Array, rho: Array) -> bool:
    """Return whether rewards are finite, discounts in [0, 1], and ratios finite and not negative; (n,) each."""
    from gradient_dd.engine.kernels import row_checks

    return bool(row_checks.columns_are_sound(reward, discount, rho))


def constants_of(setting: Setting) -> tuple[Array, Array, bool]:
    """Return what a kernel needs of a setting: its step sizes, its own parameters, whether ρ stands on x' alone."""
    rule, values = setting.rule, setting.values
    own = [values[p.name] for p in rule.parameters if p.name not in ("alpha", "zeta") and not p.shared]
    return np.array([values["alpha"], values.get("zeta", 0.0)]), np.array(own or [0.0]), setting.rho_mode == "T"


def advance(setting: Setting, state: StreamState, data: FlatTransitions, factor: Array, first: int) -> int:
    """Make the steps from row `first` on; return the row at which they stopped, or how many rows there are.

    `factor` of the schedule is (n,), or (1,) for all rows.
    """
    from gradient_dd.engine.kernels.stream import stream_kernel

    kernel = stream_kernel(setting.rule, data.layout)
    columns = data.reward, data.discount, data.rho, factor
    return int(kernel(tuple(state), constants_of(setting), tuple(data.x), tuple(data.x_next), columns, first))


def quick_row(x: Any, p: int) -> tuple[Any, ...] | None:
    """Return a feature vector as the only row, in a plain tuple; None unless it is sound and of plain arrays."""
    from gradient_dd.engine.kernels.row_checks import row_is_sound

    indices, values = x if type(x) is tuple and len(x) == 2 else (NO_INDICES, x)
    for array, kind in ((indices, INDEX), (values, NUMBER)):
        if type(array) is not np.ndarray or array.dtype != kind or array.ndim != 1 or not array.flags.c_contiguous:
            return None
    if values.size != (p if indices is NO_INDICES else indices.size):
        return None
    if not row_is_sound(indices, values, p):
        order = np.argsort(indices)
        if not order.size or not row_is_sound(indices[order], values[order], p):
            return None
        indices, values = indices[order], values[order]
    return NO_INDICES, values.size, indices, values, np.inf


class QuickStep:
    """The compiled step of one setting for a single transition. It takes plain arrays only."""

    def __init__(self, setting: Setting, p: int) -> None:
        from gradient_dd.engine.kernels.stream import stream_kernel

        self.p, self.constants = p, constants_of(setting)
        self.dense, self.sparse = (stream_kernel(setting.rule, layout) for layout in ("dense", "pairs"))
        self.scale, self.reward, self.discount, self.rho, self.factor, self.delta = np.empty((6, 1))
        self.columns = self.reward, self.discount, self.rho, self.factor

    def row(self, x: Any) -> tuple[Any, ...] | None:
        """Return a feature vector as the only row, in a plain tuple; None unless it is sound and of plain arrays."""
        return quick_row(x, self.p)

    def step(
        self, memory: Array, previous: Integers, x: tuple[Any, ...], x_next: tuple[Any, ...], numbers: tuple[float, ...]
    ) -> tuple[float, float] | None:
        """Make a step and return its TD error and the scale of η; or None, changing nothing, where it is too large.

        previous   the features at which w changed in the step before
        x, x_next  what `row` returned
        numbers    scale of η, reward, discount, ratio, and factor of the schedule
        """
        self.scale[0], self.reward[0], self.discount[0], self.rho[0], self.factor[0] = numbers
        kernel = self.dense if x[2] is NO_INDICES else self.sparse
        state = memory, self.scale, previous, self.delta
        done = kernel(state, self.constants, x, x_next, self.columns, 0)
        return (float(self.delta[0]), float(self.scale[0])) if done else None
