"""The state of a block of lanes: weights, step sizes, the scale of η, and the values that a lane keeps between steps.

Lane l of weight row i is w[i × B + l], where B is the number of lanes of the block. A loop over lanes therefore runs
over contiguous numbers and is vectorised.

A rule that shrinks all of η changes one number per lane: η is scale × stored numbers, and a step divides its additions
to η by the scale. If the shrink is steady (`rules.has_steady_shrink`), the fused kernel does not divide: it sets the
factor and its inverse at the beginning of a segment, and each step multiplies the scale by the factor, and the inverse
of the scale by the inverse factor. Every 128 steps of the run the kernel corrects the inverse, so rounding errors do
not accumulate, and multiplies a scale that has left its range into η. It checks lanes with a strong shrink more often.
The period depends only on the lane's own shrink, so the bits of a lane do not depend on its neighbours.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.kernels.compiler import (
    INLINE,
    INNER,
    STRIP,
    compile_source,
    disjoint_accesses,
    use_widest_vectors,
)
from gradient_dd.engine.kernels.rows import Rows
from gradient_dd.engine.kernels.rules import has_inverse, lane_fields, lane_parameters
from gradient_dd.engine.single import aligned
from gradient_dd.learners import Rule, Setting

MOST_LANES = 128  # maximum number of lanes of a block; more lanes gain no speed
STRIDE = np.uintp(MOST_LANES)  # stride of the fields: a constant for the compiler, so that one pointer is enough
TINY_SCALE, HUGE_SCALE = 2.0**-400, 2.0**400  # outside this range the scale of η is multiplied into η
SMALLEST_SHRINK = 2.0**-60  # used in place of a shrink by exactly 0: a forgotten η retains 1e-18 of its size
LARGEST_SHRINK = 2.0**600  # used in place of a larger shrink: such a lane diverges at once, and its scale stays finite
AFTER_TINY = HUGE_SCALE / 2  # a plain rule's next scale after a tiny scale; 1 would become tiny again sooner
ETA_SUMS = ("x_eta", "z_eta", "b_eta")
ETA_MOVES = ("eta_x", "eta_next", "eta_z")
SELDOM = 128  # maximum number of steps between checks of a scale; a power of two, like every period


def field_begins(rule: Rule) -> dict[str, Any]:
    """Return where each field of a rule's lanes begins in `Lanes.fields`."""
    return {name: np.uintp(MOST_LANES * i) for i, name in enumerate(lane_fields(rule))}


def padded_lanes(count: int) -> int:
    """Return the number of lanes of a block of `count` settings, rounded up to whole strips."""
    return -(-count // STRIP) * STRIP


class Lanes(NamedTuple):
    """The arrays that a kernel changes; arrays with one column per lane are flat and start on a cache line.

    w, eta   (rows, B); the true η of a lane is its scale × eta
    start    (2, B) alpha and zeta as given
    fields   (…, MOST_LANES) the rows that `lane_fields` names: the rule's parameters, x·(w − w_prev) for the next
             step, a steady shrink of η and its inverse, the inverse of the scale of η, and the scale of η
    metric   (p² + 1,) of a natural rule: its count of steps, then (ε I + Σ x xᵀ)⁻¹. In the fused kernel, whose features
             are one-hot, (rows + 1,): the count, then ε + visits of each row. Empty for other rules
    change   (rows, B) the last change of w, for a rule with momentum; else empty
    shared   the rule's own parameters; parameters that its traces read are equal in all lanes
    vectors  (2, p) the traces z and b;  places (2, p) their listed entries;  marks (2, p) 1 for listed entries
    counts   (2,) number of listed entries;  sizes (2,) the largest |entry|
    pi, mu   (outcomes,) probabilities of the action under the two policies
    before   (4,) discount, ρ, π and μ of the previous step, 0 at the start of an episode
    memory   (traces, most) numbers that each trace remembers
    """

    w: Array
    eta: Array
    start: Array
    fields: Array
    metric: Array
    change: Array
    shared: Array
    vectors: Array
    places: Rows
    marks: NDArray[np.int8]
    counts: NDArray[np.int64]
    sizes: Array
    pi: Array
    mu: Array
    before: Array
    memory: Array


def new_lanes(
    settings: Sequence[Setting], B: int, spare: int, initial_w: Array, probabilities: tuple[Array, Array], fused: bool
) -> Lanes:
    """Return B new lanes: one per setting, then lanes that never move; `spare` weight rows follow the p rows."""
    rule, values, p = settings[0].rule, settings[0].values, len(initial_w)
    rows, names, metric = p + spare, lane_parameters(rule), np.zeros(0)
    if rule.natural:
        ridge = values["ridge"]
        metric = np.concatenate([[0.0], np.full(rows, ridge) if fused else (np.eye(p) / ridge).ravel()])
    w, eta, start, fields = (
        aligned(shape) for shape in ((rows, B), (rows, B), (2, B), (len(lane_fields(rule)), MOST_LANES))
    )
    w[:p] = initial_w[:, None]
    for lane, setting in enumerate(settings):
        start[:, lane] = setting.values["alpha"], setting.values.get("zeta", 0.0)
        fields[2 : len(names), lane] = [setting.values[name] for name in names[2:]]
    fields[-2 if has_inverse(rule) else -1 :] = 1.0
    return Lanes(
        *(w.ravel(), eta.ravel(), start.ravel(), fields.ravel(), metric),
        change=aligned((rows * B if "w_change" in rule.moves else 0,)),
        shared=np.array([values[name] for name in names[2:]] or [0.0]),
        vectors=np.zeros(2 * p),
        places=np.zeros(2 * p, np.uint64),
        marks=np.zeros(2 * p, np.int8),
        counts=np.zeros(2, np.int64),
        sizes=np.zeros(2),
        pi=np.array(probabilities[0]),
        mu=np.array(probabilities[1]),
        before=np.zeros(4),
        memory=np.zeros((max(1, len(rule.traces)), max([1, *(len(trace.memory) for trace in rule.traces)]))),
    )


@numba.njit(**INLINE)
def set_step_sizes(lanes, factor, B, stride):
    """Set alpha to factor × the given alpha, and beta to zeta × alpha.

    `stride` is STRIDE. As a constant of this function it would cost registers: a step of TD would take 6 % longer.
    """
    use_widest_vectors()
    for lane in range(B):
        alpha = lanes.start[lane] * factor
        lanes.fields[lane] = alpha
        lanes.fields[stride + lane] = lanes.start[B + lane] * alpha


# The scale of η ---------------------------------------------------------------------------------------------------


@numba.njit(**INLINE)
def bounded(shrink):
    """Return the shrink factor of η, bounded so that it is not zero and makes no scale infinite."""
    shrink = shrink if shrink != 0.0 else SMALLEST_SHRINK
    return LARGEST_SHRINK if abs(shrink) > LARGEST_SHRINK else shrink


@numba.njit(**INLINE)
def check_period(shrink):
    """Return the number of steps between checks of a lane's scale, which changes by at most 2²⁵⁶ in them; else 1."""
    size = abs(shrink)
    return 128 if 0.25 <= size <= 4.0 else 32 if 0.00390625 <= size <= 256.0 else 4 if size <= 2.0**60 else 1


@numba.njit(**INLINE)
def is_due(step, period):
    """Return whether a step is a multiple of the period, a power of two."""
    return step & (period - 1) == 0


@numba.njit(**INLINE)
def is_inside(scale):
    """Return whether a scale of η is in its range."""
    return TINY_SCALE < abs(scale) < HUGE_SCALE


@numba.njit(**INNER)
def check_scales(eta, fields, B, step):
    """Correct the inverse of each scale that is due after `step` steps; multiply out-of-range scales into η."""
    use_widest_vectors()
    scales = np.uintp(fields.size) - STRIDE
    inverses, shrinks = scales - STRIDE, scales - STRIDE * np.uintp(3)
    outside = 0
    for lane in range(B):
        scale, inverse = fields[scales + lane], fields[inverses + lane]
        due = is_due(step, check_period(fields[shrinks + lane]))
        fields[inverses + lane] = inverse * (2.0 - scale * inverse) if due else inverse  # a step of Newton's method
        outside += 1 if due and not is_inside(scale) else 0
    if outside:
        for lane in range(B):
            due = is_due(step, check_period(fields[shrinks + lane]))
            if due and not is_inside(fields[scales + lane]):
                multiply_in(eta, fields, B, scales, lane, AFTER_TINY)
                fields[inverses + lane] = 1.0 / fields[scales + lane]


@numba.njit(**INNER)
def rescale(eta, fields, B, after_tiny):
    """Multiply the scale of η into η in every lane where the scale has become tiny or huge, which is rare."""
    use_widest_vectors()
    scales = np.uintp(fields.size) - STRIDE
    for lane in range(B):
        if not is_inside(fields[scales + lane]):
            multiply_in(eta, fields, B, scales, lane, after_tiny)


@numba.njit(**INLINE)
def multiply_in(eta, fields, B, scales, lane, after_tiny):
    """Multiply the scale of one lane into its η. The next scale is `after_tiny`, or 1 after a huge scale."""
    use_widest_vectors()
    scale = fields[scales + lane]
    left = after_tiny if abs(scale) < 1.0 else 1.0
    fields[scales + lane] = left
    factor = 1.0 / left  # exact; not combined with the scale, because their product might vanish
    for i in range(lane, np.uintp(eta.size), B):
        eta[i] = eta[i] * scale * factor


# The source of a rule's step inside a loop over lanes --------------------------------------------------------------


def load_field(name: str) -> str:
    """Return the source that reads a field of a lane."""
    return f"load_fields(fields, {name} + lane)"


def store_field(name: str, value: str) -> str:
    """Return the source that writes a field of a lane."""
    return f"store_fields(fields, {name} + lane, {value})"


def read_memory(rule: Rule) -> Iterator[str]:
    """Yield the lines that read the scale of η and x·(w − w_prev), if the rule needs them."""
    if "eta_eta" in rule.moves:
        yield f"scale = {load_field('memory_scale')}"
        for name in ETA_SUMS:
            if name in rule.arguments:
                yield f"{name} = scale * {name}"
    if "x_change" in rule.arguments:
        yield f"x_change = {load_field('memory_x_change')}"


def call_step(rule: Rule) -> Iterator[str]:
    """Yield the lines that call the rule's own step, which is compiled into the loop."""
    held = lane_parameters(rule)
    yield f"{', '.join(rule.moves)}, = step("
    for name in rule.arguments:
        yield f"    {load_field(f'parameter_{name}') if name in held else name},"
    yield ")"


def shrink_eta(rule: Rule, steady: bool) -> Iterator[str]:
    """Yield the lines that shrink the scale of η, and divide the step's additions to η by the scale.

    With a steady shrink they multiply by the stored inverse of the scale, and the kernel checks scales periodically.
    Otherwise each step divides, and counts the scales that leave their range.
    """
    if "eta_eta" not in rule.moves:
        return
    if steady:
        yield f"scale = scale * {load_field('shrink')}"
        yield f"inverse = {load_field('memory_inverse')} * {load_field('inverse_shrink')}"
        yield store_field("memory_inverse", "inverse")
    else:
        yield "scale = scale * bounded(1.0 + eta_eta)"
        yield "outside += 0 if is_inside(scale) else 1"
    for move in ETA_MOVES:
        if move in rule.moves:
            yield f"{move} = {move} * inverse" if steady else f"{move} = {move} / scale"
    yield store_field("memory_scale", "scale")


def compile_lane_loop(source: str, rule: Rule, scopes: list[str], names: dict[str, Any]) -> Any:
    """Compile a source with a loop over lanes that calls the rule's step; `scopes` name the arrays it accesses."""
    step = numba.njit(rule.step, inline="always")
    names = names | {"step": step, "use_widest_vectors": use_widest_vectors, "bounded": bounded, "is_inside": is_inside}
    return numba.njit(compile_source(source, names | field_begins(rule) | disjoint_accesses(scopes)), **INLINE)


@cache
def make_set_shrink(rule: Rule) -> Any:
    """Compile `set_shrink(fields, B)`, which sets the steady shrink of every lane and returns the checking period."""
    loop = [*call_step(rule), "factor = bounded(1.0 + eta_eta)"]
    loop += [store_field("shrink", "factor"), store_field("inverse_shrink", "1.0 / factor")]
    head = ["def set_shrink(fields, B):", "    use_widest_vectors()", f"    every = {SELDOM}"]
    head += [f"    {name} = 1.0" for name in rule.arguments if name not in lane_parameters(rule)]
    lines = [*head, "    for lane in range(B):", *(f"        {line}" for line in loop)]
    source = "\n".join([*lines, "        every = min(every, check_period(factor))", "    return every"])
    return compile_lane_loop(source, rule, ["fields"], {"check_period": check_period})
