"""The two figures of the networks report."""

from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.experiments.networks.trial import PERIODS, WAYS, WITH_DD, dd_name
from gradient_dd.report.canvas import drawn, plain_numbers
from gradient_dd.report.figure import BLACK, BLUE, GREEN, ORANGE
from gradient_dd.studies.intervals import ratio_interval

COLOURS = dict(zip(PERIODS, (BLACK, BLUE, ORANGE), strict=True))
SHORT = {"sgd": "SGD", "adam": "Adam", "adam_without_momentum": "Adam, β₁ = 0"}
LOW, HIGH = 0.3, 3.0  # of the axis of ratios; what lies beyond is drawn at its edge


def draw_ratio(axes: Any, pair: tuple[Any, Any], height: float, colour: str) -> None:
    """Draw the ratio of two learners with its interval; one that is not finite at the edge."""
    found = np.nan_to_num(ratio_interval(pair), nan=HIGH, posinf=HIGH)
    estimate, low, high = np.clip(found, LOW, HIGH)
    axes.plot([low, high], [height, height], color=colour, linewidth=1.2)
    axes.plot(estimate, height, "o", color=colour, markersize=3.5)


def errors(cell: dict[str, Any], label: str) -> Any:
    """Return the errors of a learner on fresh seeds."""
    return np.array(cell[label]["errors"], float)


def draw_prediction(cells: dict[tuple[str, str, str], dict[str, Any]], folder: Path) -> None:
    """Draw the ratio with the DD term to without, a row of panels for each learner, a column for each problem."""
    names = list(dict.fromkeys(problem for problem, *_ in cells))
    texts = (
        "Error with the DD term over error without it",
        "Means over fresh seeds with 95 % intervals. Copies of the values of "
        + ", ".join(f"{period}" for period in PERIODS)
        + " updates before: black, blue, orange.",
    )
    with drawn(
        folder, "networks-prediction", texts, columns=len(names), heights=(1.9,) * len(WITH_DD), width=2.2
    ) as sheet:
        for row, base in enumerate(WITH_DD):
            for column, problem in enumerate(names):
                axes = sheet.axes(row, column)
                axes.axvline(1.0, color=GREEN, linewidth=0.8)
                for place, way in enumerate(WAYS):
                    cell = cells[(problem, *way)]
                    for offset, period in enumerate(PERIODS):
                        pair = errors(cell, dd_name(base, period)), errors(cell, base)
                        draw_ratio(axes, pair, place + 0.25 * (offset - 1), COLOURS[period])
                axes.set(xscale="log", xlim=(LOW, HIGH), title=f"{base}: {problem}")
                labels = [f"{sampling}\n{SHORT[optimiser]}" for sampling, optimiser in WAYS]
                axes.set_yticks(range(len(WAYS)), labels if column == 0 else [""] * len(WAYS), fontsize=6)
                axes.invert_yaxis()
                plain_numbers(axes.xaxis)


def draw_control(cells: dict[str, dict[str, Any]], folder: Path) -> None:
    """Draw the cost of every agent over that of Q, a panel for each world."""
    labels = [label for label in next(iter(cells.values())) if label != "Q"]
    texts = ("Cost of every agent over that of Q", "Means over fresh seeds with 95 % intervals. Left of 1 is better.")
    with drawn(folder, "networks-control", texts, columns=len(cells), heights=(2.2,), width=2.6) as sheet:
        for column, (world, cell) in enumerate(cells.items()):
            axes = sheet.axes(0, column)
            axes.axvline(1.0, color=GREEN, linewidth=0.8)
            for place, label in enumerate(labels):
                draw_ratio(axes, (errors(cell, label), errors(cell, "Q")), place, BLACK)
            axes.set(xscale="log", xlim=(LOW, HIGH), title=world)
            shown = [label.replace(" with ", "\n") for label in labels] if column == 0 else [""] * len(labels)
            axes.set_yticks(range(len(labels)), shown, fontsize=6)
            axes.invert_yaxis()
            plain_numbers(axes.xaxis)
