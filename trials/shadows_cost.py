"""What shadows cost: CPU time of an update with 0, 1, 3 and 11 of them.

    python -m trials.shadows_cost

In the lane engine a shadow is one more lane; beside a `Learner` it is another `Learner` that gets no reward. Ratios are
to the plain learner, measured in the same call, the least of several repeats.
"""

from collections.abc import Callable
from functools import partial
from time import thread_time

from gradient_dd.engine.choosing import run_shadow_learner
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.engine.trajectories import Stream
from gradient_dd.learners import LEARNERS
from gradient_dd.stream.learner import Learner
from gradient_dd.stream.shadows import ShadowLearner
from gradient_dd.tasks import Task, boyan_chain, random_mdp
from tools.programs import parser_of

COUNTS = (0, 1, 3, 11)


def seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the least CPU time of a call; the first, which may compile, does not count."""
    work()
    times = []
    for _ in range(repeats):
        begin = thread_time()
        work()
        times.append(thread_time() - begin)
    return min(times)


def lane_seconds(task: Task, shadows: int, steps: int) -> float:
    """Return the time of one learner and so many shadows in the lane engine, per update."""
    settings = [LEARNERS["gtd2"].setting(alpha=0.01) for _ in range(1 + shadows)]
    return seconds(lambda: LaneRun(task, settings, Horizon(steps=steps, every=steps)).advance()) / steps


def feeding_seconds(task: Task, agents: list[Learner | ShadowLearner], steps: int) -> float:
    """Return the time of an update of all agents, per transition; all but the first get no reward."""
    rows = task.row_features.toarray()
    row, next_row, reward, discount, rho, _ = task.transitions
    stream = Stream(task).take(steps)

    def feed() -> None:
        for o in stream:
            for place, agent in enumerate(agents):
                paid = reward[o] if place == 0 else 0.0
                agent.update(rows[row[o]], paid, discount[o], rows[next_row[o]], rho[o])

    return seconds(feed, repeats=3) / steps


def costs(task: Task, steps: int = 2000, lane_steps: int = 200_000) -> dict[str, list[float]]:
    """Return the times of an update by the kind of learner, in seconds: COUNTS shadows, or narrow and wide ladder."""
    p = task.n_features
    plain = [feeding_seconds(task, [Learner("gtd2", p, alpha=0.01) for _ in range(1 + n)], steps) for n in COUNTS]
    compiled = [
        seconds(partial(run_shadow_learner, task, a, steps=20_000, every=20_000)) / 20_000 for a in (0.01, None)
    ]
    return {
        "lane engine": [lane_seconds(task, n, lane_steps) for n in COUNTS],
        "Learner": plain,
        "ShadowLearner": [feeding_seconds(task, [ShadowLearner(p, a)], steps) for a in (0.01, None)],
        "ShadowLearner, compiled": compiled,
    }


def main(words: list[str] | None = None) -> None:
    """Print times and ratios on two tasks."""
    parser_of(__doc__).parse_args(words)
    for task in (boyan_chain(20), random_mdp(20, 3, 8, seed=1)):
        print(f"{task}: microseconds an update, and the ratio to the plain learner")
        found = costs(task)
        for name, times in found.items():
            first = found["Learner" if name == "ShadowLearner" else "lane engine" if "compiled" in name else name][0]
            heads = COUNTS if len(times) == len(COUNTS) else ("narrow", "wide")
            words = (f"{head}: {1e6 * one:.3g} ({one / first:.2f} ×)" for head, one in zip(heads, times, strict=True))
            print(f"  {name:24} " + "   ".join(words), flush=True)


if __name__ == "__main__":
    main()
