"""Panels: the numbers of a figure, from the results of its study. Reads only; draws nothing."""

from typing import NamedTuple

import numpy as np

from gradient_dd import summary
from gradient_dd.engine.horizon import Horizon
from gradient_dd.exact import Array
from gradient_dd.learners import Setting
from gradient_dd.results import Results
from gradient_dd.studies.figures import Figure, Line
from gradient_dd.tasks import Task


class LineData(NamedTuple):
    """What one line shows.

    alphas, mean, sem     (alphas,) the smallest mean over what is tuned, at each alpha, and its standard error
    best                  the setting selected over all
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


def matches(line: Line, setting: Setting) -> bool:
    """Return whether a setting belongs to a line."""
    held = all(setting.values.get(name) == value for name, value in line.held)
    return setting.rule.name == line.learner and setting.rho_mode == line.rho_mode and held


def panels_of(figure: Figure, results: Results) -> list[Panel]:
    """Return a panel for each task of a figure."""
    return [panel(results, name, figure.lines, figure.measure) for name in results.tasks]


def panel(results: Results, name: str, lines: tuple[Line, ...], measure: str) -> Panel:
    """Return the lines of one task."""
    task, horizon = results.tasks[name], results.study.horizon
    settings, errors = results.errors(name, measure)
    chosen = [[i for i, setting in enumerate(settings) if matches(line, setting)] for line in lines]
    best = [places[summary.select(errors[places])] for places in chosen]
    curves = results.curves(name, [settings[place] for place in best])
    data = []
    for line, places, winner, runs in zip(lines, chosen, best, curves, strict=True):
        alpha = np.array([settings[place].values["alpha"] for place in places])
        alphas = np.unique(alpha)
        mean, sem, _ = summary.estimate(errors[places])
        lowest = [np.flatnonzero(alpha == a)[np.argmin(mean[alpha == a])] for a in alphas]
        curve = summary.estimate(runs.T)
        data.append(LineData(line, alphas, mean[lowest], sem[lowest], settings[winner], curve.mean, curve.sem))
    return Panel(task, data, bin_middles(horizon), task.rmsve(task.initial_weights))


def bin_middles(horizon: Horizon) -> Array:
    """Return the middle of each bin of a learning curve, in episodes or steps."""
    sizes = horizon.bin_sizes() * horizon.every
    return np.cumsum(sizes) - sizes / 2
