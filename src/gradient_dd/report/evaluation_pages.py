"""The pages of an evaluation and of a comparison: the decision, values with their intervals, and the reasons."""

from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.errors import file_path
from gradient_dd.evaluation import Evaluation, PolicyComparison
from gradient_dd.evaluation.comparison import PolicyQuestion, asked_words
from gradient_dd.files import check_regular
from gradient_dd.report.forest import Forest, ForestRow, Mark, axis_of
from gradient_dd.report.page import render

FEW = 20  # largest number of initial states in a picture
LOOKS = {"trust": "y", "with care": "m", "not": "n", "fine": "y"}  # classes of verdicts and of findings
WORDS = {"trust": "Trust", "with care": "Use with care", "not": "Do not trust"}


def write_page(found: Evaluation | PolicyComparison, path: Any) -> Path:
    """Write the page of an evaluation or a comparison, and return its path."""
    page = file_path("The path of the page", path)
    check_regular(page)
    text = evaluation_page(found) if isinstance(found, Evaluation) else comparison_page(found)
    page.write_text(text, encoding="utf-8")
    return page


def evaluation_page(found: Evaluation) -> str:
    """Return the page of an evaluation: one HTML file that opens from disk, offline."""
    word, column = found.verdict.word, value_head(found.confidence)
    rows = [row("value", (found.start_value, *found.start_interval), LOOKS[word], strong=True)]
    rows += [row(name, one) for name, one in found.parts.items()]
    limit = found.start_value if found.logging is None else found.logging.estimate
    estimates = forest("Estimates of the value with their intervals", "Estimate", rows, limit, [column])
    return render(
        "evaluation.html",
        found=found,
        log=Path(found.log).name,
        confidence=f"{100 * found.confidence:g} %",
        word=WORDS[word],
        look=LOOKS[word],
        looks=LOOKS,
        estimates=estimates,
        states=initial_states(found),
    )


def row(label: str, numbers: Any, look: str = "u", **more: Any) -> ForestRow:
    """Return the row of a value with its interval, (value, low, high); the mark is hollow if the value needs care."""
    value, low, high = map(float, numbers)
    mark = Mark(value, low, high, look, 0 if look in "yu" else 4)  # shapes from 4 on are hollow
    return ForestRow("", label, [[mark]], with_interval(value, low, high), look, **more)


def with_interval(value: float, low: float, high: float) -> str:
    """Return a value with its interval."""
    return f"{value:.4g} [{low:.4g}, {high:.4g}]"


def forest(title: str, unit: str, rows: list[ForestRow], limit: float, columns: list[str]) -> str:
    """Return a forest plot of values, with a line at a limit."""
    axis = axis_of(rows, limit)
    return Forest(title, ["value"], rows, axis, limit, "", unit, columns=columns).html()


def value_head(confidence: float, what: str = "value") -> str:
    """Return the heading of a column of values with intervals."""
    return f"{what} [{100 * confidence:g} % interval]"


def initial_states(found: Evaluation) -> str:
    """Return a plot of the values of initial states, smallest first; empty if all values are equal."""
    values, (low, high) = found.values, found.interval
    order = np.argsort(values)
    chosen = np.unique(np.linspace(0, len(order) - 1, min(FEW, len(order))).round().astype(int))
    if np.isnan(values).any() or len({f"{value:.4g}" for value in values}) < 2:
        return ""
    share = [100 * place / (len(order) - 1) for place in chosen]
    rows = [row(f"{s:.0f} %", (values[k], low[k], high[k])) for s, k in zip(share, order[chosen], strict=True)]
    title = "Percentiles of the values of initial states"
    return forest(title, "Percentile", rows, found.start_value, [value_head(found.confidence)])


def comparison_page(found: PolicyComparison) -> str:
    """Return the page of a comparison: one HTML file that opens from disk, offline."""
    decisions = {one.followed.name: one.followed is one.baseline for one in found.questions}
    title = "Which policy to deploy"
    if len(decisions) == 1:
        ((name, stay),) = decisions.items()
        title = f"Stay with {name}" if stay else f"Deploy {name}"
    return render(
        "comparison.html",
        found=found,
        title=title,
        log=Path(found.log).name,
        confidence=f"{100 * found.confidence:g} %",
        questions=[(asked_words(one), one, policies(one, found.confidence)) for one in found.questions],
    )


def policies(question: PolicyQuestion, confidence: float) -> str:
    """Return a plot of the policies with values and gains, the largest value first, with a line at the baseline."""
    base, rows = question.baseline, []
    for one in sorted(question.records(), key=lambda record: -record["value"]):
        gain = with_interval(one["difference"], one["difference_low"], one["difference_high"])
        is_base = one["name"] == base.name
        more = {"cells": ("–" if is_base else gain, one["verdict"]), "note": " ".join(one["why"]), "strong": is_base}
        rows.append(row(one["name"], (one["value"], one["low"], one["high"]), LOOKS[one["verdict"]], **more))
    columns = [value_head(confidence), value_head(confidence, f"gain over {base.name}"), "verdict"]
    return forest("Values of policies with their intervals", "Policy", rows, base.found.value, columns)
