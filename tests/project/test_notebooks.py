"""The notebooks of the docs have the cells of their sources and the outputs of the present code."""

import json

import pytest

from tools.notebooks import NAMES, NOTEBOOKS, cells_of, executed, made_from
from tools.outputs import differences

SLOW = ("the-paper", "your-own-rule")  # fingerprints say whether their numbers could have changed
AGAIN = "is stale. Execute it again: python -m tools.notebooks {}"


def stored(name):
    return json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))


def texts(notebook):
    """Return all outputs but pictures, whose bytes depend on the version of matplotlib."""
    outputs = [one for cell in notebook["cells"] for one in cell.get("outputs", ())]
    shown = [one.get("text") or {k: v for k, v in one["data"].items() if k != "image/png"} for one in outputs]
    return json.dumps(shown, indent=0, ensure_ascii=False).replace("\\n", "\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_not_stale(name):
    source, notebook = (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8"), stored(name)
    assert [(one["cell_type"], one["source"]) for one in notebook["cells"]] == cells_of(source), AGAIN.format(name)
    assert notebook["metadata"]["made_from"] == made_from(source), AGAIN.format(name)


@pytest.mark.parametrize("name", ["which-policy", *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)])
def test_the_outputs_come_out_again(name):
    assert differences(texts(stored(name)), texts(executed(name))) == [], AGAIN.format(name)


def test_every_notebook_has_a_source():
    assert {file.stem for file in NOTEBOOKS.glob("*.ipynb")} == {file.stem for file in NOTEBOOKS.glob("*.py")}
    assert {file.stem for file in NOTEBOOKS.glob("*.py")} == {*NAMES}
