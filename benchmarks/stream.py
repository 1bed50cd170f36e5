"""Compare updates from a user's log with a million features with C and other libraries.

    python -m benchmarks.stream

A row is one transition of a shuffled log. Gradient-DD learns from it in this package and in C. scikit-learn, river and
Vowpal Wabbit have no TD learner, so they make one step of linear regression on x, which needs half of the reading.
Times are processor time of this process, which reduces the influence of other work on the machine.
"""

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.baselines import compiled
from benchmarks.engine import best_times, on_one_core
from gradient_dd.arrays import Array, Integers
from gradient_dd.stream import Learner
from tools.programs import parser_of, print_table

FEATURES = 10**6
CASES = {8: 500_000, 1: 4_000_000}  # non-zeros of a row, and how many rows are timed
FAR_AHEAD = {8: 6, 1: 16}
SINGLE = 3_000  # rows for what takes one at a time
REPEATS = 5
ALPHA = 0.01
HEAD = ("non-zeros", "what", "ns", "million a second", "/ C")


class Log(NamedTuple):
    """A shuffled log: rows of (n, k) features of both states, and (n,) numbers."""

    indices: Integers
    values: Array
    reward: Array
    discount: Array
    next_indices: Integers
    next_values: Array
    rho: Array

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of `update_many`."""
        pairs = (self.indices, self.values), (self.next_indices, self.next_values)
        return pairs[0], self.reward, self.discount, pairs[1], self.rho


def shuffled_log(n: int, k: int, p: int) -> Log:
    """Return n rows of k different features of p; a row of one feature is one-hot."""
    rng = np.random.default_rng(0)
    indices, next_indices = (np.sort(rng.integers(0, p - k, size=(n, k)), axis=1) + np.arange(k) for _ in range(2))
    values, next_values = (np.ones((n, 1)) if k == 1 else rng.normal(size=(n, k)) / k for _ in range(2))
    discount = np.where(rng.random(n) < 0.02, 0.0, 0.99)
    numbers = rng.normal(size=n), discount, next_indices, next_values, rng.uniform(0, 2, n)
    return Log(indices, values, *numbers)


def c_call(log: Log, p: int) -> Callable[[], Array] | None:
    """Return a call of the C kernel that returns its weights, or None without a C compiler."""
    n, k = log.values.shape
    code = compiled(Path(__file__).with_name("stream.c"), f"-DK={k}", f"-DAHEAD={FAR_AHEAD.get(k, 6)}")
    if code is None:
        return None
    memory, deltas = np.zeros((p, 2)), np.empty(n)
    step = [ctypes.c_double(one) for one in (ALPHA, ALPHA, 1.0)]

    def call() -> Array:
        columns = log.indices, log.values, log.next_indices, log.next_values, log.reward, log.discount, log.rho
        given = [ctypes.c_void_p(column.ctypes.data) for column in columns]
        at = ctypes.c_void_p(memory.ctypes.data), ctypes.c_int64(n)
        code.run(*at, *given, *step, ctypes.c_void_p(deltas.ctypes.data))
        return memory[:, 0]

    return call


def scikit_call(log: Log, p: int) -> Callable[[], Any]:
    """Return one pass of scikit-learn's linear regression over the rows, in one batch."""
    from sklearn.linear_model import SGDRegressor

    n, k = log.values.shape
    matrix = sp.csr_matrix((log.values.ravel(), log.indices.ravel(), np.arange(n + 1) * k), shape=(n, p))
    model = SGDRegressor(learning_rate="constant", eta0=ALPHA, alpha=0.0)
    return lambda: model.partial_fit(matrix, log.reward)


def river_call(log: Log, p: int) -> Callable[[], Any]:
    """Return one pass of river's linear regression over the first rows, one at a time."""
    from river import linear_model, optim

    model = linear_model.LinearRegression(optimizer=optim.SGD(ALPHA))
    rows = [dict(zip(i.tolist(), v.tolist(), strict=True)) for i, v in zip(log.indices, log.values, strict=True)]
    return lambda: [model.learn_one(x, y) for x, y in zip(rows, log.reward.tolist(), strict=True)]


def vowpal_call(log: Log, p: int) -> Callable[[], Any]:
    """Return one pass of Vowpal Wabbit over the first rows, parsed beforehand."""
    from vowpalwabbit import Workspace

    model = Workspace(f"--quiet -b 20 --sgd -l {ALPHA}")
    lines = [
        f"{reward} | " + " ".join(f"{i}:{v}" for i, v in zip(*row, strict=True))
        for reward, *row in zip(log.reward, log.indices, log.values, strict=True)
    ]
    examples = [model.parse(line) for line in lines]
    return lambda: [model.learn(one) for one in examples]


OTHERS: dict[str, tuple[str, Callable[[Log, int], Callable[[], Any]], bool]] = {  # package, call, whether in batches
    "scikit-learn partial_fit": ("sklearn", scikit_call, True),
    "river learn_one": ("river", river_call, False),
    "Vowpal Wabbit learn": ("vowpalwabbit", vowpal_call, False),
}


def update_each(agent: Learner, log: Log) -> None:
    """Learn from each row by a call of its own."""
    for i, v, reward, discount, i_next, v_next, rho in zip(*log, strict=True):
        agent.update((i, v), reward, discount, (i_next, v_next), rho)


def measured(k: int, p: int) -> Iterator[tuple[str, float | str]]:
    """Yield each measurement on rows of k features, and its nanoseconds per row or the reason why there are none."""
    log = shuffled_log(CASES[k], k, p)
    few = Log._make(column[:SINGLE] for column in log)
    many, single = (Learner("gradient_dd", p, alpha=ALPHA) for _ in range(2))
    calls: dict[str, Callable[[], Any]] = {"update_many": partial(many.update_many, *log.arguments)}
    rows = {"update_many": len(log.reward), "update": SINGLE}
    if (in_c := c_call(log, p)) is not None:
        calls["C"], rows["C"] = in_c, len(log.reward)
    calls["update"] = partial(update_each, single, few)
    missing = {} if in_c is not None else {"C": "no C compiler"}
    for name, (package, make, in_batches) in OTHERS.items():
        try:
            calls[name] = make(log if in_batches else few, p)
            rows[name] = len(log.reward) if in_batches else SINGLE
        except ImportError:
            missing[name] = f"{package} is not installed"
    calls["update_many"]()  # compiled by its first call
    calls["update"]()
    best = best_times(calls, REPEATS, process_time)
    yield from ((name, best[name] / rows[name] * 1e9) for name in calls)
    yield from missing.items()


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the printed table: every case and every library."""
    for k in CASES:
        found = dict(measured(k, FEATURES))
        in_c = found["C"]
        for name, ns in found.items():
            if isinstance(ns, str):
                yield str(k), name, ns, "", ""
            else:
                yield str(k), name, f"{ns:,.1f}", f"{1e3 / ns:.3g}", "" if isinstance(in_c, str) else f"{ns / in_c:.2f}"


def main(words: list[str] | None = None) -> None:
    """Print the table."""
    parser_of(__doc__).parse_args(words)
    with on_one_core():
        print_table(HEAD, rows())


if __name__ == "__main__":
    main()
