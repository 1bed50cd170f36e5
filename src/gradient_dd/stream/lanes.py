"""StreamLanes: many settings of one rule, or many questions, learnt side by side from one stream of transitions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, Integers, check_memory, dimensions, numbers
from gradient_dd.engine.questions import QuestionData, QuestionMemory
from gradient_dd.engine.schedules import Schedule, check_schedule, constant
from gradient_dd.engine.stream_lanes import LaneMemory
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, one_of, whole_number
from gradient_dd.learners import Setting
from gradient_dd.stream.transitions import (
    check_each,
    checked_columns,
    checked_next_rows,
    checked_rows,
    column,
    coming_factors,
    start_weights,
)

PRECISIONS = ("float64", "float32")


class StreamLanes:
    """Lanes to feed with batches of transitions; lane k has the weights of a `Learner` with settings[k].

    In double precision they are the same to the bit, unless numbers below 2.2e-308 occur: lanes take those for 0.

    settings    of one rule, e.g. [LEARNERS["td"].setting(alpha=a) for a in (0.1, 0.01)]
    n_features  length of the feature vectors
    initial_w   (n_features,) or a number; default 0
    schedule    factor on alpha of all lanes; a row that ends the question of the first lane ends an episode
    precision   "float64", or "float32" for half the memory; sums are made in float64 in any case

    With a trace (lam > 0), lanes share one as long as their λ, discounts and ratios agree.

    >>> from gradient_dd.learners import LEARNERS
    >>> lanes = StreamLanes([LEARNERS["td"].setting(alpha=alpha) for alpha in (0.5, 0.1)], n_features=2)
    >>> lanes.update_many([[1, 0]], reward=1.0, discount=0.9, x_next=[[0, 1]])
    >>> lanes.w
    array([[0.5, 0. ],
           [0.1, 0. ]])
    """

    def __init__(
        self,
        settings: Sequence[Setting],
        n_features: int,
        *,
        initial_w: Any = 0.0,
        schedule: Schedule = constant,
        precision: str = "float64",
    ) -> None:
        p = self.n_features = whole_number("'n_features'", n_features)
        try:
            self.settings = tuple(settings)
        except TypeError:
            self.settings = ()
        if not self.settings or not all(isinstance(one, Setting) for one in self.settings):
            raise bad_request("'settings'", "be one Setting or more", settings)
        rules = dict.fromkeys(one.rule for one in self.settings)
        if len(rules) > 1:
            got = Unquoted(" and ".join(rule.name for rule in rules))
            raise bad_request(
                "The lanes of a stream", "be settings of one rule", got, "Make one StreamLanes for each rule."
            )
        rule = self.settings[0].rule
        if rule.natural:
            raise bad_request("The rule of lanes", "be one whose step takes linear time", rule.name)
        if asked := sorted(rule.trace_arguments & {"pi_before", "mu_before"}):
            raise BadRequestError(f"Lanes cannot follow {rule.name}: its trace asks for {asked[0]!r}. Use Questions.")
        size = 8 * p * len(self.settings) * (2 if rule.has_eta else 1)
        check_memory(f"{len(self.settings)} lanes of {p} features", size, "Use fewer lanes or features.")
        self.schedule = check_schedule(schedule)
        dtype = np.dtype(one_of("'precision'", precision, PRECISIONS)).type
        start = start_weights(initial_w, p)
        self._memory: LaneMemory | QuestionMemory
        if rule.is_plain:
            self._memory = LaneMemory(self.settings, start, dtype)
        else:
            asked_by_traces = [name for name in rule.defaults if name in rule.trace_arguments]
            self._group = numbered([tuple(one.values[name] for name in asked_by_traces) for one in self.settings])
            self._memory = QuestionMemory(
                self.settings, self._group, np.zeros(self._group.max() + 1, int), start, dtype
            )
        self.episodes = 0

    def __repr__(self) -> str:
        rule = self.settings[0].rule.name
        return f"<StreamLanes {len(self.settings)} of {rule}, {self.n_features} features, {self.updates} updates>"

    @property
    def updates(self) -> int:
        """How many transitions have been learnt."""
        return self._memory.steps

    @property
    def w(self) -> Array:
        """(lanes, p) the weights; a copy."""
        return self._memory.w.T.copy() if isinstance(self._memory, LaneMemory) else self._memory.w

    @property
    def eta(self) -> Array:
        """(lanes, p) the secondary weights; a copy."""
        return self._memory.eta.T.copy() if isinstance(self._memory, LaneMemory) else self._memory.eta

    @property
    def diverged(self) -> Integers:
        """(lanes,) the update, counted from 1, at which a lane diverged and stopped; 0 where it did not."""
        kept = self._memory
        return kept.stopped[slice(len(self.settings)) if isinstance(kept, LaneMemory) else kept.slot] + 1

    @property
    def averages(self) -> Array:
        """(lanes, p) the mean of w since `average_from_now`; w itself where none was asked for, or none is due yet."""
        kept = self._memory
        if not isinstance(kept, LaneMemory) or not kept.counted:
            return self.w
        return (kept.sums[:, : kept.count] / kept.counted).T

    def average_from_now(self, every: int = 1) -> None:
        """Begin to average the weights, as they are after every so many updates; an older average is forgotten."""
        self._plain("average their weights").average_from_now(whole_number("'every'", every))

    def _plain(self, what: str) -> LaneMemory:
        """Return the memory of lanes without a trace, or raise."""
        if not isinstance(self._memory, LaneMemory):
            raise BadRequestError(f"Lanes with a trace cannot {what}. Use lam=0 for that.")
        return self._memory

    def update_many(self, x: Any, reward: Any, discount: Any, x_next: Any, rho: Any = 1.0, weight: Any = None) -> None:
        """Learn from n transitions, one after the other, in all lanes.

        x and x_next are as `Learner.update_many` takes them. reward, discount and rho are numbers, (n,), or (n, lanes)
        for questions of their own; `weight`, a factor on alpha, likewise, for lanes without a trace. A lane that would
        diverge stops, keeps its last weights, and does not disturb the others. Nothing changes if an argument is
        refused.
        """
        here = checked_rows("x", x, self.n_features)
        n, lanes = here.n, len(self.settings)
        shared = all(dimensions(one) < 2 for one in (reward, discount, rho))
        reward, discount, rho = checked_columns(reward, discount, rho, n, 1 if shared else lanes)
        there = checked_next_rows(x_next, here, discount, self.n_features)
        ends = discount[:, 0] == 0
        block = weights = None
        if weight is not None:
            self._plain("take weights")
            block, weights = np.arange(n), numbers("'weight'", column("weight", weight, n, lanes))
            check_each("weight", weights < 0, weights, "be a number that is zero or more")
        factor = coming_factors(self.schedule, self.updates, self.episodes, ends)
        rows = here.with_begins(), there.with_begins()
        if isinstance(self._memory, LaneMemory):
            self._memory.advance(*rows, (reward, discount, rho), factor, block, weights)
        else:
            reward, discount, rho = (np.broadcast_to(one, (n, lanes)) for one in (reward, discount, rho))
            data = self._grouped(reward, discount, rho, factor)
            self._memory.advance(*rows, data)
        self.episodes += int(ends.sum())

    def _grouped(self, reward: Array, discount: Array, rho: Array, factor: Array) -> QuestionData:
        """Return the columns of lanes with a trace; lanes whose columns differ no longer share one."""
        assert isinstance(self._memory, QuestionMemory)
        columns = [(discount[:, lane].tobytes(), rho[:, lane].tobytes()) for lane in range(len(self.settings))]
        finer = numbered(list(zip(self._group.tolist(), columns, strict=True)))
        if finer.max() > self._group.max():
            self._group = finer
            self._memory = self._memory.regrouped(finer, np.zeros(finer.max() + 1, int))
        first = [int(np.argmax(self._group == group)) for group in range(self._group.max() + 1)]
        none = np.zeros((0, len(first)))
        return QuestionData(reward, discount[:, first], rho[:, first], np.ones((len(rho), 1), bool), none, none, factor)


def numbered(keys: Sequence[Any]) -> Integers:
    """Return a number for each key, equal ones for equal keys, in the order of their first places."""
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys])
