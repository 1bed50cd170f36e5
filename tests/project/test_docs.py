"""The documents are true: their blocks are run, their links exist, their names are known, their numbers agree."""

import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import gradient_dd
from gradient_dd.cli.commands import COMMANDS, cli
from gradient_dd.experiments.paper.figures import FIGURES
from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.learners import LEARNERS, MOVES, SIGNALS
from gradient_dd.tasks import TASKS
from tools.outputs import (
    BLOCK,
    PAGES,
    PYTHON,
    blocks,
    commands,
    differences,
    with_console_output,
    with_python_output,
)
from tools.programs import ROOT

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
GUIDES = ("README.md", "docs/tutorials/", "docs/how-to/")  # every Python block that prints shows what it prints


def with_blocks(language, *slow):
    """Return the mark for a test over the pages that have blocks in a language; some are slow."""
    found = [
        pytest.param(page, marks=[pytest.mark.slow] if page.name in slow else [], id=page.name)
        for page in PAGES
        if blocks(page.read_text(), language)
    ]
    return pytest.mark.parametrize("page", found)


@with_blocks("python", "add-a-learner.md")  # test_adding.py follows that page
def test_python_blocks_run_and_print_what_the_page_shows(page):
    """All blocks of a page, in order, as one program. `python -m tools.outputs PAGE` writes their output again."""
    text = page.read_text()
    printed = with_python_output(text)
    if str(page.relative_to(ROOT)).startswith(GUIDES) or any(shown for _, shown in PYTHON.findall(text)):
        assert differences(text, printed) == []


@with_blocks("console")
def test_console_blocks_show_real_output(page):
    """Commands of a page run in order in one folder and print what is shown, but for measured times and sizes."""
    text = page.read_text()
    assert differences(text, with_console_output(text)) == []


@pytest.mark.parametrize(
    ("shown", "now", "differ"),
    [
        ("value 0.4928 [0.1, 2.0]", "value 0.4929 [0.1, 2.0]", False),  # the last place
        ("value 0.5000001", "value 0.5000009", False),
        ("value 0.4928", "value 0.4948", True),
        ("1.5e-3 s of 7", "9.9e-3 s of 7", False),  # a measured time
        ("31 of 40 rows", "32 of 40 rows", True),
        ("one\ntwo", "one", True),
        ("TD 0.5", "GTD 0.5", True),
    ],
)
def test_outputs_differ_where_a_reader_would_see_it(shown, now, differ):
    assert bool(differences(shown, now)) == differ


@pages
def test_numbers_in_the_sentences_of_a_tutorial_stand_in_its_blocks(page):
    """A tutorial quotes what its commands print, or are given, except in a paragraph that names another program."""
    if page.parent.name == "tutorials":
        text = page.read_text()
        sentences = re.sub(r"^```.*?^```$|^\|.*$", "", text, flags=re.DOTALL | re.MULTILINE)
        paragraphs = [
            one for one in sentences.split("\n\n") if not re.search(r"`(?:examples/|trials/|python -m )", one)
        ]
        quoted = {number for one in paragraphs for number in re.findall(r"(?<![\w.])\d+\.\d{2,}(?![\w.])", one)}
        shown = "".join(block for _, block in BLOCK.findall(text))
        assert [number for number in sorted(quoted) if number not in shown] == []


@pages
def test_output_that_a_command_prints_stands_in_a_console_block(page):
    """There it is compared with what the command really prints."""
    assert not [
        block for block in blocks(page.read_text(), "text", "sh", "") if re.search(r"^\$ ", block, re.MULTILINE)
    ]


def commands_of(page):
    """Return the commands in the sh blocks of a page, as lists of words."""
    return [words for block in blocks(page.read_text(), "sh") for words in commands(block, "sh")]


@with_blocks("sh")
def test_commands_can_be_parsed(page):
    """The names, options and values of all that are not run as they stand, because they take long or need a cluster."""
    for program, *arguments in commands_of(page):
        if Path(program).name == "gradient-dd":
            cli.commands[arguments[0]].make_context(arguments[0], arguments[1:])


@pages
def test_commands_within_sentences_are_known(page, monkeypatch):
    """Those in capitals, such as NAME, stand for what the reader fills in."""
    monkeypatch.chdir(ROOT)
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for line in re.findall(r"`gradient-dd ([a-z][^`…]*)`", text):
        name, *arguments = shlex.split(line)
        if arguments and not any(word.isupper() for word in arguments):
            cli.commands[name].make_context(name, arguments)
        assert name in cli.commands, line


# Commands of the pages that no test runs as they stand, and why. All others run in `make test-all`.
NOT_RUN = {
    "gradient-dd reproduce": "the paper's scale takes minutes; tests/experiments runs it on a small scale",
    "gradient-dd rank": "45 problems take minutes; tests/ranking runs the problems in part",
    "make": "it calls the tests, or takes minutes; test_make_targets_exist",
    "pip": "tools/package.py installs the package with each extra",
    "dask": "it starts a cluster; tests/studies/test_cluster.py starts one here",
    ".venv/bin/": "tools of a developer, in the environment that `make setup` makes",
    "gradient-dd sweep examples/study.toml --dask tcp": "it needs a cluster",
}


def test_a_command_that_no_test_runs_is_on_a_page_and_can_be_called():
    """Its options and files are known, where that can be said without running it."""
    lines = [words for page in PAGES for words in commands_of(page)]
    assert [start for start in NOT_RUN if not any(" ".join(words).startswith(start) for words in lines)] == []
    for program, *arguments in lines:
        if program == "dask":
            command = import_module(f"distributed.cli.dask_{arguments[0]}").main
            assert {word for word in arguments if word[:2] == "--"} <= {o for one in command.params for o in one.opts}
        elif program == ".venv/bin/pytest":
            assert [word for word in arguments if word[:6] == "tests/" and not (ROOT / word).exists()] == []


@pytest.mark.slow
@with_blocks("sh")
def test_commands_run_as_written(page, tmp_path, monkeypatch):
    """From a clone, with the files of examples/."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for words in commands_of(page):
        line = " ".join(words)
        if not line.startswith(tuple(NOT_RUN)):
            program = [sys.executable, "-m", "gradient_dd.cli"] if words[0] == "gradient-dd" else [sys.executable]
            assert words[0] in ("gradient-dd", "python"), line
            done = subprocess.run([*program, *words[1:]], check=False, capture_output=True, text=True)
            assert done.returncode == 0, f"{line}\n{done.stderr}"


@pages
def test_make_targets_exist(page):
    known = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    named = re.findall(r"(?:`|^)make ([\w-]+)", page.read_text(), re.M)
    assert [target for target in named if target not in known] == []


def test_make_help_names_targets_that_exist():
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r'^\t@echo "make ([\w-]+)', makefile, re.M)
    known = {*re.findall(r"^([\w-]+):", makefile, re.M)}
    assert known - {*named, "help"} == {"lint", "types", "layers", "pytest"}, "parts of make test"
    assert {*named} <= known


def rows(page, pattern):
    """Return the groups of a pattern in every row of the page's tables that has it."""
    return re.findall(pattern, (ROOT / page).read_text(), re.MULTILINE)


@pages
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert "://" in link or (page.parent / link.replace("\\", "")).exists(), f"{page.name} -> {link}"


@pages
def test_files_and_tests_named_in_backticks_exist(page):
    made = re.findall(r"^Make `([\w/.]+)`", page.read_text(), re.M)  # files that the reader is asked to make
    for name in re.findall(r"`((?:src|tests|docs)/[\w/.]+)(?:::\w+)?`", page.read_text()):
        assert (ROOT / name).exists() or "NAME" in name or name in made, f"{page.name} names {name}"
    for file, test in re.findall(r"`(?:tests/)?(test_\w+\.py)::(\w+)`", page.read_text()):
        assert f"def {test}(" in next((ROOT / "tests").rglob(file)).read_text(), f"{page.name} names {file}::{test}"


def test_the_table_of_learners_in_the_readme_says_what_the_rules_say():
    """Its equations are those of the rules' files. A learner need not be in it: `gradient-dd list` has them all."""
    listed = rows("README.md", r"^\| `(\w+)` \| (.+) \| \[(\w+)\.py\]\((.+)\) \|$")
    assert len(listed) >= 8
    for name, moved, title, link in listed:
        assert (title, link) == (name, f"src/gradient_dd/learners/{name}.py")
        equation = LEARNERS[name].equation.splitlines()
        assert [part for part in moved.split(",  ") if "←" in part and part not in equation] == []


def test_everything_is_documented():
    paper = (ROOT / "docs/evidence/paper.md").read_text()
    assert all(task.name in paper for study in STUDIES.values() for task in study.tasks)
    adding = (ROOT / "docs/how-to/add-a-learner.md").read_text()
    assert all(f"`{name}`" in adding for name in (*SIGNALS, *MOVES))
    architecture = (ROOT / "docs/contribute/architecture.md").read_text()
    for module in (ROOT / "src/gradient_dd").iterdir():
        assert module.name in architecture or module.name in ("__pycache__", "py.typed"), module.name


@pytest.fixture(scope="module")
def reference():
    """Return docs/reference.py as a module."""
    spec = spec_from_file_location("reference", ROOT / "docs/reference.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_has_every_learner_task_and_command(reference):
    """By being registered, each is on its page of the site."""
    learners, tasks, lines = reference.learners_page(), reference.tasks_page(), reference.commands_page()
    for rule in LEARNERS.values():
        shown = (rule.equation, rule.reference, f"src/gradient_dd/learners/{rule.name}.py", *rule.defaults)
        assert all(text in learners for text in shown), rule.name
        assert all(
            f"- *{what}:* {words}" in reference.learner_section(rule)
            for what, words in reference.promises(rule).items()
        )
    residual = reference.learner_section(LEARNERS["residual_gradient"])
    assert "- *Fixed point:* another point than the TD fixed point" in residual
    assert "also those of the trace" in reference.learner_section(LEARNERS["gtd2"])
    assert "p², p being" in reference.learner_section(LEARNERS["natural_tdc"])
    assert all(f"## `{name}`" in tasks and f"src/gradient_dd/tasks/{name}.py" in tasks for name in TASKS)
    flowing = " ".join(lines.split())
    for command in COMMANDS:
        assert f"\n## {command.name}\n" in lines
        assert command.help.splitlines()[0] in flowing


def test_the_reference_has_every_figure_and_claim(reference):
    page = reference.claims_page()
    assert all(f"| `{name}` | {figure.title} | {figure.study} |" in page for name, figure in FIGURES.items())
    for claim in CLAIMS:
        assert f"| `{claim.name}` | {claim.where} | {claim.statement} | {claim.ask.criterion} | " in page, claim.name


def test_the_reference_has_every_public_name(reference):
    page = reference.python_page()
    for name in gradient_dd.__all__:
        one = getattr(gradient_dd, name)
        shown = one.__qualname__ if callable(one) else name
        assert re.search(rf"\b{shown}\b", page), name


def test_readme_is_short_and_agrees_with_the_pages_it_sums_up():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
    counts = r"(\d+ / \d+ / \d+)"
    verdict = r"(holds|partly holds|does not hold|undecided) \|$"
    found = rows("docs/evidence/paper.md", rf"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|.*\| {counts} \| {verdict}")
    apart = {claim.name for claim in CLAIMS if claim.source != "paper"}
    judged = [tuple(row) for name, *row in found if name not in apart]
    shown = re.findall(rf"`([\w-]+)` {counts}", (ROOT / "README.md").read_text())
    assert len(shown) >= 9
    assert set(shown) <= {(name, judgement[-2]) for name, *judgement in found}
    counted = Counter(word for *_, word in judged)
    page = (ROOT / "docs/evidence/paper.md").read_text()
    told = re.search(r"^The paper makes \d+ testable statements.*$", page, re.MULTILINE)[0]
    assert told in (ROOT / "README.md").read_text()
    numbers = [len(judged), *(counted[word] for word in ("holds", "partly holds", "does not hold"))]
    assert [*map(int, re.findall(r"\d+", told.partition(" In total")[0]))] == numbers
    assert sum(numbers[1:]) == numbers[0], "the sentence would also count undecided statements"


def test_readme_has_the_times_of_the_performance_page():
    number = r"([\d.,]+)"
    measured = rows(
        "docs/evidence/speed.md",
        rf"^\|[^|]*\| ([\w-]+) \| {number} \| {number} \| [\d.]+ \| [\d.]+ \| {number} \| [\d-]+ % \|",
    )
    measured = {learner: times for learner, *times in reversed(measured)}  # the first task, the walk, is what stays
    shown = rows("README.md", rf"^\| ([\w-]+) \| {number} \| {number} \| {number} × \|$")
    assert len(shown) >= 3
    for learner, ours, c, plain in shown:
        assert [f"{float(time):.2f}" for time in measured[learner][:2]] == [ours, c]
        assert measured[learner][2:] == [plain]


def test_every_claim_is_on_the_page_of_the_paper():
    paper = (ROOT / "docs/evidence/paper.md").read_text()
    word = "(holds|partly holds|does not hold|undecided)"
    for claim in CLAIMS:
        assert f"| `{claim.name}` | {claim.where} | {claim.statement} | " in paper, claim.name
        assert re.search(rf"^\| `{claim.name}` .*\| \d+ / \d+ / \d+ \| {word} \|$", paper, re.M), claim.name


def test_files_stay_small():
    for folder in ("src", "tests", "trials", "benchmarks", "tools"):
        for file in (ROOT / folder).rglob("*.py"):
            assert len(file.read_text().splitlines()) <= 400, file
