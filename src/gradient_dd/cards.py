"""HTML summaries of objects for notebooks: a title and a table of facts."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


def card(title: str, facts: Mapping[str, Any], below: str = "") -> str:
    """Return HTML with an escaped title, an escaped row for each fact that is not None, and the HTML `below`.

    >>> card("A < B", {"runs": 3})
    '<p><b>A &lt; B</b></p><table><tr><th>runs</th><td style="text-align:left">3</td></tr></table>'
    """
    rows = "".join(
        f'<tr><th>{escape(name)}</th><td style="text-align:left">{escape(str(fact)).replace(chr(10), "<br>")}</td></tr>'
        for name, fact in facts.items()
        if fact is not None
    )
    return f"<p><b>{escape(title)}</b></p>{f'<table>{rows}</table>' if rows else ''}{below}"


def table(head: Sequence[str], rows: Mapping[str, Sequence[str]], strong: str | None = None) -> str:
    """Return an HTML table with escaped cells; the row with the key `strong` is bold.

    >>> table(["a"], {"x": ["<2"]}, strong="x")
    '<table><thead><tr><th scope="col">a</th></tr></thead><tbody><tr><td><b>&lt;2</b></td></tr></tbody></table>'
    """
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = []
    for key, row in rows.items():
        cells = [f"<b>{escape(cell)}</b>" if key == strong else escape(cell) for cell in row]
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
