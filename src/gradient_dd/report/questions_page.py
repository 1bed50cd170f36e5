"""The page of questions: predicted and realised returns of some, and how good each answer is."""

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.report.page import render
from gradient_dd.report.small_svg import framed

WIDE, HIGH, LEFT, TOP, BOTTOM = 720, 190, 60, 26, 24  # of a picture, in pixels
HEAD = {"name": "Question", "rupee": "RUPEE", "effective_rows": "Effective rows", "explained": "Explained"}


class Curve(NamedTuple):
    """Predictions and the returns that followed, (steps,) each; `label` says which question it is."""

    label: str
    predicted: Array
    realised: Array


def questions_page(
    title: str, sentences: Sequence[str], curves: Sequence[Curve], summary: Sequence[dict[str, Any]]
) -> str:
    """Return one HTML page that opens from disk, offline; `summary` is that of `Questions`."""
    rows = [[shown(record[name]) for name in HEAD] for record in summary]
    pictures = [picture(one) for one in curves]
    content: dict[str, Any] = {
        "title": title,
        "sentences": sentences,
        "pictures": pictures,
        "head": HEAD.values(),
        "rows": rows,
    }
    return render("report", "questions.html", {}, **content)


def shown(value: Any) -> str:
    """Return a cell of the table."""
    return value if isinstance(value, str) else "–" if value is None else f"{value:,.4g}"


def picture(curve: Curve) -> str:
    """Return predictions over realised returns as SVG."""
    both = np.concatenate([curve.predicted, curve.realised])
    low, high = float(both.min()), float(both.max())
    span = high - low or 1.0

    def y_of(value: float) -> float:
        return TOP + (HIGH - TOP - BOTTOM) * (high - value) / span

    def line(values: Array, width: float) -> str:
        across = np.linspace(LEFT, WIDE - 10, len(values))
        points = " ".join(f"{x:.1f},{y_of(v):.1f}" for x, v in zip(across, values, strict=True))
        return f'<polyline points="{points}" class="curve" stroke-width="{width}"/>'

    parts = [f'<text x="0" y="14" class="head">{escape(curve.label)}</text>']
    for value in (low, (low + high) / 2, high):
        parts.append(f'<line x1="{LEFT}" x2="{WIDE - 10}" y1="{y_of(value):.1f}" y2="{y_of(value):.1f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y_of(value) + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    parts += [f"<g><title>realised</title>{line(curve.realised, 1)}</g>"]
    parts += [f"<g><title>predicted</title>{line(curve.predicted, 2.6)}</g>"]
    parts.append(f'<text x="{LEFT}" y="{HIGH - 6}">step 1 to {len(curve.predicted):,}</text>')
    return framed("chart", WIDE, HIGH, escape(f"{curve.label}: predicted and realised returns", quote=True), parts)
