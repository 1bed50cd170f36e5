"""Figures that need no study, one per file, and the diagrams that stand above figures of studies."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from gradient_dd.errors import extra

with extra("report"):
    import matplotlib  # noqa: F401  (every file of this folder draws with it)

HEADERS = {"Baird": "state_diagram"}  # by the name of the figure: the file and function that draw what stands above it


def draw_drawing(name: str, folder: Path) -> None:
    """Draw a figure that needs no study, by its name, into folder/NAME.svg and .png."""
    import_module(f"gradient_dd.experiments.paper.drawings.{name.replace('-', '_')}").draw(folder)


def header_of(figure: str) -> Callable[..., Any] | None:
    """Return the function that draws what stands above a figure's panels, if there is one."""
    name = HEADERS.get(figure)
    return getattr(import_module(f"gradient_dd.experiments.paper.drawings.{name}"), name) if name else None
