"""The numbers of the shadows report: a reduced trial, what is chosen over time, and stability maps.

The reduced trial has the rules of `bench/shadows_trial.py`, on 22 tasks of their own and fewer runs. It takes three
and a half minutes, most of them to compile kernels; the whole one takes ten minutes of one core.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine import ladder
from gradient_dd.engine.choosing import run_shadow_learner
from gradient_dd.engine.shadows import exponents
from gradient_dd.experiments.shadows import cases as shadows_cases
from gradient_dd.experiments.shadows import trial
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import Task, baird, boyan_chain, random_walk
from gradient_dd.theory.mean_square import mean_square_radius
from gradient_dd.theory.stability import in_row_space, spectral_radius

TUNED, SHOWN = 2, 3  # runs of the reduced trial
FIRST = 61_000_000  # its seeds
SHARES = np.linspace(0, 1, 11)  # c of the maps
MAP_ALPHAS = np.geomspace(1e-3, 1, 13)  # of the maps, over the mean of ‖x‖²
POINTS = 100  # steps between two points of a curve


def reduced_cases() -> list[shadows_cases.Case]:
    """Return the tasks of the reduced trial: all groups of the whole one, other seeds."""
    paper = [
        shadows_cases.Case("paper", str(task), task) for task in (random_walk(10), random_walk(20), boyan_chain(20))
    ]
    paper += [shadows_cases.Case("Baird", "Baird 7", shadows_cases.with_random_start(baird(7), FIRST))]
    paper += [shadows_cases.Case("Baird", "Baird 10", shadows_cases.with_random_start(baird(10), FIRST + 1))]
    random = [*shadows_cases.random_cases("on", 4, FIRST), *shadows_cases.random_cases("off", 4, FIRST)]
    return [*paper, *random, *shadows_cases.diverging_cases(5, FIRST), *shadows_cases.greedy_cases(4, FIRST)]


def reduced_trial(rows: Path, on_task: Callable[[str], None]) -> dict[str, Any]:
    """Run the reduced trial, or what a file of rows lacks of it."""
    known = trial.read_rows(rows)

    def keep(row: dict[str, Any]) -> None:
        trial.keep_row(rows, row)
        on_task(row["task"])

    return trial.run_trial(reduced_cases(), tuned=TUNED, total=TUNED + SHOWN, on_row=keep, known=known)


class Choices(NamedTuple):
    """A run with nothing tuned: the error, the share c of the choice, and the step size over α at its start."""

    name: str
    errors: Array
    shares: Array
    sizes: Array


def choices_over_time() -> list[Choices]:
    """Return what is chosen on four tasks: two on which TD is right, two on which it diverges."""
    greedy = next(shadows_cases.greedy_cases(1, FIRST)).task
    tasks = {"walk 20": random_walk(20), "Boyan 20": boyan_chain(20), "Baird 7": baird(7), "a greedy target": greedy}
    return [chosen(name, task) for name, task in tasks.items()]


def chosen(name: str, task: Task) -> Choices:
    """Return one run on a task."""
    run = run_shadow_learner(
        shadows_cases.aimed_at_the_fixed_point(task), steps=trial.STEPS, every=POINTS, seed=FIRST, shadow_seed=1
    )
    rungs = [rung if rung.averages < 0 else ladder.WIDE.rungs[rung.averages] for rung in ladder.WIDE.rungs]
    shares = np.array([rung.c if rung.multiple else np.nan for rung in rungs])
    sizes = np.array([rung.multiple or np.nan for rung in rungs])
    return Choices(name, run.errors, shares[run.choices], ladder.UNIT * sizes[run.choices])


class StabilityMap(NamedTuple):
    """Growth per step of gtd2_to_td with ζ = 4 over (c, alpha): of almost every run (measured), mean, mean square."""

    name: str
    measured: Array
    low: Array
    high: Array
    mean: Array
    square: Array


def stability_maps() -> list[StabilityMap]:
    """Return maps of Baird's counterexample and of a random MDP on which TD diverges."""
    return [
        stability_map("Baird 7", baird(7)),
        stability_map("a diverging MDP", next(shadows_cases.diverging_cases(1, FIRST)).task),
    ]


def stability_map(name: str, task: Task) -> StabilityMap:
    """Return the map of a task, (c, alpha) each."""
    scale = 1 / float(task.visits @ (task.features**2).sum(axis=1))
    rule = LEARNERS["gtd2_to_td"]
    settings = [rule.setting(alpha=a * scale, zeta=4.0, c=c) for c, a in product(SHARES, MAP_ALPHAS)]
    shape = len(SHARES), len(MAP_ALPHAS)
    reduced = in_row_space(task)
    found = exponents(task, settings, seed=FIRST)
    mean = np.log([spectral_radius(task, setting) for setting in settings])
    square = np.log([mean_square_radius(reduced, setting) for setting in settings]) / 2
    arrays = (found.mean, found.low, found.high, mean, square)
    return StabilityMap(name, *(np.reshape(array, shape) for array in arrays))
