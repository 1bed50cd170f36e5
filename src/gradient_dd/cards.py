"""A card: the short form of an object that a notebook shows, a title and a table of facts in HTML."""

from collections.abc import Mapping
from html import escape
from typing import Any


def card(title: str, facts: Mapping[str, Any], below: str = "") -> str:
    """Return a title, a row for each fact that is not None, and HTML to stand below; titles and facts are escaped.

    >>> card("A < B", {"runs": 3})
    '<p><b>A &lt; B</b></p><table><tr><th>runs</th><td style="text-align:left">3</td></tr></table>'
    """
    rows = "".join(
        f'<tr><th>{escape(name)}</th><td style="text-align:left">{escape(str(fact)).replace(chr(10), "<br>")}</td></tr>'
        for name, fact in facts.items()
        if fact is not None
    )
    return f"<p><b>{escape(title)}</b></p><table>{rows}</table>{below}"
