"""Figures: numbers in, SVG and PNG out. One picture a file; nothing here runs a study."""

from importlib import import_module
from pathlib import Path


def draw_drawing(name: str, folder: Path) -> None:
    """Draw a figure that needs no study, by its name."""
    import_module(f"gradient_dd.figures.{name.replace('-', '_')}").draw(folder)
