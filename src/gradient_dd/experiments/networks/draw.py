"""The two figures of the networks report."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.experiments.networks.findings import SHORT, shown
from gradient_dd.experiments.networks.trial import PERIODS, WAYS, WITH_DD, dd_name
from gradient_dd.report.canvas import drawn, key, plain_numbers
from gradient_dd.report.figure import BLACK, BLUE, GREEN, ORANGE
from gradient_dd.studies.intervals import ratio_interval

COLOURS = dict(zip(PERIODS, (BLACK, BLUE, ORANGE), strict=True))
LOW, HIGH = 0.3, 3.0  # of the axis of ratios; what lies beyond is drawn at its edge


def draw_ratio(axes: Any, pair: tuple[Any, Any], height: float, colour: str) -> None:
    """Draw the ratio of two learners with its interval; one that is not finite at the edge."""
    found = np.nan_to_num(ratio_interval(pair), nan=HIGH, posinf=HIGH)
    estimate, low, high = np.clip(found, LOW, HIGH)
    axes.plot([low, high], [height, height], color=colour, linewidth=1.2)
    axes.plot(estimate, height, "o", color=colour, markersize=3.5)


def draw_prediction(cells: dict[tuple[str, str, str], dict[str, Any]], folder: Path) -> None:
    """Draw the ratio with the DD term to without, a row of panels for each problem, a column for each learner."""
    names = list(dict.fromkeys(problem for problem, *_ in cells))
    texts = ("Error with the DD term over error without it", "Means over fresh seeds with 95 % intervals.")
    shape: dict[str, Any] = {"columns": len(WITH_DD), "heights": (1.6,) * len(names), "gap": 0.5, "across": 3}
    with drawn(folder, "networks-prediction", texts, legend, **shape) as sheet:
        for (row, problem), (column, base) in product(enumerate(names), enumerate(WITH_DD)):
            axes = sheet.axes(row, column)
            axes.axvline(1.0, color=GREEN, linewidth=0.8)
            for (place, way), (offset, period) in product(enumerate(WAYS), enumerate(PERIODS)):
                cell = cells[(problem, *way)]
                pair = shown(cell, dd_name(base, period)), shown(cell, base)
                draw_ratio(axes, pair, place + 0.25 * (offset - 1), COLOURS[period])
            axes.set(xscale="log", xlim=(LOW, HIGH), title=f"{base}: {problem}")
            labels = [f"{sampling}\n{SHORT[optimiser].replace(' = ', '=')}" for sampling, optimiser in WAYS]
            axes.set_yticks(range(len(WAYS)), labels if column == 0 else [""] * len(WAYS), fontsize=7)
            axes.invert_yaxis()
            plain_numbers(axes.xaxis)


def legend() -> list[Any]:
    """Return what the colours stand for."""
    words = {1: "period 1"} | {period: f"{period}" for period in PERIODS[1:]}
    return [key(words[period], colour, width=2) for period, colour in COLOURS.items()]


def draw_control(cells: dict[str, dict[str, Any]], folder: Path) -> None:
    """Draw the cost of every agent over that of Q, a panel for each world."""
    labels = [label for label in next(iter(cells.values())) if label != "Q"]
    texts = ("Cost of every agent over that of Q", "Means over fresh seeds with 95 % intervals. Left of 1 is better.")
    with drawn(folder, "networks-control", texts, columns=len(cells), heights=(2.2,), width=2.6) as sheet:
        for column, (world, cell) in enumerate(cells.items()):
            axes = sheet.axes(0, column)
            axes.axvline(1.0, color=GREEN, linewidth=0.8)
            for place, label in enumerate(labels):
                draw_ratio(axes, (shown(cell, label), shown(cell, "Q")), place, BLACK)
            axes.set(xscale="log", xlim=(LOW, HIGH), title=world.replace("-pessimistic", ", first −100"))
            names = (
                [label.replace(" with ", "\n").replace("a target", "target") for label in labels]
                if column == 0
                else [""] * len(labels)
            )
            axes.set_yticks(range(len(labels)), names, fontsize=7)
            axes.invert_yaxis()
            plain_numbers(axes.xaxis)
