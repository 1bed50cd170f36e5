"""Pictures (SVG, PNG) and pages (HTML) of studies and evaluations, from figures described as data."""

import json
from importlib.resources import files
from typing import Any


def read(path: str) -> str:
    """Return the text of a file of this package."""
    return files("gradient_dd").joinpath(*path.split("/")).read_text(encoding="utf-8")


def as_json(data: Any) -> str:
    """Return data as JSON for a <script> element, escaped so that no text in the data can end the element."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
