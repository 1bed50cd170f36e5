"""The figure of a study: error over step sizes above, learning curves below, a column for each task.

A mean error far beyond the initial error has no meaningful value, so it is drawn as a cross in a strip above the axes.
All columns share the limits of their error axes.
"""

from collections.abc import Callable
from itertools import starmap
from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.errors import extra
from gradient_dd.report.canvas import TOP, Sheet, drawn, plain_numbers, styled, svg_text, thousands
from gradient_dd.report.figure import (
    MARKERS,
    STRONG,
    Figure,
    Line,
    Panel,
    diverged_rows,
    error_range,
    evenly_in_log,
    title_of,
)
from gradient_dd.studies import Study
from gradient_dd.studies.intervals import EXPLODED
from gradient_dd.studies.study import task_size
from gradient_dd.tasks import Task

with extra("report"):
    from matplotlib.lines import Line2D

STRIP_ROW, STRIP_GAP = 0.075, 0.05  # inches: a row in the strip of diverged step sizes, and the gap below the strip
SPARSE = 16  # number of curve points from one marker to the next
EXPLAINED = f"✕ above the axes: diverged, a mean beyond {EXPLODED:g} × the initial error or infinite"
RING = "ring: the best step size is the last of the grid"

Range = tuple[float, float]
Header = Callable[[Any, Task], None]


def draw(
    figure: Figure, panels: list[Panel], study: Study, folder: Path, note: str = "", header: Header | None = None
) -> None:
    """Draw a figure into folder/NAME.svg and .png; `header` draws a picture above the panels, saved alone too."""
    strip, unit = strip_height(panels), "episodes" if study.episodes else "steps"
    lines = [
        scale(study),
        "bars and bands: standard error of the mean · dotted: the initial error",
        f"{EXPLAINED} · {RING}",
    ]
    caption = "\n".join(line for line in (*lines, figure.remark, note.upper()) if line)
    shape: dict[str, Any] = {
        "across": 2 if len(panels) == 1 else 5 if len(figure.lines) == 5 else 4,
        "columns": len(panels),
        "heights": (1.8, 2.3, 2.3) if header else (2.6, 2.6),
        "width": {1: 5.0, 2: 4.0, 4: 4.0}.get(len(panels), 3.05),
        **({"gap": 0.7 + strip} if header else {"gap": 0.7, "top": TOP + strip}),
    }
    texts = figure.title, caption
    with drawn(folder, figure.name, texts, lambda: list(starmap(key, enumerate(figure.lines))), **shape) as sheet:
        if header:
            header(sheet.axes(0, slice(None)), panels[0].task)
        for column, panel in enumerate(panels):
            above, below = sheet.axes(-2, column), sheet.axes(-1, column)
            over_alpha(above, panel, error_range(panels, "mean"), strip)
            over_time(below, panel, error_range(panels, "curve"), unit)
            if column == 0:
                what = "last 100" if figure.measure == "last100" else "all"
                above.set_ylabel(f"RMS error, mean of {what} {'episodes' if panel.task.episodic else 'errors'}")
                below.set_ylabel("RMS error")
    if header:
        with styled():
            alone = Sheet(1, (2.1,), 5.2, top=0.1)
            header(alone.axes(0, 0), min((panel.task for panel in reversed(panels)), key=task_size))
            file = header_file(folder, figure.name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(svg_text(alone.canvas), encoding="utf-8")


def header_file(folder: Path, figure: str) -> Path:
    """Return the path of the picture above a figure, drawn alone for its smallest task."""
    return folder / "parts" / f"{figure}-above.svg"


def key(place: int, line: Line) -> Line2D:
    """Return a line's entry in the legend."""
    return Line2D([], [], label=line.label, **look(place, line), markersize=4)


def look(place: int, line: Line) -> dict[str, Any]:
    """Return the style of a line. TDRC is wide and pale, so that TD is visible on top of it."""
    width = 2.4 if line.colour == STRONG else 3.0 if line.learner == "tdrc" else 1.3
    return {
        "color": line.colour,
        "linestyle": "--" if line.dashed else "-",
        "linewidth": width,
        "alpha": 0.55 if line.learner == "tdrc" else 1.0,
        "marker": MARKERS[place % len(MARKERS)],
        "zorder": 3 if line.colour == STRONG else 1.9 if line.learner == "tdrc" else 2,
    }


def scale(study: Study) -> str:
    """Return the scale of a study: runs, length, sampling, schedule and seed."""
    length = f"{study.episodes:,} episodes" if study.episodes else f"{study.steps:,} steps"
    sampling = "on trajectories" if study.sampling == "trajectory" else "on independent transitions"
    return f"{study.runs} runs of {length} {sampling}, {study.schedule} step size, seed {study.seed}"


def strip_height(panels: list[Panel]) -> float:
    """Return the height of the strip of diverged step sizes in inches; 0 if none diverged."""
    rows = diverged_rows(panels)
    return STRIP_GAP + 0.18 + STRIP_ROW * rows if rows else 0.0


def over_alpha(axes: Any, panel: Panel, errors: Range, strip_inches: float) -> None:
    """Draw the error against alpha, and above the axes the step sizes that diverged."""
    for place, line in enumerate(panel.lines):
        shown = ~panel.beyond(line.mean)
        axes.plot(line.alphas[shown], line.mean[shown], markersize=3, **look(place, line.line))
        x, mean, sem = line.alphas[shown], line.mean[shown], line.sem[shown]
        gap = np.full_like(x, np.nan)  # gap between the error bars, which are drawn as one line
        x, ends = np.stack([x, x, gap], axis=1), np.stack([mean - sem, mean + sem, gap], axis=1)
        axes.plot(x.ravel(), ends.ravel(), color=line.line.colour, linewidth=1.0)
        (best,) = np.flatnonzero(line.alphas == line.best.values["alpha"])
        if len(line.alphas) > 2 and best in (0, len(line.alphas) - 1) and shown[best]:
            ring = {"markerfacecolor": "none", "markeredgecolor": line.line.colour, "markeredgewidth": 1.2}
            axes.plot(line.alphas[best], line.mean[best], "o", markersize=9, zorder=4, **ring)
    axes.axhline(panel.initial_error, color="#888888", linewidth=0.8, linestyle=":")
    alphas = np.concatenate([line.alphas for line in panel.lines])  # including diverged step sizes
    axes.set(
        xscale="log", yscale="log", xlabel="step size α", ylim=errors, xlim=(alphas.min() / 1.3, alphas.max() * 1.3)
    )
    plain_numbers(axes.xaxis, axes.yaxis)
    if strip_inches:
        draw_strip(axes, panel, strip_inches).set_title(title_of(panel.task))
    else:
        axes.set_title(title_of(panel.task))


def draw_strip(axes: Any, panel: Panel, inches: float) -> Any:
    """Draw a cross for each step size that diverged, a row for each line, in a strip above the axes."""
    high = axes.get_position().height * axes.figure.get_figheight()
    strip = axes.inset_axes((0, 1 + STRIP_GAP / high, 1, (inches - STRIP_GAP) / high))
    gone = [(line, line.alphas[panel.beyond(line.mean)]) for line in panel.lines]
    rows = [(line, alphas) for line, alphas in gone if len(alphas)]
    for row, (line, alphas) in enumerate(rows):
        strip.plot(alphas, np.full(len(alphas), row + 0.5), "x", color=line.line.colour, markersize=4)
    unit = STRIP_ROW / (inches - STRIP_GAP)
    strip.set(xscale="log", xlim=axes.get_xlim(), ylim=(0, 1 / unit), xticks=[], yticks=[])
    strip.set_xticks([], minor=True)
    strip.axhspan(0, 1 / unit, color="#888888", alpha=0.15, linewidth=0)  # a background would be lost in the SVG
    strip.grid(False)
    strip.spines[:].set_visible(False)
    words = f"diverged, beyond {EXPLODED:g} × the initial error" if rows else "nothing diverged"
    strip.text(0.01, 0.97, words, transform=strip.transAxes, va="top")
    return strip


def over_time(axes: Any, panel: Panel, errors: Range, unit: str) -> None:
    """Draw the learning curve of each line's selected setting; a curve ends where it diverges."""
    thin = evenly_in_log(len(panel.middle), 80)
    for place, line in enumerate(panel.lines):
        curve = np.where(panel.beyond(line.curve), np.nan, line.curve)
        some = (4 * place % SPARSE, SPARSE)  # markers distinguish lines in grey
        axes.plot(panel.middle[thin], curve[thin], markersize=4, markevery=some, **look(place, line.line))
        sem = np.where(np.isfinite(line.curve_sem), line.curve_sem, 0.0)
        lower, upper = np.maximum(curve - sem, curve * 0.05), curve + sem
        fill = {"color": line.line.colour, "alpha": 0.15, "linewidth": 0}
        axes.fill_between(panel.middle[thin], lower[thin], upper[thin], **fill)
    axes.set(xscale="log", yscale="log", ylim=errors, xlabel=unit, xlim=(panel.middle[0], panel.middle[-1]))
    plain_numbers(axes.yaxis)
    thousands(axes.xaxis)
