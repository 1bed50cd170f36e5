"""The source of one step of the fused kernel: what a rule becomes inside the loop over lanes.

`move_source` writes it from a rule and a type of outcome, a line for each weight row that is read or written. What the
rule does not name is not in it. Print it to see it:

    rule, known = LEARNERS["gradient_dd"], Known(rho=1.0, rho_x=1.0, discount=None)
    print(move_source(OutcomeKind(rule, k=1, width=2, one_hot=True, known=known)))

`docs/contribute/engine.md` walks through one line by line.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gradient_dd.engine.kernels.rows import Known
from gradient_dd.engine.kernels.rules import has_steady_shrink, lane_parameters
from gradient_dd.learners import Rule

ETA_SUMS = ("x_eta", "z_eta", "b_eta")
ETA_MOVES = ("eta_x", "eta_next", "eta_z")
SIGNATURE = "move(B, lanes, table, scalars)"  # the only place where it is written; fused.py says what each is


@dataclass(frozen=True)
class OutcomeKind:
    """The outcomes that one `move` serves: they touch `width` weight rows, the first k of them through x.

    With `one_hot` the features are 1, and products with them are left out; a natural rule then moves w along m0 x and
    m1 x', because M is diagonal. What is `known` is a constant, so products with ρ = 1 or γ = 1 cost nothing.
    """

    rule: Rule
    k: int
    width: int
    one_hot: bool
    known: Known

    @property
    def uses_change(self) -> bool:
        """Whether the rule asks for x·(w − w_prev)."""
        return "x_change" in self.rule.arguments

    @property
    def one_row(self) -> bool:
        """Whether the only row is that of x: x' is the same one-hot x, or a terminal, along which nothing may move."""
        return self.one_hot and self.width == self.k

    def times(self, value: str, vector: str, j: int) -> str:
        """Return `value` times entry j of x ("x") or x' ("n"), as source."""
        return value if self.one_hot else f"{value} * {vector}{j}"


def move_source(outcomes: OutcomeKind) -> str:
    """Return the source of `move`, which makes one step of all lanes and counts the scales that left their range."""
    body = [
        *read_weights(outcomes),
        *read_memory(outcomes.rule),
        *call_step(outcomes.rule),
        *shrink_eta(outcomes.rule, has_steady_shrink(outcomes.rule)),
        *write_weights(outcomes),
        *write_change(outcomes),
    ]
    return "\n    ".join(
        [
            f"def {SIGNATURE}:",
            "use_widest_vectors()",
            *read_scalars(outcomes),
            *read_table(outcomes),
            "outside = 0",
            "for lane in range(B):",
            *(f"    {line}" for line in body),
            "return outside",
        ]
    )


def plus(terms: Iterable[str]) -> str:
    """Return a sum as source."""
    return " + ".join(terms)


def load_field(name: str) -> str:
    """Return the source that reads a field of a lane."""
    return f"load_fields(fields, {name} + lane)"


def store_field(name: str, value: str) -> str:
    """Return the source that writes a field of a lane."""
    return f"store_fields(fields, {name} + lane, {value})"


# Before the loop over lanes: what all lanes share -----------------------------------------------------------------


def read_scalars(outcomes: OutcomeKind) -> Iterator[str]:
    """Yield the lines that name the arrays and the scalars of the step; known ones are constants."""
    rule, known = outcomes.rule, outcomes.known._asdict()
    yield "w, eta, fields = lanes.w, lanes.eta, lanes.fields"
    names = ["reward", "rho", "rho_x", "discount"]
    names += ["with_x", "with_next"] if outcomes.uses_change else []
    names += ["m0", "m1"][: outcomes.width] if rule.natural else []
    for name in names:
        value = known.get(name)
        yield f"{name} = scalars.{name}" if value is None else f"{name} = {value!r}"


def read_table(outcomes: OutcomeKind) -> Iterator[str]:
    """Yield the lines that read where the weight rows begin, and the features there."""
    for j in range(outcomes.width):
        yield f"r{j} = table.rows[scalars.first + U{j}] * B"
    vectors = {"x": "x", "n": "x_next", "u": "u"}
    if outcomes.one_hot:
        vectors = {"n": "x_next"} if outcomes.one_row else {}
    for name, array in vectors.items():
        for j in range(outcomes.width):
            yield f"{name}{j} = table.{array}[scalars.first + U{j}]"


# What a rule becomes in any kernel: read, step, shrink ------------------------------------------------------------


def read_memory(rule: Rule) -> Iterator[str]:
    """Yield the lines that read the scale of η and x·(w − w_prev), where the rule needs them."""
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
    """Yield the lines that shrink all of η by shrinking its scale, and divide by the scale what is added to η.

    Where the shrink is steady, the inverse of the scale is carried along, and the kernel checks the scales now and
    then. Otherwise each step divides, and counts the scales that leave their range.
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


# Inside the loop over lanes of the fused kernel ----------------------------------------------------------------------


def read_weights(outcomes: OutcomeKind) -> Iterator[str]:
    """Yield the lines that read w and η and form δ and x·η."""
    width, k = outcomes.width, outcomes.k
    for j in range(width):
        yield f"w{j} = load_w{j}(w, r{j} + lane)"
    if not outcomes.one_hot:
        yield f"delta = {plus(['reward', *(f'w{j} * u{j}' for j in range(width))])}"
    elif outcomes.one_row:
        yield "delta = reward + w0 * (discount - 1.0)"
    else:
        yield "delta = reward - w0 + w1 * discount"
    if outcomes.rule.has_eta:
        for j in range(k):
            yield f"eta{j} = load_eta{j}(eta, r{j} + lane)"
        yield f"x_eta = {plus(outcomes.times(f'eta{j}', 'x', j) for j in range(k))}"


def write_weights(outcomes: OutcomeKind) -> Iterator[str]:
    """Yield the lines that write (w + w_x x) + w_next x', and η + eta_x x."""
    for j in range(outcomes.width):
        if terms := list(terms_of_w(outcomes, j)):
            yield f"store_w{j}(w, r{j} + lane, {plus([f'w{j}', *terms])})"
    if outcomes.rule.has_eta:
        for j in range(outcomes.k):
            yield f"store_eta{j}(eta, r{j} + lane, eta{j} + {outcomes.times('eta_x', 'x', j)})"


def terms_of_w(outcomes: OutcomeKind, j: int) -> Iterator[str]:
    """Yield what is added to row j of w."""
    rule, along = outcomes.rule, f" * m{j}" if outcomes.rule.natural else ""
    if "w_x" in rule.moves and j < outcomes.k:
        yield outcomes.times("w_x", "x", j) + along
    if "w_next" in rule.moves and (not outcomes.one_hot or j == outcomes.width - 1):
        yield ("w_next * n0" if outcomes.one_row else outcomes.times("w_next", "n", j)) + along


def write_change(outcomes: OutcomeKind) -> Iterator[str]:
    """Yield the line that writes x·(w − w_prev) of the coming x, whose products with x and x' are known."""
    if outcomes.uses_change:
        along = {"w_x": "with_x", "w_next": "with_next"}
        change = plus(f"{move} * {along[move]}" for move in along if move in outcomes.rule.moves)
        yield store_field("memory_x_change", change)
