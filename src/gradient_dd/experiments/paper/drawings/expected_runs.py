"""Learning curves without noise: the exact mean of all runs, over the mean of sampled ones."""

from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd import tasks
from gradient_dd.arrays import Array
from gradient_dd.engine.horizon import Horizon
from gradient_dd.engine.lanes import LaneRun
from gradient_dd.experiments.paper.figures import DRAWINGS
from gradient_dd.learners import LEARNERS, Setting
from gradient_dd.report.canvas import drawn, key, plain_numbers, thousands
from gradient_dd.report.figure import BLACK, ORANGE, RED
from gradient_dd.theory import expected_run

LINES = {  # label, colour, width: GTD2 is seen below Gradient-DD where they coincide
    "td": ("TD", BLACK, 1.5),
    "gtd2": ("GTD2", ORANGE, 3.0),
    "gradient_dd": ("Gradient-DD, κ = 1", RED, 1.5),
}
SAMPLINGS = {"iid": "independent draws", "trajectory": "trajectories"}
N_STATES, ALPHA, STEPS, EVERY, RUNS = 10, 0.3, 2400, 200, 100


def draw(folder: Path) -> None:
    """Draw into folder/expected-runs.svg and .png."""
    task = tasks.random_walk(N_STATES)
    settings = [LEARNERS[name].setting(alpha=ALPHA) for name in LINES]
    at = EVERY * np.arange(1, STEPS // EVERY + 1)
    words = f"random walk, m = {N_STATES}, tabular; constant α = {ALPHA:g}, ζ = 1; {RUNS} sampled runs, seed 0"
    texts = DRAWINGS["expected-runs"].title, words
    with drawn(folder, "expected-runs", texts, keys, 3, columns=2, heights=(3.2,), width=3.9) as sheet:
        panels = [sheet.axes(0, column) for column in range(2)]
        for axes, (sampling, title) in zip(panels, SAMPLINGS.items(), strict=True):
            of_mean, of_runs, noise = sampled(task, settings, sampling)
            for place, (setting, (_, colour, width)) in enumerate(zip(settings, LINES.values(), strict=True)):
                exact = expected_run(task, setting, STEPS, sampling=sampling)
                axes.plot(exact.steps, exact.errors, color=colour, linewidth=width)
                axes.plot(at, of_mean[:, place], "o", color=colour, markersize=3.5, markerfacecolor="white")
                axes.plot(at, of_runs[:, place], color=colour, linewidth=0.8, alpha=0.6)
            axes.axhspan(1e-9, noise.max(), color="#bbbbbb", alpha=0.35, linewidth=0)
            axes.text(STEPS / 50, 0.0022, f"noise of the mean of {RUNS} runs")
            axes.set(title=title, xlabel="steps", yscale="log", xlim=(0, STEPS * 1.02))
            axes.set_ylim(0.002, 1.3 * task.rmsve(task.initial_weights))
            thousands(axes.xaxis)
            plain_numbers(axes.yaxis)
        panels[0].set_ylabel("RMS error of the values")


def sampled(task: tasks.Task, settings: list[Setting], sampling: str) -> tuple[Array, Array, Array]:
    """Return the error of the mean weights of RUNS runs, the mean of their errors, and what noise adds to the first.

    The first two are (points, settings), the last is the standard error of the mean values at the end, (settings,).
    """
    points = STEPS // EVERY
    weights = np.empty((RUNS, points, len(settings), task.n_features))
    for run in range(RUNS):
        lanes = LaneRun(task, settings, Horizon(steps=STEPS, every=EVERY), sampling=sampling, run=run)
        for point in range(points):
            lanes.advance(EVERY)
            weights[run, point] = lanes.weights()[0]
    noise = np.sqrt((weights[:, -1] @ task.features.T).var(axis=0) @ task.visits / (RUNS - 1))
    return errors(task, weights.mean(axis=0)), errors(task, weights).mean(axis=0), noise


def errors(task: tasks.Task, weights: Array) -> Array:
    """Return the RMSVE of weights (…, p)."""
    return np.asarray(np.sqrt((weights @ task.features.T - task.true_values) ** 2 @ task.visits))


def keys() -> list[Any]:
    """Return the entries of the legend, column by column."""
    lines = [key(label, colour, width=width) for label, colour, width in LINES.values()]
    look: dict[str, Any] = {"colour": "#555555", "markerfacecolor": "white"}
    kinds = [
        key("error of the exact mean weights", width=1.5, **look),
        key("… of the mean of sampled weights", style="", marker="o", **look),
        key("mean error of single runs", width=0.8, **look),
    ]
    return [entry for pair in zip(lines, kinds, strict=True) for entry in pair]
