"""The page of a standing: where the rule stands, the table, the pictures, and what a paper needs."""

from pathlib import Path
from typing import Any

from gradient_dd.errors import file_path
from gradient_dd.files import check_regular
from gradient_dd.ranking.standing import Standing
from gradient_dd.report.page import render
from gradient_dd.report.ranking_pictures import PICTURES
from gradient_dd.report.svg import inline_svg

CAPTIONS = {
    "heat": "Each cell is the error of a learner on a problem over the error of the best learner there.",
    "ratios": "A dot is the ratio of the mean errors on the same test runs with its 95 % interval; below 1 is better.",
    "profile": "The higher a line, the more problems on which the learner is close to the best.",
    "step_sizes": "The flatter a line, the less the step size matters. Colours as in the profile.",
}


def write_report(standing: Standing, path: Any) -> Path:
    """Write the page, and beside it the tables and the pictures; return its path."""
    page: Path = file_path("The path of the page", path)
    check_regular(page)
    files = {name: page.with_name(f"{page.stem}-{name.replace('_', '-')}.svg") for name in PICTURES}
    for name, make in PICTURES.items():
        make(standing).save(files[name])
    content: dict[str, Any] = {
        "sentence": standing.sentence,
        "warnings": standing.warnings,
        "table": standing.table_html(),
        "pictures": [(name, inline_svg(files[name], name), CAPTIONS[name]) for name in PICTURES],
        "setup": standing.setup,
        "latex": standing.to_latex(),
        "title": standing.rules[standing.own].label if standing.own else "All learners",
    }
    page.write_text(render("ranking.html", **content), encoding="utf-8")
    standing.problem_frame().to_csv(page.with_suffix(".csv"), index=False)
    page.with_suffix(".tex").write_text(standing.to_latex() + "\n", encoding="utf-8")
    return page
