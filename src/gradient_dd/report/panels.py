"""The panels of a figure as SVG for a page: small, in the page's own black and white, with text of constant size.

Each line is one path, and its markers are a second path: points of zero length with round or square ends.
"""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.report.figure import STRONG, Line, LineData, Panel, diverged_rows, error_range, evenly_in_log, title_of
from gradient_dd.report.svg import PlotAxis, plain
from gradient_dd.studies.intervals import EXPLODED

WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 300, 200, 46, 294, 8, 164
ROW = 7  # height of a row in the strip of step sizes that diverged
POINTS = 40  # number of points of a learning curve


class Column(NamedTuple):
    """The pictures of a panel; if there are no errors over step sizes, `above` is empty."""

    title: str
    above: str
    below: str


def columns_of(panels: Sequence[Panel], unit: str) -> list[Column]:
    """Return the pictures of all panels of a figure: errors over step sizes above, learning curves below."""
    has_alphas = all(len(line.alphas) for panel in panels for line in panel.lines)
    rows, over_time, columns = diverged_rows(panels), PlotAxis(*error_range(panels, "curve")), []
    for panel in panels:
        above = over_alpha(panel, PlotAxis(*error_range(panels, "mean")), rows) if has_alphas else ""
        columns.append(Column(title_of(panel.task), above, over_time_of(panel, over_time, unit)))
    return columns


def over_alpha(panel: Panel, errors: PlotAxis, rows: int) -> str:
    """Return a plot of errors over step sizes; a strip of `rows` rows above has crosses where runs diverged."""
    alphas = np.concatenate([line.alphas for line in panel.lines])
    across = PlotAxis(float(alphas.min()) / 1.3, float(alphas.max()) * 1.3)
    top = TOP + (ROW * rows + 14 if rows else 0)
    parts, row = [], 0
    for line in panel.lines:
        gone = panel.beyond(line.mean)
        xs, ys = places(line.alphas[~gone], across), heights(line.mean[~gone], errors, top)
        dots = "".join(f"M{x} {y}h0" for x, y in zip(xs, ys, strict=True))
        ends = [heights(line.mean[~gone] + sign * line.sem[~gone], errors, top) for sign in (-1, 1)]
        bars = "".join(
            f"M{x} {low}V{high}" for x, low, high in zip(xs, *ends, strict=True) if abs(float(low) - float(high)) > 4
        )
        inside = path_of(xs, ys) + "".join(
            f'<path class="{name}" d="{drawn}"/>' for name, drawn in (("dots", dots), ("bars", bars)) if drawn
        )
        if gone.any():
            crosses = "".join(f"M{x} {TOP + 13 + ROW * row}l4 4m0-4-4 4" for x in places(line.alphas[gone], across, -2))
            inside += f'<path class="gone" d="{crosses}"/>'
            row += 1
        parts.append(group(line.line, inside))
    strip = f'<rect class="strip" x="{LEFT}" y="2" width="{RIGHT - LEFT}" height="{ROW * rows + 13}"/>' if rows else ""
    words = (
        f'<text x="{LEFT + 4}" y="12" class="s">diverged (beyond {EXPLODED:g} × initial error)</text>' if row else ""
    )
    return framed(across, errors, top, panel.initial_error, [strip, words, *parts], "step size α")


def over_time_of(panel: Panel, errors: PlotAxis, unit: str) -> str:
    """Return a plot of learning curves; a curve ends where it diverges."""
    across = PlotAxis(float(panel.middle[0]), float(panel.middle[-1]))
    thin = evenly_in_log(len(panel.middle), POINTS)
    parts = []
    for line in panel.lines:
        kept = ~panel.beyond(line.curve[thin]) & (line.curve[thin] > 0)
        xs, ys = places(panel.middle[thin][kept], across), heights(line.curve[thin][kept], errors, TOP)
        parts.append(group(line.line, path_of(xs, ys)))
    return framed(across, errors, TOP, panel.initial_error, parts, unit)


def group(line: Line, inside: str) -> str:
    """Return the marks of a line in its colour."""
    look = look_of(line)
    return f'<g style="color:{line.colour}"{f" class={look}" if look else ""}>{inside}</g>'


def places(values: Array, axis: PlotAxis, shift: float = 0) -> list[str]:
    """Return the horizontal positions of values."""
    return [f"{axis.place(float(value), LEFT, RIGHT) + shift:.0f}" for value in values]


def heights(values: Array, axis: PlotAxis, top: float) -> list[str]:
    """Return the vertical positions of values."""
    return [f"{axis.place(float(value), BOTTOM, top):.1f}".removesuffix(".0") for value in values]


def path_of(xs: list[str], ys: list[str]) -> str:
    """Return a line through points."""
    return f'<path d="M{"L".join(f"{x} {y}" for x, y in zip(xs, ys, strict=True))}"/>' if xs else ""


def framed(across: PlotAxis, errors: PlotAxis, top: float, first: float, parts: list[str], label: str) -> str:
    """Return lines with their axes; a dotted line marks the initial error."""
    lines, texts = "", ""
    for value in errors.ticks():
        y = errors.place(value, BOTTOM, top)
        lines += f"M{LEFT} {y:.0f}H{RIGHT}"
        texts += f'<text x="{LEFT - 5}" y="{y + 4:.0f}" class="e">{plain(value)}</text>'
    for value in across.ticks():
        x, number = across.place(value, LEFT, RIGHT), f"{value / 1000:g}k" if 1e3 <= value < 1e6 else plain(value)
        lines += f"M{x:.0f} {top}V{BOTTOM}"
        texts += f'<text x="{x:.0f}" y="{BOTTOM + 14}" class="m">{number}</text>'
    dotted = f'<path class="initial" d="M{LEFT} {errors.place(first, BOTTOM, top):.0f}H{RIGHT}"/>'
    words = f'<text x="{(LEFT + RIGHT) / 2:.0f}" y="{HIGH - 5}" class="m">{escape(label)}</text>'
    inside = f'<path class="gr" d="{lines}"/>{dotted}{"".join(parts)}{texts}{words}'
    return f'<svg class="panel" viewBox="0 0 {WIDE} {HIGH}" aria-hidden="true">{inside}</svg>'


def legend(lines: Sequence[LineData]) -> list[dict[str, str]]:
    """Return the entries of a legend: label, colour, and the class of the line."""
    return [{"label": one.line.label, "colour": one.line.colour, "look": look_of(one.line)} for one in lines]


def look_of(line: Line) -> str:
    """Return the CSS class of a line: "dashed", "strong" or ""."""
    return "dashed" if line.dashed else "strong" if line.colour == STRONG else ""
