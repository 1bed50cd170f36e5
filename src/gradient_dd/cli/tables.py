"""Text in columns, and data as JSON: the two forms in which commands print."""

import json
import sys
from collections.abc import Iterable
from math import isfinite
from typing import Any

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for machines.")


def table(rows: Iterable[tuple[str, ...]], head: tuple[str, ...]) -> str:
    """Return rows in aligned columns under a head."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join(text)


def text_of(lines: Iterable[str | tuple[Iterable[tuple[str, ...]], tuple[str, ...]]]) -> str:
    """Return lines as one text; a line that is not a string is the rows and the head of a table."""
    return "\n".join(line if isinstance(line, str) else table(*line) for line in lines)


def printable(text: str) -> str:
    """Return a text with its invisible characters written out: escapes, backspaces, marks of direction."""
    return "".join(one if one == "\n" or one.isprintable() else ascii(one)[1:-1] for one in text)


def json_text(value: Any) -> str:
    """Return data as JSON; a number that JSON does not have, such as infinity, becomes null.

    Letters are written as they are where the output can show all of them, else as JSON's own escapes.
    """
    plain = (getattr(sys.stdout, "encoding", None) or "").lower() not in ("utf-8", "utf8")
    return json.dumps(finite(value), ensure_ascii=plain, indent=2)


def finite(value: Any) -> Any:
    """Return the same data with None in place of every number that is infinite or undefined."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not isfinite(value) else value
