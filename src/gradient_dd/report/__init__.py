"""Any study or evaluation as pictures and pages: figures as data, the numbers they show, SVG and PNG, and HTML."""

import json
from importlib.resources import files
from typing import Any


def read(path: str) -> str:
    """Return the text of a file of this package."""
    return files("gradient_dd").joinpath(*path.split("/")).read_text(encoding="utf-8")


def as_json(data: Any) -> str:
    """Return data as JSON that can stand inside a page: no text in it can end the element it stands in."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
