"""Trials and benchmarks: each says what it does, answers `--help`, and is what the pages name."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from tools.programs import ROOT, programs

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAME = re.compile(r"python -m ((?:benchmarks|gradient_dd|tests|tools|trials)(?:\.\w+)+)")
NAMED = {name: page.name for page in PAGES for name in NAME.findall(page.read_text(encoding="utf-8"))}
TARGET = re.compile(r"^([\w-]+): setup\n\t\$\(BIN\)/python -m ([\w.]+)$", re.MULTILINE)
IMPORTED = re.compile(r"^from ((?:benchmarks|trials)(?:\.\w+)*) import (\w+)", re.MULTILINE)


def file_of(name: str) -> Path:
    """Return the file that `python -m name` runs."""
    place = ROOT / ("src" if name.startswith("gradient_dd") else "") / name.replace(".", "/")
    return place / "__main__.py" if place.is_dir() else place.with_suffix(".py")


@pytest.mark.parametrize(("name", "words"), list(programs()))
def test_a_program_says_what_it_does(name, words, capsys):
    assert len(words) <= 120
    assert words[-1] in ".?"
    module = import_module(name)
    assert f"python -m {name}" in module.__doc__
    with pytest.raises(SystemExit) as ended:
        module.main(["--help"])
    assert ended.value.code == 0
    assert words in capsys.readouterr().out


def test_every_program_that_a_page_names_is_there():
    assert NAMED
    assert {name: page for name, page in NAMED.items() if not file_of(name).exists()} == {}


def test_every_program_backs_a_page():
    """A page names each of them, or a make target that runs it, or a program that imports it."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    made = [name for target, name in TARGET.findall((ROOT / "Makefile").read_text()) if f"`make {target}`" in text]
    read, waiting = set(), {*NAMED, *made}
    while waiting:
        read |= waiting
        files = [file_of(name) for name in waiting if file_of(name).exists()]
        found = [match for file in files for match in IMPORTED.findall(file.read_text(encoding="utf-8"))]
        waiting = {name for module, one in found for name in (module, f"{module}.{one}")} - read
    assert {name for name, _ in programs()} - read == set()
