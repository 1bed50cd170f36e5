"""The documents say what is so: their blocks are run, their links exist, their names are known."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gradient_dd.learners import LEARNERS, MOVES, SIGNALS, TERMS
from gradient_dd.paper.claims import CLAIMS
from gradient_dd.paper.figures import FIGURES
from gradient_dd.paper.studies import STUDIES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pages
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """All blocks of a page, in order, as one program."""
    monkeypatch.chdir(tmp_path)
    program = "\n".join(blocks(page, "python"))
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, text=True)


def spoken(page):
    """Yield (command, what the page shows of its output) from the console blocks."""
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown


@pages
def test_console_blocks_show_real_output(page):
    """Each line shown is printed, in that order; `…` stands for lines left out."""
    for command, shown in spoken(page):
        program, *arguments = command.split()
        assert program == "gradient-dd"
        executable = Path(sys.executable).parent / program
        output = subprocess.run([executable, *arguments], check=True, capture_output=True, text=True).stdout
        position = 0
        for piece in shown.split("…\n"):
            position = output.find(piece, position)
            assert position >= 0, f"{command} does not print:\n{piece}\nbut:\n{output}"
            position += len(piece)


@pages
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert "://" in link or (page.parent / link.replace("\\", "")).exists(), f"{page.name} -> {link}"


@pages
def test_files_and_tests_named_in_backticks_exist(page):
    made = re.findall(r"^Make `([\w/.]+)`", page.read_text(), re.M)  # files that the reader is told to make
    for name in re.findall(r"`((?:src|tests|docs)/[\w/.]+)(?:::\w+)?`", page.read_text()):
        assert (ROOT / name).exists() or name in made, f"{page.name} names {name}"
    for file, test in re.findall(r"`(?:tests/)?(test_\w+\.py)::(\w+)`", page.read_text()):
        assert f"def {test}(" in (ROOT / "tests" / file).read_text(), f"{page.name} names {file}::{test}"


def test_the_table_of_learners_in_the_readme_says_what_the_rules_say():
    """Its equations are those of the rules' files. A learner need not be in it: `gradient-dd list` has them all."""
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| \[(\w+)\.py\]\((.+)\) \|$", (ROOT / "README.md").read_text(), re.M)
    assert len(rows) >= 8
    for name, moved, title, link in rows:
        assert (title, link) == (name, f"src/gradient_dd/learners/{name}.py")
        equation = LEARNERS[name].equation.splitlines()
        assert [part for part in moved.split(",  ") if "←" in part and part not in equation] == []


def test_everything_is_documented():
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) < 200
    paper = (ROOT / "docs/paper.md").read_text()
    assert all(task.name in paper for study in STUDIES.values() for task in study.tasks)
    adding = (ROOT / "docs/add-a-learner.md").read_text()
    assert all(f"`{name}`" in adding for name in (*SIGNALS, *MOVES, *TERMS))
    architecture = (ROOT / "docs/architecture.md").read_text()
    for module in (ROOT / "src/gradient_dd").iterdir():
        assert module.name in architecture or module.name in ("__pycache__", "py.typed"), module.name


def test_every_figure_and_claim_is_on_the_page_of_the_paper():
    paper = (ROOT / "docs/paper.md").read_text()
    assert all(re.search(rf"^\| {name}\b.* \| {figure.study} \|", paper, re.M) for name, figure in FIGURES.items())
    for claim in CLAIMS:
        assert f"| `{claim.name}` | {claim.where} | {claim.statement} | {claim.criterion} | " in paper, claim.name
        assert re.search(rf"^\| `{claim.name}` .*\| (holds|holds in part|does not hold) \|$", paper, re.M), claim.name


def test_files_stay_small():
    for file in (ROOT / "src").rglob("*.py"):
        assert len(file.read_text().splitlines()) <= 400, file
