"""Do the signs of measured exponents tell which runs diverge?

    python -m trials.shadows_signs

Exponents are measured on one stream; what the learners do is looked at on other streams. A run has *grown* if the mean
of its last 100 errors is more than ten times the largest of its first error and the size of the true values. A shadow
says that it will where its exponent times the number of steps exceeds log 10, that it will not where the exponent is
below 0, and nothing in between. Every pair on which some run did something else is looked at again: with ten times as
many steps, and with the exact radius of its mean square.
"""

from collections import Counter
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import run_lanes
from gradient_dd.engine.shadows import exponents
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.tasks import Task, baird, boyan_chain, random_mdp, random_walk
from gradient_dd.theory.mean_square import mean_square_radius
from gradient_dd.theory.stability import in_row_space, spectral_radius
from tools.programs import parser_of

STEPS, RUNS, LONGER = 20_000, 4, 10
ALPHAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)  # over the mean of ‖x‖²
RULES: dict[str, dict[str, Any]] = {"td": {}, "tdc": {}, "tdrc": {}, "gtd2": {}, "gtd2_to_td": {"c": 0.5}}


class Pair(NamedTuple):
    """A setting on a task: its exponent with an interval, what that says, and how many runs grew."""

    task: Task
    setting: Setting
    exponent: float
    low: float
    high: float
    says: str
    grown: int


def pairs_of(task: Task, steps: int = STEPS, runs: int = RUNS, alphas: tuple[float, ...] = ALPHAS) -> list[Pair]:
    """Return what shadows say and what runs do, for all rules and step sizes on a task."""
    scale = 1 / float(task.visits @ (task.features**2).sum(axis=1))
    settings = [LEARNERS[name].setting(alpha=a * scale, **more) for (name, more), a in product(RULES.items(), alphas)]
    measured = exponents(task, settings, steps=steps, seed=1)
    grown = grown_runs(task, settings, steps, runs)
    says = np.where(measured.mean < 0, "shrinks", np.where(measured.mean * steps > np.log(10), "grows", "too slow"))
    return [
        Pair(task, setting, float(m), float(low), float(high), str(word), int(n))
        for setting, m, low, high, word, n in zip(
            settings, measured.mean, measured.low, measured.high, says, grown, strict=True
        )
    ]


def grown_runs(task: Task, settings: list[Setting], steps: int, runs: int) -> NDArray[np.int64]:
    """Return how many runs of every setting grew, (settings,)."""
    results = run_lanes(task, settings, Horizon(steps=steps, every=100), seed=2, runs=runs)
    size = max(task.rmsve(task.initial_weights), float(np.sqrt(task.visits @ task.true_values**2)))
    grown: NDArray[np.int64] = (~(results.last100 <= 10 * size)).sum(axis=0)
    return grown


def looked_at(pair: Pair, steps: int = STEPS, runs: int = RUNS) -> str:
    """Return what is behind a disagreement, in words."""
    if pair.low <= 0 <= pair.high:
        cause = "a tie"
    elif pair.says == "shrinks":
        cause = "bursts"
    else:
        cause = f"slow, × {np.exp(pair.exponent * steps):.0f} in a run"
    mean = spectral_radius(pair.task, pair.setting)
    square = mean_square_radius(in_row_space(pair.task), pair.setting)
    longer = exponents(pair.task, [pair.setting], steps=LONGER * steps, seed=1)
    grown = grown_runs(pair.task, [pair.setting], LONGER * steps, runs)[0]
    return (
        f"{cause}; radius of the mean {mean:.4f}, of the mean square {square:.4f}; with {LONGER} × the steps"
        f" {longer.mean[0]:.2e} [{longer.low[0]:.2e}, {longer.high[0]:.2e}], {grown} grew"
    )


def trial_tasks() -> list[Task]:
    """The paper's small tasks, random MDPs, and MDPs on which TD diverges."""
    tasks = [random_walk(10), boyan_chain(20), baird(7), baird(20)]
    tasks += [random_mdp(seed=seed) for seed in range(8)]
    made = (random_mdp(3, 2, 2, 0.99, seed=seed) for seed in range(400))
    return tasks + [task for task in made if np.linalg.eigvals(task.moments.A).real.min() < 0][:8]


def main(words: list[str] | None = None) -> None:
    """Print the table of agreement, and every pair on which most runs did something else."""
    parser_of(__doc__).parse_args(words)
    pairs = [pair for task in trial_tasks() for pair in pairs_of(task)]
    table = Counter(
        (pair.says, "all" if pair.grown == RUNS else "none" if pair.grown == 0 else "some") for pair in pairs
    )
    print(f"{len(pairs)} pairs of a task and a setting, {RUNS} runs of {STEPS} steps each")
    for (says, grown), number in sorted(table.items()):
        print(f"  shadow {says:9} {grown:5} of the runs grew: {number}")
    for pair in pairs:
        wrong = pair.grown > 0 if pair.says == "shrinks" else pair.grown < RUNS
        if wrong and pair.says != "too slow":
            interval = f"[{pair.low:.2e}, {pair.high:.2e}]"
            print(f"  {pair.task}: {pair.setting}: {pair.exponent:.2e} {interval} {pair.says}, {pair.grown} grew")
            print(f"    {looked_at(pair)}", flush=True)


if __name__ == "__main__":
    main()
