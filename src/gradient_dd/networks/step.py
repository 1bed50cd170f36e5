"""One update of a rule on a network, as a pure function of arrays.

The moves that `Rule.step` returns are the cotangents of V(s), V(s') and h(s): the rule gives the length of the move
along each gradient, and one vector-Jacobian product turns these lengths into a direction of all weights,

    w ← w + w_x ∇V(s) + w_next ∇V(s'),   η ← η + eta_x ∇h(s),

which is the linear update with ∇V(s) in place of x. The signal δ is computed from V; x·η is h(s); x·(w − w_prev) is
V_w(s) − V_copy(s), where the copy is w of the previous update (Gradient-DD) or of an earlier one (functional
regularisation). A batch moves w and η by its mean. All right-hand sides use old weights.

A rule is a function of numbers, which are JAX arrays here. It must not contain a Python `if`, and its `min` and `max`
become functions of arrays. Natural rules are refused, because they need M⁻¹ for a matrix M of all weights. With the
optimiser "sgd" the rule itself applies the step sizes. With any other optimiser the rule gets alpha = beta = 1.
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
CORRECTED = ("gtd2", "tdc", "tdrc", "gradient_dd", "tdc_dd", "tdrc_dd")  # rules that follow −½∇MSPBE, apart from DD
NAMED = {  # the values of `optimiser`; the transformations have no step size
    "sgd": None,
    "adam": optax.scale_by_adam(),
    "adam_without_momentum": optax.scale_by_adam(b1=0.0),
}


class Optimiser(NamedTuple):
    """An Optax transformation, or None for plain steps; `own` marks a user's transformation and step size."""

    name: str
    transformation: Any
    own: bool

    def first(self, weights: Any) -> Any:
        """Return the memory of the optimiser for initial weights."""
        return () if self.transformation is None else self.transformation.init(weights)

    def step(self, direction: Any, memory: Any, weights: Any, size: Any) -> tuple[Any, Any]:
        """Return the change of weights along a direction, and the new memory of the optimiser."""
        if self.transformation is None:
            return direction, memory
        if self.own:
            return self.transformation.update(-direction, memory, weights)
        change, memory = self.transformation.update(direction, memory, weights)
        return size * change, memory


def find_optimiser(given: Any) -> Optimiser:
    """Return the optimiser of a name, or a user's Optax transformation as an optimiser."""
    if isinstance(given, optax.GradientTransformation):
        return Optimiser("own", given, own=True)
    if not isinstance(given, str) or given not in NAMED:
        raise unknown("optimiser", given, NAMED)
    return Optimiser(given, NAMED[given], own=False)


class Kind(NamedTuple):
    """The key of one compiled program: everything except numbers. `rule` is a Rule or has its attributes."""

    rule: Any
    network: Network
    rho_mode: str
    optimiser: Optimiser
    correction: bool = False
    target: bool = False


class NetworkSample(NamedTuple):
    """A batch of transitions: states (B, inputs), numbers (B,).

    `here` and `there` (B, outputs) weight the outputs in V(s) and V(s'): 1 for state values; for action values a 1 at
    the action taken, and the target policy in the next state. `cut` (B,) is nonzero where an episode was truncated.
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

    The rows are one array, because each argument slows the call of a compiled program.
    """
    s, s_next, numbers = jnp.split(rows, (kind.network.inputs, 2 * kind.network.inputs), axis=1)
    reward, discount, *others = numbers.T
    one = jnp.ones((len(rows), 1), rows.dtype)
    return NetworkSample(s, one, reward, discount, s_next, one, *others)


class TraceMemory(NamedTuple):
    """A trace of the gradients of V by w, the same trace of the gradients of h by η, and the trace's own numbers."""

    of_w: Any
    of_eta: Any
    kept: tuple[Any, ...]


class NetworkState(NamedTuple):
    """Everything that changes: weights, copies of w (DD term, bootstrapping), traces, and memories of optimisers."""

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
    """Return the state before the first update."""
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


def read(outputs: Any, weights: Any) -> Any:
    """Return the weighted sums (B,) of outputs (B, outputs)."""
    return (outputs * weights).sum(axis=-1)


def directions(
    kind: Kind, values: dict[str, Any], state: NetworkState, sample: NetworkSample
) -> tuple[Any, Any, Any, dict[str, TraceMemory], Any]:
    """Return the directions of w and η, the relative growth of η, the traces, and the TD errors (B,).

    All depend on old weights; moves are means over the batch. Each `pull` turns cotangents (B,) into a direction of w,
    and each `second` into directions of η and w; XLA omits directions that a rule does not use.
    """
    rule, network, w, eta = kind.rule, kind.network, state.w, state.eta
    v, pull = jax.vjp(lambda w: read(network.values(w, sample.s), sample.here), w)
    v_next, pull_next = jax.vjp(lambda w: read(network.values(w, sample.s_next), sample.there), w)
    h, second = jax.vjp(lambda eta, w: read(network.second_values(eta, w, sample.s), sample.here), eta, w)
    _, second_next = jax.vjp(lambda eta, w: read(network.second_values(eta, w, sample.s_next), sample.there), eta, w)
    boot = read(network.values(state.target, sample.s_next), sample.there) if kind.target else v_next
    delta = sample.reward + sample.discount * boot - v
    one, zero = jnp.ones_like(v), jnp.zeros_like(v)
    signals = {
        "rho": sample.rho,
        "rho_x": sample.rho if kind.rho_mode == "R" else jnp.ones_like(sample.rho),
        "discount": sample.discount,
        "delta": delta,
        "x_eta": h,
        **{name: values[name] for name in (*rule.defaults, "beta") if name in values},
    }
    if "x_change" in rule.arguments:
        signals["x_change"] = v - read(network.values(state.copy, sample.s), sample.here)
    traces = state.traces
    if rule.traces:
        x_eta = second(one)[0] if rule.has_eta else jnp.zeros_like(eta)
        traces = advance_traces(kind, state, pull(one)[0], x_eta, signals)
        signals |= {f"{name}_eta": trace.of_eta @ eta for name, trace in traces.items()}
    if set(PRODUCTS) & set(rule.arguments):
        x, x_next = pull(one)[0], pull_next(jnp.where(sample.discount == 0, zero, one))[0]
        z = traces["z"].of_w if "z" in traces else jnp.zeros_like(x)
        signals |= {"x_x": x @ x, "x_next": x @ x_next, "next_next": x_next @ x_next, "x_z": x @ z, "z_z": z @ z}
    returned = on_arrays(rule.step)(*(signals[name] for name in rule.arguments))
    size = sample.reward.shape[0]
    moves = {name: jnp.broadcast_to(one, delta.shape) / size for name, one in zip(rule.moves, returned, strict=True)}
    along_w = pull(moves.get("w_x", zero))[0]
    along_eta = second(moves.get("eta_x", zero))[0]
    if "w_next" in moves:
        along_w += pull_next(moves["w_next"])[0]
    if "eta_next" in moves:
        along_eta += second_next(moves["eta_next"])[0]
    if "w_z" in moves:
        along_w += moves["w_z"].sum() * traces["z"].of_w
    if "eta_z" in moves:
        along_eta += moves["eta_z"].sum() * traces["z"].of_eta
    if "w_change" in moves:
        along_w += moves["w_change"].sum() * (w - state.copy)
    if kind.correction:  # ψ (Maei 2009): with h = η·∇V, the gradient of h by w is ∇²V η
        along_w -= values["alpha"] * second((sample.rho * delta - h) / size)[1]
    if kind.target:
        along_w -= values["alpha"] * values["pull"] * (w - state.target)
    return along_w, along_eta, moves.get("eta_eta", zero).sum(), traces, delta


def advance(
    kind: Kind, values: dict[str, Any], state: NetworkState, sample: NetworkSample
) -> tuple[NetworkState, Any, Any]:
    """Return the state after one update, the TD errors (B,), and whether the weights stayed finite."""
    along_w, along_eta, shrink, traces, delta = directions(kind, values, state, sample)
    optimiser, eta, second_memory, updates = kind.optimiser, state.eta, state.second_memory, state.updates + 1
    change, memory = optimiser.step(along_w, state.memory, state.w, values["step"])
    w = state.w + change
    if kind.rule.has_eta:
        change, second_memory = optimiser.step(along_eta, second_memory, eta, values["second_step"])
        scale = values["second_step"] if optimiser.transformation else 1.0  # the decay of η bypasses the optimiser
        eta = eta + change + scale * shrink * eta
    now = jnp.stack([getattr(sample, name)[0] for name in Before._fields])
    new = NetworkState(
        w=w,
        eta=eta,
        copy=jnp.where(updates % values["period"] == 0, state.w, state.copy),
        target=jnp.where(updates % values["target_period"] == 0, w, state.target) if kind.target else (),
        traces=traces,
        before=jnp.where((sample.discount[0] == 0) | (sample.cut[0] != 0), 0.0, now),  # nothing precedes an episode
        memory=memory,
        second_memory=second_memory,
        updates=updates,
    )
    return new, delta, is_sound(w) & is_sound(eta)


@cache
def one_update(kind: Kind) -> Any:
    """Return the compiled update from one batch of transitions."""
    return jax.jit(lambda values, state, rows: as_read(*advance(kind, values, state, sample_of(kind, rows))))


def as_read(state: NetworkState, delta: Any, sound: Any) -> tuple[NetworkState, Any]:
    """Return the state after an update, and one array of the TD errors followed by 1 if the state is valid, else 0."""
    return state, jnp.append(delta, sound)


@cache
def many_updates(kind: Kind) -> Any:
    """Return the compiled scan over rows of indices into transitions; it applies `live` rows until one diverges."""

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
    """Return whether all weights and their squares are finite."""
    return (jnp.abs(weights) < 0.1 * jnp.sqrt(jnp.finfo(weights.dtype).max)).all()


def advance_traces(
    kind: Kind, state: NetworkState, x: Any, x_eta: Any, signals: dict[str, Any]
) -> dict[str, TraceMemory]:
    """Return the traces after one more gradient: decay z + gain x with x = ∇V(s), and the same with x_eta = ∇h(s)."""
    known = signals | {f"{name}_before": state.before[place] for place, name in enumerate(Before._fields)}
    made = {}
    for trace in kind.rule.traces:
        old = state.traces[trace.name]
        known |= {"x_trace": x @ old.of_w} | dict(zip(trace.memory, old.kept, strict=True))
        numbers = on_arrays(trace.step)(*(known[name] for name in trace.arguments))
        decay, gain, *kept = (jnp.reshape(number, ()) for number in numbers)
        made[trace.name] = TraceMemory(decay * old.of_w + gain * x, decay * old.of_eta + gain * x_eta, tuple(kept))
    return made


def on_arrays(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return the step of a rule or a trace with the `min` and `max` of arrays."""
    if not isinstance(step, FunctionType):
        return step
    made = FunctionType(step.__code__, step.__globals__ | ON_ARRAYS, step.__name__, step.__defaults__, step.__closure__)
    made.__kwdefaults__ = step.__kwdefaults__
    return made


def check_rule(rule: Rule, network: Network, correction: bool = False) -> None:
    """Raise unless the network supports the rule."""
    what = f"A network does not support the rule {rule.name!r}"
    if rule.natural:
        raise BadRequestError(f"{what}: it is natural, and a metric of all weights would be too large.")
    rule.check_known("`NetworkLearner`", SIGNALS, MOVES)
    asked = [name for name in rule.arguments if name not in rule.defaults]
    products = [name for name in asked if name in PRODUCTS]
    if products and network.second != "tangent" and network.hidden:
        raise BadRequestError(
            f"{what} with second={network.second!r}: its {products[0]!r} is a product of gradients, and the gradients "
            "of V and h agree only with second='tangent'. Use second='tangent'."
        )
    along = [name for name in asked if name in ("z_eta", "b_eta")]
    if along and network.second == "network" and network.hidden:
        raise BadRequestError(
            f"{what} with second='network': its {along[0]!r} needs an h that is linear in η. "
            "Use second='head' or second='tangent'."
        )
    number = jax.ShapeDtypeStruct((), jnp.float32)
    for step, arguments in ((rule.step, rule.arguments), *((one.step, one.arguments) for one in rule.traces)):
        try:
            jax.eval_shape(on_arrays(step), *(number for _ in arguments))
        except Exception as error:  # the step is the user's, and may raise anything
            asks = isinstance(error, jax.errors.TracerBoolConversionError)
            why = "it has an `if` on a number. Use min and max instead" if asks else Unquoted(type(error).__name__)
            raise BadRequestError(f"{what}: {why}.") from None
    if correction and rule.name not in CORRECTED:
        allowed = f"be one of {', '.join(CORRECTED)}"
        raise bad_request("The rule of a NetworkLearner with correction=True", allowed, rule.name)
    if correction and network.second != "tangent":
        raise bad_request("'second' of a network with correction=True", "be 'tangent'", network.second)


def keep_programs() -> None:
    """Make JAX keep compiled programs in our folder, unless the user has chosen a folder for JAX."""
    if jax.config.jax_compilation_cache_dir is None and (place := usable_folder(make=True)):
        jax.config.update("jax_compilation_cache_dir", str(place / NETWORKS))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
