"""The command line: what commands print of learners, tasks, results and kernels, and the sentence for each mistake."""

import json
import subprocess
import sys
from contextlib import redirect_stdout
from inspect import signature
from io import BytesIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest

from gradient_dd import __version__, tasks
from gradient_dd.cli.commands import COMMANDS
from gradient_dd.cli.listing import block, condition, describe_learner, describe_task
from gradient_dd.cli.options import finite, json_text, table, text_of
from gradient_dd.engine import kernel_folder
from gradient_dd.errors import printable
from gradient_dd.learners import LEARNERS
from gradient_dd.studies import load_rule
from gradient_dd.tasks import TASKS

ROOT = Path(__file__).parents[2]
SCRIPT = str(Path(sys.executable).parent / "gradient-dd")


@pytest.mark.parametrize("program", [[SCRIPT], [sys.executable, "-m", "gradient_dd.cli"]], ids=["script", "module"])
def test_the_program_starts_both_ways(program):
    shown = subprocess.run([*program, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == f"gradient-dd, version {__version__}\n"


def test_help_and_version(command):
    assert "show gradient_dd" in command("--help").out
    assert command("-h") == command("--help")
    assert command("--version").out == f"gradient-dd, version {__version__}\n"
    for one in COMMANDS:
        assert command(one.name, "--help").code == 0


def test_list_names_everything(command):
    output = command("list").out
    assert all(name in output for name in (*LEARNERS, *TASKS))
    assert [line for line in output.splitlines() if not line.startswith(" ")] == ["learners:", "tasks:", "figures:"]
    learners = command("list", "learners").out.splitlines()
    width = max(map(len, LEARNERS))
    assert [line.split()[0] for line in learners[1:] if not line.startswith(" " * 4)] == list(LEARNERS)
    assert max(map(len, learners)) <= 100
    (line,) = (line for line in learners if line.startswith("  gradient_dd "))
    summary = "Gradient-DD: GTD2 with a penalty on the change in values since the last step."
    assert line == f"  {'gradient_dd':{width}}  {summary}"
    listed = json.loads(command("list", "tasks", "--json").out)
    parameters = ", ".join(f"{one.name}={one.default!r}" for one in signature(tasks.random_walk).parameters.values())
    assert list(listed) == ["tasks"]
    assert list(listed["tasks"]) == list(TASKS)
    assert listed["tasks"]["random_walk"].endswith(f" ({parameters})")


@pytest.mark.parametrize("name", LEARNERS)
def test_show_a_learner(name, command):
    facts = json.loads(command("show", name, "--json").out)
    rule = LEARNERS[name]
    assert facts["equation"] == rule.equation.splitlines()
    assert list(facts["parameters"]) == list(rule.defaults)
    assert facts["file"] == f"gradient_dd/learners/{name}.py"
    assert facts["cost of a step"] == ("O(p²)" if rule.natural else "O(non-zeros)")
    assert isinstance(facts["rho_mode"], dict) == rule.has_rho_mode


@pytest.mark.parametrize("name", TASKS)
def test_show_a_task(name, command):
    facts = json.loads(command("show", name, "--json").out)
    assert sum(facts["visits d"]) == pytest.approx(1)
    assert facts["file"] == f"gradient_dd/tasks/{name}.py"
    text = command("show", name).out
    assert "condition number of A" in text
    assert "\nmatrices: " not in text


def test_show_a_task_of_another_size(command):
    facts = json.loads(command("show", "random_walk", "n_states=40", "features=linear", "--json").out)
    assert facts["expected length of an episode"] == pytest.approx(420)
    assert facts["features"] == "11, rank 11"
    assert json.loads(command("show", "random_mdp", "episodic=true", "discount=0.5", "--json").out)["states"]


def test_facts_of_a_task_are_those_of_its_tables():
    walk, baird = describe_task(tasks.random_walk(5)), describe_task(tasks.baird(7))
    assert (walk["states"], walk["actions"], walk["policies"]) == ("5 and 2 terminal", 2, "on-policy")
    assert (baird["policies"], baird["expected length of an episode"]) == ("off-policy", "episodes never end")
    assert (baird["rank of A"], baird["features"]) == (7, "8, rank 7")
    assert baird["smallest real part of the eigenvalues of A"] < 0 < walk["smallest real part of the eigenvalues of A"]
    assert baird["ratios"] == "target / behaviour"
    assert describe_task(tasks.baird(7, ratios="paper"))["ratios"].startswith("defined by the task")
    assert walk["discount"] == [1.0]
    own = describe_task(tasks.from_tables(np.ones((1, 1, 1)), np.ones((1, 1, 1)), 0.9, np.ones((1, 1))))
    assert (own["summary"], own["file"]) == ("user-defined task", "")
    assert condition(np.diag([4.0, 0.5, 0.0])) == 8.0
    assert condition(np.zeros((2, 2))) == float("inf")


def test_facts_as_text():
    assert block("a", {"b": "c"}) == "a:\n  b: c"
    assert block("a", ["b", "c"]) == "a:\n  b\n  c"
    assert block("a", [1.0, 0.123456]) == "a: 1 0.1235"
    assert block("a", [float(i) for i in range(12)]) == "a: 0 1 2 3 4 5 6 7 8 9 10 11"
    assert block("a", [float(i) for i in range(13)]) == "a: 0 1 2 3 4 5 … 8 9 10 11 12"
    assert block("a", 1 / 3) == "a: 0.333333"
    assert block("a", 7) == "a: 7"


def test_facts_of_a_learner_name_the_file_of_its_rule(tmp_path):
    td = LEARNERS["td"]
    alpha = td.parameters[0]
    assert describe_learner(td)["parameters"]["alpha"] == f"{alpha.meaning}; {alpha.legal}, default {alpha.default:g}"
    (tmp_path / "mine.py").write_text((ROOT / "examples" / "my_rule.py").read_text())
    assert describe_learner(load_rule(f"{tmp_path / 'mine.py'}:TDC_DD"))["file"] == str(tmp_path / "mine.py")


def test_text_in_columns_and_data():
    assert table([("a", "bb"), ("ccc", "d")], ("x", "y")) == "x    y\na    bb\nccc  d"
    assert text_of(["one", ([("a",)], ("x",)), ""]) == "one\nx\na\n"
    assert printable("a\x1b[1m\nβ\u202e") == "a\\x1b[1m\nβ\\u202e"
    assert finite({"a": [float("nan"), (1.0, float("inf"))], "b": "nan"}) == {"a": [None, [1.0, None]], "b": "nan"}
    assert json_text({"a": float("-inf"), "b": "η"}) == '{\n  "a": null,\n  "b": "η"\n}'
    with redirect_stdout(TextIOWrapper(BytesIO(), encoding="latin-1")):
        assert json_text("η") == '"\\u03b7"'


MISTAKES = [
    (["show", "gradient-dd"], "Error: Unknown learner or task 'gradient-dd'. Did you mean 'gradient_dd'?"),
    (["show", "my.py:RULE"], "Error: 'show' must be given a rule in a file as --rule FILE.py:NAME. Got 'my.py:RULE'."),
    (["show", "xyzzy"], "Error: Unknown learner or task 'xyzzy'. Known: td, gtd, "),
    (["show", "baird", "n_states=2"], "Error: 'n_states' must be a whole number, 3 or more. Got 2."),
    (["show", "baird", "n_states"], "Error: A parameter must be written NAME=VALUE. Got 'n_states'."),
    (["show", "baird", "=3"], "Error: A parameter must be written NAME=VALUE. Got '=3'."),
    (["show", "baird", "size=3"], "Error: Unknown parameter of baird: 'size'."),
    (["show", "baird", "name=3"], "Error: Unknown parameter of baird: 'name'."),
    (["show", "td", "alpha=3"], "Error: A learner must be shown without parameters. Got 'alpha=3'."),
    (["reproduce", "wak"], "Error: Unknown figure 'wak'. Did you mean 'walk'?"),
    (["list", "things"], "'things' is not one of"),
    (["lisst"], "No such command 'lisst'"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES, ids=[" ".join(words) for words, _ in MISTAKES])
def test_a_mistake_gets_one_sentence_and_exit_code_2(words, sentence, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = command(*words)
    assert done.code == 2
    assert sentence in done.err
    assert "Traceback" not in done.err
    assert not done.out
    assert not list(tmp_path.iterdir())


def test_the_folder_of_kernels_is_shown_and_cleared(command, tmp_path, monkeypatch):
    monkeypatch.setenv("GRADIENT_DD_CACHE", str(tmp_path))
    facts = json.loads(command("cache", "--json").out)
    assert (facts["folder"], facts["kernels"], facts["bytes"]) == (str(tmp_path), 0, 0)
    assert "removed" not in facts
    assert command("cache").out.startswith(
        f"0 kernels, 0.0 MB of at most {facts['limit'] / 1e6:.0f} MB, in {tmp_path}."
    )
    removed = []
    monkeypatch.setattr(kernel_folder, "clear", lambda: removed.append("all") or 3)
    command("cache")
    assert not removed
    assert command("cache", "--clear").out == f"3 kernels removed from {tmp_path}.\n"
    assert json.loads(command("cache", "--clear", "--json").out)["removed"] == 3
    monkeypatch.setenv("GRADIENT_DD_CACHE", "off")
    assert command("cache").out == "No kernels are stored: GRADIENT_DD_CACHE is off, or there is no home folder.\n"
