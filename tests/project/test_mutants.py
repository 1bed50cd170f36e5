"""The tool that plants errors: every source file is watched by tests, and a sample is even over the rooms."""

from collections import Counter

import pytest

from tools import mutants

FILES = [path.relative_to(mutants.SOURCE).as_posix() for path in sorted(mutants.SOURCE.rglob("*.py"))]


def test_every_source_file_is_watched_by_tests():
    unwatched = [file for file in FILES if not mutants.watchers(file)]
    assert unwatched == []


@pytest.mark.parametrize(
    ("file", "first"), [("learners/gtd2.py", "learners"), ("tasks/exact.py", "tasks/test_exact.py")]
)
def test_the_tests_of_a_file_and_of_its_room_come_first(file, first):
    assert str(mutants.watchers(file)[0].relative_to(mutants.TESTS)).startswith(first)


def test_a_sample_has_as_many_mutants_from_each_room():
    every = [mutants.Mutant(f"{room}/a.py", line, line, "", "") for room in "abc" for line in range(10)]
    every += [mutants.Mutant("b/only.py", 1, 0, "", "")]
    chosen = mutants.sampled(every, 12, seed=1)
    assert Counter(mutants.room_of(mutant.file) for mutant in chosen) == {"a": 4, "b": 4, "c": 4}
    assert chosen == mutants.sampled(every, 12, seed=1)
    assert chosen != mutants.sampled(every, 12, seed=2)


def test_mutants_of_a_file_change_one_place_each(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    (tmp_path / "a.py").write_text("def f(x):\n    return x + 1 if x < 2 else -x\n")
    made = {
        (mutant.before, mutant.after): mutants.source_of(mutant) for mutant in mutants.mutants_of(tmp_path / "a.py")
    }
    assert {("x + 1", "x - 1"), ("x < 2", "x <= 2"), ("1", "2"), ("2", "3"), ("-x", "x")} <= set(made)
    assert made["x < 2", "x <= 2"] == "def f(x):\n    return x + 1 if x <= 2 else -x"
    assert len(set(made.values())) == len(made)
