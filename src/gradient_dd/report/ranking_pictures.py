"""The pictures of a standing, written straight as SVG: each stands alone, and inside a page."""

from collections.abc import Callable, Iterable
from html import escape
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.ranking.standing import Standing
from gradient_dd.ranking.standings import OCTAVES
from gradient_dd.report.figure import BLACK, BLUE, RED
from gradient_dd.report.svg import Dot, forest, framed, ratio_axis

STYLE = (
    "text{font:12px sans-serif;fill:currentColor}.head{font-weight:bold}.grid{stroke:currentColor;opacity:.2}"
    ".one,.bar,.dot{stroke:currentColor}.curve{fill:none;stroke:currentColor}"
)
HEAT = ("#ffffff", "#f6d7a7", "#d9733f", "#8c2d1f")  # of ratios to the best learner: 1, and the bounds below
BOUNDS = (1.05, 1.25, 2.0)
CELL, LABEL, HEAD = 15, 150, 130
GREY = "#999999"


class StandingPicture(NamedTuple):
    """A picture as SVG."""

    svg: str

    def __repr__(self) -> str:
        return f"<StandingPicture: {len(self.svg) / 1000:.0f} kB of SVG>"

    def _repr_svg_(self) -> str:
        return self.alone

    @property
    def alone(self) -> str:
        """The SVG as a file of its own."""
        body = self.svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
        return body.replace(">", f"><style>{STYLE}</style>", 1)

    def save(self, path: Any) -> None:
        """Write the picture to a file."""
        from pathlib import Path

        Path(path).write_text(self.alone, encoding="utf-8")


def text(x: float, y: float, words: str, more: str = "") -> str:
    """Return a text."""
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(words)}</text>'


def polyline(points: Iterable[tuple[float, float]], colour: str, width: float, title: str) -> str:
    """Return a line with a title."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    line = f'<polyline points="{path}" class="curve" stroke-width="{width}"><title>{escape(title)}</title></polyline>'
    return f'<g style="color:{colour}">{line}</g>'


def label_of(standing: Standing, name: str) -> str:
    """Return the label of a learner, with a mark for the user's own."""
    return ("▸ " if name == standing.own else "") + standing.rules[name].label


def heat(standing: Standing) -> StandingPicture:
    """Return learners × problems: the ratio of each error to the best one on that problem."""
    names = list(standing.ranks)
    wide, high = LABEL + CELL * len(standing.problems) + 60, HEAD + CELL * len(names) + 10
    bounds = ", ".join(f"{one:g}" for one in BOUNDS)
    parts = [text(0, 14, f"Error over the best one: darker from {bounds} on", ' class="head"')]
    for column, problem in enumerate(standing.problems):
        x, y = LABEL + CELL * column + 11, HEAD - 6
        parts.append(text(x, y, problem.name, f' transform="rotate(-60 {x} {y})"'))
    for row, name in enumerate(names):
        y, own = HEAD + CELL * row, name == standing.own
        parts.append(text(0, y + 11, label_of(standing, name), ' class="head"' if own else ""))
        for column, ratio in enumerate(standing.means[name] / standing.best):
            colour = HEAT[int(np.searchsorted(BOUNDS, ratio))]
            title = escape(f"{standing.rules[name].label}, {standing.problems[column].title}: {ratio:.3g} × the best")
            edge = f"stroke:{RED};stroke-width:1.5" if own else f"stroke:{GREY};stroke-width:.3"
            place = f'x="{LABEL + CELL * column}" y="{y}" width="{CELL}" height="{CELL}"'
            parts.append(f'<rect {place} style="fill:{colour};{edge}"><title>{title}</title></rect>')
    words = f"Heat map of errors over the best one, darker from {bounds} on"
    return StandingPicture(framed("chart", wide, high, words, parts))


def ratios(standing: Standing) -> StandingPicture:
    """Return a forest plot of the paired ratios against the first rival."""
    name = standing.own or next(iter(standing.ranks))
    rival = next((one for one in standing.rivals if one != name), standing.rivals[0])
    dots = []
    for problem in standing.problems:
        ratio, low, high = standing.ratio(name, rival, problem)
        colour = RED if high < 1 else BLUE if low > 1 else BLACK
        dots.append(Dot(problem.name, ratio, low, high, colour))
    title = f"{standing.rules[name].label} over {standing.rules[rival].label}"
    words = f"{title}: ratios of errors with intervals, a row for each problem"
    return StandingPicture(forest(dots, ratio_axis(dots), title=title, words=words))


def profile(standing: Standing) -> StandingPicture:
    """Return for every learner the share of problems on which its error is at most τ times the best one."""
    wide, high, left, bottom = 460, 260, 40, 226
    taus = np.geomspace(1.0, 4.0, 81)
    parts = [text(0, 14, "Share of problems with an error of at most τ times the best", ' class="head"')]
    for tau in (1, 1.5, 2, 3, 4):
        x = left + (wide - left - 110) * np.log(tau) / np.log(4)
        parts.append(text(x, bottom + 18, f"τ = {tau:g}" if tau == 1 else f"{tau:g}", ' text-anchor="middle"'))
    for share in (0, 0.5, 1):
        y = bottom - 190 * share
        parts.append(f'<line x1="{left}" x2="{wide - 110}" y1="{y}" y2="{y}" class="grid"/>')
        parts.append(text(left - 6, y + 4, f"{share:g}", ' text-anchor="end"'))
    named = dict.fromkeys([standing.own or next(iter(standing.ranks)), *standing.rivals])
    for name, means in standing.means.items():
        shares = ((means / standing.best)[:, None] <= taus).mean(axis=0)
        colour = dict(zip(named, (RED, BLUE, BLACK, BLACK), strict=False)).get(name, GREY)
        points = zip(np.linspace(left, wide - 110, len(taus)), bottom - 190 * shares, strict=True)
        parts.append(polyline(points, colour, 2.5 if name in named else 0.7, standing.rules[name].label))
        if name in named:
            at = 40 + 18 * list(named).index(name)
            parts.append(f'<g style="color:{colour}">{text(wide - 104, at, standing.rules[name].label)}</g>')
    return StandingPicture(framed("chart", wide, high, "Performance profiles of all learners", parts))


def step_sizes(standing: Standing) -> StandingPicture:
    """Return a small panel for each problem: the error against the step size, of the rule and of its rivals."""
    names = dict.fromkeys([standing.own or next(iter(standing.ranks)), *standing.rivals])
    across, panel, tall = 5, 150, 118
    parts = [text(0, 14, "Error over the initial error against α (2⁻¹² … 1), other parameters tuned", ' class="head"')]
    for number, problem in enumerate(standing.problems):
        x, y = panel * (number % across), 34 + tall * (number // across)
        parts.append(text(x, y, problem.name))
        for level in (0.0, 1.0):
            height = y + 86 - 70 * level
            parts.append(f'<line x1="{x}" x2="{x + 136}" y1="{height}" y2="{height}" class="grid"/>')
        for name, colour in zip(names, (RED, BLUE, BLACK, BLACK), strict=False):
            curve = np.minimum(standing.entries[name, problem.name].curve.astype(float), 1.1)
            there = np.flatnonzero(np.isfinite(curve))
            points = [(x + 136 * at / (len(OCTAVES) - 1), y + 86 - 70 * curve[at]) for at in there]
            parts.append(polyline(points, colour, 1.6, standing.rules[name].label))
    high = 34 + tall * -(-len(standing.problems) // across)
    return StandingPicture(
        framed("chart", across * panel, high, "Errors against step sizes, a panel for each problem", parts)
    )


PICTURES: dict[str, Callable[[Standing], StandingPicture]] = {
    one.__name__: one for one in (heat, ratios, profile, step_sizes)
}
