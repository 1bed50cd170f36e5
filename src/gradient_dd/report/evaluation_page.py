"""The page of an evaluation: the value and its interval, the verdict and why, and both estimates."""

from html import escape
from pathlib import Path

import numpy as np

from gradient_dd.evaluation import Evaluation
from gradient_dd.report.page import render

SHOWN = 20  # points in the picture
WIDTH, ROW, LEFT = 640, 18, 60  # of the picture, in pixels
ANSWERS = {
    "trust": "Nothing was found that speaks against trusting this number.",
    "with care": "Take this number with care.",
    "not": "Do not trust this number.",
}


def evaluation_page(found: Evaluation, log: str) -> str:
    """Return one HTML page that opens from disk, offline."""
    low, high = found.start_interval
    return render(
        "report",
        "evaluation.html",
        {},
        log=Path(log).name,
        value=found.start_value,
        low=low,
        high=high,
        confidence=found.confidence,
        answer=ANSWERS[found.verdict.word],
        decision=decision_of(found),
        findings=found.verdict.findings,
        picture=picture(found),
        chosen=found.chosen,
        estimates=estimates_of(found),
        stated=found.stated,
        rows=found.rows,
    )


def decision_of(found: Evaluation) -> str:
    """Return how the target compares with the policy that made the log; empty where that is not known."""
    gain, today = found.difference, found.logging
    if gain is None or today is None:
        return ""
    word = "surely better" if gain.low > 0 else "surely worse" if gain.high < 0 else "not surely better or worse"
    return (
        f"The policy that made the log is worth {today.estimate:.4g}, from {today.low:.4g} to {today.high:.4g}. "
        f"The new policy is {word}: {gain.estimate:+.4g}, from {gain.low:.4g} to {gain.high:.4g}."
    )


def estimates_of(found: Evaluation) -> list[dict[str, object]]:
    """Return what the value was made of, and what stands beside it: both estimates, the logging policy, the gain."""
    by_name = {"LSTD-Q": found.exact, "doubly robust": found.robust, "logging policy": found.logging}
    by_name["difference"] = found.difference
    return [
        {"name": name, "value": one.estimate, "low": one.low, "high": one.high}
        for name, one in by_name.items()
        if one is not None
    ]


def picture(found: Evaluation) -> str:
    """Return the values of first states with their intervals, smallest first, as SVG."""
    values, (low, high) = found.values, found.interval
    order = np.argsort(values)[:: max(1, len(values) // SHOWN)][:SHOWN]
    left, right = float(low[order].min()), float(high[order].max())
    width = right - left or 1.0

    def place(value: float) -> float:
        return LEFT + (WIDTH - LEFT - 20) * (value - left) / width

    tall = ROW * len(order) + 30
    parts = []
    for line, k in enumerate(order):
        y = ROW * line + 12
        title = escape(f"{values[k]:.4g}, from {low[k]:.4g} to {high[k]:.4g}")
        parts.append(
            f'<g><title>{title}</title><text x="0" y="{y + 4}">{values[k]:.3g}</text>'
            f'<line x1="{place(low[k]):.1f}" x2="{place(high[k]):.1f}" y1="{y}" y2="{y}" stroke="currentColor"/>'
            f'<circle cx="{place(values[k]):.1f}" cy="{y}" r="4" fill="currentColor"/></g>'
        )
    for value in (left, (left + right) / 2, right):
        parts.append(f'<text x="{place(value):.1f}" y="{tall - 4}" text-anchor="middle">{value:.3g}</text>')
    label = "Values of first states with their intervals"
    return f'<svg viewBox="0 0 {WIDTH} {tall}" role="img" aria-label="{label}" font-size="11">{"".join(parts)}</svg>'
