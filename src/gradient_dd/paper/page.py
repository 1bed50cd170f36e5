"""The paper's report: verdicts, figures, tables and provenance in one page that opens from disk, offline."""

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import gradient_dd
from gradient_dd.errors import extra
from gradient_dd.paper.claims import Verdict, counts
from gradient_dd.paper.exact_statements import Statement
from gradient_dd.paper.figures import DRAWINGS, FIGURES
from gradient_dd.paper.readings import ERRATA, READINGS
from gradient_dd.report.inline_svg import inline_svg
from gradient_dd.report.interactive import as_json, figure_data, plotly_library, study_data
from gradient_dd.report.panels import Panel
from gradient_dd.studies.provenance import provenance
from gradient_dd.studies.results import Results

with extra("report"):
    import jinja2


@dataclass(frozen=True)
class PageContent:
    """What the page shows: panels by figure, names of drawings, results by study, and a warning about the scale."""

    verdicts: list[Verdict]
    statements: list[Statement]
    panels: dict[str, list[Panel]]
    drawings: list[str]
    results: dict[str, Results]
    note: str


def write_page(content: PageContent, folder: Path) -> Path:
    """Write folder/report.html and return its path."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(files("gradient_dd.paper").joinpath("page.html").read_text(encoding="utf-8"))
    page = template.render(
        verdicts=content.verdicts,
        counted=counts(content.verdicts),
        statements=content.statements,
        figures=[figure_facts(content, name, folder) for name in content.panels],
        drawings=[(DRAWINGS[name], inline_svg(folder / "figures" / f"{name}.svg", name)) for name in content.drawings],
        data={name: as_json(study_data(results)) for name, results in content.results.items()},
        studies=[str(results.study) for results in content.results.values()],
        readings=READINGS,
        errata=ERRATA,
        docs=path_to_docs(folder),
        provenance=provenance(),
        note=content.note,
        library=plotly_library(),
    )
    target = folder / "report.html"
    target.write_text(page, encoding="utf-8")
    return target


def path_to_docs(folder: Path) -> str:
    """Return the relative path from a folder to the project's docs; empty where they are not beside the code."""
    docs = Path(gradient_dd.__file__).parents[2] / "docs"
    return os.path.relpath(docs, folder).replace(os.sep, "/") if (docs / "errata.md").is_file() else ""


def figure_facts(content: PageContent, name: str, folder: Path) -> dict[str, Any]:
    """Return what the page shows of a figure."""
    figure, panels = FIGURES[name], content.panels[name]
    claims = [verdict.claim for verdict in content.verdicts if figure.study in verdict.studies]
    return {
        "name": name,
        "title": figure.title,
        "remark": figure.remark,
        "study": figure.study,
        "svg": inline_svg(folder / "figures" / f"{name}.svg", name),
        "data": as_json(figure_data(figure)),
        "claims": claims,
        "best": [
            (panel.task, line.line.label, str(line.best), f"{line.mean.min():.4g}")
            for panel in panels
            for line in panel.lines
        ],
    }
