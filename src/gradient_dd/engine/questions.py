"""The memory of many questions about one stream. `stream.Questions` checks the user's data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.engine.single import FeatureRows, aligned, plain
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import PLAIN_SIGNALS, Rule, Setting

MOVES = ("w_x", "w_next", "w_z", "eta_x", "eta_next", "eta_z", "eta_eta")
TRACE_SIGNALS = ("z_eta", "b_eta")
QUALITY = (  # the numbers of a lane that measure its quality
    *("ahead", "return", "value", "length", "wait"),  # state of the return that the lane follows
    *("count", "error", "mean", "variance", "blame_weight"),
)
MEASURED_EVERY = 64  # steps between measurements of δz for the projected error, so that they cost little
LEFT = 0.01  # fraction of a return's weight; if less remains ahead, the return counts as complete
FEWEST = 16  # mean number of lanes per range at which ranges share traces: a cache line in single precision


class GroupBounds(NamedTuple):
    """Bounds for lanes: on the scale of η, a move, a trace entry, and the entry's share of the largest entry."""

    smallest_scale: float
    largest_scale: float
    move: float
    entry: float
    share: float


BOUNDS = {  # False: single precision; True: double precision, as in `Learner`
    False: GroupBounds(1e-15, 1e15, 1e18, 1e30, 2.0**-24),
    True: GroupBounds(1e-150, 1e150, 1e150, float(np.finfo(float).max), 2.0**-53),
}


def check_rule(rule: Rule) -> None:
    """Raise unless lanes of questions support the rule."""
    if rule.natural:
        raise BadRequestError(
            f"The lane engine of streams does not support {rule.name}: its step does not take linear time."
        )
    rule.check_known("The lane engine of streams", (*PLAIN_SIGNALS, *TRACE_SIGNALS), MOVES)
    if asked := sorted(rule.trace_arguments & {"alpha", "x_trace"}):
        raise BadRequestError(
            f"The lane engine of streams does not support {rule.name}: its trace uses {asked[0]!r} of each lane."
        )


class QuestionData(NamedTuple):
    """The numbers of n transitions. All lanes of a *group* share a column, and so do all groups of a *view*.

    reward    (n, lanes);  discount, rho  (n, groups);  seen  (n, views) whether the step belongs to the question
    pi, mu    (n, groups) probabilities of the action, or (0, groups) if no trace uses them
    factor    (n,) multiplies alpha;  cut  (n,) whether the episode was cut after the step
    """

    reward: Array
    discount: Array
    rho: Array
    seen: Booleans
    pi: Array
    mu: Array
    factor: Array
    cut: Booleans


class JoinedRow(NamedTuple):
    """The features of x or x' in one step: `length` sorted indices, and the values of x and of x' there."""

    places: Integers
    here: Array
    there: Array
    length: int


class LaneTraces(NamedTuple):
    """Traces: `values` (traces, p, columns), `listed` (traces, p) features with a nonzero value, and their `counts`.

    before   (columns, 4) discount, ratio, pi and mu of the previous transition
    numbers  (traces, columns, most) numbers that traces remember
    """

    values: Array
    listed: Integers
    counts: Integers
    before: Array
    numbers: Array


class LastStep(NamedTuple):
    """The last step of each view: rows (views, p, 2) of x and x', `counts` of `places`; moved (3, slots): w's moves."""

    rows: Array
    places: Integers
    counts: Integers
    moved: Array


class LaneConstants(NamedTuple):
    """Constants: start (2, slots): alpha, zeta; own parameters (…, slots), fixed (columns, …); only_next: ρ on x'."""

    start: Array
    own: Array
    only_next: Booleans
    fixed: Array


class LaneRanges(NamedTuple):
    """The lanes from begin[k] to begin[k + 1] see the steps of views[k]."""

    begin: Integers
    views: Integers


class QuestionMemory:
    """The weights and the traces of the lanes of questions.

    settings  one per lane, all of the same rule
    group     (lanes,) lanes of one group have the same discount, target, view and trace parameters
    view      (groups,) groups of one view see the same steps

    memory    (p, parts, slots) w and, if the rule has it, η / scale; slots are lanes in the order of memory
    traces    (traces, p, columns); a column belongs to a range of lanes, or to one lane if ranges are small
    blame     (p, 1, slots) the sum of t δz;  quality  (QUALITY, slots)
    """

    saved = (
        *("memory", "scale", "stopped", "blame", "quality", "traces", "listed", "listed_count", "before", "numbers"),
        *("last", "last_places", "last_count", "moved"),
    )

    def __init__(
        self,
        settings: Sequence[Setting],
        group: Integers,
        view: Integers,
        initial_w: Array,
        dtype: Any = np.float64,
    ) -> None:
        rule, p = settings[0].rule, len(initial_w)
        check_rule(rule)
        self.rule, self.settings = rule, tuple(settings)
        strip = 64 // np.dtype(dtype).itemsize
        self.shared = len(settings) >= FEWEST * len(view)
        self._lay_out(np.asarray(group), np.asarray(view), strip)
        slots, columns = self.slots, len(self.range_view) if self.shared else self.slots
        self.memory = aligned((p, 2 if rule.has_eta else 1, slots), dtype)
        self.memory[:, 0] = initial_w[:, None]
        self.scale, self.stopped = np.ones(slots), np.full(slots, -1)
        self.blame, self.quality = aligned((p, 1, slots), dtype), np.zeros((len(QUALITY), slots))
        names = rule.own_parameters
        self.start, self.own = np.zeros((2, slots)), np.zeros((max(1, len(names)), slots))
        self.only_next = np.zeros(slots, bool)
        for slot, setting in zip(self.slot, settings, strict=True):
            self.start[:, slot] = setting.values["alpha"], setting.values.get("zeta", 0.0)
            self.own[: len(names), slot] = [setting.values[name] for name in names]
            self.only_next[slot] = setting.rho_mode == "T"
        firsts = self.begin[:-1] if self.shared else np.arange(slots)
        self.fixed = np.ascontiguousarray(self.own[:, firsts].T)
        many, most = len(rule.traces), max([1, *(len(trace.memory) for trace in rule.traces)])
        self.traces = aligned((many, p, columns), np.float64 if self.shared else dtype)
        self.listed, self.listed_count = np.zeros((many, p if many else 0), np.int64), np.zeros(many, np.int64)
        self.before, self.numbers = np.zeros((columns, 4)), np.zeros((many, columns, most))
        views, rows = int(self.range_view.max()) + 1, p if "x_change" in rule.arguments else 0
        self.last, self.last_places = np.zeros((views, rows, 2)), np.zeros((views, rows), np.int64)
        self.last_count, self.moved = np.zeros(views, np.int64), np.zeros((3, slots))
        self.steps, self.dense = 0, False

    def _lay_out(self, group: Integers, view: Integers, strip: int) -> None:
        """Assign lanes, ranges and columns to places in memory; every range begins on a cache line."""
        range_of_group = np.arange(len(view)) if self.shared else view  # all lanes of a range see the same steps
        self.range_view = plain(view if self.shared else np.arange(int(view.max()) + 1), np.int64)
        of_lane = range_of_group[group]
        sizes = np.bincount(of_lane, minlength=len(self.range_view))
        self.begin = np.concatenate([[0], np.cumsum(-(-sizes // strip) * strip)])
        order = np.argsort(of_lane, kind="stable")
        place = np.arange(len(group)) - np.concatenate([[0], np.cumsum(sizes)])[of_lane[order]]
        self.slot = np.empty(len(group), np.int64)
        self.slot[order] = self.begin[of_lane[order]] + place
        self.slots = int(self.begin[-1])
        self.column_group = np.arange(len(view)) if self.shared else np.zeros(self.slots, np.int64)
        if not self.shared:
            self.column_group[self.slot] = group

    @property
    def w(self) -> Array:
        """A copy of the weights, (lanes, p)."""
        return self.memory[:, 0].T[self.slot].astype(float)

    @property
    def eta(self) -> Array:
        """A copy of the secondary weights, (lanes, p)."""
        if self.memory.shape[1] == 1:
            return np.zeros_like(self.w)
        return self.memory[:, 1].T[self.slot] * self.scale[self.slot][:, None]

    def predict(self, x: FeatureRows) -> Array:
        """Return the predictions for n rows, (n, lanes)."""
        found, w = np.zeros((len(x.begin) - 1, len(self.slot))), self.memory[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):  # the caller rejects values that are not finite
            for t in range(len(found)):
                cut = slice(x.begin[t], x.begin[t + 1])
                found[t] = (x.values[cut] @ (w if x.dense else w[x.indices[cut]]))[self.slot]
        return found

    def advance(self, x: FeatureRows, x_next: FeatureRows, data: QuestionData) -> None:
        """Make one step of every lane for each of n rows; a row of x_next is not read if all its discounts are 0."""
        from gradient_dd.engine.kernels.compiler import subnormals_flushed
        from gradient_dd.engine.kernels.questions import questions_kernel

        self.dense = self.dense or x.dense  # as in `Learner`: a trace of dense rows stays dense
        kernel = questions_kernel(self.rule, self.shared, self.memory.dtype == np.float64)
        reward = np.zeros((len(data.factor), self.slots))
        reward[:, self.slot] = data.reward
        by_group = [plain(one[:, self.column_group]) for one in (data.discount, data.rho, data.pi, data.mu)]
        given = reward, *by_group[:2], plain(data.seen, bool), *by_group[2:], plain(data.factor), plain(data.cut, bool)
        lanes = self.memory, self.scale, self.stopped, self.blame, self.quality
        traces = self.traces, self.listed, self.listed_count, self.before, self.numbers
        last = self.last, self.last_places, self.last_count, self.moved
        constants, ranges = (self.start, self.own, self.only_next, self.fixed), (self.begin, self.range_view)
        with np.errstate(all="ignore"), subnormals_flushed():
            done = self.steps, self.dense, x.dense
            kernel(lanes, traces, last, constants, ranges, tuple(x), tuple(x_next), given, done)
        self.steps += len(data.factor)
