"""Drawing the figures of a reproduction: each is drawn again only if it would differ from the one that is there."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from os import cpu_count
from pathlib import Path
from typing import Any

import gradient_dd
from gradient_dd.fingerprint import digest, fingerprint
from gradient_dd.report.figure import Figure
from gradient_dd.report.panels import Panel
from gradient_dd.studies import Study

PACKAGE = Path(gradient_dd.__file__).parent
FEW = 4  # drawings up to which starting processes takes longer than drawing


def draw_all(
    figures: list[tuple[Figure, list[Panel], Study]], drawings: list[str], folder: Path, note: str = ""
) -> list[Path]:
    """Draw figures of studies, and drawings that need no study, on all cores; return the paths of the SVGs."""
    from gradient_dd.paper.drawings import draw_drawing, header_of
    from gradient_dd.report.study_figure import column_file, draw

    jobs: dict[str, tuple[partial[None], str]] = {}
    columns: dict[str, list[Path]] = {}
    for name in drawings:
        jobs[name] = partial(draw_drawing, name, folder), made_from(name)
    for figure, panels, study in figures:
        job = partial(draw, figure, panels, study, folder, note, header_of(figure.name))
        jobs[figure.name] = job, made_from(figure, str(study), note, [panel_numbers(panel) for panel in panels])
        columns[figure.name] = [column_file(folder, figure.name, place) for place, _ in enumerate(panels)]
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {
        name: job
        for name, (job, mark) in jobs.items()
        if not (is_drawn(folder / name, mark) and all(column.is_file() for column in columns.get(name, [])))
    }
    if len(wanted) < FEW:
        for job in wanted.values():
            job()
    else:
        with ProcessPoolExecutor(cpu_count() or 1, mp_context=get_context("spawn")) as pool:
            for done in [pool.submit(job) for job in wanted.values()]:
                done.result()
    for name in wanted:
        with (folder / f"{name}.svg").open("a", encoding="utf-8") as file:
            file.write(f"<!-- {jobs[name][1]} -->\n")
    return [folder / f"{name}.svg" for name in jobs]


def panel_numbers(panel: Panel) -> list[Any]:
    """Return all numbers that are drawn of a panel."""
    arrays = ("alphas", "mean", "sem", "exploded", "curve", "curve_sem")
    return [str(panel.task), [[str(line.best), *(getattr(line, a).tolist() for a in arrays)] for line in panel.lines]]


def made_from(*parts: Any) -> str:
    """Return a mark of all that a figure depends on: the code of this package, and the numbers."""
    code = "".join(digest(file.read_text(encoding="utf-8")) for file in sorted(PACKAGE.rglob("*.py")))
    return f"made from {fingerprint(code, *parts)}"


def is_drawn(path: Path, mark: str) -> bool:
    """Return whether a figure is there and carries this mark."""
    svg, png = (path.with_name(f"{path.name}.{ending}") for ending in ("svg", "png"))
    return svg.is_file() and png.is_file() and svg.read_text(encoding="utf-8").endswith(f"<!-- {mark} -->\n")
