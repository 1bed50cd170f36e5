"""The documents are true: their blocks are run, their links exist, their names are known, their numbers agree."""

import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from click.testing import CliRunner

import gradient_dd
from gradient_dd.cli.commands import COMMANDS, cli
from gradient_dd.experiments.paper.figures import FIGURES
from gradient_dd.experiments.paper.ledger import CLAIMS
from gradient_dd.experiments.paper.studies import STUDIES
from gradient_dd.learners import LEARNERS, MOVES, SIGNALS
from gradient_dd.tasks import TASKS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(page, *languages):
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    return [block for language, block in fenced if language in languages]


def with_blocks(language, *slow):
    """Return the mark for a test over the pages that have blocks in a language; some are slow."""
    found = [
        pytest.param(page, marks=[pytest.mark.slow] if page.name in slow else [], id=page.name)
        for page in PAGES
        if blocks(page, language)
    ]
    return pytest.mark.parametrize("page", found)


@with_blocks("python", "add-a-learner.md")  # test_adding.py follows that page
def test_python_blocks_run(page, tmp_path, monkeypatch):
    """All blocks of a page, in order, as one program."""
    monkeypatch.chdir(tmp_path)
    program = "\n".join(blocks(page, "python"))
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def commands(page, language):
    """Yield (words, what the page shows of the output) from blocks of commands; `\\` joins two lines."""
    for block in blocks(page, language):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] if language == "console" else block.splitlines():
            command, _, shown = part.replace("\\\n", " ").partition("\n")
            yield shlex.split(command, comments=True), shown


def quoted_numbers(page):
    """Return the numbers with decimals in the sentences of a page, but for paragraphs that name another program."""
    sentences = re.sub(r"^```.*?^```$|^\|.*$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    paragraphs = [one for one in sentences.split("\n\n") if not re.search(r"`(?:examples/|trials/|python -m )", one)]
    return {number for one in paragraphs for number in re.findall(r"(?<![\w.])\d+\.\d{2,}(?![\w.])", one)}


@with_blocks("console")
def test_console_blocks_show_real_output(page, tmp_path, monkeypatch):
    """Commands of a page run in order in one folder. Each line shown is printed, in that order; `…` skips lines.

    A number that a tutorial quotes in its sentences is one that its commands print, or are given.
    """
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    printed = ""
    for (program, *arguments), shown in commands(page, "console"):
        assert program == "gradient-dd"
        run = CliRunner().invoke(cli, arguments)  # in this process: starting one takes longer than most commands
        assert run.exit_code == 0, run.output
        printed += f"{arguments}\n{run.stdout}"
        position = 0
        for piece in shown.split("…\n"):
            position = run.stdout.find(piece, position)
            assert position >= 0, f"{arguments} does not print:\n{piece}\nbut:\n{run.stdout}"
            position += len(piece)
        assert shown.endswith("…\n") or position == len(run.stdout), f"{arguments} prints more:\n{run.stdout}"
    if page.parent.name == "tutorials":
        assert [number for number in sorted(quoted_numbers(page)) if number not in printed] == []


@pages
def test_output_that_a_command_prints_stands_in_a_console_block(page):
    """There it is compared with what the command really prints."""
    assert not [block for block in blocks(page, "text", "sh", "") if re.search(r"^\$ ", block, re.MULTILINE)]


@with_blocks("sh")
def test_commands_that_are_not_run_can_be_parsed(page):
    """They take too long for a test, or need a cluster: their names, options and values are checked."""
    for words, _ in commands(page, "sh"):
        if words and Path(words[0]).name == "gradient-dd":
            name, *arguments = words[1:]
            cli.commands[name].make_context(name, arguments)


@pages
def test_make_targets_exist(page):
    known = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
    named = re.findall(r"(?:`|^)make ([\w-]+)", page.read_text(), re.M)
    assert [target for target in named if target not in known] == []


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
        assert f"| `{claim.name}` | {claim.where} | {claim.statement} | {claim.criterion} | " in page, claim.name


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
    shown = rows("README.md", rf"^\| ([^|]+) \| ([^|]+) \| {counts} \| {verdict}")
    assert len(shown) >= 4
    assert set(shown) <= set(judged)
    counted = Counter(word for *_, word in judged)
    told = re.search(r"^Of \d+ published statements .*$", (ROOT / "docs/evidence/paper.md").read_text(), re.MULTILINE)[
        0
    ]
    assert told in (ROOT / "README.md").read_text()
    numbers = [len(judged), *(counted[word] for word in ("holds", "partly holds", "does not hold", "undecided"))]
    said = [*map(int, re.findall(r"\d+", told.partition(". ")[0])), 0]
    assert said[:5] == numbers


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
