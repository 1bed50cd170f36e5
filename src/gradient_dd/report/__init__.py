"""The report: verdicts, figures, tables and provenance in one page that opens from disk, offline."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from gradient_dd.provenance import provenance
from gradient_dd.report.interactive import interactive, plotly_library
from gradient_dd.reproduce import Reproduction
from gradient_dd.statements import Statement
from gradient_dd.studies.figures import FIGURES

COUNTED = ("holds", "holds in part", "does not hold")


def write_report(made: Reproduction, statements: list[Statement], folder: Path) -> Path:
    """Write folder/report.html and return its path."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("gradient_dd.report").joinpath("page.html").read_text(encoding="utf-8"))
    page = template.render(
        verdicts=made.verdicts,
        counted={word: sum(verdict.verdict == word for verdict in made.verdicts) for word in COUNTED},
        statements=statements,
        figures=[figure_facts(made, name, folder) for name in made.panels],
        studies=[str(one.results.study) for one in made.evidence.values()],
        provenance=provenance(),
        note=made.note,
        library=plotly_library(),
    )
    target = folder / "report.html"
    target.write_text(page, encoding="utf-8")
    return target


def figure_facts(made: Reproduction, name: str, folder: Path) -> dict[str, Any]:
    """Return what the page shows of a figure."""
    figure = FIGURES[name]
    svg = (folder / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    claims = [verdict for verdict in made.verdicts if figure.study in verdict.study.split(", ")]
    return {
        "name": name,
        "title": figure.title,
        "study": figure.study,
        "svg": svg[svg.index("<svg") :],
        "data": interactive(made.panels[name], made.evidence[figure.study].results.study),
        "claims": len(claims),
        "best": [
            (panel.task, line.line.label, str(line.best), f"{line.mean.min():.4g}")
            for panel in made.panels[name]
            for line in panel.lines
        ],
    }
