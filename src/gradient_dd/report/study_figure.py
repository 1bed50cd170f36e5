"""The figure of a study: error over step sizes above, learning curves below, a column for each task."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import extra
from gradient_dd.report.canvas import Sheet, plain_numbers, styled, thousands
from gradient_dd.report.figure import Figure
from gradient_dd.report.panels import LineData, Panel
from gradient_dd.studies import Study
from gradient_dd.tasks import Task

with extra("report"):
    from matplotlib.lines import Line2D

SYMBOLS = {"random_walk": "m", "boyan_chain": "p", "baird": "N"}


Header = Callable[[Any, Task], None]


def draw(
    figure: Figure, panels: list[Panel], study: Study, folder: Path, note: str = "", header: Header | None = None
) -> None:
    """Draw a figure into folder/NAME.svg and .png; `header` draws what stands above its panels."""
    with styled():
        handles = [key(line.line) for line in panels[0].lines]
        across = 2 if len(panels) == 1 else 5 if len(handles) == 5 else 4
        wide = {1: 6.0, 2: 4.0}.get(len(panels), 2.9)
        sheet = Sheet(len(panels), (1.5, 2.3, 2.3) if header else (2.6, 2.6), wide, -(-len(handles) // across))
        if header:
            header(sheet.axes(0, slice(None)), panels[0].task)
        for column, panel in enumerate(panels):
            over_alpha(sheet.axes(-2, column), panel, figure, first=column == 0)
            over_time(sheet.axes(-1, column), panel, study, first=column == 0)
        sheet.say(figure.title, caption(figure, study, note))
        sheet.legend(handles, across)
        sheet.save(folder, figure.name)


def key(line: Any) -> Line2D:
    """Return a line's entry in the legend."""
    return Line2D([], [], color=line.colour, linestyle="--" if line.dashed else "-", label=line.label)


def caption(figure: Figure, study: Study, note: str) -> str:
    """Return what every figure states: scale, reading, seed."""
    length = f"{study.episodes:,} episodes" if study.episodes else f"{study.steps:,} steps"
    sampling = "on trajectories" if study.sampling == "trajectory" else "on independent transitions"
    lines = [
        f"{study.runs} runs of {length} {sampling}, {study.schedule} step size, seed {study.seed}",
        "bars and bands: standard error of the mean · ✕: every setting diverged · dotted: the error at first",
        figure.remark,
        note.upper(),
    ]
    return "\n".join(line for line in lines if line)


def title_of(task: Task) -> str:
    """Return a panel's title, e.g. "m = 20"."""
    first = next(iter(task.parameters.values()))
    title = f"{SYMBOLS.get(task.name, 'size')} = {first}"
    if task.name == "baird":
        title += f", {task.parameters.get('ratios', 'standard')} ratios"
    return title + (", linear features" if task.parameters.get("features") == "linear" else "")


def over_alpha(axes: Any, panel: Panel, figure: Figure, first: bool) -> None:
    """Draw the error against alpha."""
    top = 1.6 * panel.initial_error
    low = min(float(np.nanmin(line.mean)) for line in panel.lines)
    for row, line in enumerate(panel.lines):
        shown = np.isfinite(line.mean) & (line.mean <= 20 * top)
        style = {"color": line.line.colour, "linestyle": "--" if line.line.dashed else "-", "linewidth": 1.3}
        axes.plot(line.alphas[shown], line.mean[shown], marker="o", markersize=2.5, **style)
        axes.plot(*bars(line.alphas[shown], line.mean[shown], line.sem[shown]), color=line.line.colour, linewidth=1.0)
        gone = line.alphas[~np.isfinite(line.mean)]
        height = 1.0 - 0.028 * row  # of the axes: a row of crosses for each line
        axes.plot(
            gone,
            np.full(len(gone), height),
            "x",
            color=line.line.colour,
            markersize=3,
            transform=axes.get_xaxis_transform(),
        )
    axes.axhline(panel.initial_error, color="#888888", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", title=title_of(panel.task), xlabel="step size α")
    low = max(low * 0.7, top * 1e-5)
    room = 1 + 0.035 * len(panel.lines) if any(np.isinf(line.mean).any() for line in panel.lines) else 1.0
    axes.set_ylim((low, low * (top / low) ** room))
    plain_numbers(axes.xaxis)
    plain_numbers(axes.yaxis)
    what = "last 100" if figure.measure == "last100" else "all"
    unit = "episodes" if panel.task.episodic else "errors"
    if first:
        axes.set_ylabel(f"RMS error, mean of {what} {unit}")


def bars(x: Array, mean: Array, sem: Array) -> tuple[Array, Array]:
    """Return error bars as one line with gaps."""
    gap = np.full_like(x, np.nan)
    return np.stack([x, x, gap], axis=1).ravel(), np.stack([mean - sem, mean + sem, gap], axis=1).ravel()


def over_time(axes: Any, panel: Panel, study: Study, first: bool) -> None:
    """Draw the learning curve of each line's selected setting."""
    top, low = 1.6 * panel.initial_error, np.inf
    for line in panel.lines:
        curve = np.where(line.curve <= 20 * top, line.curve, np.nan)
        style = {"color": line.line.colour, "linestyle": "--" if line.line.dashed else "-"}
        axes.plot(panel.middle[::2], curve[::2], linewidth=1.3, **style)
        lower, upper = band(line, curve)
        fill = {"color": line.line.colour, "alpha": 0.15, "linewidth": 0}
        axes.fill_between(panel.middle[::4], lower[::4], upper[::4], **fill)
        low = min(low, float(np.nanmin(curve))) if np.isfinite(curve).any() else low
    axes.set(yscale="log", ylim=(max(low * 0.7, top * 1e-5), top), xlim=(0, None))
    plain_numbers(axes.yaxis)
    thousands(axes.xaxis)
    axes.set_xlabel("episodes" if study.episodes else "steps")
    if first:
        axes.set_ylabel("RMS error")


def band(line: LineData, curve: Any) -> tuple[Any, Any]:
    """Return the curve less and plus its standard error."""
    sem = np.where(np.isfinite(line.curve_sem), line.curve_sem, 0.0)
    return np.maximum(curve - sem, curve * 0.05), curve + sem
