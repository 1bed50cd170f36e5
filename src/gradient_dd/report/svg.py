"""Pictures as SVG inside a page: axes, lines over sizes, and drawings by matplotlib.

Black and white become the colours of the page. A drawing by matplotlib is parsed and written again, so the text of the
file never reaches the page unchecked; elements that matplotlib does not write, such as scripts, raise an error.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from math import ceil, floor, isfinite, log, log10
from pathlib import Path
from typing import NamedTuple

from gradient_dd.errors import BadRequestError, Unquoted, bad_request

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
TICKS = 6  # largest number of ticks on a linear axis

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
ELEMENTS = {"svg", "defs", "style", "g", "path", "use", "text", "tspan", "clipPath", "rect", "image", "pattern"}
ATTRIBUTES = {
    *("id", "x", "y", "d", "width", "height", "viewBox", "version", "type", "transform"),
    *("style", "fill", "clip-path", "patternUnits"),
}
DEEPEST = 40  # largest depth of nested elements; matplotlib needs 8
LOCAL = re.compile(r"url\(#([\w.-]+)\)")
MOVE = re.compile(r"(?:rotate|translate|scale|matrix)\([-+\d.,e\s]*\)")
PLAIN = re.compile(r"[\w\s.,:;#%+/'\"-]*")
STYLE_SHEET = re.compile(r"[\w\s.,:;#%*{}-]*")
INK = {"#000000": "currentColor", "#ffffff": "var(--paper, #fff)"}  # black and white become the colours of the page
LINKS = {"use": re.compile(r"#[\w.-]+"), "image": re.compile(r"data:image/png;base64,[\w+/=\s]+")}


class PlotAxis(NamedTuple):
    """The limits of an axis, logarithmic unless it is `linear`."""

    low: float
    high: float
    linear: bool = False

    def place(self, value: float, left: float, right: float) -> float:
        """Return the position of a value; a value outside the limits is placed at the end of the axis."""
        inside = min(max(value, self.low), self.high) if value == value else self.low
        if self.linear:
            return left + (right - left) * (inside - self.low) / (self.high - self.low)
        return left + (right - left) * log(inside / self.low) / (log(self.high / self.low) or 1.0)  # 0: a single point

    def ticks(self) -> list[float]:
        """Return the round values that the axis shows."""
        low, high, is_linear = self
        if is_linear:
            if not isfinite(high - low):
                return []
            unit = 10.0 ** floor(log10((high - low) / TICKS))
            step = next(unit * factor for factor in (1, 2, 5, 10) if (high - low) / (unit * factor) <= TICKS)
            return [k * step for k in range(ceil(low / step), floor(high / step) + 1)]
        powers = range(int(log10(low)) - 1, int(log10(high)) + 2)
        factors = (1, 2, 5) if high / low < 30 else (1,)
        every = 2 if high / low > 1e5 else 1  # labels of many decades would overlap; the label 1 is always kept
        return [f * 10.0**p for p in powers if p % every == 0 for f in factors if low <= f * 10.0**p <= high]


class Series(NamedTuple):
    """A line of a chart: a value for each size."""

    label: str
    colour: str
    strong: bool
    sizes: Sequence[float]
    values: Sequence[float]


def plain(value: float) -> str:
    """Return a number as the text of a tick: 0.01, 200, 10⁻⁵."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:g}"
    power = floor(log10(abs(value)) + 1e-9)
    factor = value / 10.0**power
    return ("" if abs(factor - 1) < 1e-9 else f"{factor:g}·") + "10" + str(power).translate(SUPERSCRIPTS)


def over_size(symbol: str, series: Sequence[Series]) -> str:
    """Return a chart of errors against size, both logarithmic, with the name of each line at its end."""
    wide, high, left, right, top, bottom = 300, 190, 42, 204, 10, 164
    values = [value for one in series for value in one.values if isfinite(value) and value > 0]
    across = PlotAxis(min(min(one.sizes) for one in series) / 1.1, max(max(one.sizes) for one in series))
    domain = PlotAxis(min(values) / 1.3, max(values) * 1.3)
    heights = {value: domain.place(value, bottom, top) for value in domain.ticks()}
    parts = [f'<path class="gr" d="{"".join(f"M{left} {y:.0f}H{right}" for y in heights.values())}"/>']
    for value, y in heights.items():
        parts.append(f'<text x="{left - 5}" y="{y + 4:.0f}" class="e">{plain(value)}</text>')
    for size in series[0].sizes:
        x = across.place(size, left, right)
        parts.append(f'<text x="{x:.0f}" y="{bottom + 18}" class="m">{symbol} = {size:g}</text>')
    names, told = spread_out([domain.place(one.values[-1], bottom, top) for one in series], 14), []
    for one, y in zip(series, names, strict=True):
        pairs = list(zip(one.sizes, one.values, strict=True))
        points = [(across.place(size, left, right), domain.place(v, bottom, top)) for size, v in pairs]
        path = "L".join(f"{x:.0f} {h:.1f}" for x, h in points)
        dots = "".join(f'<circle cx="{x:.0f}" cy="{h:.1f}" r="2.6" class="dot"/>' for x, h in points)
        leader = f'<path class="leader" d="M{right + 4} {points[-1][1]:.1f}L{right + 10} {y:.1f}"/>'
        name = f'<text x="{right + 13}" y="{y + 4:.1f}" class="name">{escape(one.label)}</text>'
        look = ' class="strong"' if one.strong else ""
        parts.append(f'<g style="color:{one.colour}"{look}><path d="M{path}"/>{dots}{leader}{name}</g>')
        numbers = ", ".join(f"{symbol} = {size:g} {v:.3g}" for size, v in pairs)
        told.append(f"{one.label}: {numbers}")
    shape, label = f'viewBox="0 0 {wide} {high}" width="{wide}"', escape("; ".join(told))
    return f'<svg {shape} class="chart" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def spread_out(heights: Sequence[float], least: float) -> list[float]:
    """Return heights in the same order, moved apart so that labels do not overlap."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    found = list(heights)
    for before, after in pairwise(order):
        found[after] = max(found[after], found[before] + least)
    shift = sum(found[i] - heights[i] for i in order) / len(order)
    return [value - shift for value in found]


def inline_svg(file: Path, prefix: str) -> str:
    """Return the drawing in a file as text for a page; a prefix makes its ids differ from the ids of other drawings."""
    try:
        text = file.read_text(encoding="utf-8")
        return written(ET.fromstring(text[text.index("<svg") :]), prefix, DEEPEST)
    except BadRequestError as error:
        reason = str(error)
    except (ET.ParseError, ValueError) as error:
        reason = f"invalid SVG: {error}"
    rule, hint = "be as gradient-dd drew it", "Delete it to have it drawn again."
    raise bad_request(f"The figure {str(file)!r}", rule, Unquoted(reason), hint)


def written(element: ET.Element, prefix: str, deeper: int) -> str:
    """Return an element and its contents as text; raise an error that names any part that is not allowed."""
    name = str(element.tag).removeprefix(SVG)
    if name == "metadata":  # the page itself names the versions
        return ""
    if name not in ELEMENTS or deeper == 0:
        raise BadRequestError(f"an element {name!r}")
    attributes = "".join(attribute(name, key, value, prefix) for key, value in element.items())
    text = element.text or ""
    if name == "style" and not STYLE_SHEET.fullmatch(text):
        raise BadRequestError(f"a style sheet {text!r}")
    inside = escape(text) + "".join(written(one, prefix, deeper - 1) + escape(one.tail or "") for one in element)
    return f"<{name}{attributes}>{inside}</{name}>" if inside else f"<{name}{attributes}/>"


def attribute(element: str, key: str, value: str, prefix: str) -> str:
    """Return an attribute as text; raise an error that names any part that is not allowed."""
    if key == f"{XLINK}href":
        if element not in LINKS or not LINKS[element].fullmatch(value):
            raise BadRequestError(f"a link {value[:40]!r}")
        return f' xlink:href="{escape(value.replace("#", f"#{prefix}-", 1))}"'
    if key not in ATTRIBUTES or not PLAIN.fullmatch(MOVE.sub("", LOCAL.sub("", value))):
        raise BadRequestError(f"an attribute {key}={value[:40]!r}")
    value = f"{prefix}-{value}" if key == "id" else LOCAL.sub(rf"url(#{prefix}-\1)", value)
    if key in ("style", "fill"):
        for colour, follows in INK.items():
            value = value.replace(colour, follows)
    return f' {key}="{escape(value)}"'
