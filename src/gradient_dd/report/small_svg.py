"""Small pictures written straight as SVG, for use inside a page: intervals about 1, and lines over sizes.

Black and white are the page's own colours. Every mark has a title, so that pointing at it shows its numbers.
"""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from math import isfinite, log, log10
from typing import NamedTuple

from gradient_dd.report.canvas import plain

WIDTH = 400  # of a forest, in pixels
LABEL = 150  # of its left column, unless another is given
ROW = 20


class Dot(NamedTuple):
    """An estimate with its interval, where 1 means no difference; `hollow` marks a second opinion on the row above."""

    label: str
    estimate: float
    low: float
    high: float
    colour: str
    hollow: bool = False
    note: str = ""


class Series(NamedTuple):
    """A line of a chart: a value for each size."""

    label: str
    colour: str
    strong: bool
    sizes: Sequence[float]
    values: Sequence[float]


def domain_of(dots: Sequence[Dot]) -> tuple[float, float]:
    """Return limits about 1, all estimates and their intervals; an interval goes at most a decade beyond the estimates.

    So wide intervals of a few runs do not squeeze the estimates together. Limits are at most eight decades apart.
    """
    estimates = [dot.estimate for dot in dots if isfinite(dot.estimate) and dot.estimate > 0]
    ends = [value for dot in dots for value in (dot.low, dot.high) if isfinite(value) and value > 0]
    low, high = min([*estimates, 0.8]), max([*estimates, 1.25])
    low, high = min([low, *(max(end, low / 10) for end in ends)]), max([high, *(min(end, high * 10) for end in ends)])
    return max(low / 1.2, 1e-4), min(high * 1.2, 1e4)


def forest(title: str, dots: Sequence[Dot], domain: tuple[float, float], left: float = LABEL) -> str:
    """Return a forest plot: a row for each dot, a line at 1; a hollow dot shares the row of the one before.

    `left` is the width of the labels.
    """
    rows: list[list[Dot]] = []
    for dot in dots:
        if dot.hollow and rows:
            rows[-1].append(dot)
        else:
            rows.append([dot])
    high = ROW * len(rows) + 50
    parts = [f'<text x="0" y="14" class="head">{escape(title)}</text>']
    parts += [axis_mark(value, domain, left, 22, high - 24) for value in decades(domain)]
    one = place(1.0, domain, left, WIDTH - 10)
    parts.append(f'<line x1="{one:.1f}" x2="{one:.1f}" y1="22" y2="{high - 24}" class="one"/>')
    for number, row in enumerate(rows):
        y = 34 + ROW * number
        parts.append(f'<text x="0" y="{y + 4}">{escape(row[0].label)}</text>')
        parts += [mark(dot, y + (4 if dot.hollow else 0), domain, left, WIDTH - 10) for dot in row]
    words = escape(f"{title}: ratios with intervals; the numbers are in the ledger", quote=True)
    return framed("forest", WIDTH, high, words, parts)


def dots_in_a_row(dots: Sequence[Dot], bound: float) -> str:
    """Return a small picture of a few intervals, one below the other, with a line at a bound."""
    reach = domain_of(dots)
    domain, high = (min(reach[0], bound / 1.2), max(reach[1], bound * 1.2)), 7 * len(dots) + 6
    one = place(bound, domain, 4, 156)
    line = f'<line x1="{one:.1f}" x2="{one:.1f}" y1="0" y2="{high}" class="one"/>'
    marks = "".join(mark(dot, 7 * i + 6, domain, 4, 156, radius=2.5) for i, dot in enumerate(dots))
    return (
        f'<svg viewBox="0 0 160 {high}" width="160" height="{high}" class="dots" aria-hidden="true">{line}{marks}</svg>'
    )


def mark(dot: Dot, y: float, domain: tuple[float, float], left: float, right: float, radius: float = 4) -> str:
    """Return an interval as a line and its estimate as a dot."""
    x, low, high = (place(value, domain, left, right) for value in (dot.estimate, dot.low, dot.high))
    numbers = f"{dot.estimate:.3g} [{dot.low:.3g}, {dot.high:.3g}]"
    title = f"<title>{escape(f'{dot.label}: {numbers} {dot.note}'.strip())}</title>"
    fill = "var(--paper)" if dot.hollow else "currentColor"
    ends = arrow(left, y, 1) * (not dot.low >= domain[0]) + arrow(right, y, -1) * (not dot.high <= domain[1])
    return (
        f'<g style="color:{dot.colour}">{title}<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" class="bar"/>'
        f'{ends}<circle cx="{x:.1f}" cy="{y}" r="{radius}" style="fill:{fill}" class="dot"/></g>'
    )


def arrow(x: float, y: float, inwards: int) -> str:
    """Return the head of an arrow at the end of an axis, for an interval that goes on beyond it."""
    points = f"{x + 5 * inwards},{y - 3} {x},{y} {x + 5 * inwards},{y + 3}"
    return f'<polyline points="{points}" class="bar" fill="none"/>'


def place(value: float, domain: tuple[float, float], left: float, right: float) -> float:
    """Return where a positive value stands on a logarithmic axis; what is outside stands at its end."""
    low, high = domain
    inside = min(max(value, low), high) if value == value else low
    return left + (right - left) * log(inside / low) / log(high / low)


def decades(domain: tuple[float, float]) -> list[float]:
    """Return the values that an axis shows."""
    low, high = domain
    powers = range(int(log10(low)) - 1, int(log10(high)) + 2)
    factors = (1, 2, 5) if high / low < 30 else (1,)
    every = 2 if high / low > 1e5 else 1  # numbers of many decades would overlap; 1 always stays
    return [
        f * 10.0**power for power in powers if power % every == 0 for f in factors if low <= f * 10.0**power <= high
    ]


def axis_mark(value: float, domain: tuple[float, float], left: float, top: float, bottom: float) -> str:
    """Return a grid line with its number below."""
    x = place(value, domain, left, WIDTH - 10)
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" class="grid"/>'
        f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{plain(value)}</text>'
    )


def over_size(title: str, symbol: str, series: Sequence[Series]) -> str:
    """Return errors against size, both logarithmic, each line with its name at its end."""
    wide, high, left, right, top, bottom = 400, 300, 48, 290, 30, 262
    values = [value for one in series for value in one.values if isfinite(value) and value > 0]
    across = (min(min(one.sizes) for one in series) / 1.1, max(max(one.sizes) for one in series))
    domain = min(values) / 1.3, max(values) * 1.3

    def y_of(value: float) -> float:
        return bottom + top - place(value, domain, top, bottom)

    parts = [f'<text x="0" y="14" class="head">{escape(title)}</text>']
    for value in decades(domain):
        parts.append(f'<line x1="{left}" x2="{right}" y1="{y_of(value):.1f}" y2="{y_of(value):.1f}" class="grid"/>')
        parts.append(f'<text x="{left - 5}" y="{y_of(value) + 4:.1f}" text-anchor="end">{plain(value)}</text>')
    for size in series[0].sizes:
        x = place(size, across, left, right)
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{symbol} = {size}</text>')
    names = spread_out([y_of(one.values[-1]) for one in series], 17)
    for one, y in zip(series, names, strict=True):
        points = [(place(s, across, left, right), y_of(v), s, v) for s, v in zip(one.sizes, one.values, strict=True)]
        path = " ".join(f"{x:.1f},{h:.1f}" for x, h, *_ in points)
        thick = 3.5 if one.strong else 1.6
        parts.append(f'<g style="color:{one.colour}"><polyline points="{path}" class="curve" stroke-width="{thick}"/>')
        for x, h, size, value in points:
            words = escape(f"{one.label}, {symbol} = {size}: {value:.3g}")
            parts.append(
                f'<circle cx="{x:.1f}" cy="{h:.1f}" r="{thick + 1:.1f}" class="dot"><title>{words}</title></circle>'
            )
        parts.append(
            f'<line x1="{right + 4}" x2="{right + 14}" y1="{points[-1][1]:.1f}" y2="{y:.1f}" class="leader"/></g>'
        )
        style = ' class="head"' if one.strong else ""
        parts.append(f'<text x="{right + 18}" y="{y + 4:.1f}"{style}>{escape(one.label)}</text>')
    words = escape(f"{title}: errors against size; the numbers are in the ledger", quote=True)
    return framed("chart", wide, high, words, parts)


def framed(kind: str, wide: float, high: float, words: str, parts: list[str]) -> str:
    """Return a picture of a kind, with words for those who cannot see it."""
    size = f'viewBox="0 0 {wide} {high}" width="{wide}"'
    return f'<svg {size} class="{kind}" role="img" aria-label="{words}">{"".join(parts)}</svg>'


def spread_out(heights: Sequence[float], least: float) -> list[float]:
    """Return heights moved apart so that labels do not overlap; their order is kept."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    found = list(heights)
    for before, after in pairwise(order):
        found[after] = max(found[after], found[before] + least)
    shift = sum(found[i] - heights[i] for i in order) / len(order)
    return [value - shift for value in found]
