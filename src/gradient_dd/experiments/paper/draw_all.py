"""Drawing the figures of a reproduction: each is drawn again only if it would differ from the one that is there."""

import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import gradient_dd
from gradient_dd.fingerprint import digest, fingerprint
from gradient_dd.report.figure import Figure
from gradient_dd.report.panels import Panel
from gradient_dd.studies import Study

PACKAGE = Path(gradient_dd.__file__).parent
FEW = 4  # figures of studies up to which starting processes takes longer than drawing
# Drawings of theory solve many small systems. With a thread for each core every one of them waits for the others.
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


Shown = tuple[Figure, list[Panel], Study]


def draw_all(figures: list[Shown], drawings: list[str], folder: Path, note: str = "") -> list[Path]:
    """Draw figures of studies, and drawings that need no study, on all cores; return the paths of the SVGs."""
    with drawn_meanwhile(figures, drawings, folder, note) as paths:
        return paths


@contextmanager
def drawn_meanwhile(
    figures: list[Shown], drawings: list[str], folder: Path, note: str = "", gently: bool = False
) -> Iterator[list[Path]]:
    """Draw as `draw_all` does while the body runs; yield the paths of the SVGs, which are all there at its end.

    `gently` takes only time that the body leaves.
    """
    jobs = jobs_of(figures, drawings, folder, note)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {name: job for name, (job, mark, columns) in jobs.items() if not is_drawn(folder / name, mark, columns)}
    paths = [folder / f"{name}.svg" for name in jobs]
    if len(wanted) < FEW and not wanted.keys() & set(drawings):
        for job in wanted.values():
            job()
        sign(wanted, jobs, folder)
        yield paths
        return
    others = active_children()
    spawned = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count() or 1, spawned, initializer=step_back, initargs=(gently,)) as pool:
        try:
            with one_thread_each():
                going = [pool.submit(job) for job in wanted.values()]
            yield paths
            for done in going:
                done.result()
        except BaseException:  # Ctrl-C too: nobody waits for drawings that are not wanted any more
            for child in active_children():
                if child not in others:
                    child.terminate()
            raise
    sign(wanted, jobs, folder)


def step_back(gently: bool) -> None:
    """Leave Ctrl-C to the process that started this one and, if `gently`, time to those who need it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if gently and hasattr(os, "nice"):
        os.nice(10)


def jobs_of(
    figures: list[Shown], drawings: list[str], folder: Path, note: str
) -> dict[str, tuple[partial[None], str, list[Path]]]:
    """Return for each name what draws it, the mark of what it is made from, and the drawings of its columns."""
    from gradient_dd.experiments.paper.drawings import draw_drawing, header_of
    from gradient_dd.report.study_figure import column_file, draw

    jobs = {name: (partial(draw_drawing, name, folder), made_from(name), list[Path]()) for name in drawings}
    for figure, panels, study in figures:
        job = partial(draw, figure, panels, study, folder, note, header_of(figure.name))
        mark = made_from(figure, str(study), note, [panel_numbers(panel) for panel in panels])
        jobs[figure.name] = job, mark, [column_file(folder, figure.name, place) for place, _ in enumerate(panels)]
    return jobs


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let processes that start here solve with one thread each, whatever the os.environment says."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def sign(names: Iterable[str], jobs: dict[str, Any], folder: Path) -> None:
    """Append to drawings the marks of what they were made from."""
    for name in names:
        with (folder / f"{name}.svg").open("a", encoding="utf-8") as file:
            file.write(f"<!-- {jobs[name][1]} -->\n")


def panel_numbers(panel: Panel) -> list[Any]:
    """Return all numbers that are drawn of a panel."""
    arrays = ("alphas", "mean", "sem", "exploded", "curve", "curve_sem")
    return [str(panel.task), [[str(line.best), *(getattr(line, a).tolist() for a in arrays)] for line in panel.lines]]


def made_from(*parts: Any) -> str:
    """Return a mark of all that a figure depends on: the code of this package, and the numbers."""
    return f"made from {fingerprint(code_mark(), *parts)}"


@cache
def code_mark() -> str:
    """Return a mark of the code of this package."""
    return "".join(digest(file.read_text(encoding="utf-8")) for file in sorted(PACKAGE.rglob("*.py")))


def is_drawn(path: Path, mark: str, columns: list[Path]) -> bool:
    """Return whether a figure and the drawings of its columns are there, and it carries this mark."""
    svg, png = (path.with_name(f"{path.name}.{ending}") for ending in ("svg", "png"))
    there = all(file.is_file() for file in (svg, png, *columns))
    return there and svg.read_text(encoding="utf-8").endswith(f"<!-- {mark} -->\n")
