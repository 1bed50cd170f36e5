"""A page from a template: one HTML file that opens from disk, offline, with its figures and their numbers inside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from gradient_dd.errors import extra
from gradient_dd.learners import Setting
from gradient_dd.report.figure import MARKERS, STRONG, Figure
from gradient_dd.report.finding import figure_finding
from gradient_dd.report.inline_svg import inline_svg
from gradient_dd.report.interactive import as_json, figure_data, study_data
from gradient_dd.report.panels import LineData, Panel
from gradient_dd.report.study_figure import EXPLAINED, RING, column_file, header_file, scale, title_of
from gradient_dd.studies import Study
from gradient_dd.studies.provenance import provenance
from gradient_dd.studies.results import Results

with extra("report"):
    import jinja2

SYMBOLS = {"alpha": "α", "zeta": "ζ", "kappa": "κ"}
SHAPES = dict(zip(MARKERS, "●■▼▲◆♦✚✖◀▶", strict=True))  # the markers as letters, for legends


@dataclass(frozen=True)
class Shown:
    """A figure on a page: its numbers, its study, the name of its table, and the claims that rest on it."""

    figure: Figure
    panels: list[Panel]
    study: Study
    table: str = ""
    claims: tuple[str, ...] = ()


def render(
    room: str, template: str, results: Mapping[str, Results], studies: Sequence[Study] = (), **content: Any
) -> str:
    """Return the page of a template of a room, or of a folder of one such as experiments/paper.

    `results` are what its interactive figures read, `studies` what is described besides.
    """
    described = {one.name: str(one) for one in (*(one.study for one in results.values()), *studies)}
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(f"{room}/{template}").render(
        style=read("report/style.css"),
        script=read("report/twin.js"),
        data={name: as_json(study_data(one)) for name, one in results.items()},
        studies=described.items(),
        provenance=provenance(),
        **content,
    )


def read(path: str) -> str:
    """Return the text of a file of this package."""
    return files("gradient_dd").joinpath(*path.split("/")).read_text(encoding="utf-8")


def figure_facts(shown: Shown, folder: Path) -> dict[str, Any]:
    """Return what a page shows of a figure whose drawings are in a folder."""
    figure, panels = shown.figure, shown.panels
    columns = [column_file(folder, figure.name, place) for place, _ in enumerate(panels)]
    above = [path for place in range(len(panels)) if (path := header_file(folder, figure.name, place)).is_file()]
    return {
        "name": figure.name,
        "title": figure.title,
        "finding": figure_finding(figure, panels),
        "remark": f"{figure.remark[:1].upper()}{figure.remark[1:]}." if figure.remark else "",
        "scale": scale(shown.study),
        "explained": EXPLAINED,
        "ring": RING,
        "table": shown.table,
        "claims": shown.claims,
        "legend": [line_facts(place, line) for place, line in enumerate(panels[0].lines)],
        "svgs": [inline_svg(path, path.stem) for path in columns],
        "above": [inline_svg(path, path.stem) for path in above],
        "data": as_json(figure_data(figure)),
        "best": [best_row(panel, line) for panel in panels for line in panel.lines],
    }


def line_facts(place: int, line: LineData) -> dict[str, Any]:
    """Return a line's entry in the legend."""
    one = line.line
    return {
        "label": one.label,
        "colour": one.colour,
        "dashed": one.dashed,
        "strong": one.colour == STRONG,
        "marker": SHAPES[MARKERS[place % len(MARKERS)]],
    }


def setting_text(setting: Setting) -> str:
    """Return the parameters of a setting, with four digits."""
    return ", ".join(f"{SYMBOLS.get(name, name)} = {value:.4g}" for name, value in setting.values.items())


def best_row(panel: Panel, line: LineData) -> dict[str, str]:
    """Return the best setting of a line with its error, and where the line exploded."""
    gone = [f"α = {alpha:.3g}: {runs}" for alpha, runs in zip(line.alphas, line.exploded, strict=True) if runs]
    return {
        "task": f"{panel.task.name}, {title_of(panel.task)}",
        "line": line.line.label,
        "setting": setting_text(line.best),
        "error": f"{line.error:.4g}",
        "sem": f"{line.sem[line.place]:.2g}",
        "edge": line.edge,
        "exploded": ", ".join(gone) + (" runs" if gone else ""),
    }
