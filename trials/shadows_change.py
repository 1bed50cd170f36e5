"""A stream that changes half-way: what the learner that chooses does.

    python -m trials.shadows_change

In the first kind the target policy changes from the behaviour policy to one under which TD diverges; in the second the
rewards change their sign. Errors are ‖X(w − w*)‖_D, w* being the fixed point of the half, just before the change and at
the end, as means over runs.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.trajectories import Stream
from gradient_dd.errors import DivergedError
from gradient_dd.stream.learner import Learner
from gradient_dd.stream.shadows import ShadowLearner
from gradient_dd.tasks import Task, random_mdp, random_walk
from tools.programs import parser_of

STEPS, RUNS = 20_000, 2
UNSTABLE = (392, 505)  # seeds of random MDPs of 3 states with an eigenvalue of A below −0.03


def learners(p: int, alpha: float) -> dict[str, Callable[[], Any]]:
    """Return makers of the learners compared, at a step size."""
    return {
        "TD": lambda: Learner("td", p, alpha=alpha),
        "TDRC": lambda: Learner("tdrc", p, alpha=alpha),
        "GTD2": lambda: Learner("gtd2", p, alpha=alpha),
        "shadows, this alpha": lambda: ShadowLearner(p, alpha),
        "shadows, no alpha": lambda: ShadowLearner(p),
        "shadows, no alpha, restarted": lambda: ShadowLearner(p),
    }


def errors(make: Callable[[], Any], halves: tuple[Task, Task], run: int, restart: bool, steps: int) -> list[float]:
    """Return the error at the end of each half; inf once it has diverged. `restart`: the shadows, at the change."""
    agent, ends = make(), []
    column = Stream(halves[0], 1, run).take(steps)
    for task, part in zip(halves, np.split(column, 2), strict=True):
        X = task.row_features.toarray()
        row, next_row, reward, discount, rho, _ = task.transitions
        try:
            for o in part:
                agent.update(X[row[o]], reward[o], discount[o], X[next_row[o]], rho[o])
            ends.append(distance(task, agent.w))
        except DivergedError:
            ends.append(np.inf)
        if restart:
            agent.restart_shadows()
    return ends


def distance(task: Task, w: Array) -> float:
    """Return ‖X(w − w*)‖_D."""
    return float(np.sqrt(task.visits @ (task.features @ (w - task.fixed_point)) ** 2))


def changing_tasks() -> list[tuple[str, Task, Task]]:
    """Return pairs of tasks with the same dynamics: another target that makes TD unstable, and rewards turned round."""
    pairs = []
    for seed in UNSTABLE:
        task = random_mdp(3, 2, 2, 0.99, seed=seed)
        pairs.append(("target", replace(task, target=np.array(task.behaviour)), task))
    for task in (random_walk(10), random_mdp(seed=300)):
        task = replace(task, initial_weights=np.zeros(task.n_features))
        pairs.append(("rewards", task, replace(task, outcomes=task.outcomes._replace(reward=-task.outcomes.reward))))
    return pairs


def main(words: list[str] | None = None) -> None:
    """Print the errors of all learners on all changing streams."""
    parser = parser_of(__doc__)
    parser.add_argument("--steps", type=int, default=STEPS, help="length of a stream")
    parser.add_argument("--runs", type=int, default=RUNS, help="streams of every kind")
    chosen = parser.parse_args(words)
    steps, runs = chosen.steps, chosen.runs
    for kind, before, after in changing_tasks():
        start = distance(before, before.initial_weights), distance(after, after.initial_weights)
        print(f"{kind} change on {after}: at w = 0 the errors are {start[0]:.3g} and {start[1]:.3g}", flush=True)
        scale = 1 / float(after.visits @ (after.features**2).sum(axis=1))
        for alpha in (0.1, 0.01):
            for name, make in learners(after.n_features, alpha * scale).items():
                if "no alpha" in name and alpha != 0.1:
                    continue
                restart = name.endswith("restarted")
                ends = np.mean([errors(make, (before, after), run, restart, steps) for run in range(runs)], axis=0)
                print(f"  alpha {alpha:<5g} {name:28} before {ends[0]:9.3g}   at the end {ends[1]:9.3g}", flush=True)


if __name__ == "__main__":
    main()
