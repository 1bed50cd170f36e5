"""The page of a comparison: what to do, a forest of policies for each question, and the table."""

from html import escape
from pathlib import Path

from gradient_dd.evaluation import PolicyComparison
from gradient_dd.evaluation.comparison import PolicyQuestion, asked_words
from gradient_dd.report.page import render

SHOWN = 60  # policies in a picture
WIDTH, ROW, LEFT, RIGHT = 760, 20, 190, 20  # of the picture, in pixels
LONGEST = 26  # letters of a name
DOTS = {"trust": "currentColor", "with care": "none", "not": "none"}


def comparison_page(found: PolicyComparison, log: str) -> str:
    """Return one HTML page that opens from disk, offline."""
    return render(
        "report",
        "comparison.html",
        {},
        log=Path(log).name,
        sentence=found.sentence,
        confidence=found.confidence,
        rows=found.rows,
        questions=[
            {
                "words": asked_words(one),
                "picture": forest(one),
                "records": sorted(one.records(), key=lambda record: -record["value"]),
                "baseline": one.baseline.found.name,
            }
            for one in found.questions
        ],
        stated=found.stated,
    )


def forest(question: PolicyQuestion) -> str:
    """Return the policies with their intervals as SVG, the largest value first, the baseline marked by a line."""
    base = question.baseline
    others = sorted(question.judged[1:], key=lambda one: -one.found.value)[: SHOWN - 1]
    shown = sorted([base, *others], key=lambda one: -one.found.value)
    left, right = min(one.found.low for one in shown), max(one.found.high for one in shown)
    width = right - left or 1.0

    def place(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - left) / width

    tall = ROW * len(shown) + 30
    at = place(base.found.value)
    dashes = f'<line x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{tall - 18}" stroke="currentColor" stroke-dasharray="3 4"/>'
    parts = [dashes]
    for line, one in enumerate(shown):
        found, y = one.found, ROW * line + 12
        name = found.name if len(found.name) <= LONGEST else found.name[: LONGEST - 1] + "…"
        weight = ' font-weight="bold"' if one is base else ""
        title = escape(f"{found.name}: {found.value:.4g}, from {found.low:.4g} to {found.high:.4g}; {one.verdict.word}")
        dash = ' stroke-dasharray="2 3"' if one.verdict.word == "not" else ""
        parts.append(
            f'<g><title>{title}</title><text x="0" y="{y + 4}"{weight}>{escape(name)}</text>'
            f'<line x1="{place(found.low):.1f}" x2="{place(found.high):.1f}" y1="{y}" y2="{y}" '
            f'stroke="currentColor"{dash}/>'
            f'<circle cx="{place(found.value):.1f}" cy="{y}" r="4" fill="{DOTS[one.verdict.word]}" '
            f'stroke="currentColor"/></g>'
        )
    for value in (left, (left + right) / 2, right):
        parts.append(f'<text x="{place(value):.1f}" y="{tall - 4}" text-anchor="middle">{value:.3g}</text>')
    label = "Values of policies with their intervals"
    return f'<svg viewBox="0 0 {WIDTH} {tall}" role="img" aria-label="{label}" font-size="12">{"".join(parts)}</svg>'
