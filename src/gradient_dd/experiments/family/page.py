"""The chapter as a page: the answer, what the DD term does, who leads where, the ledger, λ, step sizes and costs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradient_dd.experiments.family.contest import Contest
from gradient_dd.experiments.family.problems import Scale
from gradient_dd.experiments.family.standings import Standing
from gradient_dd.experiments.paper.claims import Comparison, Verdict
from gradient_dd.experiments.paper.claims.findings import fractions
from gradient_dd.learners import LEARNERS
from gradient_dd.report.figure import BLACK, BLUE, RED
from gradient_dd.report.inline_svg import inline_svg
from gradient_dd.report.page import render, setting_text
from gradient_dd.report.small_svg import Dot, dots_in_a_row

CLASSES = {"holds": "holds", "does not hold": "fails"}
COLOURS = {"holds": RED, "fails": BLUE, "open": BLACK}
MOST_DOTS = 12  # of a small picture
MOST_LISTED = 8  # comparisons of a finding; of more, only the fractions are shown


@dataclass(frozen=True)
class PageContent:
    """What the page shows; `figures` are the names of the pictures that were drawn."""

    contest: Contest
    scale: Scale
    conclusions: list[str]
    effects: list[str]
    verdicts: list[Verdict]
    standings: list[Standing]
    figures: list[str]


def write_page(content: PageContent, folder: Path) -> Path:
    """Write folder/report.html and return its path."""
    contest, scale = content.contest, content.scale
    pictures = {name: inline_svg(folder / "figures" / f"{name}.svg", name) for name in content.figures}
    page = render(
        "experiments.family",
        "page.html",
        {},
        note=scale.note,
        conclusions=content.conclusions,
        effects=content.effects,
        pictures=pictures,
        alphas=[name for name in content.figures if name.startswith("alpha-")],
        ledger=[ledger_row(one) for one in content.verdicts],
        problems=[problem_row(contest, one, scale) for one in contest.problems],
        budgets=budgets(contest),
        standings=[standing_row(one) for one in content.standings],
    )
    target = folder / "report.html"
    target.write_text(page, encoding="utf-8")
    return target


def ledger_row(verdict: Verdict) -> dict[str, Any]:
    """Return a row of the ledger: a verdict, its picture and its comparisons."""
    comparisons = [one for judgement in verdict.judgements for one in judgement.comparisons]
    return {
        "verdict": verdict,
        "class": CLASSES.get(verdict.verdict, "part"),
        "picture": dots_in_a_row([dot(one) for one in comparisons[:MOST_DOTS]], comparisons[0].bound),
        "comparisons": comparisons,
        "finding": verdict.finding if len(comparisons) <= MOST_LISTED else fractions(verdict.judgements, goals=False),
    }


def dot(one: Comparison) -> Dot:
    """Return a comparison as a mark of a small picture."""
    return Dot(one.text.removesuffix(":"), one.estimate, one.low, one.high, COLOURS[one.outcome])


def problem_row(contest: Contest, problem: Any, scale: Scale) -> dict[str, Any]:
    """Return what the page tells of a problem."""
    steps, every = problem.length(scale.steps)
    return {
        "name": problem.name,
        "title": problem.title,
        "steps": f"{steps:,}",
        "every": every,
        "tuning": len(scale.tuning(problem)),
        "shown": len(scale.shown(problem)),
        "first": contest.first[problem.name],
        "best": LEARNERS[contest.favourite(problem.name)].label,
        "drawn": "drawn anew in every run" if problem.drawn else "",
    }


def budgets(contest: Contest) -> list[tuple[str, int]]:
    """Return how many settings each learner has, on the first problem; it is the same number on all."""
    settings = contest.tuning[contest.problems[0].name].settings
    return [(LEARNERS[name].label, sum(one.rule.name == name for one in settings)) for name in contest.learners]


def standing_row(one: Standing) -> dict[str, Any]:
    """Return a standing as the page shows it."""
    return one._asdict() | {"label": LEARNERS[one.learner].label, "setting": setting_text(one.setting)}
