"""Studies that cannot be: one sentence each, whatever is handed in, and nothing is started."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from gradient_dd.engine.schedules import parse_schedule
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.studies import Study, grid, load_rule, read_study, task
from tests.command import call

SMALL = Study("small", (task("random_walk", n_states=3),), (grid("td", alpha=0.1),), episodes=5)
HEAD = "episodes = 3\n"
TASK = "[[tasks]]\nname = 'random_walk'\n"
LEARNER = "[[learners]]\nlearner = 'td'\n"


@pytest.mark.parametrize(
    "text",
    ["tapered(e)", "1e", "+", "1.2.3", "tapered(1e)", "tapered(.)", "tapered(1.2.3)", "tapered(+)", "tapered()", ""],
)
def test_a_schedule_that_cannot_be_read(text):
    with pytest.raises(BadRequestError, match="'schedule' must be 'constant', 'tapered"):
        parse_schedule(text)


@pytest.mark.parametrize(("text", "n0"), [("tapered(1e3)", 1000), ("tapered(.5)", 0.5), ("tapered(2.)", 2)])
def test_a_schedule_with_any_number(text, n0):
    assert parse_schedule(text).function.n0 == n0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"tasks": (3,)},
            "Each of the tasks of study 'small' must be like task('random_walk', n_states=20).",
        ),
        ({"tasks": "random_walk"}, "'tasks' of study 'small' must be a tuple"),
        ({"tasks": None}, "'tasks' of study 'small' must be a tuple"),
        ({"grids": ("td",)}, "Each of the grids of study 'small' must be like grid('td', alpha=0.1). Got 'td'."),
        ({"grids": LEARNERS["td"]}, "'grids' of study 'small' must be a tuple"),
        ({"name": [[1]]}, "The name of a study must be text. Got [[1]]."),
        ({"name": "\ud800"}, "The name of a study must be text."),
        ({"seed": 2**63}, "'seed' of study 'small' must be less than 2⁶²."),
        ({"seed": -1}, "'seed' of study 'small' must be a whole number, 0 or more."),
        ({"runs": 2**63}, "'runs' of study 'small' must be less than 2⁶²."),
        ({"first_run": 2**70}, "'first_run' of study 'small' must be less than 2⁶²."),
        ({"runs": 10**5000}, "'runs' of study 'small' must be less than 2⁶². Got a whole number of about 5000 digits."),
        ({"episodes": 2**63}, "'episodes' must be 1e+15 or less."),
        ({"episodes": None, "steps": 2**63}, "'steps' must be 1e+15 or less."),
        ({"runs": True}, "'runs' of study 'small' must be a whole number"),
        ({"sampling": ["iid"]}, "'sampling' must be 'trajectory' or 'iid'."),
    ],
)
def test_a_study_of_odd_things(change, sentence):
    with pytest.raises(BadRequestError) as caught:
        replace(SMALL, **change)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: grid(["td"]), "The learner of a grid must be a name or a Rule. Got ['td']."),
        (lambda: grid("td", rho_mode=["R"]), "'rho_mode' of a grid of td must be 'R' or 'T'. Got ['R']."),
        (lambda: grid("td", alpha=()), "'alpha' of a grid of td must have at least one value. Got ()."),
        (lambda: grid("td", alpha=np.array([])), "'alpha' of a grid of td must have at least one value."),
        (lambda: task(["random_walk"]), "The name of a task must be text. Got ['random_walk']."),
    ],
)
def test_a_part_of_a_study_that_cannot_be(make, sentence):
    with pytest.raises(BadRequestError) as caught:
        make()
    assert sentence in str(caught.value)


def test_too_many_settings_are_refused_before_any_is_made():
    many = tuple(np.linspace(0.1, 1, 2000).tolist())
    with pytest.raises(BadRequestError, match=r"must have at most 2,000,000 settings. Got 4,000,000."):
        replace(SMALL, grids=(grid("gradient_dd", alpha=many, kappa=many),))


def test_an_array_of_values_is_several():
    assert list(replace(SMALL, grids=(grid("td", alpha=np.array([0.1, 0.2])),)).settings()) == list(
        replace(SMALL, grids=(grid("td", alpha=[0.1, 0.2]),)).settings()
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (HEAD + TASK + "[[learners]]\nlearner = ['td']", "'learner' of a study must be text. Got ['td']."),
        (HEAD + TASK + LEARNER + "rho_mode = ['R']", "'rho_mode' of a grid of td must be 'R' or 'T'."),
        ("name = [[1]]\n" + HEAD + TASK + LEARNER, "The name of a study must be text. Got [[1]]."),
        (HEAD + "[[tasks]]\nname = ['x']\n" + LEARNER, "The name of a task must be text. Got ['x']."),
        (HEAD + "[[tasks]]\nname = 'random_walk'\nn_states = [3]\n" + LEARNER, "'n_states' must be a whole number"),
        (HEAD + TASK + LEARNER + "alpha = {a = 1}", "'alpha' of td must be a positive number."),
        (HEAD + TASK + LEARNER + "alpha = [[0.1]]", "'alpha' of td must be a positive number."),
        (HEAD + TASK + LEARNER + "alpha = 2020-01-01", "'alpha' of td must be a positive number."),
        (HEAD + "schedule = ['constant']\n" + TASK + LEARNER, "'schedule' must be a Schedule or a string"),
        (HEAD + "seed = 9223372036854775808\n" + TASK + LEARNER, "'seed' of study 'study' must be less than 2⁶²."),
        ("x = " + "[" * 5000, "must be a TOML file. Got brackets nested too deeply."),
        ("runs = " + "9" * 6000, "must be a TOML file."),
        ("a.b.c = 1", "Unknown entry of a study: 'a'."),
        (HEAD + "tasks = 3\n" + LEARNER, "'tasks' of a study must be tables, [[tasks]]. Got 3."),
    ],
)
def test_odd_toml_gets_one_sentence(tmp_path, content, sentence):
    file = tmp_path / "study.toml"
    file.write_text(content)
    with pytest.raises(BadRequestError) as caught:
        read_study(file)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


# Rule files -----------------------------------------------------------------------------------------------------------

RULE = """
from dataclasses import replace
from gradient_dd.learners.td import TD
R = replace(TD, name="mine", module=__name__)
"""


def test_a_rule_file_never_replaces_a_module(tmp_path):
    (tmp_path / "json.py").write_text('"""My rule."""\n' + RULE)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "json.py").write_text('"""Another."""\n' + RULE)
    mine, another = (load_rule(f"{folder}/json.py:R") for folder in (tmp_path, tmp_path / "other"))
    assert sys.modules["json"] is json
    assert (mine.doc, another.doc) == ("My rule.", "Another.")
    assert mine.file == tmp_path / "json.py"


@pytest.mark.parametrize(
    "code", ["exit()", "raise SystemExit(0)", "import sys; sys.exit('bye')", "1 /", "import nowhere"]
)
def test_a_rule_file_that_ends_gets_one_sentence(tmp_path, code):
    (tmp_path / "r.py").write_text(code)
    before = set(sys.modules)
    with pytest.raises(BadRequestError, match=r"must run without errors. Got"):
        load_rule(f"{tmp_path}/r.py:R")
    assert set(sys.modules) - before == set()


# The command line ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["--schedule", "tapered(e)"], 2, "'schedule' must be"),
        (["--seed", "99999999999999999999"], 2, "'seed' of study 'sweep' must be less than 2⁶²."),
        (["--out", ""], 2, "The results file must have a name."),
        (["--out", "x" * 300], 1, "as a results file: File name too long."),
        (["--out", "file/a.db"], 1, "cannot be opened: its folder does not exist or is not writable."),
        (["--dask", "nowhere"], 2, "'--dask' must be an address like tcp://HOST:8786, or 'local'. Got 'nowhere'."),
        (["--alpha", "1e-3..1:1000000000", "--dry-run"], 2, "must be at most 2,000,000 numbers."),
    ],
)
def test_the_command_says_one_sentence_and_makes_nothing(tmp_path, monkeypatch, arguments, code, sentence):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    result = call("sweep", "--task", "random_walk:n_states=3", "--learner", "td", "--episodes", "3", *arguments)
    assert result.returncode == code
    assert sentence in result.stderr
    assert result.stderr.count("Error: ") == 1
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_file_where_a_folder_is_meant(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    for command in ("plot", "reproduce"):
        result = call(command, "--out", "file")
        assert (result.returncode, result.stderr) == (2, "Error: '--out' must be a folder. Got a file.\n"), command


def test_a_parameter_that_is_nested_without_end_is_refused():
    """Python's own limit would end in a RecursionError."""
    nested: list = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(ValueError, match="must have at most 50 nested lists"):
        task("random_mdp", n_states=nested)
