"""The step of every rule as JavaScript, bitwise equal to the reference engine.

`maker_of` writes a function (task, values, rhoMode) -> { w, eta, advance }. Its lines follow `Weights.advance` of
engine/reference.py one by one: sums run from left to right, and all right-hand sides use old values. A rule that moves
only along x and x' loops over their entries: the zeros that the reference engine adds elsewhere change no bit.
"""

from collections.abc import Iterator

from gradient_dd.engine.reference import KNOWN_MOVES, KNOWN_SIGNALS
from gradient_dd.learners import Rule
from gradient_dd.learners.trace import Trace
from gradient_dd.report import as_json
from gradient_dd.report.play.translate import javascript_of, name_in_javascript

SPARSE = "for (let k = first[o]; k < first[o + 1]; k++) { const i = index[k], x = X[k], n = N[k];"
DENSE = "for (let i = 0; i < p; i++) { const x = rows[here + i], n = rows[there + i];"
BEFORE = {name: name_in_javascript(f"{name}_before") for name in ("discount", "rho", "pi", "mu")}
SUMS = {  # of signals, over the weights i; x' of a terminal is never used
    "x_eta": "x * eta[i]",
    "x_change": "x * change[i]",
    "x_x": "x * x",
    "x_next": "discount[o] ? x * n : 0",
    "next_next": "discount[o] ? n * n : 0",
    "z_eta": "trace_z[i] * eta[i]",
    "b_eta": "trace_b[i] * eta[i]",
    "x_z": "x * trace_z[i]",
    "z_z": "trace_z[i] * trace_z[i]",
}


def maker_of(rule: Rule) -> str:
    """Return the JavaScript of one form of a rule: an expression that is a function."""
    rule.check_known("The live page", KNOWN_SIGNALS, KNOWN_MOVES)
    step = (f"  {line}" for line in step_lines(rule))
    kept = (f" {line}" for line in state_lines(rule))
    end = (" }", " return { w, eta, advance };", "}")
    return "\n".join(["(task, values, rhoMode) => {", *kept, " function advance(o) {", *step, *end])


def is_dense(rule: Rule) -> bool:
    """Return whether a step reaches weights outside the entries of x and x'."""
    return bool(rule.traces) or rule.natural or bool({"w_change", "eta_eta"} & set(rule.moves))


def keeps_change(rule: Rule) -> bool:
    """Return whether the rule uses the last change of w."""
    return "x_change" in rule.arguments or "w_change" in rule.moves


def state_lines(rule: Rule) -> Iterator[str]:
    """Yield the variables that a learner keeps between steps: weights, traces, metric, parameters."""
    yield "const { p, first, index, X, N, rows, row, next_row, reward, discount, rho, pi, mu } = task;"
    yield "const w = Float64Array.from(task.initial_weights), eta = new Float64Array(p);"
    if keeps_change(rule):
        yield "const change = new Float64Array(p);"
        yield "let last = -1;"
    for name in rule.defaults:
        if name not in ("zeta", "ridge"):
            yield f"const {name_in_javascript(name)} = values[{as_json(name)}];"
    if "zeta" in rule.defaults:
        yield f"const {name_in_javascript('beta')} = values.zeta * values.alpha;"
    for trace in rule.traces:
        yield f"const trace_{trace.name} = new Float64Array(p);"
        yield from (f"let memory_{trace.name}_{place} = 0;" for place, _ in enumerate(trace.memory))
    if rule.traces:
        yield f"let {', '.join(f'{variable} = 0' for variable in BEFORE.values())};"
    if rule.natural:
        yield "const metric = newMetric(p, values.ridge);"


def step_lines(rule: Rule) -> Iterator[str]:
    """Yield one step: traces, signals, the rule, moves."""
    yield f"const {name_in_javascript('rho')} = rho[o], {name_in_javascript('discount')} = discount[o];"
    if rule.has_rho_mode:
        yield f"const {name_in_javascript('rho_x')} = rhoMode === 'R' ? rho[o] : 1;"
    if is_dense(rule):
        yield "const here = row[o] * p, there = next_row[o] * p;"
    for trace in rule.traces:
        yield from trace_lines(trace)
    if rule.traces:
        yield " ".join(f"{variable} = discount[o] ? {name}[o] : 0;" for name, variable in BEFORE.items())
    sums = {name_in_javascript(name): term for name, term in SUMS.items() if name in rule.arguments}
    sums |= {"x_w": "x * w[i]", "next_w": "n * w[i]"}
    yield f"let {', '.join(f'{name} = 0' for name in sums)};"
    yield f"{loop(rule)} {' '.join(f'{name} += {term};' for name, term in sums.items())} }}"
    yield f"const {name_in_javascript('delta')} = reward[o] + discount[o] * next_w - x_w;"
    yield f"let {', '.join(f'{move} = 0' for move in rule.moves)};"
    yield from javascript_of(rule.step, rule.moves)
    yield from move_lines(rule)


def loop(rule: Rule) -> str:
    """Return the head of a loop over the weights that a step reaches."""
    return DENSE if is_dense(rule) else SPARSE


def trace_lines(trace: Trace) -> Iterator[str]:
    """Yield z ← decay z + gain x, by the numbers that the trace's own function returns."""
    z, memory = f"trace_{trace.name}", [f"memory_{trace.name}_{place}" for place, _ in enumerate(trace.memory)]
    yield "{"
    if "x_trace" in trace.arguments:
        yield f"let {name_in_javascript('x_trace')} = 0;"
        yield f"{DENSE} {name_in_javascript('x_trace')} += x * {z}[i]; }}"
    for name, kept in zip(trace.memory, memory, strict=True):
        yield f"const {name_in_javascript(name)} = {kept};"
    yield "let decay = 0, gain = 0;"
    yield from javascript_of(trace.step, ("decay", "gain", *memory))
    yield f"{DENSE} {z}[i] = decay * {z}[i] + gain * x; }}"
    yield "}"


def move_lines(rule: Rule) -> Iterator[str]:
    """Yield w ← w + change and the step of η."""
    along, along_next = ("along[i]", "alongNext[i]") if rule.natural else ("x", "n")
    if rule.natural:
        yield "metric.observe(first[o], first[o + 1], index, X);"
        yield "const along = metric.direction(first[o], first[o + 1], index, X, 0);"
        yield "const alongNext = metric.direction(first[o], first[o + 1], index, N, 1);"
    moved = {"w_x": along, "w_next": along_next, "w_z": "trace_z[i]", "w_change": "change[i]"}
    on_eta = {"eta_x": "x", "eta_eta": "eta[i]", "eta_z": "trace_z[i]", "eta_next": "n"}
    body = [f"const moved = {summed(rule, moved)};", *(["change[i] = moved;"] if keeps_change(rule) else [])]
    body += ["w[i] = w[i] + moved;", *([f"eta[i] = eta[i] + {summed(rule, on_eta)};"] if rule.has_eta else [])]
    if keeps_change(rule) and not is_dense(rule):
        yield "if (last >= 0) for (let k = first[last]; k < first[last + 1]; k++) change[index[k]] = 0;"
        yield "last = o;"
    yield f"{loop(rule)} {' '.join(body)} }}"


def summed(rule: Rule, along: dict[str, str]) -> str:
    """Return the moves of a rule along their directions, in the order of the reference engine."""
    return " + ".join(f"{move} * {direction}" for move, direction in along.items() if move in rule.moves)
