"""The pages about adding a learner and a task, followed to the letter on a copy of the project: two files suffice."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "results", "*.db", "*.egg-info", "node_modules", "site")


def copy_project(tmp_path):
    return Path(shutil.copytree(ROOT, tmp_path / "project", ignore=LEFT_OUT))


def add_line(text, line):
    """Return the text of a registry with one line more, where a reader would put it.

    Imports and the lower-case names of `__all__` are in alphabetical order; a new learner or task is the last one.
    """
    lines = text.splitlines()
    if line.startswith("from "):
        imports = [i for i, other in enumerate(lines) if other.startswith("from gradient_dd.")]
        place = next((i for i in imports if lines[i] > line), imports[-1] + 1)
    elif any(other.startswith("FILES = (") for other in lines):
        place = lines.index(")")
    elif '"' in line:
        names = [i for i, other in enumerate(lines) if other.startswith('    "') and other.islower()]
        place = next((i for i in names if lines[i] > line), names[-1] + 1)
    else:
        place = lines.index(")")
    return "\n".join([*lines[:place], line, *lines[place:]]) + "\n"


def follow(page, project):
    """Do what a page says: make the file, and add the lines to the list."""
    text = (project / page).read_text()
    (made,) = re.findall(r"^Make `([\w/.]+)`", text, re.M)
    (listed,) = re.findall(r"^In `([\w/.]+)`", text, re.M)
    (project / made).write_text(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0])
    registry = (project / listed).read_text()
    for line in re.findall(r"```text\n(.*?)```", text, re.DOTALL)[0].splitlines():
        registry = add_line(registry, line)
    (project / listed).write_text(registry)
    return {made, listed}


def call(project, *command):
    """Run a command in the copy, and return what it prints."""
    environment = os.environ | {"PYTHONPATH": str(project / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["GRADIENT_DD_ALL_RULES"] = "1"  # the copy has no git to say which rule is new
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_tests(project, names, *modules):
    """Run the tests with these names in the copy, and those of the documents that look at the lists. None may fail."""
    documents = "everything_is_documented or reference_has_every or table_of_learners"
    options = ("-n", "0", "-v", "-p", "no:cacheprovider", "-m", "slow or not slow", "-k", f"{names} or {documents}")
    return call(project, sys.executable, "-m", "pytest", *options, "tests/project/test_docs.py", *modules)


def files_of(*names):
    """Return where the test files with these names are, as a user would type it."""
    return [str(next((ROOT / "tests").glob(f"*/test_{name}.py")).relative_to(ROOT)) for name in names]


def check_house_rules(project, touched):
    """The quick ones of the checks that `make test` makes before the tests, on the files that were touched."""
    ruff = Path(sys.executable).with_name("ruff")
    call(project, ruff, "check", *touched)
    call(project, ruff, "format", "--check", *touched)


def test_the_page_about_a_learner(tmp_path):
    project = copy_project(tmp_path)
    touched = follow("docs/how-to/add-a-learner.md", project)
    assert len(touched) == 2
    check_house_rules(project, touched)
    gradient_dd = (sys.executable, "-m", "gradient_dd.cli")
    assert "GTD-DD: GTD with a penalty" in call(project, *gradient_dd, "list", "learners")
    assert "− κ (x·(w − w_prev)) x)" in call(project, *gradient_dd, "show", "gtd_dd")
    printed = run_tests(project, "gtd_dd and not sparse or list_names", *files_of("learners", "cli"))
    assert "test_contract[gtd_dd-runs_alike_in_both_engines] PASSED" in printed
    assert "test_show_a_learner[gtd_dd] PASSED" in printed


def test_the_page_about_a_task(tmp_path):
    project = copy_project(tmp_path)
    touched = follow("docs/how-to/add-a-task.md", project)
    assert len(touched) == 2
    check_house_rules(project, touched)
    gradient_dd = (sys.executable, "-m", "gradient_dd.cli")
    assert "A ring: n states in a circle" in call(project, *gradient_dd, "list", "tasks")
    assert "policies: off-policy" in call(project, *gradient_dd, "show", "ring", "n_states=4")
    program = "import gradient_dd, gymnasium; print(gymnasium.make('gradient_dd/Ring-v0').reset(seed=0)[1])"
    assert "'discount': 0.9" in call(project, sys.executable, "-c", program)
    printed = run_tests(project, "Ring or [ring or list_names", *files_of("environments", "tasks", "cli"))
    assert "checker_passes[gradient_dd/Ring-v0] PASSED" in printed
    assert "test_show_a_task[ring] PASSED" in printed
