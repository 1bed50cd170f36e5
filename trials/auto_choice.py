"""Is "auto" as good as the best setting in hindsight? Error of the values after one log, against a grid of learners.

    python -m trials.auto_choice

The grid has five learners, 12 step sizes and, where a learner has one, three ratios ζ: constant step sizes, one pass,
the last weights. Its best setting is chosen for each task by the true error, averaged over some logs, which no user
knows, and then scored on other logs. "auto" sees these other logs and no true value. The features of Collision are
drawn anew for every log.
"""

from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import DivergedError
from gradient_dd.evaluation import Transitions, evaluate_stream
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.stream.learner import Learner
from gradient_dd.tasks import Task, baird
from tests.evaluation.known_logs import log_of, suite
from tools.programs import parser_of

GRID = ("td", "gtd2", "tdc", "tdrc", "gradient_dd")
ALPHAS = np.geomspace(1e-3, 2.0, 12)
ZETAS = (0.25, 1.0, 4.0)


def grid_of(name: str) -> list[Setting]:
    """Return the settings of a learner."""
    rule = LEARNERS[name]
    zetas: list[dict[str, Any]] = [{"zeta": zeta} for zeta in ZETAS] if "zeta" in rule.defaults else [{}]
    return [rule.setting(alpha=float(alpha), **zeta) for alpha in ALPHAS for zeta in zetas]


def grid_errors(task: Task, log: Transitions) -> Array:
    """Return the true error of every setting of the grid after one pass over a log."""
    found = []
    for name in GRID:
        for setting in grid_of(name):
            agent = Learner(name, task.n_features, **setting.values)
            try:
                agent.update_many(log.x.values, log.reward, log.discount, log.x_next.values, log.rho)
                with np.errstate(over="ignore", invalid="ignore"):
                    found.append(np.nan_to_num(task.rmsve(agent.w), nan=np.inf))
            except DivergedError:
                found.append(np.inf)
    return np.array(found)


def print_baird(rows: int) -> None:
    """Print what "auto" makes of Baird's counterexample, where TD diverges; every step pays 1."""
    for n_states in (7, 20):
        task = baird(n_states)
        log = log_of(task, rows, seed=0, reward=np.ones(rows))
        found = evaluate_stream([log], task.n_features, initial_w=task.initial_weights)
        values, truth = task.features @ found.w, 1 / (1 - float(task.discount.max()))
        off = float(np.abs(values - truth).max())
        words = f"{found.chosen}, values off by {off:.2g} of {truth:.0f} at most, TD {found.stability.verdict}"
        print(f"baird {n_states:<8}{words}", flush=True)


def main(words: list[str] | None = None) -> None:
    """Print the error of "auto" over that of the best setting of the grid, task by task and in all."""
    parser = parser_of(__doc__)
    parser.add_argument("--mdps", type=int, default=50, help="random tasks beside the three known ones")
    parser.add_argument("--rows", type=int, default=5000, help="rows of a log")
    parser.add_argument("--runs", type=int, default=4, help="logs to tune on, and as many to score on")
    chosen = parser.parse_args(words)
    mdps, rows, runs = chosen.mdps, chosen.rows, chosen.runs
    print_baird(rows)
    ratios, worse, linear = [], 0, []
    for name, task_of in suite(mdps).items():
        grid, auto, alone, still, trusted = [], [], [], [], 0
        for run in range(2 * runs):
            task = task_of(run)
            log = log_of(task, rows, seed=run)
            grid.append(grid_errors(task, log))
            if run >= runs:
                found = evaluate_stream([log], task.n_features, seed=run)
                auto.append(task.rmsve(found.w))
                trusted += found.verdict.word == "trust"
                best = next(one for one in found.candidates if one.name != "lstd")
                alone.append(task.rmsve(best.w))
                still.append(task.rmsve(np.zeros(task.n_features)))
        tuned = int(np.mean(grid[:runs], axis=0).argmin())
        best_error = float(np.mean(grid[runs:], axis=0)[tuned])
        ratios.append(float(np.mean(auto)) / best_error)
        linear.append(float(np.mean(alone)) / best_error)
        harmful = np.mean(auto) > np.mean(still)
        worse += harmful
        if not name.startswith("mdp") or ratios[-1] > 1.3 or harmful:
            errors = f"auto {np.mean(auto):.4f}, best of the grid {best_error:.4f}, not learning {np.mean(still):.4f}"
            shown = f"{ratios[-1]:.2f} times (without LSTD {linear[-1]:.2f}), trusted in {trusted} of {runs}"
            print(f"{name:14}{errors}: {shown}", flush=True)
    both = np.array([ratios, linear])
    print(
        f"{len(ratios)} tasks, {rows:,} rows, {runs} runs: auto within 1.3 times on {(both[0] <= 1.3).sum()}, ", end=""
    )
    print(f"median {np.median(both[0]):.2f}, largest {both[0].max():.2f}; worse than not learning on {worse}; ", end="")
    print(f"without LSTD within 1.3 times on {(both[1] <= 1.3).sum()}, largest {both[1].max():.2f}")


if __name__ == "__main__":
    main()
