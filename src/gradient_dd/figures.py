"""Figures: panels -> matplotlib -> SVG and PNG."""

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from gradient_dd.panels import LineData, Panel
from gradient_dd.studies import Study
from gradient_dd.studies.figures import Figure

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "svg.fonttype": "none",
    "path.simplify_threshold": 0.5,
    "svg.hashsalt": "gradient-dd",  # the same drawing is the same file
}
SYMBOLS = {"random_walk": "m", "boyan_chain": "p", "baird": "N"}


def draw(figure: Figure, panels: list[Panel], study: Study, folder: Path, note: str = "") -> list[Path]:
    """Draw a figure into folder/NAME.svg and .png and return both paths."""
    with mpl.rc_context(STYLE):
        columns = len(panels)
        canvas = Canvas(figsize=(max(7.2, 3.2 * columns), 7.0), layout="constrained")
        grid = canvas.subplots(2, columns, squeeze=False)
        for column, panel in enumerate(panels):
            over_alpha(grid[0, column], panel, figure, first=column == 0)
            over_time(grid[1, column], panel, study, first=column == 0)
        canvas.suptitle(f"{figure.title}\n", fontsize=11, fontweight="bold")
        canvas.text(0.5, 0.955, caption(study, note), ha="center", va="top", fontsize=7.5, color="#444444")
        handles = [key(line.line) for line in panels[0].lines]
        canvas.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)), frameon=False)
        paths = [folder / f"{figure.name}.{ending}" for ending in ("svg", "png")]
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            dated: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {}
            canvas.savefig(path, dpi=150, metadata=dated or None)
        shorten(paths[0])
    return paths


def shorten(drawing: Path) -> None:
    """Round the coordinates of an SVG to a hundredth of a point: half the size, the same picture."""
    text = drawing.read_text(encoding="utf-8")
    drawing.write_text(re.sub(r"(\d+\.\d\d)\d+", r"\1", text), encoding="utf-8")


def key(line: Any) -> Line2D:
    """Return a line's entry in the legend."""
    return Line2D([], [], color=line.colour, linestyle="--" if line.dashed else "-", label=line.label)


def caption(study: Study, note: str) -> str:
    """Return what every figure states: scale, reading, seed."""
    length = f"{study.episodes:,} episodes" if study.episodes else f"{study.steps:,} steps"
    words = (
        f"{study.runs} runs of {length}, {study.schedule} step size, sampling by {study.sampling}, seed {study.seed}; "
    )
    return words + "error bars: standard error of the mean; ✕: every setting diverged" + (f". {note}" if note else "")


def name_of(panel: Panel) -> str:
    """Return a panel's title, e.g. "m = 20"."""
    task, (first, *_) = panel.task, panel.task.parameters.values()
    title = f"{SYMBOLS.get(task.name, 'size')} = {first}"
    if task.name == "baird":
        title += f", {task.parameters.get('ratios', 'standard')} ratios"
    return title + (", linear features" if task.parameters.get("features") == "linear" else "")


def plain_numbers(axis: Any) -> None:
    """Label a logarithmic axis with plain numbers, and the steps between only where decades are few."""
    low, high = axis.get_view_interval()
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    few = high / low < 30
    axis.set_minor_locator(LogLocator(subs=(2, 3, 5) if few else tuple(range(2, 10))))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if few else ""))


def over_alpha(axes: Any, panel: Panel, figure: Figure, first: bool) -> None:
    """Draw the error against alpha."""
    top = 1.6 * panel.initial_error
    low = min(float(np.nanmin(line.mean)) for line in panel.lines)
    for line in panel.lines:
        shown = np.isfinite(line.mean) & (line.mean <= 20 * top)
        style = {"color": line.line.colour, "linestyle": "--" if line.line.dashed else "-", "linewidth": 1.3}
        axes.errorbar(line.alphas[shown], line.mean[shown], line.sem[shown], marker="o", markersize=2.5, **style)
        gone = line.alphas[~np.isfinite(line.mean)]
        axes.plot(gone, np.full(len(gone), top * 0.93), "x", color=line.line.colour, markersize=4, alpha=0.7)
    axes.axhline(panel.initial_error, color="#888888", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", title=name_of(panel), xlabel="step size α")
    axes.set_ylim((max(low * 0.7, top * 1e-5), top))
    plain_numbers(axes.yaxis)
    what = "last 100" if figure.measure == "last100" else "all"
    if first:
        axes.set_ylabel(f"RMS error, mean of {what}")


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
    axes.set_xlabel("episodes" if study.episodes else "steps")
    if first:
        axes.set_ylabel("RMS error")


def band(line: LineData, curve: Any) -> tuple[Any, Any]:
    """Return the curve less and plus its standard error."""
    sem = np.where(np.isfinite(line.curve_sem), line.curve_sem, 0.0)
    return np.maximum(curve - sem, curve * 0.05), curve + sem
