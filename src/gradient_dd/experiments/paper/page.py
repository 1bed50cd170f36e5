"""The paper's report: the answer, the ledger, the figures, and how to check them, in one page that opens offline."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradient_dd.experiments.paper.answer import forests, headline, hero, small_picture
from gradient_dd.experiments.paper.claims import Verdict, counts
from gradient_dd.experiments.paper.exact_statements import Statement
from gradient_dd.experiments.paper.figures import DRAWINGS, FIGURES
from gradient_dd.experiments.paper.matrix import Matrix, is_of_readings, matrix_of
from gradient_dd.experiments.paper.readings import ERRATA, READINGS
from gradient_dd.report.inline_svg import inline_svg
from gradient_dd.report.page import Shown, figure_facts, render
from gradient_dd.report.panels import Panel
from gradient_dd.studies import Study
from gradient_dd.studies.results import Results

SAMPLED_TEST = "test_a_claim_does_not_hold_where_it_is_false[{claim}]"
TESTS = {  # by the kind of a claim's comparisons; all others have the one above
    "time": "test_the_cost_is_read_from_the_units_of_the_study",
    "exact": "test_statements_of_theory_are_computed[{claim}]",
}
CLASSES = {"holds": "holds", "holds in part": "part", "not decided": "part", "not judged": "part"}


@dataclass(frozen=True)
class PageContent:
    """What the page shows.

    Panels by figure, names of drawings, results by study, all studies that claims are judged on, and a warning about
    the scale.
    """

    verdicts: list[Verdict]
    statements: list[Statement]
    panels: dict[str, list[Panel]]
    drawings: list[str]
    results: dict[str, Results]
    studies: list[Study]
    note: str


def write_page(content: PageContent, folder: Path) -> Path:
    """Write folder/report.html and return its path."""
    verdicts = content.verdicts
    page = render(
        "experiments.paper",
        "page.html",
        content.results,
        content.studies,
        headline=headline(verdicts),
        hero=hero(verdicts),
        forests=forests(verdicts),
        counted=counts(verdicts),
        runs=run_counts(content),
        rows_of_paper=[ledger_row(one, content, folder) for one in verdicts if one.source == "paper"],
        rows_of_ours=[ledger_row(one, content, folder) for one in verdicts if one.source != "paper"],
        matrix=baird_matrix(verdicts),
        statements=content.statements,
        figures=[figure_facts(shown(content, name), folder / "figures") for name in content.panels],
        drawings=[(DRAWINGS[name], inline_svg(folder / "figures" / f"{name}.svg", name)) for name in content.drawings],
        readings=READINGS,
        errata=ERRATA,
        note=content.note,
    )
    target = folder / "report.html"
    target.write_text(page, encoding="utf-8")
    return target


def shown(content: PageContent, name: str) -> Shown:
    """Return a figure with its numbers. Figures of one study share one table, that of the first of them."""
    figure = FIGURES[name]
    table = next(one for one in content.panels if FIGURES[one].study == figure.study)
    claims = tuple(verdict.claim for verdict in content.verdicts if figure.study in verdict.studies)
    return Shown(figure, content.panels[name], content.results[figure.study].study, table, claims)


def run_counts(content: PageContent) -> dict[str, str]:
    """Return on how many runs settings were selected and judged, in words."""
    selection = sorted({results.study.runs for results in content.results.values()})
    comparisons = [one for verdict in content.verdicts for j in verdict.judgements for one in j.comparisons]
    fresh = sorted({one.runs for one in comparisons if one.kind in ("ratio", "growth", "share")})
    return {"selection": " or ".join(map(str, selection)), "fresh": ", ".join(map(str, fresh))}


def ledger_row(verdict: Verdict, content: PageContent, folder: Path) -> dict[str, Any]:
    """Return a row of the ledger: a verdict, its picture, what it links to, and all of its comparisons."""
    figures = [name for name in content.panels if FIGURES[name].study in verdict.studies]
    comparisons = [one for judgement in verdict.judgements for one in judgement.comparisons]
    used = dict.fromkeys(name for one in comparisons for name in one.study.split(", ") if name)
    names = [f"{kind}-{study}" for study in used for kind in ("fresh", "runs")]
    return {
        "verdict": verdict,
        "class": CLASSES.get(verdict.verdict, "fails"),
        "picture": small_picture(verdict),
        "figures": figures,
        "tables": [name for name in names if (folder / "tables" / f"{name}.csv").is_file()],
        "studies": list(used),
        "test": held_by(verdict),
        "comparisons": comparisons,
    }


def held_by(verdict: Verdict) -> str:
    """Return the test that shows that a claim's criterion tells true from false."""
    kinds = {one.kind for judgement in verdict.judgements for one in judgement.comparisons}
    test = next((test for kind, test in TESTS.items() if kind in kinds), SAMPLED_TEST)
    return f"tests/experiments/test_claims.py::{test.format(claim=verdict.claim)}"


def baird_matrix(verdicts: list[Verdict]) -> Matrix | None:
    """Return Baird's statements by reading, if they were judged."""
    several = [one for one in verdicts if is_of_readings(one)]
    return matrix_of(several) if several else None
