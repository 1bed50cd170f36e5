"""The fused lane kernel: many settings of one rule, side by side, on one trajectory.

The rule's own Python function is compiled into the loop over lanes, whose source `step_source.py` writes. This file
holds the loop over the trajectory around it.

x·(w − w_prev) is computed one step ahead, while the coefficients it needs are still in registers; the trajectory
therefore has one outcome more than there are steps. A lane gives the same bits whatever lanes stand beside it, and it
may become infinite without disturbing them. `docs/contribute/engine.md` explains each choice.
"""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import (
    COMPILE,
    INLINE,
    barrier,
    compile_source,
    disjoint_accesses,
    keep,
    use_widest_vectors,
)
from gradient_dd.engine.kernels.errors import lanes_of, make_take_errors
from gradient_dd.engine.kernels.rows import Shape
from gradient_dd.engine.kernels.rules import describe_kernel, has_steady_shrink
from gradient_dd.engine.kernels.state import (
    AFTER_TINY,
    SELDOM,
    STRIDE,
    bounded,
    check_scales,
    field_begins,
    is_due,
    is_inside,
    make_set_shrink,
    rescale,
    set_step_sizes,
)
from gradient_dd.engine.kernels.step_source import OutcomeKind, move_source
from gradient_dd.engine.kernels.vectors import products_ahead
from gradient_dd.learners import Rule


class Scalars(NamedTuple):
    """What a step needs that all lanes share.

    first               where the rows of the outcome begin in the table
    reward, rho, rho_x, discount
    with_x, with_next   products of the coming x with the directions of w in this step
    m0, m1              entries of the diagonal M⁻¹ at the rows of x and x', for a natural rule
    """

    first: Any
    reward: Any
    rho: Any
    rho_x: Any
    discount: Any
    with_x: Any
    with_next: Any
    m0: Any
    m1: Any


def make_move(outcomes: OutcomeKind) -> Any:
    """Compile `move_source` with the rule's step inlined in it."""
    scopes = ["fields", *(f"{vector}{j}" for vector in ("w", "eta") for j in range(outcomes.width))]
    names: dict[str, Any] = {"bounded": bounded, "is_inside": is_inside}
    names["step"], names["use_widest_vectors"] = numba.njit(outcomes.rule.step, inline="always"), use_widest_vectors
    names |= field_begins(outcomes.rule)
    names |= {f"U{j}": np.uintp(j) for j in range(outcomes.width)}
    return numba.njit(compile_source(move_source(outcomes), names | disjoint_accesses(scopes)), **INLINE)


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
    """Compile `take_step`, one step of all lanes, for narrow outcomes and for the others."""
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
        scalars = Scalars(
            first,
            table.reward[outcome],
            table.rho[outcome],
            table.rho_x[outcome],
            table.discount[outcome],
            with_x,
            with_next,
            m0,
            m1,
        )
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
    set_shrink: Any = make_set_shrink(rule) if steady else None

    def kernel(column, segments, table, measure, lanes, errors):
        use_widest_vectors()
        B, t, every = lanes_of(errors), np.uintp(0), SELDOM
        for s in range(segments.end.size):
            set_step_sizes(lanes, segments.factor[s], B, STRIDE)
            before = segments.step[s] - segments.end[s]  # steps of the run before this piece
            if steady:
                every = set_shrink(lanes.fields, B)
            while t < np.uintp(segments.end[s]):
                outcome, coming = np.uintp(column[t]), np.uintp(column[t + np.uintp(1)])
                if take_step(B, lanes, table, outcome, coming):
                    rescale(lanes.eta, lanes.fields, B, AFTER_TINY)
                t += np.uintp(1)
                if steady and is_due(before + np.int64(t), every):
                    check_scales(lanes.eta, lanes.fields, B, before + np.int64(t))
            if segments.point[s] >= 0 or segments.last[s]:
                take_errors(lanes.w, measure, errors, segments, s)

    return keep(kernel, describe_kernel("fused", rule, shape, measure_k), nogil=True, **COMPILE)
