"""Panels: the numbers that a figure shows, from the results of its study. Nothing here draws."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.learners import Setting
from gradient_dd.report.figure import Figure, Line
from gradient_dd.studies import intervals
from gradient_dd.studies.results import Results, places, tuned
from gradient_dd.tasks import Task


class LineData(NamedTuple):
    """What one line shows.

    alphas, mean, sem     (alphas,) at each alpha the mean of the setting tuned over all else, and its standard error
    exploded              (alphas,) how many of the runs behind each mean exploded
    best                  the setting tuned over all, alpha included
    curve, curve_sem      (bins,) its learning curve
    """

    line: Line
    alphas: Array
    mean: Array
    sem: Array
    exploded: Array
    best: Setting
    curve: Array
    curve_sem: Array

    @property
    def place(self) -> int:
        """The place of the best alpha."""
        return int(np.flatnonzero(self.alphas == self.best.values["alpha"])[0])

    @property
    def error(self) -> float:
        """The mean error of the best setting."""
        return float(self.mean[self.place])

    @property
    def edge(self) -> str:
        """Whether the best alpha is the lowest or the highest of the grid; empty where it is neither."""
        if len(self.alphas) < 3 or 0 < self.place < len(self.alphas) - 1:
            return ""
        return "lowest α" if self.place == 0 else "highest α"


class Panel(NamedTuple):
    """A task of a figure: its lines, the middle of each bin in episodes or steps, the error of the first weights."""

    task: Task
    lines: list[LineData]
    middle: Array
    initial_error: float

    def beyond(self, means: Array) -> NDArray[np.bool_]:
        """Return which means are so far beyond the first error that they belong above the axes."""
        return intervals.has_exploded(means, self.initial_error)


def panels_of(figure: Figure, results: Results) -> list[Panel]:
    """Return a panel for each task of a figure."""
    return [panel(results, name, figure.lines, figure.measure) for name in results.tasks]


def panel(results: Results, name: str, lines: tuple[Line, ...], measure: str) -> Panel:
    """Return the lines of one task."""
    task, horizon = results.tasks[name], results.study.horizon
    settings, errors = results.errors(name, measure)
    mean, sem, _ = intervals.estimate(errors)
    first = task.rmsve(task.initial_weights)
    exploded = intervals.has_exploded(errors, first).sum(axis=1)
    best = [tuned(settings, errors, line.has) for line in lines]
    curves = results.curves(name, [settings[place] for place in best])
    data = []
    for line, winner, runs in zip(lines, best, curves, strict=True):
        alphas = sorted({settings[place].values["alpha"] for place in places(settings, line.has)})
        at = [tuned(settings, errors, replace(line, held=(*line.held, ("alpha", alpha))).has) for alpha in alphas]
        curve = intervals.estimate(runs.T)
        over_alpha = np.array(alphas), mean[at], sem[at], exploded[at]
        data.append(LineData(line, *over_alpha, settings[winner], curve.mean, curve.sem))
    return Panel(task, data, bin_middles(horizon), first)


def bin_middles(horizon: Horizon) -> Array:
    """Return the middle of each bin of a learning curve, in episodes or steps."""
    sizes = horizon.bin_sizes() * horizon.every
    return np.cumsum(sizes) - sizes / 2
