"""Docstrings of the package: their examples print what they show, and every public name has one."""

import doctest
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path

import pytest

import gradient_dd as gdd
from gradient_dd.learners import _LEARNERS

SOURCE = Path(gdd.__file__).parent
WITH_EXAMPLES = [
    ".".join(("gradient_dd", *file.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for file in sorted(SOURCE.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]
PUBLIC = {name: one for name in gdd.__all__ if isclass(one := getattr(gdd, name)) or isfunction(one)}
NEEDED = {"networks": "jax", "environment": "gymnasium", "from_gymnasium": "gymnasium"}  # what examples need


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_they_show(name, tmp_path, monkeypatch):
    for part, package in NEEDED.items():
        if part in name.split("."):
            pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    known = dict(_LEARNERS)
    try:
        done = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    finally:
        _LEARNERS.clear()
        _LEARNERS.update(known)
    assert done.attempted > 0
    assert done.failed == 0


def test_every_public_class_and_function_has_an_example():
    """A rule, its parameters and its settings have a page, docs/how-to/add-a-learner.md, which is run too."""
    docs = {name: one.__doc__ or "" for name, one in PUBLIC.items()}
    assert [name for name, doc in docs.items() if not doc.partition("\n")[0].strip()] == []
    errors = {name for name, one in PUBLIC.items() if isclass(one) and issubclass(one, gdd.GradientDDError)}
    without = {name for name, doc in docs.items() if ">>> " not in doc}
    assert without == {"Parameter", "Rule", "Setting"} | errors
