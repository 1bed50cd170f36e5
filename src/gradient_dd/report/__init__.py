"""Pictures and pages of studies and evaluations: figures as data, SVG, PNG and HTML."""

import json
from importlib.resources import files
from typing import Any


def read(path: str) -> str:
    """Return the text of a file of this package."""
    return files("gradient_dd").joinpath(*path.split("/")).read_text(encoding="utf-8")


def as_json(data: Any) -> str:
    """Return data as JSON for a <script> element, which no text in the data can end."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
