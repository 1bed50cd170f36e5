"""One update of a rule on a network, as a pure function of arrays.

What `Rule.step` returns are the cotangents of V(s), V(s') and h(s): the rule says how far to move along each gradient,
and one vector-Jacobian product turns that into a direction of all weights,

    w ← w + w_x ∇V(s) + w_next ∇V(s'),   η ← η + eta_x ∇h(s),

which is the linear update with ∇V(s) for x. So the rule files serve as they are. Signals: δ from V; x·η is h(s);
x·(w − w_prev) is V_w(s) − V_copy(s), the copy being w of one update before (Gradient-DD) or of a longer period
(functional regularisation). A batch has means. All right-hand sides use old weights; w and η move together.

A rule is a function of numbers, and here the numbers are arrays under JAX. So a rule with a Python `if` cannot be
followed; `min` and `max` are read as those of arrays. Natural rules need M⁻¹ for a matrix M of all weights.
With the optimiser "sgd" the rule itself has the step sizes. Otherwise the rule gets alpha = beta = 1, and the optimiser
has them.
"""

from collections.abc import Callable
from functools import cache, reduce
from types import FunctionType
from typing import Any, NamedTuple

from gradient_dd.engine.kernel_folder import NETWORKS, usable_folder
from gradient_dd.engine.reference import PRODUCTS, Before
from gradient_dd.errors import BadRequestError, Unquoted, bad_request, extra, unknown
from gradient_dd.learners import Rule
from gradient_dd.learners.vocabulary import MOVES, SIGNALS
from gradient_dd.networks.network import Network

with extra("neural"):
    import jax
    import jax.numpy as jnp
    import optax

ON_ARRAYS = {
    "min": lambda *numbers: reduce(jnp.minimum, numbers),
    "max": lambda *numbers: reduce(jnp.maximum, numbers),
}
CORRECTED = ("gtd2", "tdc", "tdrc", "gradient_dd", "tdc_dd", "tdrc_dd")  # rules that follow −½∇MSPBE, DD term apart
NAMED = {  # words that `optimiser` takes; the transformation has no step size yet
    "sgd": None,
    "adam": optax.scale_by_adam(),
    "adam_without_momentum": optax.scale_by_adam(b1=0.0),
}


class Optimiser(NamedTuple):
    """A transformation of Optax, or None for plain steps; `own` is one of the user's, which has its step size in it."""

    name: str
    transformation: Any
    own: bool

    def first(self, weights: Any) -> Any:
        """Return its memory for weights that have not moved yet."""
        return () if self.transformation is None else self.transformation.init(weights)

    def step(self, direction: Any, memory: Any, weights: Any, size: Any) -> tuple[Any, Any]:
        """Return the change of weights along a direction, and its new memory."""
        if self.transformation is None:
            return direction, memory
        if self.own:
            return self.transformation.update(-direction, memory, weights)
        change, memory = self.transformation.update(direction, memory, weights)
        return size * change, memory


def find_optimiser(given: Any) -> Optimiser:
    """Return the optimiser of a word, or one that holds a transformation of Optax."""
    if isinstance(given, optax.GradientTransformation):
        return Optimiser("own", given, own=True)
    if not isinstance(given, str) or given not in NAMED:
        raise unknown("optimiser", given, NAMED)
    return Optimiser(given, NAMED[given], own=False)


class Kind(NamedTuple):
    """What one compiled program is for: all that is not a number. `rule` is a Rule, or has its attributes."""

    rule: Any
    network: Network
    rho_mode: str
    optimiser: Optimiser
    correction: bool = False
    target: bool = False


class NetworkSample(NamedTuple):
    """A batch of transitions: states (B, inputs), numbers (B,).

    `here` and `there` (B, outputs) say which outputs make V(s) and V(s'): 1 for state values; for action values the
    action taken, and the target policy in the next state. `cut` (B,) is not 0 where an episode was cut after this step.
    """

    s: Any
    here: Any
    reward: Any
    discount: Any
    s_next: Any
    there: Any
    rho: Any
    pi: Any
    mu: Any
    cut: Any


def sample_of(kind: Kind, rows: Any) -> NetworkSample:
    """Return a batch for state values; each row has s, s_next, reward, discount, rho, pi, mu and cut.

    They are one array, because every argument costs the call of a compiled program time.
    """
    s, s_next, numbers = jnp.split(rows, (kind.network.inputs, 2 * kind.network.inputs), axis=1)
    reward, discount, *others = numbers.T
    one = jnp.ones((len(rows), 1), rows.dtype)
    return NetworkSample(s, one, reward, discount, s_next, one, *others)


class TraceMemory(NamedTuple):
    """A trace of ∇V by w, the same trace of ∇h by η, and the numbers it keeps."""

    of_w: Any
    of_eta: Any
    kept: tuple[Any, ...]


class NetworkState(NamedTuple):
    """All that changes: weights, copies of w for the DD term and for bootstrapping, traces, memories of optimisers."""

    w: Any
    eta: Any
    copy: Any
    target: Any
    traces: dict[str, TraceMemory]
    before: Any
    memory: Any
    second_memory: Any
    updates: Any


def first_state(kind: Kind, w: Any, eta: Any) -> NetworkState:
    """Return the state of weights that have not learnt yet."""
    zero = jnp.zeros((), w.dtype)
    traces = {
        trace.name: TraceMemory(jnp.zeros_like(w), jnp.zeros_like(eta), (zero,) * len(trace.memory))
        for trace in kind.rule.traces
    }
    optimiser = kind.optimiser
    return NetworkState(
        w=w,
        eta=eta,
        copy=w,
        target=w if kind.target else (),
        traces=traces,
        before=jnp.zeros(len(Before._fields), w.dtype),
        memory=optimiser.first(w),
        second_memory=optimiser.first(eta) if kind.rule.has_eta else (),
        updates=jnp.zeros((), jnp.int32),
    )


class Gradients(NamedTuple):
    """Values of a batch, and the functions that pull cotangents (B,) back to directions of weights.

    `x` and `x_next` pull to w what moves V(s) and V(s'); `second` and `second_next` pull to η and to w what moves h.
    """

    v: Any
    v_next: Any
    h: Any
    x: Callable[[Any], Any]
    x_next: Callable[[Any], Any]
    second: Callable[[Any], Any]
    second_next: Callable[[Any], Any]


def read(outputs: Any, weights: Any) -> Any:
    """Return (B,) values: the outputs (B, outputs) weighted and summed."""
    return (outputs * weights).sum(axis=-1)


def gradients(kind: Kind, state: NetworkState, sample: NetworkSample) -> Gradients:
    """Return V(s), V(s') and h(s), and their vector-Jacobian products; XLA leaves out what a rule does not use."""
    network, (w, eta) = kind.network, (state.w, state.eta)
    v, pull = jax.vjp(lambda w: read(network.values(w, sample.s), sample.here), w)
    v_next, pull_next = jax.vjp(lambda w: read(network.values(w, sample.s_next), sample.there), w)
    h, second = jax.vjp(lambda eta, w: read(network.second_values(eta, w, sample.s), sample.here), eta, w)
    _, second_next = jax.vjp(lambda eta, w: read(network.second_values(eta, w, sample.s_next), sample.there), eta, w)
    return Gradients(v, v_next, h, lambda c: pull(c)[0], lambda c: pull_next(c)[0], second, second_next)


class Directions(NamedTuple):
    """Where an update goes: w along one direction, η along another and by a share of itself; and the TD errors."""

    w: Any
    eta: Any
    shrink: Any
    traces: dict[str, TraceMemory]
    delta: Any


def directions(kind: Kind, values: dict[str, Any], state: NetworkState, sample: NetworkSample) -> Directions:
    """Return where the rule moves w and η, means over the batch, all from old weights."""
    rule, size = kind.rule, sample.reward.shape[0]
    found = gradients(kind, state, sample)
    signals = weight_signals(kind, state, sample, found) | {
        name: values[name] for name in (*rule.defaults, "beta") if name in values
    }
    traces = advance_traces(kind, state, found, signals) if rule.traces else state.traces
    signals |= trace_signals(kind, state, sample, found, traces)
    delta = signals["delta"]
    returned = on_arrays(rule.step)(*(signals[name] for name in rule.arguments))
    moves = {name: jnp.broadcast_to(one, delta.shape) / size for name, one in zip(rule.moves, returned, strict=True)}
    zero = jnp.zeros_like(delta)
    along_w = found.x(moves.get("w_x", zero))
    along_eta = found.second(moves.get("eta_x", zero))[0]
    if "w_next" in moves:
        along_w += found.x_next(moves["w_next"])
    if "eta_next" in moves:
        along_eta += found.second_next(moves["eta_next"])[0]
    if "w_z" in moves:
        along_w += moves["w_z"].sum() * traces["z"].of_w
    if "eta_z" in moves:
        along_eta += moves["eta_z"].sum() * traces["z"].of_eta
    if "w_change" in moves:
        along_w += moves["w_change"].sum() * (state.w - state.copy)
    if kind.correction:  # ψ (Maei 2009): with h = η·∇V, the gradient of h by w is ∇²V η
        along_w -= values["alpha"] * found.second((sample.rho * delta - found.h) / size)[1]
    if kind.target:
        along_w -= values["alpha"] * values["pull"] * (state.w - state.target)
    return Directions(along_w, along_eta, moves.get("eta_eta", zero).sum(), traces, delta)


def weight_signals(kind: Kind, state: NetworkState, sample: NetworkSample, found: Gradients) -> dict[str, Any]:
    """Return the signals of transitions and of values, (B,) each."""
    network = kind.network
    boot = read(network.values(state.target, sample.s_next), sample.there) if kind.target else found.v_next
    signals = {
        "rho": sample.rho,
        "rho_x": sample.rho if kind.rho_mode == "R" else jnp.ones_like(sample.rho),
        "discount": sample.discount,
        "delta": sample.reward + sample.discount * boot - found.v,
        "x_eta": found.h,
    }
    if "x_change" in kind.rule.arguments:
        signals["x_change"] = found.v - read(network.values(state.copy, sample.s), sample.here)
    return signals


def advance(
    kind: Kind, values: dict[str, Any], state: NetworkState, sample: NetworkSample
) -> tuple[NetworkState, Any, Any]:
    """Return the state after one update, the TD errors (B,), and whether it stayed finite."""
    found, optimiser = directions(kind, values, state, sample), kind.optimiser
    change, memory = optimiser.step(found.w, state.memory, state.w, values["step"])
    w, eta, second_memory, updates = state.w + change, state.eta, state.second_memory, state.updates + 1
    if kind.rule.has_eta:
        change, second_memory = optimiser.step(found.eta, second_memory, eta, values["second_step"])
        scale = values["second_step"] if optimiser.transformation else 1.0  # a decay does not go through the optimiser
        eta = eta + change + scale * found.shrink * eta
    now = jnp.stack([getattr(sample, name)[0] for name in Before._fields])
    new = NetworkState(
        w=w,
        eta=eta,
        copy=jnp.where(updates % values["period"] == 0, state.w, state.copy),
        target=jnp.where(updates % values["target_period"] == 0, w, state.target) if kind.target else (),
        traces=found.traces,
        before=jnp.where((sample.discount[0] == 0) | (sample.cut[0] != 0), 0.0, now),  # a new episode knows nothing
        memory=memory,
        second_memory=second_memory,
        updates=updates,
    )
    return new, found.delta, is_sound(w) & is_sound(eta)


@cache
def one_update(kind: Kind) -> Any:
    """Return the compiled update from one batch of transitions."""
    return jax.jit(lambda values, state, rows: as_read(*advance(kind, values, state, sample_of(kind, rows))))


def as_read(state: NetworkState, delta: Any, sound: Any) -> tuple[NetworkState, Any]:
    """Return the state after an update, and what is read of it as one array: the TD errors, and 1 if it is sound."""
    return state, jnp.append(delta, sound)


@cache
def many_updates(kind: Kind) -> Any:
    """Return the compiled scan over rows of indices into transitions; only `live` rows that do not diverge count."""

    def run(values: Any, state: Any, data: Any, indices: Any, live: Any) -> Any:
        def body(carry: Any, step: Any) -> Any:
            (state, sound), (rows, live) = carry, step
            new, delta, ok = advance(kind, values, state, sample_of(kind, data[rows]))
            sound &= ok | ~live
            new = jax.tree.map(lambda after, before: jnp.where(sound & live, after, before), new, state)
            return (new, sound), delta

        (state, sound), deltas = jax.lax.scan(body, (state, jnp.array(True)), (indices, live))
        return state, deltas, sound

    return jax.jit(run)


def is_sound(weights: Any) -> Any:
    """Return whether all weights are finite, and their squares too."""
    return (jnp.abs(weights) < 0.1 * jnp.sqrt(jnp.finfo(weights.dtype).max)).all()


def advance_traces(
    kind: Kind, state: NetworkState, found: Gradients, signals: dict[str, Any]
) -> dict[str, TraceMemory]:
    """Return the traces after one more gradient: decay z + gain ∇V(s), and the same with ∇h(s)."""
    one = jnp.ones_like(found.v)
    x, x_eta = found.x(one), found.second(one)[0] if kind.rule.has_eta else jnp.zeros_like(state.eta)
    known = signals | {f"{name}_before": state.before[place] for place, name in enumerate(Before._fields)}
    made = {}
    for trace in kind.rule.traces:
        old = state.traces[trace.name]
        known |= {"x_trace": x @ old.of_w} | dict(zip(trace.memory, old.kept, strict=True))
        numbers = on_arrays(trace.step)(*(known[name] for name in trace.arguments))
        decay, gain, *kept = (jnp.reshape(number, ()) for number in numbers)
        made[trace.name] = TraceMemory(decay * old.of_w + gain * x, decay * old.of_eta + gain * x_eta, tuple(kept))
    return made


def trace_signals(
    kind: Kind, state: NetworkState, sample: NetworkSample, found: Gradients, traces: dict[str, TraceMemory]
) -> dict[str, Any]:
    """Return the signals of traces and the products of gradients that the rule asks for."""
    one, zero = jnp.ones_like(found.v), jnp.zeros_like(found.v)
    signals = {f"{name}_eta": trace.of_eta @ state.eta for name, trace in traces.items()}
    if set(PRODUCTS) & set(kind.rule.arguments):
        x, x_next = found.x(one), found.x_next(jnp.where(sample.discount == 0, zero, one))
        z = traces["z"].of_w if "z" in traces else jnp.zeros_like(x)
        signals |= {"x_x": x @ x, "x_next": x @ x_next, "next_next": x_next @ x_next, "x_z": x @ z, "z_z": z @ z}
    return signals


def on_arrays(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return the step of a rule or a trace with `min` and `max` of arrays."""
    if not isinstance(step, FunctionType):
        return step
    made = FunctionType(step.__code__, step.__globals__ | ON_ARRAYS, step.__name__, step.__defaults__, step.__closure__)
    made.__kwdefaults__ = step.__kwdefaults__
    return made


def check_rule(rule: Rule, network: Network, correction: bool = False) -> None:
    """Raise unless a network can follow the rule; the sentence says which rule and why."""
    what = f"A network does not support the rule {rule.name!r}"
    if rule.natural:
        raise BadRequestError(f"{what}: it is natural, and a metric of all weights of a network is too large.")
    rule.check_known("`NetworkLearner`", SIGNALS, MOVES)
    asked = [name for name in rule.arguments if name not in rule.defaults]
    products = [name for name in asked if name in PRODUCTS]
    if products and not network.has_one_kind_of_gradient:
        raise BadRequestError(
            f"{what} with second={network.second!r}: its {products[0]!r} stands for products of the gradients of V and "
            "of h, which are the same only with second='tangent'. Use that."
        )
    along = [name for name in asked if name in ("z_eta", "b_eta")]
    if along and not network.is_linear_in_eta:
        raise BadRequestError(
            f"{what} with second='network': its {along[0]!r} needs an h that is linear in η. "
            "Use second='head' or second='tangent'."
        )
    for step, arguments in ((rule.step, rule.arguments), *((one.step, one.arguments) for one in rule.traces)):
        check_traceable(what, step, arguments)
    if correction and rule.name not in CORRECTED:
        raise bad_request(
            "The rule of a NetworkLearner with correction=True", f"be one of {', '.join(CORRECTED)}", rule.name
        )
    if correction and network.second != "tangent":
        raise bad_request("'second' of a network with correction=True", "be 'tangent'", network.second)


def check_traceable(what: str, step: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    """Raise unless a step can be computed on arrays."""
    number = jax.ShapeDtypeStruct((), jnp.float32)
    try:
        jax.eval_shape(on_arrays(step), *(number for _ in arguments))
    except Exception as error:  # the step is the user's, and may raise anything
        asks = isinstance(error, jax.errors.TracerBoolConversionError)
        why = "it has an `if` on a number. Use min and max instead" if asks else Unquoted(f"{type(error).__name__}")
        raise BadRequestError(f"{what}: {why}.") from None


def keep_programs() -> None:
    """Let JAX keep what it compiles in our folder, unless the user has chosen one for JAX."""
    if jax.config.jax_compilation_cache_dir is None and (place := usable_folder(make=True)):
        jax.config.update("jax_compilation_cache_dir", str(place / NETWORKS))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
