"""Compare learners with a trace with C of the same memory layout, JAX and a plain NumPy loop.

    python -m benchmarks.traced

The plain loop runs one setting at a time, as public benchmarks of these learners do. No errors are computed. Times are
nanoseconds of CPU time per update of one lane, the best of several interleaved calls; compare them only within one run.
"""

import ctypes
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.baselines import compiled, filled
from benchmarks.engine import best_times, on_one_core, whole_call
from benchmarks.jax import has_jax
from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import Block, LaneRun
from gradient_dd.engine.schedules import constant
from gradient_dd.engine.trajectories import OutcomeSampler
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import Task
from tools.programs import parser_of, print_table

LANES, STEPS, PLAIN_STEPS, JAX_STEPS, REPEATS, LAM = 64, 2**16, 2_000, 10_000, 11, 0.9
NAMES = ("td", "tdc", "gtd2")
CASES: tuple[Task, ...] = (tasks.collision(1), tasks.random_walk(40))
ALPHAS = np.geomspace(1e-5, 1e-2, LANES)
HEAD = ("task", "learner", "ours, ns", "C, ns", "/ C", "NumPy /", "JAX /")
WORK = "column rows x x_next u reward rho discount alpha beta steps:i width:i lam:d w eta z list mark"


def fresh_block(task: Task, name: str) -> Block:
    """Return a block of lanes of one learner with λ = 0.9."""
    settings = [LEARNERS[name].setting(alpha=float(alpha), lam=LAM) for alpha in ALPHAS]
    return LaneRun(task, settings, Horizon(steps=10**9, every=10**9)).blocks[0]


def engine_call(block: Block, column: Any) -> Callable[[], Any]:
    """Return a call of the lane engine's kernel that takes no errors."""
    steps = len(column) - 1
    segments = Horizon(steps=10**9, every=10**9).cut(np.zeros(0, np.int64), steps, 0, 0, constant)
    return whole_call(block, column, segments)


def c_call(task: Task, name: str, column: Any) -> tuple[Callable[[], Any], Array] | None:
    """Return a call of the C kernel and its weights (rows, lanes); None where there is no C compiler."""
    code = compiled(Path(__file__).with_name("traced.c"), f"-DB={LANES}", "-ffp-contract=off")
    if code is None:
        return None
    block = fresh_block(task, name)
    table, p = block.table._asdict(), task.n_features
    w = np.array(block.lanes.w)
    work = table | {"column": column, "alpha": ALPHAS, "beta": ALPHAS.copy(), "steps": len(column) - 1, "lam": LAM}
    work |= {"width": len(table["rows"]) // len(table["reward"]), "w": w, "eta": np.zeros_like(w), "z": np.zeros(p)}
    work |= {"list": np.zeros(p, np.int64), "mark": np.zeros(p, np.int8)}
    record, function = filled(WORK, work), getattr(code, f"run_{name}")
    function.argtypes = [ctypes.c_void_p]

    def call() -> Any:
        kept = work  # alive as long as the call is
        return function(ctypes.addressof(record)), kept

    return call, w.reshape(-1, LANES)


def plain_call(task: Task, name: str, column: Any, alpha: float) -> Callable[[], Array]:
    """Return a plain NumPy loop over one setting with dense vectors."""
    X = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions

    def call() -> Array:
        w, eta, z, before = np.array(task.initial_weights), np.zeros(task.n_features), np.zeros(task.n_features), 0.0
        for o in column:
            x, x_next, gamma = X[row[o]], X[next_row[o]], discount[o]
            delta = reward[o] + gamma * np.dot(w, x_next) - np.dot(w, x)
            z = rho[o] * (before * LAM * z + x)
            before = gamma
            if name == "td":
                w += alpha * delta * z
                continue
            x_eta, back = np.dot(x, eta), gamma * (1 - LAM) * np.dot(z, eta) * x_next
            w += alpha * ((delta * z if name == "tdc" else x_eta * x) - back)
            eta += alpha * (delta * z - x_eta * x)
        return w

    return call


def jax_call(task: Task, name: str, column: Any) -> Callable[[], Any]:
    """Return a JAX program: `scan` over the steps, one trace for all lanes."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    jax.config.update("jax_enable_x64", True)
    X, alpha = jnp.asarray(task.row_features.toarray()), jnp.asarray(ALPHAS)[:, None]
    row, next_row, reward, discount, rho, _ = (jnp.asarray(array[column]) for array in task.transitions)

    def step(state: Any, data: Any) -> Any:
        w, eta, z, before = state
        s, n, r, gamma, ratio = data
        x, x_next = X[s], X[n]
        delta = (r + gamma * (w @ x_next) - w @ x)[:, None]
        z = ratio * (before * LAM * z + x)
        if name == "td":
            return (w + alpha * delta * z, eta, z, gamma), None
        x_eta, back = (eta @ x)[:, None] * x, gamma * (1 - LAM) * (eta @ z)[:, None] * x_next
        w = w + alpha * ((delta * z if name == "tdc" else x_eta) - back)
        return (w, eta + alpha * (delta * z - x_eta), z, gamma), None

    w = jnp.tile(jnp.asarray(task.initial_weights), (LANES, 1))
    start = w, 0.0 * w, jnp.zeros(task.n_features), 0.0
    run = jax.jit(lambda data: lax.scan(step, start, data)[0][0])
    return lambda: run((row, next_row, reward, discount, rho)).block_until_ready()


def nanoseconds(task: Task, name: str) -> dict[str, float]:
    """Return the time of an update of one lane in the engine, and in C, NumPy and JAX if available."""
    column = OutcomeSampler(task).take(STEPS + 1)
    calls = {"ours": engine_call(fresh_block(task, name), column)}
    if (in_c := c_call(task, name, column)) is not None:
        calls["C"] = in_c[0]
    best = {kind: seconds / (STEPS * LANES) for kind, seconds in best_times(calls, REPEATS).items()}
    plain = plain_call(task, name, column[:PLAIN_STEPS], 1e-3)
    best["NumPy"] = best_times({"": plain}, 3)[""] / PLAIN_STEPS
    if has_jax():
        program = jax_call(task, name, column[:JAX_STEPS])
        program()  # compiles
        best["JAX"] = best_times({"": program}, 3, process_time)[""] / (JAX_STEPS * LANES)  # all threads of JAX
    return {kind: seconds * 1e9 for kind, seconds in best.items()}


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the printed table."""
    for task, name in product(CASES, NAMES):
        ns = nanoseconds(task, name)

        def over(top: str, below: str, ns: dict[str, float] = ns) -> str:
            return f"{ns[top] / ns[below]:.2f}" if top in ns and below in ns else "–"

        times = f"{ns['ours']:.2f}", f"{ns['C']:.2f}" if "C" in ns else "–"
        yield str(task), name, *times, over("ours", "C"), over("NumPy", "ours"), over("JAX", "ours")


def main(words: list[str] | None = None) -> None:
    """Print the table."""
    parser_of(__doc__).parse_args(words)
    with on_one_core():
        print_table(HEAD, rows())


if __name__ == "__main__":
    main()
