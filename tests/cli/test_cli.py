"""The command line, as a user meets it: in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gradient_dd import __version__
from gradient_dd.cli.commands import COMMANDS
from gradient_dd.learners import LEARNERS
from gradient_dd.tasks import TASKS

COMMAND = [str(Path(sys.executable).parent / "gradient-dd")]


def call(*arguments):
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_help_and_version():
    assert "show gradient_dd" in call("--help").stdout
    assert call("--version").stdout == f"gradient-dd, version {__version__}\n"
    for command in COMMANDS:
        assert call(command.name, "--help").returncode == 0


def test_list_names_everything():
    output = call("list").stdout
    assert all(name in output for name in (*LEARNERS, *TASKS))
    listed = json.loads(call("list", "tasks", "--json").stdout)
    assert list(listed) == ["tasks"]
    assert list(listed["tasks"]) == list(TASKS)


@pytest.mark.parametrize("name", LEARNERS)
def test_show_a_learner(name):
    facts = json.loads(call("show", name, "--json").stdout)
    rule = LEARNERS[name]
    assert facts["equation"] == rule.equation.splitlines()
    assert list(facts["parameters"]) == list(rule.defaults)
    assert facts["file"] == f"gradient_dd/learners/{name}.py"


@pytest.mark.parametrize("name", TASKS)
def test_show_a_task(name):
    facts = json.loads(call("show", name, "--json").stdout)
    assert sum(facts["visits d"]) == pytest.approx(1)
    assert facts["file"] == f"gradient_dd/tasks/{name}.py"
    text = call("show", name).stdout
    assert "condition number of A" in text


def test_show_a_task_of_another_size():
    facts = json.loads(call("show", "random_walk", "n_states=40", "features=linear", "--json").stdout)
    assert facts["expected length of an episode"] == pytest.approx(420)
    assert facts["features"] == "11, rank 11"
    assert json.loads(call("show", "random_mdp", "episodic=true", "discount=0.5", "--json").stdout)["states"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "gradient-dd"], "Error: Unknown learner or task 'gradient-dd'. Did you mean 'gradient_dd'?"),
        (["show", "xyzzy"], "Error: Unknown learner or task 'xyzzy'. Known: td, gtd, "),
        (["show", "baird", "n_states=2"], "Error: 'n_states' must be a whole number, 3 or more. Got 2."),
        (["show", "baird", "n_states"], "Error: A parameter must be written NAME=VALUE. Got 'n_states'."),
        (["show", "baird", "size=3"], "Error: Unknown parameter of baird: 'size'."),
        (["show", "baird", "name=3"], "Error: Unknown parameter of baird: 'name'."),
        (["show", "td", "alpha=3"], "Error: A learner must be shown by its name alone. Got 'alpha=3'."),
        (["reproduce", "wak"], "Error: Unknown figure 'wak'. Did you mean 'walk'?"),
        (["list", "things"], "'things' is not one of"),
        (["lisst"], "No such command 'lisst'"),
    ],
)
def test_a_mistake_gets_one_sentence_and_exit_code_2(arguments, sentence):
    result = call(*arguments)
    assert result.returncode == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert not result.stdout
