"""The memory of one learner on a user's transitions, and feature rows in the layout that compiled functions read.

`stream.Learner` checks the user's data. The first call of a kernel loads the compiler. Kernels take plain tuples,
because Numba needs 1.7 µs to unpack a named tuple.
"""

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Integers
from gradient_dd.learners import Setting

PARTS = 4  # numbers in memory per feature
W, ETA, CHANGE, OLD = range(PARTS)  # w, η / scale, w − w_prev, and space for the previous w − w_prev
CHANGED, HALF, DENSE = range(3)  # places in `counts`: length of `changed`; current half and density of the traces
EVERYWHERE = -1  # in place of a number of changed features: w may have changed at any feature
LIMIT = 1e150  # a weight that moves further in one step has diverged; the square of the limit is still finite
SCALE_RANGE = (1e-150, 1e150)  # range of the common scale of η; outside it, the scale is multiplied into η
PIECE = 1024  # rows sorted at a time, so that learning still finds them in the cache
MOST_SORTED = 128  # kernels sort rows of up to this many features; NumPy sorts longer rows
CACHE_LINE = 64  # size in bytes
INDEX, NUMBER = np.dtype(np.int64), np.dtype(np.float64)
NO_INDICES = np.empty(0, np.int64)
IN_ORDER, UNORDERED, OUTSIDE = range(3)  # return values of `pairs_order`


class FeatureRows(NamedTuple):
    """Rows of features: row t is begin[t]:begin[t + 1] of `values` and of `indices`, which are sorted and unique.

    If all rows have the same `width`, `begin` is empty, and row t begins at t × width. Dense rows have no indices.
    An index may be repeated only with a value of 0. `largest` is an upper bound of |value|.
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
        """Return one row as `Learner.update` accepts it: a vector, or a pair (indices, values) with unique indices."""
        begin, end = self.begin[t : t + 2] if self.begin.size else (t * self.width, (t + 1) * self.width)
        if self.dense:
            return self.values[begin:end]
        where, values = self.indices[begin:end], self.values[begin:end]
        once = np.diff(where, prepend=-1) != 0
        return where[once], values[once]

    def part(self, begin: int, end: int) -> "FeatureRows":
        """Return the rows from `begin` to `end`, if all rows have the same width."""
        cut = slice(begin * self.width, end * self.width)
        return self._replace(indices=self.indices[cut], values=self.values[cut])

    def in_order(self) -> "FeatureRows":
        """Return rows of one width with their indices sorted, and the values of equal indices added up."""
        from gradient_dd.engine.kernels.feature_rows import add_equal, sort_rows

        indices, values = np.empty_like(self.indices), np.empty_like(self.values)
        if self.width <= MOST_SORTED and self.indices.max() < 2**31:  # the kernel sorts 32-bit keys
            sort_rows(self.indices, self.values, self.width, indices, values)
        else:
            given: list[Any] = [one.reshape(-1, self.width) for one in (self.indices, self.values)]
            order = np.argsort(given[0], axis=1, kind="stable")
            indices, values = (np.take_along_axis(one, order, axis=1).ravel() for one in given)
        add_equal(indices, values, self.width)
        return self._replace(indices=indices, values=values)


class FlatTransitions(NamedTuple):
    """n checked transitions: feature rows of both states, and (n,) numbers. x_next is not used if the discount is 0.

    `layout` is the layout of the rows in memory: "rows", "pairs", "single", "dense", or "unordered" (unsorted pairs).
    """

    x: FeatureRows
    x_next: FeatureRows
    reward: Array
    discount: Array
    rho: Array
    layout: str

    def __len__(self) -> int:
        return len(self.reward)

    def pieces(self) -> Iterator[tuple[slice, "FlatTransitions"]]:
        """Yield (slice, transitions) for pieces with sorted rows; a single piece if the rows are already sorted."""
        if self.layout != "unordered":
            yield slice(0, len(self.reward)), self
            return
        for begin in range(0, len(self.reward), PIECE):
            where = slice(begin, min(begin + PIECE, len(self.reward)))
            x, x_next = (one.part(where.start, where.stop).in_order() for one in (self.x, self.x_next))
            reward, discount, rho = (column[where] for column in (self.reward, self.discount, self.rho))
            yield where, FlatTransitions(x, x_next, reward, discount, rho, "pairs")


class TraceArrays(NamedTuple):
    """The traces of a learner in two halves: the current traces, and space in which a step computes the next ones.

    before   (4,) discount, ratio and probabilities of the previous transition, 0 at the start of an episode
    numbers  (2, traces, most) numbers that traces remember
    places   (2, traces, p) sorted indices of non-zeros;  values  (2, traces, p);  lengths  (2, traces)
    """

    before: Array
    numbers: Array
    places: Integers
    values: Array
    lengths: Integers


class SingleMemory:
    """The weights of one learner and its state between steps, which kernels update in place.

    constants  alpha and zeta, the rule's own parameters, and whether ρ multiplies x' only
    parts      (p, PARTS) the numbers of one feature are adjacent
    scale      (1,) the scale of η
    counts     (3,) see CHANGED
    changed    the features of x, x' and a trace at which w changed in the last step, possibly repeated
    """

    def __init__(self, setting: Setting, p: int) -> None:
        rule = setting.rule
        own = [setting.values[name] for name in rule.own_parameters]
        sizes = np.array([setting.values["alpha"], setting.values.get("zeta", 0.0)])
        self.rule, self.constants = rule, (sizes, np.array(own or [0.0]), setting.rho_mode == "T")
        self.uses_change = "x_change" in rule.arguments or "w_change" in rule.moves
        traces, most = max(1, len(rule.traces)), max([1, *(len(trace.memory) for trace in rule.traces)])
        room = p if rule.traces else 0
        self.parts, self.scale, self.counts = aligned((p, PARTS)), np.ones(1), np.zeros(3, np.int64)
        self.changed = np.empty((2 + len(rule.traces)) * p if self.uses_change else 0, np.int64)
        self.traces = TraceArrays(
            np.zeros(4),
            np.zeros((2, traces, most)),
            np.empty((2, traces, room), np.int64),
            np.empty((2, traces, room)),
            np.zeros((2, traces), np.int64),
        )
        self._tie()

    def _tie(self) -> None:
        """Set the arguments that all kernel calls share."""
        self.state = (self.parts, self.scale, self.counts, self.changed, *self.traces)
        self.row, self.kernels = np.empty(7), dict[bool, Any]()  # scratch and kernels for single steps

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy or pickle, which contains every array once."""
        return self.__dict__ | {"state": None, "row": None, "kernels": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.parts = aligned(state["parts"].shape)
        self.parts[:] = state["parts"]
        self._tie()

    def forget_traces(self) -> None:
        """Restart the traces with the next step, as after the end of an episode."""
        self.traces.before[:] = 0.0

    def forget_change(self) -> None:
        """Set w − w_prev to zero where the last step moved w: at features of x and x', and along a trace."""
        change, half = self.parts[:, CHANGE], self.counts[HALF]
        count = self.counts[CHANGED]
        change[slice(None) if count == EVERYWHERE else self.changed[:count]] = 0.0
        for places, length in zip(self.traces.places[half], self.traces.lengths[half], strict=True):
            change[places[:length]] = 0.0

    def note_change(self, *places: Any) -> None:
        """Record the features at which a step moved w; a full slice stands for all features."""
        if any(isinstance(one, slice) and one == slice(None) for one in places):
            self.counts[CHANGED] = EVERYWHERE
            return
        listed = [one for one in places if not isinstance(one, slice)]
        self.counts[CHANGED] = count = sum(map(len, listed))
        self.changed[:count] = np.concatenate([NO_INDICES, *listed])

    def advance(self, data: FlatTransitions, columns: tuple[Any, ...], first: int) -> int:
        """Make the steps from row `first` on; return the row at which they stopped, or the number of rows.

        columns  pi and mu, (n,) or (0,) if not given; the factor of the schedule, (n,) or (1,) for all rows; whether
                 the episode was cut, (n,) or (0,); and (n,) to fill with the TD errors
        """
        from gradient_dd.engine.kernels.stream import stream_kernel

        kernel = stream_kernel(self.rule, data.layout)
        given = data.reward, data.discount, data.rho, *columns
        return int(kernel(self.state, self.constants, tuple(data.x), tuple(data.x_next), given, first))

    def step(self, x: tuple[Any, Any], x_next: tuple[Any, Any], *numbers: float) -> float | None:
        """Make a step with two rows from `plain_rows`, and return its TD error.

        Return None and change nothing if a row is invalid, or if the step would leave its bounds or reset η to 0.
        `numbers` are reward, discount, rho, pi, mu and the factor of the schedule.
        """
        dense = x[0] is NO_INDICES
        if dense not in self.kernels:
            from gradient_dd.engine.kernels.stream import step_kernel

            self.kernels[dense] = step_kernel(self.rule, dense)
        delta = self.kernels[dense](self.state, self.constants, *x, *x_next, self.row, *numbers)
        return delta if delta == delta else None


def plain_row(x: Any, p: int) -> tuple[Any, Any] | None:
    """Return the indices (NO_INDICES if dense) and values of a feature vector, or None unless they are plain arrays."""
    if type(x) is not tuple:
        fits = type(x) is np.ndarray and x.dtype is NUMBER and x.shape == (p,) and x.flags.carray
        return (NO_INDICES, x) if fits else None
    if len(x) != 2 or type(x[0]) is not np.ndarray or type(x[1]) is not np.ndarray:
        return None
    indices, values = x
    if indices.dtype is not INDEX or values.dtype is not NUMBER or indices.ndim != 1 or indices.shape != values.shape:
        return None
    return x if indices.flags.carray and values.flags.carray else None


def plain_rows(x: Any, x_next: Any, p: int) -> tuple[tuple[Any, Any], tuple[Any, Any]] | None:
    """Return two feature vectors as `plain_row` does, or None unless both are dense or both sparse."""
    row = plain_row(x, p)
    next_row = row if x_next is x else plain_row(x_next, p)
    if row is None or next_row is None or (row[0] is NO_INDICES) != (next_row[0] is NO_INDICES):
        return None
    return row, next_row


def sound_rows(x: Any, x_next: Any, p: int) -> tuple[tuple[Any, Any], tuple[Any, Any]] | None:
    """Return two feature vectors as `plain_rows` does; None unless they are finite with sorted, unique indices."""
    from gradient_dd.engine.kernels.feature_rows import rows_are_sound

    rows = plain_rows(x, x_next, p)
    return rows if rows is not None and rows_are_sound(*rows[0], *rows[1], p) else None


def aligned(shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Return an array of zeros that begins on a cache line.

    NumPy aligns to 16 bytes, and a vector access that straddles two lines takes 1.3 to 1.6 times as long.
    """
    size = prod(shape) * np.dtype(dtype).itemsize
    raw = np.zeros(size + CACHE_LINE, np.uint8)
    begin = -raw.ctypes.data % CACHE_LINE
    return raw[begin : begin + size].view(dtype).reshape(shape)


def plain(array: Any, kind: Any = np.float64) -> Any:
    """Return the array as a contiguous, writable one; a kernel would be compiled again for any other layout."""
    return np.require(array, kind, ["C", "W"])


def largest_value(values: Array) -> float:
    """Return the largest |value| of an array; NaN if one is not finite."""
    from gradient_dd.engine.kernels import feature_rows

    largest = np.int64(feature_rows.largest_bits(values.ravel().view(np.int64))).view(np.float64)
    return float(largest) if largest < np.inf else np.nan


def pairs_order(indices: Integers, p: int) -> int:
    """Return IN_ORDER or UNORDERED for the rows of (n, k) indices; OUTSIDE unless all indices are from 0 to p − 1."""
    from gradient_dd.engine.kernels import feature_rows

    return int(feature_rows.pairs_order(indices.ravel(), indices.shape[1], p))


def columns_are_sound(reward: Array, discount: Array, rho: Array) -> bool:
    """Return whether rewards are finite, discounts in [0, 1], and ratios finite and non-negative; (n,) each."""
    from gradient_dd.engine.kernels import feature_rows

    return bool(feature_rows.columns_are_sound(reward, discount, rho))
