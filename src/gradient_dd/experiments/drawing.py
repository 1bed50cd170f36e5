"""Drawing the pictures of an experiment: each is drawn again only if it would differ from the one that is there."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

import gradient_dd
from gradient_dd.fingerprint import digest, fingerprint
from gradient_dd.report.figure import Drawing, Figure, Panel, panels_of
from gradient_dd.report.study_figure import draw, header_file
from gradient_dd.studies.results import Results

PACKAGE = Path(gradient_dd.__file__).parent
FEW = 4  # figures of studies up to which starting processes takes longer than drawing
# Drawings of theory solve many small systems. With a thread for each core every one of them waits for the others.
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class Picture:
    """A picture to make in a folder: `draw` writes NAME.svg and NAME.png there.

    mark      what the picture is made from: a file that carries this mark is kept. Without a mark it is drawn again
    parts     other files that are drawn with it
    slow      whether drawing takes seconds
    """

    name: str
    draw: Callable[[Path], None]
    mark: str = ""
    parts: tuple[str, ...] = ()
    slow: bool = False

    def is_drawn(self, folder: Path) -> bool:
        """Return whether all files of the picture are there, and carry its mark."""
        svg, png = (folder / f"{self.name}.{ending}" for ending in ("svg", "png"))
        there = bool(self.mark) and all(file.is_file() for file in (svg, png, *(folder / one for one in self.parts)))
        return there and svg.read_text(encoding="utf-8").endswith(f"<!-- {self.mark} -->\n")

    def sign(self, folder: Path) -> None:
        """Append to the picture the mark of what it was made from."""
        if self.mark:
            with (folder / f"{self.name}.svg").open("a", encoding="utf-8") as file:
                file.write(f"<!-- {self.mark} -->\n")


def figure_picture(figure: Figure, results: Results, note: str) -> Picture:
    """Return the picture of a figure of a study."""
    panels = panels_of(figure, results)
    job = partial(draw, figure, panels, results.study, note=note, header=named_function(figure.header))
    mark = made_from(figure, str(results.study), note, [panel_numbers(panel) for panel in panels])
    above = (str(header_file(Path(), figure.name)),) if figure.header else ()
    return Picture(figure.name, job, mark, above)


def drawing_picture(drawing: Drawing) -> Picture:
    """Return the picture of a drawing that needs no study."""
    return Picture(drawing.name, partial(draw_drawing, drawing), made_from(drawing.name), slow=True)


def draw_drawing(drawing: Drawing, folder: Path) -> None:
    """Draw what needs no study into folder/NAME.svg and .png."""
    function = named_function(drawing.drawn_by)
    assert function is not None, f"{drawing.name} names no function"
    function(folder)


def named_function(path: str) -> Callable[..., Any] | None:
    """Return the function of "module:name", imported only now; None for no name."""
    module, _, name = path.partition(":")
    function: Callable[..., Any] | None = getattr(import_module(module), name) if path else None
    return function


def draw_all(pictures: Sequence[Picture], folder: Path) -> list[Path]:
    """Draw pictures on all cores; return the paths of the SVGs."""
    with drawn_meanwhile(pictures, folder) as paths:
        return paths


@contextmanager
def drawn_meanwhile(pictures: Sequence[Picture], folder: Path, gently: bool = False) -> Iterator[list[Path]]:
    """Draw as `draw_all` does while the body runs; yield the paths of the SVGs, which are all there at its end.

    `gently` takes only time that the body leaves.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{one.name}.svg" for one in pictures]
    wanted = [one for one in pictures if not one.is_drawn(folder)]
    if len(wanted) < FEW and not any(one.slow for one in wanted):
        for one in wanted:
            one.draw(folder)
            one.sign(folder)
        yield paths
        return
    others = active_children()
    spawned = get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count() or 1, spawned, initializer=ignore_interrupts, initargs=(gently,)) as pool:
        try:
            with one_thread_each():
                going = [pool.submit(one.draw, folder) for one in wanted]
            yield paths
            for done in going:
                done.result()
        except BaseException:  # Ctrl-C too: nobody waits for drawings that are not wanted any more
            for child in active_children():
                if child not in others:
                    child.terminate()
            raise
    for one in wanted:
        one.sign(folder)


def ignore_interrupts(gently: bool) -> None:
    """Ignore SIGINT in this process, which the process that started it handles; with `gently`, lower its priority."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if gently and hasattr(os, "nice"):
        os.nice(10)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let processes that start here solve with one thread each, and not see Ctrl-C until they ignore it."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def panel_numbers(panel: Panel) -> list[Any]:
    """Return all numbers that are drawn of a panel."""
    arrays = ("alphas", "mean", "sem", "exploded", "curve", "curve_sem")
    return [str(panel.task), [[str(line.best), *(getattr(line, a).tolist() for a in arrays)] for line in panel.lines]]


def made_from(*parts: Any) -> str:
    """Return a mark of all that a picture depends on: the code of this package, and the numbers."""
    return f"made from {fingerprint(code_mark(), *parts)}"


@cache
def code_mark() -> str:
    """Return a mark of the code of this package."""
    return "".join(digest(file.read_text(encoding="utf-8")) for file in sorted(PACKAGE.rglob("*.py")))
