"""The fused lane kernel: many settings of one rule, side by side, on one trajectory.

The rule's own Python function is compiled into the loop over lanes. Lane l of weight row i is w[i × B + l], so the
loop runs over contiguous numbers and becomes vector code; what the rule does not name is not there at all. The loop's
source is written out by `move_source`, a line per row touched: print it to see what a rule becomes.

x·(w − w_prev) is computed one step ahead, while the coefficients it needs are still in registers; the trajectory
therefore has one outcome more than there are steps. No fast-math: a lane gives the same bits whatever lanes stand
beside it, and it may become infinite without disturbing them. `docs/performance.md` has the numbers behind each choice.
"""

from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.kernels.folding import COMPILE, INLINE, INNER, make_take_errors
from gradient_dd.engine.kernels.intrinsics import aligned, barrier, disjoint
from gradient_dd.engine.kernels.row_table import Known, Shape
from gradient_dd.learners import Rule, Setting

STRIP = 8  # a block has a multiple of so many lanes, and the compiler is told: no loop over what is left
WHOLE_STRIPS = ~np.uintp(STRIP - 1)
MOST_LANES = 128  # of a block: more gain nothing
STRIDE = np.uintp(MOST_LANES)  # of the fields: known to the compiler, so that one pointer serves them all
WIDEST = 8  # rows of a step up to which the loop is written out

TINY_SCALE, HUGE_SCALE = 2.0**-500, 2.0**500  # η = scale × what is stored; multiplied out beyond these
SMALLEST_SHRINK = 2.0**-60  # stands for a shrink by exactly 0: a forgotten η keeps 1e-18 of its size


class Lanes(NamedTuple):
    """The weights and memories of a block of B lanes; every array flat, lanes contiguous, on a cache line.

    w, eta   (rows, B)
    start    (2, B) alpha and zeta as given
    fields   (parameters + 2, stride) the rule's parameters in force, x·(w − w_prev) of the coming step, the scale of η
    metric   (p + 1,) or (p² + 1,) of a natural rule: its count of steps, then visits or (ε I + Σ x xᵀ)⁻¹; else empty
    """

    w: Array
    eta: Array
    start: Array
    fields: Array
    metric: Array


def lane_parameters(rule: Rule) -> list[str]:
    """Return what a lane holds for a rule: alpha, beta, then the rule's own parameters."""
    own = [p.name for p in rule.parameters if p.name not in ("alpha", "zeta") and not p.shared]
    return ["alpha", "beta", *own]


def new_lanes(
    settings: list[Setting], block: int, stride: int, shape: Shape, initial_w: Array, diagonal: bool
) -> Lanes:
    """Return fresh lanes, one for each setting, filled up to `block` with lanes that never move."""
    rule, p = settings[0].rule, len(initial_w)
    names = lane_parameters(rule)
    w, fields, start = aligned(p + shape.width, block), aligned(len(names) + 2, stride), aligned(2, block)
    w.reshape(-1, block)[:p] = initial_w[:, None]
    for lane, setting in enumerate(settings):
        start.reshape(2, block)[:, lane] = setting.values["alpha"], setting.values.get("zeta", 0.0)
        fields.reshape(-1, stride)[2 : len(names), lane] = [setting.values[name] for name in names[2:]]
    fields.reshape(-1, stride)[-1] = 1.0
    metric = np.zeros(0)
    if rule.natural:
        ridge = settings[0].values["ridge"]
        metric = np.concatenate([[0.0], np.full(p + shape.width, ridge) if diagonal else (np.eye(p) / ridge).ravel()])
    return Lanes(w, aligned(p + shape.width, block), start, fields, metric)


# The loop over lanes ----------------------------------------------------------------------------------------------


def plus(terms: Any) -> str:
    """Return a sum as source."""
    return " + ".join(terms)


def move_source(rule: Rule, k: int, width: int, one_hot: bool, known: Known) -> str:
    """Return the source of `move`: one step of all lanes for outcomes that touch `width` rows, the first k through x.

    With `one_hot` the features are 1 and products with them are left out; a natural rule then moves w along m0 x and
    m1 x', M being diagonal. What is `known` is a constant: products with ρ = 1 and γ = 1 then cost nothing.
    """
    names = lane_parameters(rule)
    change, scale = len(names), len(names) + 1

    def field(number: int) -> str:
        return f"load_fields(fields, F{number} + lane)"

    def product(value: str, vector: str, j: int) -> str:
        return value if one_hot else f"{value} * {vector}{j}"

    ends = one_hot and width == k  # x' is x, or a terminal, where nothing may move along it

    def moved_w(j: int) -> list[str]:
        on_x = [product("w_x", "x", j)] if j < k and "w_x" in rule.moves else []
        along_next = "w_next" in rule.moves and (not one_hot or j == width - 1)
        there = "w_next * n0" if ends else product("w_next", "n", j)
        on_next = [there] if along_next else []
        return [f"{term} * m{j}" if rule.natural else term for term in on_x + on_next]

    delta = plus(["reward", *(f"w{j} * u{j}" for j in range(width))])
    if one_hot:
        delta = "reward - w0 + w1 * discount" if width == 2 else "reward + w0 * (discount - 1.0)"
    scaled, changing = "eta_eta" in rule.moves, "x_change" in rule.arguments

    body = [f"w{j} = load_w{j}(w, r{j} + lane)" for j in range(width)]
    body += [f"delta = {delta}"]
    if rule.has_eta:
        body += [f"eta{j} = load_eta{j}(eta, r{j} + lane)" for j in range(k)]
        body += [f"x_eta = {plus(product(f'eta{j}', 'x', j) for j in range(k))}"]
    if scaled:
        body += [f"scale = {field(scale)}", "x_eta = scale * x_eta"]
    if changing:
        body += [f"x_change = {field(change)}"]
    arguments = [field(names.index(name)) if name in names else name for name in rule.arguments]
    body += [f"{', '.join(rule.moves)}, = step({', '.join(arguments)})"]
    if scaled:
        body += ["shrink = 1.0 + eta_eta"]
        body += ["scale = scale * (shrink if shrink != 0.0 else SMALLEST_SHRINK)"]
        body += [f"store_fields(fields, F{scale} + lane, scale)", "eta_x = eta_x / scale"]
        body += ["outside += 0 if TINY_SCALE < abs(scale) < HUGE_SCALE else 1"]
    body += [f"store_w{j}(w, r{j} + lane, {plus([f'w{j}', *moved_w(j)])})" for j in range(width) if moved_w(j)]
    if rule.has_eta:
        body += [f"store_eta{j}(eta, r{j} + lane, eta{j} + {product('eta_x', 'x', j)})" for j in range(k)]
    if changing:
        along = {"w_x": "with_x", "w_next": "with_next"}
        body += [
            f"store_fields(fields, F{change} + lane, {plus(f'{m} * {along[m]}' for m in along if m in rule.moves)})"
        ]

    head = [f"{name} = {value!r}" for name, value in known._asdict().items() if value is not None]
    head += [f"r{j} = rows[first + U{j}] * B" for j in range(width)]
    vectors = [("n", "ns")] if ends else [] if one_hot else [("x", "xs"), ("n", "ns"), ("u", "us")]
    head += [f"{name}{j} = {array}[first + U{j}]" for name, array in vectors for j in range(width)]
    signature = "B, w, eta, fields, rows, xs, ns, us, first, reward, rho, rho_x, discount, with_x, with_next, m0, m1"
    return "\n    ".join(
        [
            f"def move({signature}):",
            *head,
            "outside = 0",
            "for lane in range(B):",
            *("    " + s for s in body),
            "return outside",
        ]
    )


def make_move(rule: Rule, k: int, width: int, one_hot: bool, known: Known) -> Any:
    """Compile `move_source` with the rule's step inlined in it."""
    scopes = ["fields", *(f"{vector}{j}" for vector in ("w", "eta") for j in range(width))]
    names: dict[str, Any] = {"TINY_SCALE": TINY_SCALE, "HUGE_SCALE": HUGE_SCALE, "SMALLEST_SHRINK": SMALLEST_SHRINK}
    names["step"] = numba.njit(rule.step, inline="always")
    names |= {f"F{i}": np.uintp(MOST_LANES * i) for i in range(len(lane_parameters(rule)) + 2)}
    names |= {f"U{j}": np.uintp(j) for j in range(width)}
    for scope in scopes:
        names[f"load_{scope}"], names[f"store_{scope}"] = disjoint(scope, scopes)
    exec(move_source(rule, k, width, one_hot, known), names)
    return numba.njit(names["move"], **INLINE)


# The loop over the trajectory -------------------------------------------------------------------------------------


@cache
def make_products(k: int, width: int) -> Any:
    """Compile the products of the coming x with this step's x and x'. No branches: they would follow the dice."""
    K, W = np.uintp(k), np.uintp(width)

    @numba.njit(**INLINE)
    def products(rows, xs, ns, first, coming):
        with_x = 0.0
        with_next = 0.0
        for i in range(coming, coming + K):
            for j in range(first, first + W):
                shared = xs[i] if rows[i] == rows[j] else 0.0
                with_x += shared * xs[j]
                with_next += shared * ns[j]
        return with_x, with_next

    return products


@numba.njit(**INNER)
def rescale(eta, fields, B, stride):
    """Multiply out the scale of η where it has become tiny or huge; rare."""
    first = np.uintp(fields.size) - stride
    for lane in range(B):
        scale = fields[first + lane]
        if not TINY_SCALE < abs(scale) < HUGE_SCALE:
            for i in range(lane, np.uintp(eta.size), B):
                if eta[i] != 0.0:  # zero stays zero, whatever the scale
                    eta[i] *= scale
            fields[first + lane] = 1.0


@numba.njit(**INLINE)
def set_step_sizes(start, fields, factor, B, stride):
    """Set alpha to factor × alpha as given, and beta to zeta × alpha."""
    for lane in range(B):
        alpha = start[lane] * factor
        fields[lane] = alpha
        fields[stride + lane] = start[B + lane] * alpha


@cache
def fused_kernel(rule: Rule, shape: Shape, measure_k: int) -> Any:
    """Compile `run(column, segments, touches, measure, lanes, errors)` for a rule and a shape of features."""
    k, width, one_hot, known_narrow, known_wide = shape
    W = np.uintp(width)
    changing, natural = "x_change" in rule.arguments, rule.natural
    both = known_narrow is not None and known_wide is not None
    narrow: Any = make_move(rule, k, k, one_hot, known_narrow) if known_narrow else None
    wide: Any = make_move(rule, k, width, one_hot, known_wide) if known_wide else narrow
    products, take_errors = make_products(k, width), make_take_errors(measure_k)

    @numba.njit(**INLINE)
    def take_step(B, lanes, touches, outcome, coming):
        w, eta, _, fields, metric = lanes
        rows, xs, ns, us, is_narrow, rewards, rhos, rhos_x, discounts = touches
        first = outcome * W
        with_x, with_next, m0, m1 = 0.0, 0.0, 1.0, 1.0
        if changing:
            with_x, with_next = products(rows, xs, ns, first, coming * W)
        if natural:
            metric[0] += 1.0
            metric[np.uintp(1) + rows[first]] += 1.0
            m0 = (metric[0] + 1.0) / metric[np.uintp(1) + rows[first]]
            m1 = (metric[0] + 1.0) / metric[np.uintp(1) + rows[first + W - np.uintp(1)]]
            m1 = m0 if is_narrow[outcome] else m1
            with_x, with_next = with_x * m0, with_next * m1
        reward, rho, rho_x, discount = rewards[outcome], rhos[outcome], rhos_x[outcome], discounts[outcome]
        barrier()
        if both and is_narrow[outcome]:
            return narrow(
                B, w, eta, fields, rows, xs, ns, us, first, reward, rho, rho_x, discount, with_x, with_next, m0, m1
            )
        return wide(B, w, eta, fields, rows, xs, ns, us, first, reward, rho, rho_x, discount, with_x, with_next, m0, m1)

    @numba.njit(nogil=True, **COMPILE)
    def run(column, segments, touches, measure, lanes, errors):
        end, factor, point, last, step, episode = segments
        w, eta, start, fields, _ = lanes
        B, t = np.uintp(errors.now.size) & WHOLE_STRIPS, np.uintp(0)
        for s in range(end.size):
            set_step_sizes(start, fields, factor[s], B, STRIDE)
            while t < np.uintp(end[s]):
                outcome, coming = np.uintp(column[t]), np.uintp(column[t + np.uintp(1)])
                if take_step(B, lanes, touches, outcome, coming):
                    rescale(eta, fields, B, STRIDE)
                t += np.uintp(1)
            for i in range(np.uintp(w.size) - W * B, np.uintp(w.size)):
                w[i] = 0.0  # spare rows
            if point[s] >= 0 or last[s]:
                take_errors(w, measure, errors, B, point[s], last[s], step[s], episode[s])

    return run
