"""Compare the time of an update of AutoLearner with GTD2 in Learner, in nanoseconds on one core.

python -m benchmarks.auto_learner
"""

from collections.abc import Callable
from itertools import pairwise
from time import thread_time
from typing import Any

import numpy as np

from gradient_dd.stream.auto import AutoLearner
from gradient_dd.stream.learner import Learner
from tools.programs import parser_of

ROWS, ALONE, REPEATS = 100_000, 3_000, 3
SHAPES = {"20 features, dense": (20, 0), "1,000,000 features, 8 of them at a time": (1_000_000, 8)}


def cost(work: Callable[[], Any], steps: int) -> float:
    """Return the fewest nanoseconds per step of a few repeats, after one that is not counted."""
    work()
    found = []
    for _ in range(REPEATS):
        begin = thread_time()
        work()
        found.append((thread_time() - begin) / steps * 1e9)
    return min(found)


def costs_of(agent: Any, p: int, k: int) -> tuple[float, float]:
    """Return the time of a step in `update_many` and in `update`, with k of p features active; 0 for all."""
    rng = np.random.default_rng(0)
    if k:
        places = rng.integers(p // k, size=(ROWS + 1, k)) + np.arange(k) * (p // k)
        x, x_next = ((part, np.ones((ROWS, k))) for part in (places[:-1], places[1:]))
        single: list[Any] = [(place, np.ones(k)) for place in places[: ALONE + 1]]
    else:
        rows = rng.standard_normal((ROWS + 1, p)) / np.sqrt(p)
        x, x_next, single = rows[:-1], rows[1:], list(rows[: ALONE + 1])
    reward = rng.standard_normal(ROWS)

    def one_by_one() -> None:
        for (here, there), one in zip(pairwise(single), reward, strict=False):
            agent.update(here, one, 0.9, there)

    return cost(lambda: agent.update_many(x, reward, 0.9, x_next), ROWS), cost(one_by_one, ALONE)


def main(words: list[str] | None = None) -> None:
    """Print the costs."""
    parser_of(__doc__).parse_args(words)
    for title, (p, k) in SHAPES.items():
        both = [costs_of(agent, p, k) for agent in (Learner("gtd2", p, alpha=1e-3), AutoLearner(p))]
        for name, one, ours in zip(("update_many", "update"), *both, strict=True):
            print(
                f"{title}, {name:12} Learner {one:6.0f} ns, AutoLearner {ours:6.0f} ns: {ours / one:.1f} times",
                flush=True,
            )


if __name__ == "__main__":
    main()
