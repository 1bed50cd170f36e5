"""Panels: the numbers that a figure shows, from the results of its study. Nothing here draws."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.learners import Setting
from gradient_dd.report.figure import Figure, Line
from gradient_dd.studies import statistics
from gradient_dd.studies.results import Results
from gradient_dd.studies.selection import places, tuned
from gradient_dd.tasks import Task


class LineData(NamedTuple):
    """What one line shows.

    alphas, mean, sem     (alphas,) at each alpha the mean of the setting tuned over all else, and its standard error
    best                  the setting tuned over all, alpha included
    curve, curve_sem      (bins,) its learning curve
    """

    line: Line
    alphas: Array
    mean: Array
    sem: Array
    best: Setting
    curve: Array
    curve_sem: Array


class Panel(NamedTuple):
    """A task of a figure: its lines, the middle of each bin in episodes or steps, the error of the first weights."""

    task: Task
    lines: list[LineData]
    middle: Array
    initial_error: float


def panels_of(figure: Figure, results: Results) -> list[Panel]:
    """Return a panel for each task of a figure."""
    return [panel(results, name, figure.lines, figure.measure) for name in results.tasks]


def panel(results: Results, name: str, lines: tuple[Line, ...], measure: str) -> Panel:
    """Return the lines of one task."""
    task, horizon = results.tasks[name], results.study.horizon
    settings, errors = results.errors(name, measure)
    mean, sem, _ = statistics.estimate(errors)
    best = [tuned(settings, errors, line.has) for line in lines]
    curves = results.curves(name, [settings[place] for place in best])
    data = []
    for line, winner, runs in zip(lines, best, curves, strict=True):
        alphas = sorted({settings[place].values["alpha"] for place in places(settings, line.has)})
        at = [tuned(settings, errors, replace(line, held=(*line.held, ("alpha", alpha))).has) for alpha in alphas]
        curve = statistics.estimate(runs.T)
        data.append(LineData(line, np.array(alphas), mean[at], sem[at], settings[winner], curve.mean, curve.sem))
    return Panel(task, data, bin_middles(horizon), task.rmsve(task.initial_weights))


def bin_middles(horizon: Horizon) -> Array:
    """Return the middle of each bin of a learning curve, in episodes or steps."""
    sizes = horizon.bin_sizes() * horizon.every
    return np.cumsum(sizes) - sizes / 2
