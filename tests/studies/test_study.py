"""Studies: data that say what to run, and are refused before anything starts if they cannot be."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradient_dd import tasks
from gradient_dd.engine.schedules import Schedule, constant, parse_schedule, tapered
from gradient_dd.errors import BadRequestError
from gradient_dd.learners import LEARNERS
from gradient_dd.studies import Study, grid, load_rule, read_study, task

ROOT = Path(__file__).parents[2]
SMALL = Study(
    "small",
    tasks=(task("random_walk", n_states=3), task("random_walk", n_states=5)),
    grids=(grid("td", alpha=(0.1, 0.2)), grid("gradient_dd", alpha=0.1, kappa=(1, 2))),
    episodes=20,
    runs=3,
)


def keys(study):
    return [key for one in study.built_tasks for key, *_ in study.lanes(one)]


def test_a_study_is_a_value():
    assert hash(SMALL) == hash(replace(SMALL))
    assert replace(SMALL) == SMALL
    assert "td: alpha 0.1 0.2" in str(SMALL)
    assert "4 settings x 2 tasks x 3 runs" in str(SMALL)


def test_a_setting_named_twice_is_run_once():
    twice = replace(SMALL, grids=(*SMALL.grids, grid("td", alpha=(0.2, 0.3))))
    assert twice.n_settings == 5


def test_keys_name_everything_a_result_depends_on():
    """Change anything but the run and it is another result; change what does not matter and it is the same."""
    ours = keys(SMALL)
    assert len(set(ours)) == 8
    same = [replace(SMALL, runs=9), replace(SMALL, first_run=4), replace(SMALL, name="other")]
    assert all(keys(study) == ours for study in same)
    others = [
        replace(SMALL, seed=1),
        replace(SMALL, episodes=21),
        replace(SMALL, sampling="iid"),
        replace(SMALL, schedule=tapered(10)),
        replace(SMALL, schedule=Schedule(lambda n: 1.0)),
    ]
    assert all(not set(keys(study)) & set(ours) for study in others)


def test_keys_know_the_version_of_the_engine(monkeypatch):
    ours = keys(SMALL)
    monkeypatch.setattr("gradient_dd.studies.study.ENGINE_VERSION", 99)
    assert not set(keys(SMALL)) & set(ours)


def test_keys_know_the_code_of_a_schedule():
    """Two functions of the same name are two schedules; comments and layout make no difference."""

    def made(text):
        place = {}
        exec(text, place)
        return Schedule(place["root"])

    first, other = made("def root(n):\n    return 1 / n**0.5"), made("def root(n):\n    return 1 / n**0.6")
    assert str(first) == str(other)
    assert not set(keys(replace(SMALL, schedule=first))) & set(keys(replace(SMALL, schedule=other)))
    per_step = replace(SMALL, schedule=Schedule(first.function, per="step"))
    assert not set(keys(replace(SMALL, schedule=first))) & set(keys(per_step))


KINDS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64]


@given(st.sampled_from(KINDS), st.integers(1, 5), st.integers(1, 3), st.sampled_from([float, np.float64, np.float32]))
def test_every_number_in_a_key_or_a_file_is_a_plain_one(whole, count, state, real):
    """The same study, its numbers given as NumPy's: the same keys, and facts that JSON and SQLite can hold."""

    def made(whole, real):
        tasks_of = (
            task("random_walk", n_states=whole(3), start=whole(state)),
            tasks.random_walk(5, start=whole(state)),
        )
        grids = (grid("gradient_dd", alpha=(real(0.5), real(0.25)), kappa=whole(2)), grid("td", alpha=real(0.5)))
        counts = {"episodes": whole(count), "runs": whole(2), "first_run": whole(1), "seed": whole(count)}
        return Study("plain", tasks_of, grids, tapered(whole(10)), **counts)

    ours, plain = made(whole, real), made(int, float)
    assert keys(ours) == keys(plain)
    assert str(ours) == str(plain)
    for one, other in zip(ours.built_tasks, plain.built_tasks, strict=True):
        for (_, _, facts), (_, _, wanted) in zip(ours.lanes(one), plain.lanes(other), strict=True):
            assert facts == wanted
            assert all(type(value) in (int, float, str, dict, type(None)) for value in facts.values()), facts
            assert all(type(value) is float for value in facts["values"].values())
    assert all(type(number) is int for number in (ours.runs, ours.first_run, ours.seed, ours.episodes, ours.every))


def test_a_task_of_your_own_with_numpy_s_numbers_has_the_key_of_plain_ones():
    walk = tasks.random_walk(3)
    one = replace(walk, parameters={"size": 7, "share": 0.5})
    other = replace(walk, parameters={"size": np.int64(7), "share": np.float32(0.5)})
    assert [key for key, *_ in SMALL.lanes(one)] == [key for key, *_ in SMALL.lanes(other)]
    assert {facts["size"] for *_, facts in SMALL.lanes(other)} == {7}


def test_a_changed_definition_says_the_same_but_is_another():
    def step(alpha, rho, delta):
        return (0.5 * alpha * rho * delta,)

    changed = replace(LEARNERS["td"], step=step)
    before, after = (replace(SMALL, grids=(grid(rule, alpha=0.1),)) for rule in ("td", changed))
    (old, _, old_facts), *_ = before.lanes(tasks.random_walk(3))
    (new, _, new_facts), *_ = after.lanes(tasks.random_walk(3))
    assert old != new
    assert old_facts["description"] == new_facts["description"]
    moved = replace(tasks.random_walk(3), initial_weights=tasks.random_walk(3).initial_weights + 0.1)
    (other, *_), *_ = before.lanes(moved)
    assert other != old


def test_fresh_runs_are_others():
    chosen = [next(SMALL.settings())]
    fresh = SMALL.fresh(5, chosen)
    assert list(fresh.run_numbers) == [3, 4, 5, 6, 7]
    assert list(fresh.settings()) == chosen


def test_fresh_runs_follow_the_study_s_own_wherever_these_begin():
    later = replace(SMALL, first_run=4, runs=3)
    fresh = later.fresh(2, [next(SMALL.settings())])
    assert list(fresh.run_numbers) == [7, 8]
    assert not set(fresh.run_numbers) & set(later.run_numbers)


def test_the_estimate_counts():
    work = SMALL.estimate()
    length = sum(20 * tasks.random_walk(m).expected_length for m in (3, 5))
    assert work["updates"] == pytest.approx(length * 4 * 3)


def test_the_example_study_is_read():
    study = read_study(ROOT / "examples" / "study.toml")
    assert study.n_settings == 18
    assert study.schedule == tapered(1000)
    assert str(study.built_tasks[0]) == "random_walk(n_states=10)"


def test_the_example_rule_is_loaded():
    rule = load_rule(str(ROOT / "examples" / "my_rule.py") + ":TDC_DD")
    assert rule.label == "my TDC-DD"
    assert "− κ" in rule.equation


@pytest.mark.parametrize(
    ("text", "schedule"),
    [("constant", constant), ("tapered(1000)", tapered(1000)), ("tapered(5) per step", tapered(5, per="step"))],
)
def test_schedules_are_parsed(text, schedule):
    assert parse_schedule(text) == schedule
    assert parse_schedule(str(schedule)) == schedule


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"runs": 0}, "'runs' of study 'small' must be a whole number, 1 or more. Got 0."),
        ({"tasks": ()}, "'tasks' of study 'small' must have at least one entry. Got ()."),
        ({"episodes": None}, "A run must have either 'episodes' or 'steps'."),
        ({"sampling": "x"}, "'sampling' must be 'trajectory' or 'iid'. Got 'x'."),
        ({"tasks": (task("baird"),)}, "A run of baird must be given in 'steps'"),
        ({"tasks": (task("walk"),)}, "Unknown task 'walk'."),
        ({"grids": (grid("tdd"),)}, "Unknown learner 'tdd'. Did you mean 'td'?"),
        ({"grids": (grid("td", alpha=(0.1, -1)),)}, "'alpha' of td must be a positive number. Got -1."),
        ({"grids": (grid("td", kappa=1),)}, "td has no parameter 'kappa'. It has alpha, lam."),
        ({"schedule": "tapered"}, "'schedule' must be 'constant', 'tapered(1000)'"),
    ],
)
def test_a_study_that_cannot_be_is_refused_before_anything_starts(change, sentence):
    with pytest.raises(BadRequestError) as caught:
        replace(SMALL, **change)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("runs = ", "must be a TOML file."),
        ("speed = 3", "Unknown entry of a study: 'speed'."),
        ("runs = 3", "'tasks' of a study must be tables, [[tasks]]. Got None."),
        ("episodes = 3\n[[tasks]]\nn_states = 3\n[[learners]]\nlearner = 'td'", "A task of a study must have 'name'."),
        (
            "episodes = 3\nschedule = 'fast'\n[[tasks]]\nname = 'baird'\n[[learners]]\nlearner = 'td'",
            "'schedule' must be",
        ),
        ("episodes = 3\n[[tasks]]\nname = 'baird'\n[[learners]]\nlearner = 'tdx'", "Unknown learner 'tdx'."),
    ],
)
def test_a_bad_file_gets_one_sentence(tmp_path, content, sentence):
    file = tmp_path / "study.toml"
    file.write_text(content)
    with pytest.raises(BadRequestError) as caught:
        read_study(file)
    assert sentence in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadRequestError, match=r"Cannot read .*none\.toml': No such file or directory\."):
        read_study(tmp_path / "none.toml")


def test_a_rule_that_cannot_be_loaded_gets_one_sentence(tmp_path):
    broken, plain = tmp_path / "broken.py", tmp_path / "plain.py"
    broken.write_text("1 / 0")
    plain.write_text("from gradient_dd.learners.td import TD\nX = 3")
    for place, sentence in (
        ("nowhere", "A rule must be given as FILE.py:NAME. Got 'nowhere'."),
        (f"{tmp_path}/none.py:X", "none.py': No such file or directory."),
        (f"{broken}:X", "must run without errors. Got ZeroDivisionError: division by zero."),
        (f"{plain}:X", "must be a Rule. Got 3. The file has TD."),
        (f"{plain}:TD", "must not be the name of a registered learner. Got 'td'."),
    ):
        with pytest.raises(BadRequestError) as caught:
            load_rule(place)
        assert sentence in str(caught.value)
