"""Compare updates of networks in lanes with a NumPy loop, a plain JAX loop and this core's matrix product.

    python -m benchmarks.networks

The benchmark runs Gradient-DD on two hidden layers of 64 units with batches of 32 in float32. The NumPy loop has
explicit back-propagation. The plain JAX loop has one compiled call for each update, without checks, and reads the TD
errors, as NetworkLearner.update does. GFLOP/s count only matrix products: three forward passes (s, s' and s with the
copy) and two backward passes of twice the work.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import gradient_dd as gdd
from gradient_dd.learners import find
from tools.programs import parser_of, print_table
from trials.networks import lanes as lanes_module
from trials.networks.lanes import Lane, LaneMeasure, Streams, run_lanes

INPUTS, HIDDEN, BATCH, UPDATES, SINGLE, REPEATS = 4, (64, 64), 32, 500, 200, 5
WIDTHS = (1, 16, 64)
HEAD = ("who", "µs an update", "updates a second", "GFLOP/s")
PASSES = 3 + 2 * 2


def work() -> float:
    """Return the floating-point operations of one update of one lane, in matrix products."""
    weights = sum(here * there for here, there in pairwise((INPUTS, *HIDDEN, 1)))
    return 2.0 * BATCH * weights * PASSES


def made_up() -> tuple[Streams, LaneMeasure, Any]:
    """Return a stream, a measure and batches."""
    rng = np.random.default_rng(0)
    n = 1000
    s, s_next = rng.standard_normal((2, 1, n, INPUTS))
    streams = Streams(s, rng.standard_normal((1, n)), np.full((1, n), 0.9), s_next, np.ones((1, n)))
    measure = LaneMeasure(s[0, :1], np.zeros(1), np.ones(1))
    return streams, measure, rng.integers(n, size=(UPDATES, 1, BATCH))


def network() -> gdd.Network:
    """Return the network of all rows."""
    return gdd.Network(INPUTS, HIDDEN)


def best_seconds(call: Callable[[], Any]) -> float:
    """Return the shortest of a few times, after one that compiles."""
    call()
    times = []
    for _ in range(REPEATS):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return min(times)


def numpy_update(state: list[Any], batch: tuple[Any, ...], alpha: float = 0.01) -> None:
    """Make one update of Gradient-DD with back-propagation written out; state: w, w_prev, η."""
    w, w_prev, eta = state
    s, reward, discount, s_next, rho = batch
    v, last, pull = numpy_pass(w, s)
    v_next, _, pull_next = numpy_pass(w, s_next)
    x = np.concatenate([last, np.ones((len(s), 1), last.dtype)], axis=1)
    h, delta, change = x @ eta, reward + discount * v_next - v, v - numpy_pass(w_prev, s)[0]
    moved = pull(alpha * (rho * h - change) / len(s)) + pull_next(-alpha * rho * discount * h / len(s))
    state[:] = w + moved, w, eta + alpha * ((rho * delta - h) @ x) / len(s)


def numpy_pass(w: Any, s: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
    """Return V(s), the last hidden layer, and the function that pulls cotangents (B,) back to w."""
    inputs, weights, begin = [s], [], 0
    widths = (INPUTS, *HIDDEN, 1)
    for here, there in pairwise(widths):
        middle, end = begin + here * there, begin + (here + 1) * there
        weights.append(w[begin:middle].reshape(here, there))
        out = inputs[-1] @ weights[-1] + w[middle:end]
        inputs.append(np.tanh(out) if end < len(w) else out)
        begin = end

    def pull(cotangents: Any) -> Any:
        back, parts = cotangents[:, None].astype(w.dtype), []
        for place in reversed(range(len(weights))):
            parts.append(np.concatenate([(inputs[place].T @ back).ravel(), back.sum(axis=0)]))
            if place:
                back = (back @ weights[place].T) * (1 - inputs[place] ** 2)
        return np.concatenate(parts[::-1])

    return inputs[-1][:, 0], inputs[-2], pull


def numpy_call(updates: int) -> list[Any]:
    """Return w, w_prev and η after updates with NumPy."""
    streams, _, batches = made_up()
    first = network().first_w(0).astype(np.float32)
    state = [first, first, np.zeros(HIDDEN[-1] + 1, np.float32)]
    columns = [column[0].astype(np.float32) for column in streams]
    for rows in batches[:updates, 0]:
        numpy_update(state, tuple(column[rows] for column in columns))
    return state


def plain_jax(updates: int) -> Any:
    """Return w, w_prev and η after updates with JAX, one compiled call for each."""
    streams, _, batches = made_up()
    w = [tuple(map(jnp.asarray, layer)) for layer in network().layers(network().first_w(0).astype(np.float32))]
    state = w, w, jnp.zeros(HIDDEN[-1] + 1)
    columns = [column[0].astype(np.float32) for column in streams]
    for rows in batches[:updates, 0]:
        state, delta = jax_update(state, *(column[rows] for column in columns))
        np.asarray(delta)
    return state


@jax.jit
def jax_update(state: Any, s: Any, reward: Any, discount: Any, s_next: Any, rho: Any) -> tuple[Any, Any]:
    """Return w, w_prev and η after one update of Gradient-DD, and the TD errors."""
    w, w_prev, eta = state

    def values(w: Any, s: Any) -> tuple[Any, Any]:
        for W, b in w[:-1]:
            s = jnp.tanh(s @ W + b)
        return (s @ w[-1][0] + w[-1][1])[:, 0], s

    v, pull, last = jax.vjp(lambda w: values(w, s), w, has_aux=True)
    v_next, pull_next = jax.vjp(lambda w: values(w, s_next)[0], w)
    x = jnp.concatenate([last, jnp.ones((len(s), 1))], axis=1)
    h, delta, change, alpha = x @ eta, reward + discount * v_next - v, v - values(w_prev, s)[0], 0.01 / len(s)
    moves = pull(alpha * (rho * h - change))[0], pull_next(-alpha * rho * discount * h)[0]
    return (jax.tree.map(lambda *parts: sum(parts), w, *moves), w, eta + alpha * ((rho * delta - h) @ x)), delta


def learner_call(updates: int) -> Any:
    """Return the agent after one compiled call for each update."""
    streams, _, batches = made_up()
    agent = gdd.NetworkLearner("gradient_dd", network(), alpha=0.01)
    for rows in batches[:updates, 0]:
        agent.update(*(column[0][rows] for column in streams))
    return agent


def lane_call(width: int) -> Any:
    """Return the errors of one group of lanes of a width."""
    streams, measure, batches = made_up()
    lanes_module.WIDTH = width
    lanes_module.lane_program.cache_clear()
    some = [Lane(find("gradient_dd").setting(alpha=0.01), seed) for seed in range(width)]
    return lambda: run_lanes(network(), some, streams, measure, batches=batches, every=UPDATES)


def product_speed() -> float:
    """Return the GFLOP/s of a product of two matrices of 1024 × 1024 in float32, by NumPy."""
    a = np.ones((1024, 1024), np.float32)
    return 2 * 1024**3 / best_seconds(lambda: a @ a) / 1e9


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table."""
    width = lanes_module.WIDTH
    found = {
        "NumPy loop": best_seconds(lambda: numpy_call(SINGLE)) / SINGLE,
        "plain JAX loop": best_seconds(lambda: plain_jax(SINGLE)) / SINGLE,
        "NetworkLearner.update": best_seconds(lambda: learner_call(SINGLE)) / SINGLE,
    }
    for lanes in WIDTHS:
        found[f"lanes in groups of {lanes}"] = best_seconds(lane_call(lanes)) / UPDATES / lanes
    lanes_module.WIDTH = width
    lanes_module.lane_program.cache_clear()
    for name, seconds in found.items():
        yield name, f"{1e6 * seconds:.1f}", f"{1 / seconds:,.0f}", f"{work() / seconds / 1e9:.1f}"
    yield "a product of 1024 × 1024", "", "", f"{product_speed():.1f}"


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser_of(__doc__).parse_args(arguments)
    print_table(HEAD, rows())


if __name__ == "__main__":
    main()
