"""Docstrings as Markdown: what is aligned in columns, such as a list of arguments, and examples become blocks."""

import re
from typing import Any

from griffe import Extension, Object

ALIGNED = re.compile(r"^\S.*\S {2,}\S", re.MULTILINE)


class Blocks(Extension):
    """Changes docstrings as they are read for the page of Python names; `mkdocs.yml` names it."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of a module, a class, a function or an attribute."""
        if obj.docstring:
            obj.docstring.value = "\n\n".join(map(as_block, re.split(r"\n{2,}", obj.docstring.value)))


def as_block(paragraph: str) -> str:
    """Return a paragraph inside a fence if it is an example or aligned; indented ones are blocks already."""
    if paragraph.startswith(">>> "):
        return f"```pycon\n{paragraph}\n```"
    return f"```text\n{paragraph}\n```" if ALIGNED.search(paragraph) else paragraph
