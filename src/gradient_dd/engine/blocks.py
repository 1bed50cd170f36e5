"""Blocks: lanes that are advanced by one call of one kernel.

Settings of one rule share a block, and so do those of several rules that have few settings each.

Lanes that have diverged stop costing. What is still to come of such a lane is known, for its error is infinite at every
point from then on. So between two pieces of a run the other lanes are copied into a smaller block, as soon as that
saves a strip, and the errors of those left behind are filled in. Every result has the same bits as without it.
"""

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Segments
from gradient_dd.engine.kernels.compiler import subnormals_flushed
from gradient_dd.engine.kernels.errors import Errors, Measure, no_errors
from gradient_dd.engine.kernels.fused import fused_kernel
from gradient_dd.engine.kernels.rows import WIDEST, OutcomeRows, Shape
from gradient_dd.engine.kernels.rules import MEMBER, Parts, has_steady_shrink, joint_rule
from gradient_dd.engine.kernels.state import MOST_LANES, Lanes, new_lanes, padded_lanes
from gradient_dd.engine.kernels.traced import traced_kernel
from gradient_dd.engine.single import aligned
from gradient_dd.errors import Unquoted, bad_request
from gradient_dd.learners import Rule, Setting

FEW = 16  # lanes of a rule up to which they join those of others
PER_LANE = ("w", "eta", "start", "change")  # arrays with a column for each lane, beside its fields
NOTHING = Segments(*(np.zeros(0, kind) for kind in (np.int64, float, np.int64, bool, np.int64, np.int64)))
COMPILING: dict[Any, Lock] = {}  # for each kernel, the lock that the thread compiling it holds
COMPILING_GUARD = Lock()  # held while COMPILING is read or changed

Group = tuple[list[int], list[Setting]]  # places among all settings, and what runs there


# Which settings share a block ------------------------------------------------------------------------------------


def is_fused(rule: Rule, shape: Shape) -> bool:
    """Return whether the fused kernel runs a rule; the traced one takes the others."""
    return rule.is_plain and shape.width <= WIDEST and (shape.one_hot or not rule.natural)


def can_join(rule: Rule) -> bool:
    """Return whether lanes of a rule may stand beside those of others.

    A natural rule has a metric of its own, and a shrink of η that is not steady would make all lanes divide.
    """
    return rule.is_plain and not rule.natural and ("eta_eta" not in rule.moves or has_steady_shrink(rule))


def join_few(settings: Sequence[Setting], groups: Iterable[list[int]], fits: Callable[[Setting], bool]) -> list[Group]:
    """Merge small groups whose rules may join and whose settings `fits` accepts; return all groups with their settings.

    A group holds the places of settings with one rule and one placement of ρ. Groups that differ in the placement of ρ
    are not merged.
    """
    alone: list[list[int]] = []
    few: dict[str, list[list[int]]] = {}
    for group in groups:
        first = settings[group[0]]
        joins = len(group) <= FEW and can_join(first.rule) and fits(first)
        (few.setdefault(first.rho_mode, []) if joins else alone).append(group)
    alone += [groups[0] for groups in few.values() if len(groups) == 1]
    together = [groups for groups in few.values() if len(groups) > 1]
    rules = {settings[group[0]].rule for groups in together for group in groups}
    parts = tuple(sorted(rules, key=lambda rule: (rule.name, rule.key)))  # in one order, for all ρ: one kernel
    made = [(group, [settings[place] for place in group]) for group in alone]
    return made + [join(settings, groups, parts) for groups in together]


def join(settings: Sequence[Setting], groups: list[list[int]], parts: Parts) -> Group:
    """Return several groups as one, whose lanes have a joint rule."""
    rule = joint_rule(parts)
    places = [place for group in groups for place in group]
    lanes = []
    for setting in (settings[place] for place in places):
        member = {MEMBER.name: float(parts.index(setting.rule))}
        lanes.append(Setting(rule, rule.defaults | dict(setting.values) | member))
    return places, lanes


# A block and its kernel ------------------------------------------------------------------------------------------


class LaneTask(NamedTuple):
    """A task as input of kernels, for one rho_mode: tables, error, initial weights (p,), bins of the curve, π, μ."""

    table: OutcomeRows
    shape: Shape
    error: Measure
    initial_w: Array
    bins: int
    probabilities: tuple[Array, Array]


class Block:
    """Lanes of one rule that are advanced by one call of one kernel.

    While some lanes are left behind because they have diverged, those that go on are in `small`; `unpacked` puts them
    back into `lanes` and `errors`.
    """

    def __init__(self, settings: Sequence[Setting], lanes: int, task: LaneTask) -> None:
        rule, shape = settings[0].rule, task.shape
        self.settings, self.table, self.is_fused = settings, task.table, is_fused(rule, shape)
        self.error = task.error._replace(rows=task.error.rows.ravel(), values=task.error.values.ravel())
        self.lanes = new_lanes(settings, lanes, shape.width, task.initial_w, task.probabilities, self.is_fused)
        self.errors = no_errors(lanes, task.bins)
        self.small: Packed | None = None
        self.seconds = 0.0
        self._compile(rule, shape, task.error.rows.shape[1])
        self.seconds = 0.0  # of the kernel, compiling left out

    def _compile(self, rule: Rule, shape: Shape, terms: int) -> None:
        """Set the kernel, compiled; `terms` is how many non-zeros a row of the error has."""
        with COMPILING_GUARD:
            compiling = COMPILING.setdefault((rule, shape, terms) if self.is_fused else rule, Lock())
        with compiling:  # one thread compiles, others that need it wait
            self.kernel = fused_kernel(rule, shape, terms) if self.is_fused else traced_kernel(rule)
            try:
                self.advance(np.zeros(1, np.int32), NOTHING)
            except Exception as error:  # Numba has many kinds
                reason = Unquoted(str(error).strip().splitlines()[-1])
                what = f"The step of the rule {rule.name!r}"
                raise bad_request(what, "be arithmetic on scalars that Numba can compile", reason) from error

    def advance(self, column: NDArray[np.int32], segments: Any) -> None:
        """Advance all lanes over a piece of the trajectory, then leave behind those that have diverged."""
        begin = perf_counter()
        lanes, errors = (self.lanes, self.errors) if self.small is None else (self.small.lanes, self.small.errors)
        if len(errors.now):
            with subnormals_flushed():
                self.kernel(column, segments, self.table, self.error, lanes, errors)
        if self.small is not None:
            behind = np.setdiff1d(np.arange(len(self.settings)), self.small.places)
            add_infinite_errors(self.errors, behind, segments)
        if saves_a_strip(errors.diverged, len(self.settings if self.small is None else self.small.places)):
            self.unpacked()
            places = np.flatnonzero(self.errors.diverged[: len(self.settings)] == 0)
            self.small = packed(self.lanes, self.errors, places)
        self.seconds += perf_counter() - begin

    def unpacked(self) -> "Block":
        """Return the block itself, with all lanes in `lanes` and `errors`."""
        if self.small is not None:
            unpack(self.small, self.lanes, self.errors)
            self.small = None
        return self

    def weights(self, p: int) -> tuple[Array, Array]:
        """Return w and η, (lanes, p) each; those of a lane that has diverged are from some time after."""
        self.unpacked()
        block, count = len(self.errors.now), len(self.settings)
        w, eta = (array.reshape(-1, block)[:p, :count].T.copy() for array in (self.lanes.w, self.lanes.eta))
        scale = self.lanes.fields.reshape(-1, MOST_LANES)[-1, :count]
        return w, eta * scale[:, None]


# Leaving diverged lanes behind -----------------------------------------------------------------------------------


class Packed(NamedTuple):
    """The lanes of a block that go on, in arrays of their own; `places` are theirs in the whole block."""

    places: NDArray[np.int64]
    lanes: Lanes
    errors: Errors


def saves_a_strip(diverged: NDArray[np.int64], count: int) -> bool:
    """Return whether a block without its diverged lanes has fewer strips.

    `diverged` is that of `Errors`, of which the first `count` lanes have a setting.
    """
    return padded_lanes(int(np.sum(diverged[:count] == 0))) < len(diverged) // 2


def packed(lanes: Lanes, errors: Errors, places: NDArray[np.int64]) -> Packed:
    """Return copies of the lanes at some places, filled up to whole strips with copies of the last of them."""
    size, block = len(errors.now), padded_lanes(len(places))
    columns = np.concatenate([places, np.repeat(places[-1:], block - len(places))])

    def chosen(array: Array, width: int = size, room: int = block) -> Array:
        rows = array.reshape(-1, width)
        copy = aligned((len(rows), room))
        copy[:, :block] = rows[:, columns]
        return copy.ravel()

    copies: dict[str, Any] = {name: chosen(getattr(lanes, name)) for name in PER_LANE}
    small = lanes._replace(**copies, fields=chosen(lanes.fields, MOST_LANES, MOST_LANES))
    sums = {name: chosen(getattr(errors, name)) for name in ("now", "total", "last", "curve")}
    return Packed(places, small, Errors(**sums, diverged=errors.diverged.reshape(2, -1)[:, columns].ravel()))


def unpack(small: Packed, lanes: Lanes, errors: Errors) -> None:
    """Copy the lanes that went on back to their places in the whole block."""
    places, size, block = small.places, len(errors.now), len(small.errors.now)
    pairs = [(getattr(small.lanes, name), getattr(lanes, name)) for name in PER_LANE]
    for source, target in [*pairs, *zip(small.errors, errors, strict=True)]:
        rows = target.reshape(-1, size)
        rows[:, places] = source.reshape(len(rows), block)[:, : len(places)]
    fields, source = (array.reshape(-1, MOST_LANES) for array in (lanes.fields, small.lanes.fields))
    fields[:, places] = source[:, : len(places)]


def add_infinite_errors(errors: Errors, places: NDArray[np.int64], segments: Segments) -> None:
    """Add what a piece of the run brings to lanes that were left behind: an infinite error at every point."""
    points = np.unique(segments.point[segments.point >= 0])
    if len(points):
        errors.total[places] = np.inf
        errors.curve.reshape(-1, len(errors.now))[np.ix_(points, places)] = np.inf
    if segments.last.any():
        errors.last[places] = np.inf
