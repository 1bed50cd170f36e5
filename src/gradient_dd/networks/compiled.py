"""The compiled programs of a network learner: one update, many updates, values of observations."""

from functools import cache
from typing import Any

from gradient_dd.errors import extra
from gradient_dd.networks.network import Network
from gradient_dd.networks.step import Kind, NetworkState, advance, sample_of

with extra("neural"):
    import jax
    import jax.numpy as jnp


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


@cache
def predictions(network: Network) -> Any:
    """Return the compiled values of states (n, inputs)."""
    return jax.jit(network.values)
