"""The numbers of the shadows report: a reduced trial, what is chosen over time, and stability maps.

The reduced trial has the rules of the whole one, on 22 tasks of its own and fewer runs. It takes three and a half
minutes, most of them to compile kernels; the whole one takes ten minutes of one core.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine import ladder
from gradient_dd.engine.choosing import run_shadow_learner
from gradient_dd.engine.shadows import exponents
from gradient_dd.experiments.experiment import csv_rows, csv_text
from gradient_dd.experiments.shadows import cases as shadows_cases
from gradient_dd.experiments.shadows import trial
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import Task, baird, boyan_chain, random_walk
from gradient_dd.theory.mean_square import mean_square_radius
from gradient_dd.theory.stability import in_row_space, spectral_radius

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
    scale = trial.unit_of(task)
    rule = LEARNERS["gtd2_to_td"]
    settings = [rule.setting(alpha=a * scale, zeta=4.0, c=c) for c, a in product(SHARES, MAP_ALPHAS)]
    shape = len(SHARES), len(MAP_ALPHAS)
    reduced = in_row_space(task)
    found = exponents(task, settings, seed=FIRST)
    mean = np.log([spectral_radius(task, setting) for setting in settings])
    square = np.log([mean_square_radius(reduced, setting) for setting in settings]) / 2
    arrays = (found.mean, found.low, found.high, mean, square)
    return StabilityMap(name, *(np.reshape(array, shape) for array in arrays))


def arrays_text(records: Sequence[Choices | StabilityMap]) -> str:
    """Return records as CSV: a row for each point of their arrays, with all digits."""
    points = ((one.name, *point) for one in records for point in zip(*map(np.ravel, one[1:]), strict=True))
    return csv_text(" ".join(records[0]._fields), ((name, *map(repr, map(float, point))) for name, *point in points))


def read_choices(text: str) -> list[Choices]:
    """Return the runs that were written."""
    return [Choices(name, *columns) for name, columns in read_arrays(text).items()]


def read_maps(text: str) -> list[StabilityMap]:
    """Return the maps that were written."""
    shape = len(SHARES), len(MAP_ALPHAS)
    return [
        StabilityMap(name, *(column.reshape(shape) for column in columns))
        for name, columns in read_arrays(text).items()
    ]


def read_arrays(text: str) -> dict[str, list[Array]]:
    """Return by name the columns of records that were written."""
    points: dict[str, list[list[float]]] = {}
    for row in csv_rows(text):
        name, *point = row.values()
        points.setdefault(name, []).append(list(map(float, point)))
    return {name: list(np.transpose(some)) for name, some in points.items()}
