"""The report: verdicts, figures, tables and provenance in one page that opens from disk, offline."""

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

import gradient_dd
from gradient_dd.provenance import provenance
from gradient_dd.report.interactive import as_json, figure_data, plotly_library, study_data
from gradient_dd.report.readings import ERRATA, READINGS
from gradient_dd.reproduce import Reproduction
from gradient_dd.statements import Statement
from gradient_dd.studies.figures import DRAWINGS, FIGURES

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
        drawings=[(DRAWINGS[name], drawing(folder, name)) for name in made.drawings],
        data={name: as_json(study_data(evidence)) for name, evidence in made.evidence.items()},
        studies=[str(one.results.study) for one in made.evidence.values()],
        readings=READINGS,
        errata=ERRATA,
        docs=docs_from(folder),
        provenance=provenance(),
        note=made.note,
        library=plotly_library(),
    )
    target = folder / "report.html"
    target.write_text(page, encoding="utf-8")
    return target


def docs_from(folder: Path) -> str:
    """Return the way from a folder to the project's docs; empty where they are not installed beside the code."""
    docs = Path(gradient_dd.__file__).parents[2] / "docs"
    return os.path.relpath(docs, folder).replace(os.sep, "/") if (docs / "errata.md").is_file() else ""


def drawing(folder: Path, name: str) -> str:
    """Return a figure as SVG, as it stands in a page; names inside get the figure's own, so that they do not clash."""
    svg = (folder / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    svg = svg[svg.index("<svg") :]
    return svg.replace('id="', f'id="{name}-').replace("url(#", f"url(#{name}-").replace('href="#', f'href="#{name}-')


def figure_facts(made: Reproduction, name: str, folder: Path) -> dict[str, Any]:
    """Return what the page shows of a figure."""
    figure, panels = FIGURES[name], made.panels[name]
    claims = [verdict.claim for verdict in made.verdicts if figure.study in verdict.study.split(", ")]
    return {
        "name": name,
        "title": figure.title,
        "remark": figure.remark,
        "study": figure.study,
        "svg": drawing(folder, name),
        "data": as_json(figure_data(figure)),
        "claims": claims,
        "best": [
            (panel.task, line.line.label, str(line.best), f"{line.mean.min():.4g}")
            for panel in panels
            for line in panel.lines
        ],
    }
