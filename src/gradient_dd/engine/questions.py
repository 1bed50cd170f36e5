"""Many questions about one stream, compiled. `stream.Questions` and `stream.StreamLanes` check what a user gives."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array, Booleans, Integers
from gradient_dd.engine.stream import FeatureRows, plain
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import PLAIN_SIGNALS, Rule, Setting

MOVES = ("w_x", "w_next", "w_z", "eta_x", "eta_next", "eta_z", "eta_eta")
TRACE_SIGNALS = ("z_eta", "b_eta")
QUALITY = (  # numbers of each lane
    *("ahead", "return", "value", "length", "wait"),  # of the return that is followed
    *("count", "error", "mean", "variance", "blame_weight"),
)
MEASURED_EVERY = 64  # steps after which δz goes into the projected error, which then costs little
LEFT = 0.01  # of the weight of a return: with less ahead it is taken as whole
FEWEST = 16  # lanes of a run, on average, for which sharing a trace pays; a cache line has as many in single precision


class GroupBounds(NamedTuple):
    """Between which numbers lanes stay: the scale of η, a move, an entry of a trace, and its share of the largest."""

    smallest_scale: float
    largest_scale: float
    move: float
    entry: float
    share: float


BOUNDS = {  # for single and double precision; the latter are those of `Learner`
    False: GroupBounds(1e-15, 1e15, 1e18, 1e30, 2.0**-24),
    True: GroupBounds(1e-150, 1e150, 1e150, float(np.finfo(float).max), 2.0**-53),
}


def check_rule(rule: Rule) -> None:
    """Raise unless lanes of questions know the rule."""
    if rule.natural:
        raise BadRequestError(f"Lanes of a stream cannot follow {rule.name}: its step does not take linear time.")
    rule.check_known("The lane engine of streams", (*PLAIN_SIGNALS, *TRACE_SIGNALS), MOVES)
    if asked := sorted(rule.trace_arguments & {"alpha", "x_trace"}):
        raise BadRequestError(
            f"Lanes of a stream cannot follow {rule.name}: its trace asks for {asked[0]!r} of each lane."
        )


class QuestionData(NamedTuple):
    """The numbers of n transitions. Columns of a *group* serve all its lanes; those of a *view* all its groups.

    reward    (n, lanes);  discount, rho  (n, groups);  seen  (n, views) whether the step belongs to the question
    pi, mu    (n, groups) probabilities of the action, or (0, groups) where no trace asks for them
    factor    (n,) on alpha
    """

    reward: Array
    discount: Array
    rho: Array
    seen: Booleans
    pi: Array
    mu: Array
    factor: Array


class QuestionMemory:
    """The weights and the traces of some lanes.

    settings  of one rule, one for each lane
    group     (lanes,) lanes of one group have the same discount, target and view, and the same setting of their trace
    view      (groups,) groups of one view see the same steps

    memory    (p, parts, slots) w and, where the rule has one, η over its scale; slots are lanes in the order of memory
    traces    (traces, p, columns); a column is a run of lanes that share it, or one lane where few would
    blame     (p, 1, slots) the sum of t δz, or (0, 1, slots) where it is not asked for;  quality  see QUALITY
    """

    saved = (
        *("memory", "scale", "stopped", "blame", "quality", "traces", "listed", "listed_count", "before", "kept"),
        *("last", "last_places", "last_count", "moved", "steps", "keep_all"),
    )

    def __init__(
        self,
        settings: Sequence[Setting],
        group: Integers,
        view: Integers,
        initial_w: Array,
        dtype: Any = np.float64,
        measured: bool = False,
    ) -> None:
        rule, p = settings[0].rule, len(initial_w)
        check_rule(rule)
        self.rule, self.settings = rule, tuple(settings)
        strip = 64 // np.dtype(dtype).itemsize
        self.shared = len(settings) >= FEWEST * len(view)
        self._lay_out(np.asarray(group), np.asarray(view), strip)
        slots, columns = self.slots, len(self.run_view) if self.shared else self.slots
        self.memory = blank((p, 2 if rule.has_eta else 1, slots), dtype)
        self.memory[:, 0] = initial_w[:, None]
        self.scale, self.stopped = np.ones(slots), np.full(slots, -1)
        self.blame, self.quality = blank((p if measured else 0, 1, slots), dtype), np.zeros((len(QUALITY), slots))
        names = [q.name for q in rule.parameters if q.name not in ("alpha", "zeta") and not q.shared]
        self.start, self.own = np.zeros((2, slots)), np.zeros((max(1, len(names)), slots))
        self.only_next = np.zeros(slots, bool)
        for slot, setting in zip(self.slot, settings, strict=True):
            self.start[:, slot] = setting.values["alpha"], setting.values.get("zeta", 0.0)
            self.own[: len(names), slot] = [setting.values[name] for name in names]
            self.only_next[slot] = setting.rho_mode == "T"
        firsts = self.begin[:-1] if self.shared else np.arange(slots)
        self.fixed = np.ascontiguousarray(self.own[:, firsts].T)
        many, kept = len(rule.traces), max([1, *(len(trace.memory) for trace in rule.traces)])
        self.traces = blank((many, p, columns), np.float64 if self.shared else dtype)
        self.listed, self.listed_count = np.zeros((many, p if many else 0), np.int64), np.zeros(many, np.int64)
        self.before, self.kept = np.zeros((columns, 4)), np.zeros((many, columns, kept))
        views, rows = int(self.run_view.max()) + 1, p if "x_change" in rule.arguments else 0
        self.last, self.last_places = np.zeros((views, rows, 2)), np.zeros((views, rows), np.int64)
        self.last_count, self.moved = np.zeros(views, np.int64), np.zeros((3, slots))
        self.steps, self.keep_all = 0, False

    def _lay_out(self, group: Integers, view: Integers, strip: int) -> None:
        """Set where lanes, runs and columns stand; every run begins on a cache line."""
        run_of_group = np.arange(len(view)) if self.shared else view  # a run of lanes sees the same steps
        self.run_view = view if self.shared else np.arange(int(view.max()) + 1)
        run = run_of_group[group]
        sizes = np.bincount(run, minlength=len(self.run_view))
        self.begin = np.concatenate([[0], np.cumsum(-(-sizes // strip) * strip)])
        order = np.argsort(run, kind="stable")
        place = np.arange(len(group)) - np.concatenate([[0], np.cumsum(sizes)])[run[order]]
        self.slot = np.empty(len(group), np.int64)
        self.slot[order] = self.begin[run[order]] + place
        self.slots = int(self.begin[-1])
        self.column_group = np.arange(len(view)) if self.shared else np.zeros(self.slots, np.int64)
        if not self.shared:
            self.column_group[self.slot] = group

    def regrouped(self, group: Integers, view: Integers) -> "QuestionMemory":
        """Return the same lanes in other groups, each a part of an old one, with what they have learnt."""
        other = QuestionMemory(self.settings, group, view, np.zeros(len(self.memory)), self.memory.dtype)
        old, new = self.slot, other.slot
        for name in ("memory", "scale", "stopped", "quality", "moved"):
            getattr(other, name)[..., new] = getattr(self, name)[..., old]
        old_column, new_column = self._column_of_lane(), other._column_of_lane()
        other.traces[..., new_column] = self.traces[..., old_column]
        other.before[new_column], other.kept[:, new_column] = self.before[old_column], self.kept[:, old_column]
        for name in ("listed", "listed_count", "last", "last_places", "last_count"):
            getattr(other, name)[:] = getattr(self, name)
        other.steps, other.keep_all = self.steps, self.keep_all
        return other

    def _column_of_lane(self) -> Integers:
        return np.searchsorted(self.begin, self.slot, side="right") - 1 if self.shared else self.slot

    @property
    def w(self) -> Array:
        """(lanes, p) the weights; a copy."""
        return self.memory[:, 0].T[self.slot].astype(float)

    @property
    def eta(self) -> Array:
        """(lanes, p) the secondary weights; a copy."""
        if self.memory.shape[1] == 1:
            return np.zeros_like(self.w)
        return self.memory[:, 1].T[self.slot] * self.scale[self.slot][:, None]

    def advance(self, x: FeatureRows, x_next: FeatureRows, data: QuestionData) -> None:
        """Make a step of every lane for each of n rows; a row of x_next is not used where all its discounts are 0."""
        from gradient_dd.engine.kernels.compiler import subnormals_flushed
        from gradient_dd.engine.kernels.questions import questions_kernel

        self.keep_all = self.keep_all or x.dense  # as `Learner` does: a trace of dense rows stays dense
        kernel = questions_kernel(self.rule, self.shared, self.memory.dtype == np.float64)
        reward = np.zeros((len(data.factor), self.slots))
        reward[:, self.slot] = data.reward
        by_group = [plain(one[:, self.column_group]) for one in (data.discount, data.rho, data.pi, data.mu)]
        given = reward, *by_group[:2], plain(data.seen, bool), *by_group[2:], plain(data.factor)
        state = (
            (self.memory, self.scale, self.stopped, self.blame, self.quality),
            (self.traces, self.listed, self.listed_count, self.before, self.kept),
            (self.last, self.last_places, self.last_count, self.moved),
        )
        constants = (self.start, self.own, self.only_next), self.fixed, (self.begin, plain(self.run_view, np.int64))
        with np.errstate(all="ignore"), subnormals_flushed():
            kernel(state, constants, tuple(x), tuple(x_next), given, (self.steps, self.keep_all, x.dense))
        self.steps += len(data.factor)


def blank(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array of zeros that begins on a cache line."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + size].view(dtype).reshape(shape)
