"""What a lane costs among 64, and alone: Gradient-DD and others over a stream, in nanoseconds of one core.

python -m benchmarks.stream_lanes
"""

from time import thread_time

import numpy as np

from gradient_dd.learners import LEARNERS
from gradient_dd.stream.lanes import StreamLanes
from gradient_dd.stream.learner import Learner
from tools.programs import parser_of

LANES, ROWS, ALONE = 64, 20_000, 2_000
SHAPES = {"8 features, dense": (8, 0), "10,000 features, 8 of them at a time": (10_000, 8)}


def main(words: list[str] | None = None) -> None:
    """Print the costs."""
    parser_of(__doc__).parse_args(words)
    rng = np.random.default_rng(0)
    for words, (p, k) in SHAPES.items():
        if k:  # one feature in each of k parts, so that none stands twice in a row
            places = rng.integers(p // k, size=(2, ROWS, k)) + np.arange(k) * (p // k)
            x, x_next = ((place, np.ones((ROWS, k))) for place in places)
        else:
            x, x_next = rng.standard_normal((2, ROWS, p)) / np.sqrt(p)
        reward, discount = rng.standard_normal(ROWS), np.where(rng.random(ROWS) < 0.1, 0.0, 0.9)
        for name in ("td", "tdrc", "gradient_dd"):
            alphas = np.geomspace(1e-4, 1e-2, LANES)
            lanes = StreamLanes([LEARNERS[name].setting(alpha=alpha) for alpha in alphas], p)
            agent, single = Learner(name, p, alpha=1e-3), Learner(name, p, alpha=1e-3)
            costs = []
            for learn in (lanes.update_many, agent.update_many):
                learn(x, reward, discount, x_next)
                begin = thread_time()
                learn(x, reward, discount, x_next)
                costs.append((thread_time() - begin) / ROWS * 1e9)
            rows = list(zip(*x, strict=True)) if k else list(x)
            after = list(zip(*x_next, strict=True)) if k else list(x_next)
            for t in range(200):
                single.update(rows[t], reward[t], discount[t], after[t])
            begin = thread_time()
            for t in range(ALONE):
                single.update(rows[t], reward[t], discount[t], after[t])
            costs.append((thread_time() - begin) / ALONE * 1e9)
            lane = costs[0] / LANES
            print(f"{words}, {name:12} {lane:6.1f} ns a lane of {LANES}; update_many {costs[1]:6.0f} ns, ", end="")
            print(f"{costs[1] / lane:4.0f} times; update {costs[2]:7.0f} ns, {costs[2] / lane:5.0f} times", flush=True)


if __name__ == "__main__":
    main()
