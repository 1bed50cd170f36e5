"""Pages from templates: each is one HTML file that opens from disk, offline, with its figures inside."""

from collections.abc import Sequence
from typing import Any

from gradient_dd.errors import extra
from gradient_dd.report import read
from gradient_dd.studies import Study
from gradient_dd.studies.study import provenance

with extra("report"):
    import jinja2


def fill(template: str, style_file: str, **content: Any) -> str:
    """Return the page of a template, with the common style and the style of a file."""
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(style=read("report/common.css") + read(style_file), **content)


def render(template: str, studies: Sequence[Study] = (), **content: Any) -> str:
    """Return the page of a template of this package, with a description of `studies` and software versions."""
    described = [(one.name, str(one)) for one in studies]
    return fill(f"report/{template}", "report/style.css", studies=described, provenance=provenance(), **content)
