"""The fused lane kernel: many settings of one rule together on one trajectory.

The rule's own Python function is compiled into the loop over lanes. `move_source` writes this loop for a rule and a
type of outcome: one line for each weight row that is read or written, and no line for values that the rule ignores:

    rule, known = LEARNERS["gradient_dd"], Known(rho=1.0, rho_x=1.0, discount=None)
    print(move_source(OutcomeKind(rule, k=1, width=2, one_hot=True, known=known)))

A step computes x·(w − w_prev) for the next step while the coefficients are still in registers, so a kernel needs one
outcome more than steps. The bits of a lane do not depend on its neighbours, even if a neighbour's weights overflow.
`docs/contribute/engine.md` explains each choice, line by line.
"""

from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels import state
from gradient_dd.engine.kernels.compiler import COMPILE, INLINE, barrier, keep, use_widest_vectors
from gradient_dd.engine.kernels.rows import Known, Shape, lanes_of, make_take_errors
from gradient_dd.engine.kernels.rules import describe_kernel, has_steady_shrink
from gradient_dd.engine.kernels.state import call_step, read_memory, shrink_eta, store_field
from gradient_dd.engine.kernels.vectors import products_ahead
from gradient_dd.learners import Rule

Scalars = namedtuple("Scalars", "first reward rho rho_x discount with_x with_next m0 m1")
"""The numbers of a step that all lanes share.

first               where the rows of the outcome begin in the table
with_x, with_next   products of the next step's x with the directions of w in this step
m0, m1              entries of the diagonal M⁻¹ at the rows of x and x', for a natural rule
"""


@dataclass(frozen=True)
class OutcomeKind:
    """The outcomes that share one `move`: they use `width` weight rows, of which the first k belong to x.

    With `one_hot` the features are 1, so products with them are omitted; a natural rule then moves w along m0 x and
    m1 x', because M is diagonal. The `known` numbers are constants, so products with ρ = 1 or γ = 1 cost nothing.
    """

    rule: Rule
    k: int
    width: int
    one_hot: bool
    known: Known

    @property
    def one_row(self) -> bool:
        """Whether the only row is the row of x: x' is the same one-hot x, or a terminal state without features."""
        return self.one_hot and self.width == self.k

    def times(self, value: str, vector: str, j: int) -> str:
        """Return `value` times entry j of x ("x") or x' ("n"), as source."""
        return value if self.one_hot else f"{value} * {vector}{j}"


def move_source(outcomes: OutcomeKind) -> str:
    """Return the source of `move`, which makes one step of all lanes and counts the scales that leave their range."""
    body = [
        *read_weights(outcomes),
        *read_memory(outcomes.rule),
        *call_step(outcomes.rule),
        *shrink_eta(outcomes.rule, has_steady_shrink(outcomes.rule)),
        *write_weights(outcomes),
    ]
    return "\n    ".join(
        [
            "def move(B, lanes, table, scalars):",
            "use_widest_vectors()",
            *read_shared(outcomes),
            "outside = 0",
            "for lane in range(B):",
            *(f"    {line}" for line in body),
            "return outside",
        ]
    )


def read_shared(outcomes: OutcomeKind) -> Iterator[str]:
    """Yield the lines that read shared values: arrays, scalars (constants if known), rows and features."""
    rule, known = outcomes.rule, outcomes.known._asdict()
    yield "w, eta, fields = lanes.w, lanes.eta, lanes.fields"
    names = ["reward", "rho", "rho_x", "discount"]
    names += ["with_x", "with_next"] if "x_change" in rule.arguments else []
    names += ["m0", "m1"][: outcomes.width] if rule.natural else []
    for name in names:
        value = known.get(name)
        yield f"{name} = scalars.{name}" if value is None else f"{name} = {value!r}"
    for j in range(outcomes.width):
        yield f"r{j} = table.rows[scalars.first + U{j}] * B"
    vectors = {"x": "x", "n": "x_next", "u": "u"}
    if outcomes.one_hot:
        vectors = {"n": "x_next"} if outcomes.one_row else {}
    for name, array in vectors.items():
        for j in range(outcomes.width):
            yield f"{name}{j} = table.{array}[scalars.first + U{j}]"


def read_weights(outcomes: OutcomeKind) -> Iterator[str]:
    """Yield the lines that read w and η of a lane and compute δ and x·η."""
    width, k = outcomes.width, outcomes.k
    for j in range(width):
        yield f"w{j} = load_w{j}(w, r{j} + lane)"
    if not outcomes.one_hot:
        yield f"delta = {' + '.join(['reward', *(f'w{j} * u{j}' for j in range(width))])}"
    elif outcomes.one_row:
        yield "delta = reward + w0 * (discount - 1.0)"
    else:
        yield "delta = reward - w0 + w1 * discount"
    if outcomes.rule.has_eta:
        for j in range(k):
            yield f"eta{j} = load_eta{j}(eta, r{j} + lane)"
        yield f"x_eta = {' + '.join(outcomes.times(f'eta{j}', 'x', j) for j in range(k))}"


def write_weights(outcomes: OutcomeKind) -> Iterator[str]:
    """Yield the lines that write (w + w_x x) + w_next x', η + eta_x x, and x·(w − w_prev) for the next step's x."""
    rule, moves = outcomes.rule, outcomes.rule.moves
    for j in range(outcomes.width):
        terms, along = [f"w{j}"], f" * m{j}" if rule.natural else ""
        if "w_x" in moves and j < outcomes.k:
            terms.append(outcomes.times("w_x", "x", j) + along)
        if "w_next" in moves and (not outcomes.one_hot or j == outcomes.width - 1):
            terms.append(("w_next * n0" if outcomes.one_row else outcomes.times("w_next", "n", j)) + along)
        if len(terms) > 1:
            yield f"store_w{j}(w, r{j} + lane, {' + '.join(terms)})"
    for j in range(outcomes.k if rule.has_eta else 0):
        yield f"store_eta{j}(eta, r{j} + lane, eta{j} + {outcomes.times('eta_x', 'x', j)})"
    if "x_change" in rule.arguments:
        along_of = {"w_x": "with_x", "w_next": "with_next"}
        change = " + ".join(f"{move} * {along_of[move]}" for move in along_of if move in moves)
        yield store_field("memory_x_change", change)


# The kernel --------------------------------------------------------------------------------------------------------


def make_move(outcomes: OutcomeKind) -> Any:
    """Compile `move_source` with the rule's step inlined."""
    scopes = ["fields", *(f"{vector}{j}" for vector in ("w", "eta") for j in range(outcomes.width))]
    places = {f"U{j}": np.uintp(j) for j in range(outcomes.width)}
    return state.compile_lane_loop(move_source(outcomes), outcomes.rule, scopes, places)


@numba.njit(**INLINE)
def observe_diagonal(metric, table, outcome, first, width):
    """Count a visit to the row of x, and return the entries of the diagonal M⁻¹ at the rows of x and x'."""
    one = np.uintp(1)
    metric[0] += 1.0
    metric[one + table.rows[first]] += 1.0
    m0 = (metric[0] + 1.0) / metric[one + table.rows[first]]
    m1 = (metric[0] + 1.0) / metric[one + table.rows[first + width - one]]
    return m0, m0 if table.narrow[outcome] else m1


def make_take_step(rule: Rule, shape: Shape) -> Any:
    """Compile `take_step`, which makes one step of all lanes for a narrow or a wide outcome."""
    width = np.uintp(shape.width)
    uses_change, natural = "x_change" in rule.arguments, rule.natural
    both = shape.narrow is not None and shape.wide is not None
    narrow: Any = make_move(OutcomeKind(rule, shape.k, shape.k, shape.one_hot, shape.narrow)) if shape.narrow else None
    wide: Any = make_move(OutcomeKind(rule, shape.k, shape.width, shape.one_hot, shape.wide)) if shape.wide else narrow

    @numba.njit(**INLINE)
    def take_step(B, lanes, table, outcome, coming):
        use_widest_vectors()
        first = outcome * width
        with_x, with_next, m0, m1 = 0.0, 0.0, 1.0, 1.0
        if uses_change:
            if table.entered[outcome] == table.state[coming]:  # along a trajectory, unless an episode has ended
                with_x, with_next = table.with_x[outcome], table.with_next[outcome]
            else:
                with_x, with_next = products_ahead(table, first, coming * width, width)
        if natural:
            m0, m1 = observe_diagonal(lanes.metric, table, outcome, first, width)
            with_x, with_next = with_x * m0, with_next * m1
        reward, rho, rho_x = table.reward[outcome], table.rho[outcome], table.rho_x[outcome]
        scalars = Scalars(first, reward, rho, rho_x, table.discount[outcome], with_x, with_next, m0, m1)
        barrier()
        if both and table.narrow[outcome]:
            return narrow(B, lanes, table, scalars)
        return wide(B, lanes, table, scalars)

    return take_step


@cache
def fused_kernel(rule: Rule, shape: Shape, measure_k: int) -> Any:
    """Compile `kernel(column, segments, table, measure, lanes, errors)` for a rule and a shape of features."""
    take_step, take_errors = make_take_step(rule, shape), make_take_errors(measure_k)
    steady = has_steady_shrink(rule)
    set_shrink: Any = state.make_set_shrink(rule) if steady else None

    def kernel(column, segments, table, measure, lanes, errors):
        use_widest_vectors()
        B, t, every = lanes_of(errors), np.uintp(0), state.SELDOM
        for s in range(segments.end.size):
            state.set_step_sizes(lanes, segments.factor[s], B, state.STRIDE)
            before = segments.step[s] - segments.end[s]  # steps of the run before this piece
            if steady:
                every = set_shrink(lanes.fields, B)
            while t < np.uintp(segments.end[s]):
                outcome, coming = np.uintp(column[t]), np.uintp(column[t + np.uintp(1)])
                if take_step(B, lanes, table, outcome, coming):
                    state.rescale(lanes.eta, lanes.fields, B, state.AFTER_TINY)
                t += np.uintp(1)
                if steady and state.is_due(before + np.int64(t), every):
                    state.check_scales(lanes.eta, lanes.fields, B, before + np.int64(t))
            if segments.point[s] >= 0 or segments.last[s]:
                take_errors(lanes.w, measure, errors, segments, s)

    return keep(kernel, describe_kernel("fused", rule, shape, measure_k), nogil=True, **COMPILE)
