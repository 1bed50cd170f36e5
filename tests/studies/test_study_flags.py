"""Flags and study files: flags replace what a file says and it is said; what cannot be combined is refused."""

from pathlib import Path

import pytest

from gradient_dd.cli.flags import CONDITIONS, GRID_FLAGS, study_from_file, study_from_flags, values_of
from gradient_dd.engine.schedules import constant, tapered
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import Parameter, Rule
from gradient_dd.learners.rule import ALPHA
from gradient_dd.studies import load_rule
from tests.command import call

ROOT = Path(__file__).parents[2]
NOTHING = dict.fromkeys(CONDITIONS) | dict.fromkeys(GRID_FLAGS) | {"tasks": (), "learners": ()}
NOTHING |= {"others": ()}
FILE = """
episodes = 300
runs = 5
schedule = "tapered(1000)"
[[tasks]]
name = "random_walk"
n_states = 10
[[learners]]
learner = "td"
alpha = [0.03, 0.1]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    return str(path)


def test_a_file_alone_is_what_it_says(file):
    study, changes = study_from_file(file, NOTHING, {})
    assert (study.episodes, study.runs, study.seed, study.schedule) == (300, 5, 0, tapered(1000))
    assert changes == []


@pytest.mark.parametrize(
    ("flag", "value", "field", "wanted", "sentence"),
    [
        ("runs", 7, "runs", 7, "--runs 7 is used instead of 5 in study.toml."),
        ("episodes", 9, "episodes", 9, "--episodes 9 is used instead of 300 in study.toml."),
        ("seed", 3, "seed", 3, "--seed 3 is used instead of the default in study.toml."),
        ("sampling", "iid", "sampling", "iid", "--sampling iid is used instead of the default in study.toml."),
        (
            *("schedule", "constant", "schedule", constant),
            "--schedule constant is used instead of tapered(1000) in study.toml.",
        ),
    ],
)
def test_a_flag_replaces_what_the_file_says_and_it_is_said(file, flag, value, field, wanted, sentence):
    study, changes = study_from_file(file, NOTHING | {flag: value}, {})
    assert getattr(study, field) == wanted
    assert changes == [sentence]


def test_another_length_replaces_the_file_s(file):
    study, changes = study_from_file(file, NOTHING | {"steps": 200, "every": 10}, {})
    assert (study.episodes, study.steps, study.every) == (None, 200, 10)
    assert "episodes = 300 in study.toml is ignored, because --steps is given." in changes


def test_the_same_value_changes_nothing_and_says_nothing(file):
    assert study_from_file(file, NOTHING | {"runs": 5}, {})[1] == []


@pytest.mark.parametrize(
    ("flag", "value", "word"),
    [
        ("tasks", ("baird",), "'--task'"),
        ("learners", ("td",), "'--learner'"),
        ("alpha", "0.1", "'--alpha'"),
        ("zeta", "1", "'--zeta'"),
        ("kappa", "1", "'--kappa'"),
        ("others", ("reg=1",), "'--set'"),
    ],
)
def test_what_cannot_be_combined_is_refused(file, flag, value, word):
    with pytest.raises(BadRequestError, match=f"{word} must be omitted if a study file is given"):
        study_from_file(file, NOTHING | {flag: value}, {})


def test_a_rule_that_the_file_does_not_name_is_refused(file):
    rule = load_rule(f"{ROOT / 'examples' / 'my_rule.py'}:TDC_DD")
    with pytest.raises(BadRequestError, match="must be one of the learners in the file"):
        study_from_file(file, NOTHING, {rule.name: rule})


def test_the_command_uses_the_flag_and_says_so(file, tmp_path):
    result = call("sweep", file, "--runs", "7", "--dry-run")
    assert "Note: --runs 7 is used instead of 5 in study.toml." in result.stderr
    assert "300 episodes, 7 runs" in result.stderr


def test_without_a_file_runs_are_ten_and_the_seed_is_zero():
    flags = NOTHING | {"tasks": ("random_walk:n_states=3",), "learners": ("td", "gtd2:T"), "alpha": "0.1,0.2"}
    study = study_from_flags(flags | {"episodes": 5}, {})
    assert (study.runs, study.seed, study.every, study.sampling, study.n_settings) == (10, 0, 1, "trajectory", 4)


def test_every_learner_gets_the_parameters_it_has():
    clip = Parameter("clip", "bound of δ", default=1.0)
    rule = Rule("clipped", "C", lambda alpha, clip: (alpha * clip,), ("w_x",), (ALPHA, clip), "A test.", __name__)
    flags = NOTHING | {"tasks": ("random_walk:n_states=3",), "learners": ("td",), "others": ("clip=1,2",)}
    study = study_from_flags(flags | {"alpha": "0.1,0.2", "episodes": 5}, {"clipped": rule})
    assert [(s.rule.name, s.values.get("clip")) for s in study.settings()] == [
        *[("td", None)] * 2,
        *[("clipped", 1.0), ("clipped", 2.0)] * 2,
    ]


def test_values_beyond_count_are_refused_at_once():
    assert values_of("alpha", "0.1,1..100:3") == pytest.approx([0.1, 1, 10, 100])
    with pytest.raises(BadRequestError, match=r"must be at most 2,000,000 numbers. Got 1,000,000,000 values"):
        values_of("alpha", "1e-3..1:1000000000")
