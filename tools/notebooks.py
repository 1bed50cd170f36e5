"""The notebooks of the documentation, docs/notebooks: `python -m tools.notebooks [NAME ...]` executes and writes them.

NAME.py is the source, in the percent format: `# %%` starts a cell of code, `# %% [markdown]` one of text. NAME.ipynb
has the same cells with their outputs: printed text, the value of the last expression, open figures. What a cell prints
to stderr (progress) is not kept. No package of Jupyter is needed.
"""

import ast
import base64
import io
import json
import linecache
import os
import re
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from time import perf_counter
from typing import Any

os.environ["MPLBACKEND"] = "agg"

from matplotlib import pyplot

from gradient_dd.fingerprint import fingerprint
from gradient_dd.learners import LEARNERS
from gradient_dd.ranking.standings import VERSION
from gradient_dd.studies.study import ENGINE_VERSION
from tools.programs import ROOT

NOTEBOOKS = ROOT / "docs" / "notebooks"
NAMES = ("the-paper", "which-policy", "your-own-rule")
CELL = re.compile(r"^# %%( \[markdown\])?\n", re.M)
FORMS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}  # of a value, besides its `repr`
LANGUAGE = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
LANGUAGE["language_info"] = {"name": "python"}


def cells_of(source: str) -> list[tuple[str, str]]:
    """Return the type ("markdown" or "code") and the text of each cell of a source."""
    _, *parts = CELL.split(source)
    found = []
    for mark, body in zip(parts[::2], parts[1::2], strict=True):
        text = re.sub(r"^# ?", "", body, flags=re.M) if mark else body
        found.append(("markdown" if mark else "code", text.strip("\n")))
    return found


def made_from(source: str) -> str:
    """Return the fingerprint of what the outputs depend on: the source, all rules, the engine and the standings."""
    return fingerprint(source, [rule.key for rule in LEARNERS.values()], ENGINE_VERSION, VERSION)


def outputs_of(code: str, number: int, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell of code, and return its outputs in the form of a notebook."""
    file = f"<cell {number}>"
    linecache.cache[file] = len(code), None, code.splitlines(keepends=True), file  # so that a rule finds its source
    tree, value, printed = ast.parse(code), None, io.StringIO()
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, file, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), file, "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None and not pyplot.get_fignums():  # the value of a cell that draws is an axis or a legend
        data = {"text/plain": repr(value)}
        data |= {form: getattr(value, method)() for form, method in FORMS.items() if hasattr(value, method)}
        found.append({"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}})
    return found + [drawn(pyplot.figure(one)) for one in pyplot.get_fignums()]


def drawn(figure: Any) -> dict[str, Any]:
    """Return a figure as an output, with a text for those who do not see it, and close it."""
    said = dict.fromkeys(f"{one.get_ylabel()} against {one.get_xlabel()}" for one in figure.axes)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100, bbox_inches="tight", metadata={"Software": None})
    pyplot.close(figure)
    data = {"image/png": base64.b64encode(file.getvalue()).decode()}
    return {"output_type": "display_data", "data": data, "metadata": {"alt": "; ".join(said)}}


def executed(name: str) -> dict[str, Any]:
    """Return a notebook, executed in a new folder."""
    source = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    cells: list[dict[str, Any]] = []
    pyplot.close("all")  # figures that are open belong to somebody else
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for place, (kind, text) in enumerate(cells_of(source)):
            cell = {"cell_type": kind, "id": f"cell-{place}", "metadata": {}, "source": text}
            if kind == "code":
                number = 1 + sum(one["cell_type"] == "code" for one in cells)
                cell |= {"execution_count": number, "outputs": outputs_of(text, number, names)}
            cells.append(cell)
    metadata = LANGUAGE | {"made_from": made_from(source)}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def main(*names: str) -> None:
    """Execute all notebooks, or those named, and write them."""
    for name in names or NAMES:
        begin, target = perf_counter(), NOTEBOOKS / f"{name}.ipynb"
        target.write_text(json.dumps(executed(name), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{target.relative_to(ROOT)}: {perf_counter() - begin:.0f} s, {target.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(*sys.argv[1:])
