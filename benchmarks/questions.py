"""Compare thousands of questions about one stream, TD(0.9) in single precision, with C and NumPy.

    python -m benchmarks.questions

The problem is that of Modayil, White & Sutton (2014): 2,160 predictions, 540 signals at four time scales, from 6,065
binary features of which 457 are active, here one in each of 457 tilings. In each step the active tile of a share of the
tilings changes: 5 % for a moving body, and 100 % as the worst case, in which the trace reaches every feature. More rows
vary the numbers of questions and features. Times are milliseconds on one core for one step of all questions: whole
calls of `update_many`, including the numbers of `summary`, the best of several interleaved calls. C has the same memory
layout. NumPy computes all questions in one expression with dense traces.
"""

import ctypes
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.baselines import compiled
from benchmarks.engine import best_times, on_one_core
from gradient_dd.arrays import Array, Integers
from gradient_dd.stream.question import Question
from gradient_dd.stream.questions import Questions
from tools.programs import parser_of, print_table

DISCOUNTS = (0.0, 0.8, 0.95, 0.9875)  # 0.1, 0.5, 2 and 8 seconds at ten steps a second
LAM, STEPS, NUMPY_STEPS, REPEATS = 0.9, 100, 4, 5
HEAD = ("questions", "features", "active", "changing", "ours, ms", "C, ms", "/ C", "NumPy, ms", "memory, MB")


class Case(NamedTuple):
    """A size of the problem: numbers of questions, features and active features, and the share of changing tilings."""

    questions: int = 2160
    features: int = 6065
    active: int = 457
    changing: float = 0.05


CASES = (
    *(Case(), Case(changing=1.0)),
    *(Case(questions=count) for count in (64, 256, 1024, 4096, 10_000)),
    *(Case(features=count) for count in (20_000, 100_000)),
)


def tiled_stream(case: Case, n: int) -> Integers:
    """Return the active features of n + 1 states, one in each tiling, in order."""
    rng = np.random.default_rng(0)
    bounds = np.linspace(0, case.features, case.active + 1).astype(int)
    first, size = bounds[:-1], np.diff(bounds)
    tiles = np.zeros((n + 1, case.active), np.int64)
    tiles[0] = rng.integers(size)
    for t in range(n):
        tiles[t + 1] = np.where(rng.random(case.active) < case.changing, rng.integers(size), tiles[t])
    return first + tiles


class Work(NamedTuple):
    """The data of all contestants: active features (n + 1, k), signals (n, signals), and the step size."""

    case: Case
    features: Integers
    signals: Array

    @property
    def alpha(self) -> float:
        """The step size: a tenth of the step to the target, spread over the active features."""
        return 0.1 / self.case.active


def make_work(case: Case, n: int) -> Work:
    """Return a stream for a case."""
    signals = -(-case.questions // len(DISCOUNTS))
    return Work(case, tiled_stream(case, n), np.random.default_rng(1).normal(size=(n, signals)))


def our_call(work: Work) -> tuple[Callable[[], Any], Questions]:
    """Return a call of `update_many`, and the questions: signal by signal within a time scale, in the order of C."""
    case, names = work.case, [f"signal {k}" for k in range(work.signals.shape[1])]
    asked = [Question(f"{name} {discount}", name, discount) for discount in DISCOUNTS for name in names]
    horde = Questions(
        asked[: case.questions], case.features, learner="td", alpha=work.alpha, lam=LAM, precision="float32"
    )
    ones = np.ones(work.features[1:].shape)
    x, x_next = (work.features[:-1], ones), (work.features[1:], ones)
    columns = dict(zip(names, work.signals.T, strict=True))
    return partial(horde.update_many, x, x_next=x_next, columns=columns), horde


def c_call(work: Work) -> tuple[Callable[[], Any], Callable[[], Array]] | None:
    """Return a call of the C kernel and one for its weights (questions, p), or None without a C compiler."""
    code = compiled(Path(__file__).with_name("questions.c"), "-ffp-contract=off")
    if code is None:
        return None
    case, scales, signals = work.case, len(DISCOUNTS), work.signals.shape[1]
    sizes = np.clip(case.questions - signals * np.arange(scales), 0, signals)
    begin = np.concatenate([[0], np.cumsum(-(-sizes // 16) * 16)])
    slots, n = int(begin[-1]), len(work.signals)
    reward = np.zeros((n, slots))
    for scale in range(scales):
        reward[:, begin[scale] : begin[scale] + sizes[scale]] = work.signals[:, : sizes[scale]]
    w = np.zeros((case.features, slots), np.float32)
    arrays = {
        "begin": begin,
        "gamma": np.array(DISCOUNTS),
        "features": work.features,
        "reward": reward,
        "z": np.zeros((case.features, scales)),
        "list": np.zeros(case.features, np.int64),
        "count": np.zeros(1, np.int64),
        "spare": np.zeros(case.features, np.int64),
        "here": np.zeros(slots),
        "there": np.zeros(slots),
        "by": np.zeros(slots, np.float32),
    }
    at = {name: ctypes.c_void_p(array.ctypes.data) for name, array in arrays.items()}
    whole = {"slots": slots, "groups": scales, "k": case.active, "n": n}
    at |= {name: ctypes.c_int64(value) for name, value in whole.items()}
    at |= {"lam": ctypes.c_double(LAM), "alpha": ctypes.c_double(work.alpha)}
    order = [
        "slots",
        "groups",
        "begin",
        "gamma",
        "lam",
        "alpha",
        "features",
        "k",
        "n",
        "reward",
        "z",
        "list",
        "count",
        "spare",
        "here",
        "there",
        "by",
    ]

    def call() -> Any:
        kept = arrays  # alive as long as the call is
        return code.run(ctypes.c_void_p(w.ctypes.data), *(at[name] for name in order)), kept

    lanes = np.concatenate([begin[scale] + np.arange(sizes[scale]) for scale in range(scales)])
    return call, lambda: w[:, lanes].T


def numpy_call(work: Work) -> tuple[Callable[[], Any], Array]:
    """Return all questions as one NumPy expression over the first rows, and its weights (questions, p)."""
    case, signals = work.case, work.signals.shape[1]
    scale, signal = np.divmod(np.arange(case.questions), signals)
    w = np.zeros((case.questions, case.features), np.float32)
    z, gamma = np.zeros((len(DISCOUNTS), case.features), np.float32), np.array(DISCOUNTS, np.float32)

    def call() -> None:
        for t in range(min(NUMPY_STEPS, len(work.signals))):
            here, there = work.features[t], work.features[t + 1]
            delta = work.signals[t, signal] + gamma[scale] * w[:, there].sum(axis=1) - w[:, here].sum(axis=1)
            z[:] *= (LAM * gamma)[:, None]
            z[:, here] += 1
            np.add(w, (np.float32(work.alpha) * delta.astype(np.float32))[:, None] * z[scale], out=w)

    return call, w


def milliseconds(case: Case) -> tuple[dict[str, float], float]:
    """Return the time of a step of all questions for each program, and the megabytes of this package."""
    work = make_work(case, STEPS)
    ours, horde = our_call(work)
    calls = {"ours": ours}
    if (in_c := c_call(work)) is not None:
        calls["C"] = in_c[0]
    for call in calls.values():
        call()  # compiles, and fills the traces
    best = {name: seconds / STEPS for name, seconds in best_times(calls, REPEATS).items()}
    if case == Case():
        best["NumPy"] = best_times({"": numpy_call(work)[0]}, 3)[""] / NUMPY_STEPS
    arrays = [one for one in vars(horde._memory).values() if isinstance(one, np.ndarray)]
    return {name: 1e3 * seconds for name, seconds in best.items()}, sum(one.nbytes for one in arrays) / 1e6


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows of the printed table."""
    for case in CASES:
        ms, size = milliseconds(case)
        shown = [f"{ms[name]:.2f}" if name in ms else "–" for name in ("ours", "C")]
        ratio = f"{ms['ours'] / ms['C']:.2f}" if "C" in ms else "–"
        numpy_ms = f"{ms['NumPy']:.0f}" if "NumPy" in ms else ""
        sizes = f"{case.questions:,}", f"{case.features:,}", str(case.active), f"{case.changing:.0%}"
        yield *sizes, *shown, ratio, numpy_ms, f"{size:,.0f}"


def main(words: list[str] | None = None) -> None:
    """Print the table."""
    parser_of(__doc__).parse_args(words)
    with on_one_core():
        print_table(HEAD, rows())


if __name__ == "__main__":
    main()
