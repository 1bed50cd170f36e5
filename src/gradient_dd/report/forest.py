"""A forest plot as an HTML table, so that text keeps its size on a phone and screen readers can read the numbers.

The predicted side of the limit is shaded, the limit is bold, and undecided estimates are hollow. The page defines the
signs #mc, #md, #ms and #mt (circle, diamond, square, triangle), and #ml and #mr for values off the scale.
"""

from collections.abc import Sequence
from html import escape
from itertools import groupby
from math import isfinite
from typing import NamedTuple

from gradient_dd.report.svg import PlotAxis, plain

SHAPES = "cdst"
LEAST = 0.012  # share of the width; the sign of an estimate hides a shorter interval
REACH = 100.0
SHORT = (0.1, 0.14, 0.2, 0.3, 0.5, 0.7, 1, 1.4, 2, 3)  # ticks of a short logarithmic axis


class Mark(NamedTuple):
    """An estimate with its interval. `look` is the CSS class of the outcome; shapes from 4 on are hollow."""

    estimate: float
    low: float
    high: float
    look: str
    shape: int = 0


class ForestRow(NamedTuple):
    """A row: its label in a group of rows, the marks of each facet, and the number next to a single mark.

    spoken   the text that a screen reader adds to the label of a row without a number
    cells    the contents of the further columns
    note     a warning about the row, shown below it
    strong   whether the label is bold
    """

    group: str
    label: str
    marks: Sequence[Sequence[Mark]]
    value: str = ""
    look: str = ""
    title: str = ""
    spoken: str = ""
    cells: Sequence[str] = ()
    note: str = ""
    strong: bool = False


class Forest(NamedTuple):
    """A forest plot: rows and facets on a common axis, with a limit; `side` is the predicted side.

    `columns` has the headings of the values and of further columns; without `columns`, values have no visible heading.
    """

    caption: str
    facets: Sequence[str]
    rows: Sequence[ForestRow]
    axis: PlotAxis
    limit: float
    side: str = "below"
    unit: str = ""
    wide_groups: bool = False
    columns: Sequence[str] = ()

    def html(self) -> str:
        """Return the plot as an HTML table."""
        grouped, single = any(row.group for row in self.rows), any(row.value for row in self.rows)
        body = ""
        for group, some in groupby(self.rows, key=lambda row: row.group):
            members = list(some)
            for place, row in enumerate(members):
                head = ""
                if grouped and place == 0:
                    lines = len(members) + sum(bool(one.note) for one in members)
                    head = f'<th scope="rowgroup" rowspan="{lines}">{escape(group)}'
                body += f"<tr>{head}{self.row(row, single)}"
                if row.note:
                    across = 1 + len(self.facets) + (len(self.columns) or single)
                    body += f'<tr class="note"><td colspan="{across}">{escape(row.note)}'
        spare, end = "<td>" if grouped else "", '<th scope="col"><span class="srt">value</span>' if single else ""
        if self.columns:
            end = "".join(f'<th scope="col" class="c">{escape(one)}' for one in self.columns)
        heads = "".join(f'<th scope="col">{escape(one)}' for one in self.facets)
        ticks = f'<td class="ax" aria-hidden="true">{self.ticks()}' * len(self.facets)
        looks = f"forest {self.side} f{len(self.facets)}" + (" groups" if self.wide_groups else "")
        looks += " own" if self.columns else ""
        return (
            f'<table class="{looks}" style="--c:{100 * share(self.limit, self.axis):.1f}%">'
            f'<caption class="srt">{escape(self.caption)}</caption>'
            f'<thead><tr>{spare}<th scope="col" class="un">{escape(self.unit)}{heads}{end}<tbody>{body}'
            f'<tfoot><tr><td colspan="{1 + grouped}">{ticks}{"<td>" * (len(self.columns) or single)}</table>'
        )

    def row(self, row: ForestRow, single: bool) -> str:
        """Return the cells of a row, without the heading of its group."""
        spoken = f'<span class="srt">: {escape(row.spoken)}</span>' if row.spoken else ""
        plots = "".join(
            f'<td class="p" aria-hidden="true">{"".join(mark(one, self.axis) for one in some)}' for some in row.marks
        )
        title = f' title="{escape(row.title)}"' if row.title else ""
        value = f'<td class="v {row.look}"{title}{self.head(0)}>{escape(row.value)}' if single else ""
        value += "".join(f'<td class="c"{self.head(k)}>{escape(cell)}' for k, cell in enumerate(row.cells, 1))
        label = f"<b>{escape(row.label)}</b>" if row.strong else escape(row.label)
        return f'<th scope="row">{label}{spoken}{plots}{value}'

    def head(self, place: int) -> str:
        """Return the attribute with the heading of a column, which a phone shows in front of the cell."""
        return f' data-head="{escape(self.columns[place])}"' if self.columns else ""

    def ticks(self) -> str:
        """Return the numbers of the axis: the limit, and round values that overlap neither it nor each other."""
        several = len(self.facets) > 1
        taken, shown, last = [share(self.limit, self.axis)], [], 0.93 if several else 0.98
        is_short = not self.axis.linear and self.axis.high <= 4 * self.axis.low  # the axis has few decades
        values = (one for one in SHORT if self.axis.low <= one <= self.axis.high) if is_short else self.axis.ticks()
        for value in sorted(values, key=lambda one: (f"{one:e}"[0] != "1", abs(one))):
            at = share(value, self.axis)
            if all(abs(at - other) > (0.22 if several else 0.12) for other in taken) and 0.02 < at < last:
                taken.append(at)
                shown.append(f'<s style="left:{100 * at:.0f}%">{plain(value)}</s>')
        return "".join(shown) + f'<s class="lim">{plain(float(f"{self.limit:.3g}"))}</s>'


def axis_of(rows: Sequence[ForestRow], limit: float, ratios: bool = False) -> PlotAxis:
    """Return an axis that covers all intervals and the limit; ratios are at most a factor of REACH from the limit."""
    marks = [one for row in rows for some in row.marks for one in some]
    ends = [value for one in marks for value in (one.estimate, one.low, one.high) if isfinite(value)]
    if ratios:
        inside = [min(max(value, limit / REACH), limit * REACH) for value in ends]
        return PlotAxis(min([*inside, limit / 1.25]) / 1.1, max([*inside, limit * 1.25]) * 1.1)
    low, high = min([*ends, limit]), max([*ends, limit])
    margin = 0.04 * (high - low) or abs(low) or 1.0
    return PlotAxis(low - margin, high + margin, linear=True)


def share(value: float, axis: PlotAxis) -> float:
    """Return the position of a value on an axis, from 0 to 1; -1 below the axis, 2 above."""
    if not value >= axis.low:
        return -1.0
    return axis.place(value, 0, 1) if value <= axis.high else 2.0


def mark(one: Mark, axis: PlotAxis) -> str:
    """Return an estimate with its interval, or an arrow if the estimate is off the scale."""
    at, low, high = (share(value, axis) for value in (one.estimate, one.low, one.high))
    if at < 0 or at > 1 or not isfinite(one.estimate):
        sign, place = ("l", 2) if at < 0 else ("r", 98)
        return f'<svg class="{one.look}"><use href="#m{sign}" x="{place}%" y="8"/></svg>'
    low, high = max(low, 0.0), min(high, 1.0)
    line = f'<line x1="{100 * low:.1f}%" x2="{100 * high:.1f}%" y1="8" y2="8"/>' if high - low > LEAST else ""
    sign = f'<use href="#m{SHAPES[one.shape % 4]}" x="{100 * at:.1f}%" y="8"/>'
    return f'<svg class="{one.look}{" h" if one.shape >= len(SHAPES) else ""}">{line}{sign}</svg>'
