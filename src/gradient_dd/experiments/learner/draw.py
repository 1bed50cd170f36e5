"""The two figures of the report on `AutoLearner`."""

from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.experiments.learner.trial import AUTO, AVERAGED
from gradient_dd.report.canvas import drawn, plain_numbers
from gradient_dd.report.figure import BLUE, ORANGE, RED, SKY

NEAR = 0.03  # logs of points of the plane nearer than this: the lower one has its label below


def colour_of(name: str) -> str:
    """Return the colour of a learner: ours, an averaged rival, or a rival as it is."""
    if name in AUTO:
        return RED if name == AUTO[0] else ORANGE
    return SKY if name.endswith(AVERAGED) else BLUE


def draw_plane(tables: dict[str, dict[str, Any]], folder: Path) -> None:
    """Draw the plane of speed (where TD is stable) against safety (where it is not)."""
    stable, unstable = tables["TD stable"], tables["TD unstable"]
    places = {name: (row["geometric_mean"], unstable[name]["geometric_mean"]) for name, row in stable.items()}
    counts = [next(iter(table.values()))["tasks"] for table in (stable, unstable)]
    texts = (
        "Speed against safety: ratio to the best tuned rival of each task",
        f"Geometric means over {counts[0]} tasks on which TD is stable and {counts[1]} on which it is not.\n"
        "Down and left is better.",
    )
    with drawn(folder, "learner-plane", texts, columns=1, heights=(3.6,), width=6.0) as sheet:
        axes = sheet.axes(0, 0)
        for name, place in places.items():
            axes.plot(*place, "o", color=colour_of(name), markersize=9 if name in AUTO else 6)
            higher = [other for other in places.values() if other[1] > place[1]]
            below = any(np.abs(np.log(np.divide(place, other))).max() < NEAR for other in higher)
            axes.annotate(name, place, xytext=(7, -11 if below else 4), textcoords="offset points", fontsize=7)
        axes.set(xscale="log", yscale="log", xlabel="where TD is stable", ylabel="where TD is unstable")
        plain_numbers(axes.xaxis, axes.yaxis)


def draw_bars(table: dict[str, Any], folder: Path) -> None:
    """Draw the geometric mean, the 95th percentile and the worst ratio of every learner."""
    names, count = list(table), next(iter(table.values()))["tasks"]
    words = {"geometric_mean": "geometric mean", "percentile_95": "95th percentile", "worst": "worst task"}
    texts = (
        "Ratio to the best tuned rival of each task",
        f"Over the {count} tasks of the reduced trial; every rival is tuned over 15 or 30 settings.",
    )
    with drawn(folder, "learner-bars", texts, columns=4, heights=(4.4,)) as sheet:
        labels = sheet.axes(0, 0)  # a column of its own: the longest would not fit beside the first bars
        labels.set(xlim=(0, 1), ylim=(len(names) - 0.5, -0.5))
        labels.axis("off")
        for place, name in enumerate(names):
            labels.text(1.0, place, name, ha="right", va="center", fontsize=6)
        for column, (key, title) in enumerate(words.items(), start=1):
            axes = sheet.axes(0, column)
            values = [table[name][key] for name in names]
            axes.barh(range(len(names)), np.array(values) - 1, left=1, color=[colour_of(name) for name in names])
            axes.set(title=title, xscale="log", xlim=(min(0.95, 0.9 * min(values)), max(1.1, max(values)) ** 1.3))
            axes.set_yticks(range(len(names)), [""] * len(names))
            axes.set_ylim(len(names) - 0.5, -0.5)
            plain_numbers(axes.xaxis)
            for place, value in enumerate(values):
                axes.text(max(value, 1.0), place, f" {value:.2f}", va="center", fontsize=6)
