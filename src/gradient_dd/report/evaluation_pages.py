"""The pages of an evaluation and of a comparison: values with their intervals, the verdict and why."""

from pathlib import Path
from typing import Any

import numpy as np

from gradient_dd.errors import file_path
from gradient_dd.evaluation import Evaluation, PolicyComparison
from gradient_dd.evaluation.comparison import PolicyQuestion, asked_words
from gradient_dd.files import check_regular
from gradient_dd.report.page import render
from gradient_dd.report.svg import Dot, ForestSize, forest, value_axis

FEW = 20  # first states in a picture
MOST = 60  # policies in a picture
LONGEST = 26  # letters of the name of a policy
STATES, POLICIES = ForestSize(wide=640, left=60), ForestSize(wide=760, left=190)
ANSWERS = {
    "trust": "Nothing was found that speaks against trusting this number.",
    "with care": "Take this number with care.",
    "not": "Do not trust this number.",
}


def write_page(found: Evaluation | PolicyComparison, path: Any) -> Path:
    """Write the page of an evaluation or a comparison, and return its path."""
    page = file_path("The path of the page", path)
    check_regular(page)
    text = evaluation_page(found) if isinstance(found, Evaluation) else comparison_page(found)
    page.write_text(text, encoding="utf-8")
    return page


def evaluation_page(found: Evaluation) -> str:
    """Return one HTML page that opens from disk, offline."""
    low, high = found.start_interval
    return render(
        "report",
        "evaluation.html",
        {},
        log=Path(found.log).name,
        value=found.start_value,
        low=low,
        high=high,
        confidence=found.confidence,
        answer=ANSWERS[found.verdict.word],
        decision=decision_of(found),
        findings=found.verdict.findings,
        picture=first_states(found),
        chosen=found.chosen,
        estimates=estimates_of(found),
        stated=found.stated,
        rows=found.rows,
    )


def decision_of(found: Evaluation) -> str:
    """Return how the target compares with the logging policy; empty where that is not known."""
    gain, today = found.difference, found.logging
    if gain is None or today is None:
        return ""
    word = "surely better" if gain.low > 0 else "surely worse" if gain.high < 0 else "not surely better or worse"
    return (
        f"The logging policy is worth {today.estimate:.4g}, from {today.low:.4g} to {today.high:.4g}. "
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


def first_states(found: Evaluation) -> str:
    """Return the values of first states with their intervals, smallest first, as a forest plot."""
    values, (low, high) = found.values, found.interval
    order = np.argsort(values)[:: max(1, len(values) // FEW)][:FEW]
    dots = [Dot(f"{values[k]:.3g}", float(values[k]), float(low[k]), float(high[k])) for k in order]
    return forest(dots, value_axis(dots), None, words="Values of first states with their intervals", size=STATES)


def comparison_page(found: PolicyComparison) -> str:
    """Return one HTML page that opens from disk, offline."""
    return render(
        "report",
        "comparison.html",
        {},
        log=Path(found.log).name,
        sentence=found.sentence,
        confidence=found.confidence,
        rows=found.rows,
        questions=[
            {
                "words": asked_words(one),
                "picture": policies(one),
                "records": sorted(one.records(), key=lambda record: -record["value"]),
                "baseline": one.baseline.found.name,
            }
            for one in found.questions
        ],
        stated=found.stated,
    )


def policies(question: PolicyQuestion) -> str:
    """Return the policies with their intervals as a forest plot, largest value first, with a line at the baseline."""
    base = question.baseline
    others = sorted(question.judged[1:], key=lambda one: -one.found.value)[: MOST - 1]
    dots = []
    for one in sorted([base, *others], key=lambda one: -one.found.value):
        found, word = one.found, one.verdict.word
        name = found.name if len(found.name) <= LONGEST else found.name[: LONGEST - 1] + "…"
        note = f"{word} ({found.name})" if name != found.name else word
        dot = Dot(name, found.value, found.low, found.high, hollow=word != "trust", note=note)
        dots.append(dot._replace(dashed=word == "not", strong=one is base))
    words = "Values of policies with their intervals"
    return forest(dots, value_axis(dots), base.found.value, words=words, size=POLICIES)
