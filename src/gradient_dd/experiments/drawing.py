"""Drawing the pictures of a reproduction: a picture is drawn again only if the existing one is out of date."""

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
from gradient_dd.report.figure import Drawing, Figure, panels_of
from gradient_dd.report.study_figure import draw, header_file
from gradient_dd.studies.results import Results

FEW = 4  # with fewer figures of studies, starting processes takes longer than drawing


@dataclass(frozen=True)
class Picture:
    """A picture to make in a folder: `draw` writes NAME.svg and NAME.png there.

    mark      a fingerprint of the picture's sources: an SVG that ends with it is up to date
    parts     other files that `draw` writes
    slow      whether drawing takes seconds
    """

    name: str
    draw: Callable[[Path], None]
    mark: str
    parts: tuple[str, ...] = ()
    slow: bool = False

    def is_drawn(self, folder: Path) -> bool:
        """Return whether all files of the picture exist, and the SVG ends with its mark."""
        svg, png = (folder / f"{self.name}.{ending}" for ending in ("svg", "png"))
        there = all(file.is_file() for file in (svg, png, *(folder / one for one in self.parts)))
        return there and svg.read_text(encoding="utf-8").endswith(f"<!-- {self.mark} -->\n")

    def sign(self, folder: Path) -> None:
        """Append the mark to the picture."""
        with (folder / f"{self.name}.svg").open("a", encoding="utf-8") as file:
            file.write(f"<!-- {self.mark} -->\n")


def figure_picture(figure: Figure, results: Results, note: str) -> Picture:
    """Return the picture of a figure of a study."""
    panels = panels_of(figure, results)
    header = named_function(figure.header) if figure.header else None
    job = partial(draw, figure, panels, results.study, note=note, header=header)
    lanes = [key for task in results.study.built_tasks for key, *_ in results.study.lanes(task)]
    mark = made_from(figure, str(results.study), note, lanes)
    return Picture(figure.name, job, mark, (str(header_file(Path(), figure.name)),) if figure.header else ())


def drawing_picture(drawing: Drawing) -> Picture:
    """Return the picture of a drawing without a study."""
    return Picture(drawing.name, partial(draw_drawing, drawing), made_from(drawing.name), slow=True)


def draw_drawing(drawing: Drawing, folder: Path) -> None:
    """Draw a figure without a study into folder/NAME.svg and .png."""
    named_function(drawing.drawn_by)(folder)


def named_function(path: str) -> Callable[..., Any]:
    """Return the function that "module:name" names; the module is imported only on this call."""
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def draw_all(pictures: Sequence[Picture], folder: Path) -> list[Path]:
    """Draw pictures on all cores; return the paths of the SVGs."""
    with drawn_meanwhile(pictures, folder) as paths:
        return paths


@contextmanager
def drawn_meanwhile(pictures: Sequence[Picture], folder: Path, gently: bool = False) -> Iterator[list[Path]]:
    """Draw pictures on all cores while the body runs; yield the paths of the SVGs, which exist after the body.

    `gently` gives drawing a lower priority than the body.
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
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the processes ignore it
            going = [pool.submit(one.draw, folder) for one in wanted]
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            yield paths
            for done in going:
                done.result()
        except BaseException:  # including Ctrl-C: the drawings are no longer needed
            for child in active_children():
                if child not in others:
                    child.terminate()
            raise
    for one in wanted:
        one.sign(folder)


def ignore_interrupts(gently: bool) -> None:
    """Ignore SIGINT in this process, because its parent handles it; with `gently`, lower its priority."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if gently and hasattr(os, "nice"):
        os.nice(10)


def made_from(*parts: Any) -> str:
    """Return a fingerprint of everything that a picture depends on: the code of this package, and `parts`."""
    return f"made from {fingerprint(code_mark(), *parts)}"


@cache
def code_mark() -> str:
    """Return the digests of all source files of this package."""
    package = Path(gradient_dd.__file__).parent
    return "".join(digest(file.read_text(encoding="utf-8")) for file in sorted(package.rglob("*.py")))
