"""Compare the lane engine with a good JAX program for the same work, in nanoseconds per update of one lane.

    python -m benchmarks.jax

The JAX program is a `scan` over the steps with `vmap` over the lanes, and uses indices instead of dense features. The
engine computes errors after every episode, as the paper does; JAX computes none. JAX uses threads of its own, so its
time is wall time; keep the machine idle.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.baselines import LEARNERS_IN_C
from benchmarks.engine import CASES, LANES, STEPS, alphas, best_times, fresh_block, on_one_core, piece, whole_call
from gradient_dd.engine.kernels.rows import padded
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import Task
from tools.programs import parser_of, print_table

JAX_STEPS, REPEATS = 30_000, 3
HEAD = ("task", "learner", "ours, ns", "JAX, ns", "JAX / ours")


def has_jax() -> bool:
    """Return whether JAX is installed."""
    return find_spec("jax") is not None


def jax_call(task: Task, name: str, column: np.ndarray, alphas: np.ndarray) -> Callable[[], Any]:
    """Return a compiled call that runs one learner, a lane for each alpha, over a column of outcomes."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    jax.config.update("jax_enable_x64", True)
    rule = LEARNERS[name]
    rows, weights = padded(task.feature_rows[np.append(task.states, task.states[:1])])
    weights[-1] = 0.0  # the last row stands for every terminal
    columns, values = jnp.asarray(rows.astype(np.int32)), jnp.asarray(weights)
    row, next_row, reward, discount, rho, _ = (jnp.asarray(array[column]) for array in task.transitions)
    own = {parameter.name: parameter.default for parameter in rule.parameters if parameter.name != "alpha"}

    def lane(alpha: Any) -> Any:
        def step(state: Any, data: Any) -> Any:
            w, eta, last, along, last_x, last_next = state
            s, n, r, g, ratio = data
            i, x, j, x_next = columns[s], values[s], columns[n], values[n]
            change = 0.0
            if "x_change" in rule.arguments:
                same = (i[:, None] == along[None, :]) * x[:, None]
                change = (same * jnp.concatenate([last[0] * last_x, last[1] * last_next])[None, :]).sum()
            signals = own | {
                "alpha": alpha,
                "beta": own.get("zeta", 0.0) * alpha,
                "rho": ratio,
                "rho_x": ratio,
                "discount": g,
                "delta": r + g * (x_next * w[j]).sum() - (x * w[i]).sum(),
                "x_eta": (x * eta[i]).sum(),
                "x_change": change,
            }
            move = rule.coefficients(signals)
            w = w.at[i].add(move["w_x"] * x).at[j].add(move["w_next"] * x_next)
            eta = eta * (1.0 + move["eta_eta"]) if "eta_eta" in rule.moves else eta
            eta = eta.at[i].add(move["eta_x"] * x)
            coefficients = jnp.stack([move["w_x"] + 0.0 * alpha, move["w_next"] + 0.0 * alpha])
            return (w, eta, coefficients, jnp.concatenate([i, j]), x, x_next), None

        w = jnp.asarray(task.initial_weights)
        k = columns.shape[1]
        start = (w, 0.0 * w, jnp.zeros(2), jnp.zeros(2 * k, columns.dtype), jnp.zeros(k), jnp.zeros(k))
        return lax.scan(step, start, (row, next_row, reward, discount, rho))[0][0]

    compiled = jax.jit(jax.vmap(lane))
    given = jnp.asarray(alphas)
    return lambda: compiled(given).block_until_ready()


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the time of an update of every learner on every task, for the engine and for JAX."""
    for task, top in CASES:
        column, segments = piece(task)
        for name in LEARNERS_IN_C:
            program = jax_call(task, name, column[:JAX_STEPS], alphas(top))
            program()  # compiles
            ours = best_times({"": whole_call(fresh_block(task, name, top), column, segments)}, REPEATS)[""]
            theirs = best_times({"": program}, REPEATS, perf_counter)[""]
            ns = ours / (STEPS * LANES) * 1e9, theirs / (JAX_STEPS * LANES) * 1e9
            yield str(task), name, *(f"{one:.3f}" for one in ns), f"{ns[1] / ns[0]:.1f}"


def main(words: list[str] | None = None) -> None:
    """Print the table."""
    parser_of(__doc__).parse_args(words)
    if not has_jax():
        raise SystemExit("JAX is not installed. Try: pip install jax")
    with on_one_core():
        print_table(HEAD, rows())


if __name__ == "__main__":
    main()
