"""The tool that plants errors: what it changes, which tests it takes for a line, and how it judges what they do."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tools import mutants, mutations, watchers

ROOT = Path(__file__).parents[2]
CODE = """LIMIT = 3
TWICE = LIMIT * 2


def inside(x, most=LIMIT, least=-9):
    # a comment stays
    return x + 1 if x < most else -x


def larger(x):
    return (x
            > TWICE)
"""
TESTS = """import threading
from functools import cache
import pytest
from gradient_dd.a import inside, larger, same


@cache
def value():
    return inside(1)


@pytest.fixture(scope="module")
def other():
    return larger(1)


def test_first():
    assert value() == 2

def test_cached():
    assert value() == 2

def test_fixture(other):
    assert not other

def test_same_fixture(other):
    assert not other

def test_thread():
    thread = threading.Thread(target=larger, args=(1,))
    thread.start()
    thread.join()

def test_none():
    assert True
"""


def planted(tmp_path, monkeypatch, code=CODE):
    """Return the mutants of a small source file, by what they change."""
    source = tmp_path / "src" / "gradient_dd"
    source.mkdir(parents=True)
    (source / "a.py").write_text(code)
    for module in (mutations, watchers):
        monkeypatch.setattr(module, "SOURCE", source)
    return {(mutant.before, mutant.after): mutant for mutant in mutations.mutants_of(source / "a.py")}


def test_a_mutant_changes_one_place_and_leaves_the_rest_of_the_text(tmp_path, monkeypatch):
    made = planted(tmp_path, monkeypatch)
    assert {("x + 1", "x - 1"), ("x < most", "x <= most"), ("1", "2"), ("-x", "x"), ("3", "4")} <= set(made)
    texts = {change: mutations.source_of(mutant) for change, mutant in made.items()}
    assert texts["x < most", "x <= most"] == CODE.replace("x < most", "(x <= most)")
    assert texts["x > TWICE", "x >= TWICE"].splitlines()[-2].strip() == "return ((x >= TWICE) \\"
    assert len(set(texts.values())) == len(made)
    assert {text.count("\n") for text in texts.values()} == {CODE.count("\n")}
    for text in texts.values():
        compile(text, "a.py", "exec")


def test_an_equivalent_mutant_is_known_by_its_line_and_no_entry_is_out_of_date():
    known, paths = mutants.known_equivalents(), sorted(mutations.SOURCE.rglob("*.py"))
    files = {name.partition(" | ")[0] for name in known}
    made = {one.name for path in paths if path.relative_to(mutations.SOURCE).as_posix() in files
            for one in mutations.mutants_of(path)}  # fmt: skip
    assert known
    assert known - made == set()


def test_a_sample_has_as_many_mutants_from_each_package():
    every = [mutations.Mutant(f"{package}/a.py", line, line, "", "", "") for package in "abc" for line in range(10)]
    every += [mutations.Mutant("b/only.py", 0, 1, "", "", "")]
    chosen = mutants.sampled(every, 12, seed=1)
    assert Counter(mutant.package for mutant in chosen) == {"a": 4, "b": 4, "c": 4}
    assert chosen == mutants.sampled(every, 12, seed=1)
    assert chosen != mutants.sampled(every, 12, seed=2)


def test_a_line_is_watched_by_the_tests_that_execute_it_and_a_constant_by_those_of_its_readers(tmp_path, monkeypatch):
    made = planted(tmp_path, monkeypatch)
    monkeypatch.setattr(watchers, "ROOT", tmp_path)
    watchers.mentions.cache_clear()
    (tmp_path / "tests.py").write_text("")

    def facts(seconds, *lines, shares=False):
        lines = {"a.py": f"{sum(1 << n for n in lines):x}"}
        return {"failed": False, "seconds": seconds, "kernels": 0, "lines": lines, "shares": shares}

    record = watchers.Record(
        {"tests.py::slow": facts(9.0, 7), "tests.py::quick": facts(0.01, 7), "tests.py::larger": facts(1.0, 12)}
    )
    assert record.watchers(made["x + 1", "x - 1"]) == ["tests.py::quick", "tests.py::slow"]
    assert record.watchers(made["x > TWICE", "x >= TWICE"]) == ["tests.py::larger"]
    assert record.watchers(made["LIMIT * 2", "LIMIT / 2"]) == ["tests.py::larger"]
    assert record.watchers(made["9", "10"]) == ["tests.py::quick", "tests.py::slow"]
    assert record.watchers(made["3", "4"]) == ["tests.py::quick", "tests.py::larger", "tests.py::slow"]
    record.tests["tests.py::quick"]["shares"] = True
    record.slowest["tests.py"] = 9.0  # of another test with the same fixture, which must not be run after it
    assert record.watchers(made["x + 1", "x - 1"]) == ["tests.py::slow", "tests.py::quick"]
    record.left_out.append("tests.py::quick")
    assert record.watchers(made["x + 1", "x - 1"]) == ["tests.py::slow"]


PROGRAM = """
import json, numba, pytest, sys
from pathlib import Path
from tools import mutant_runs
from tools.mutant_runs import Job, judge, run
copy, tests = Path(sys.argv[1]), ["test_a.py::test_none", "test_a.py::test_cached", "test_a.py::test_fixture"]
mutant_runs.KERNELS = copy / "kernels"
whole = (copy / "src/gradient_dd/a.py").read_text()
found = {}
for name, old, new in json.loads(sys.argv[2]):
    (copy / "src/gradient_dd/a.py").write_text(whole.replace(old, new))
    found[name] = run(Job(["test_a.py"]), copy) if name == "record" else judge(Job(tests, "a.py", "", [1.0] * 3), copy)
print(json.dumps(found))
"""


def run_cases(folder, *cases):
    """Return how jobs on a small project end, where each case (name, old, new) replaces a text of the source."""
    source = folder / "src" / "gradient_dd"
    source.mkdir(parents=True)
    (source / "__init__.py").touch()
    (source / "a.py").write_text(CODE + "\n\ndef same(x):\n    return x\n")
    (folder / "test_a.py").write_text(TESTS)
    (folder / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    call = [sys.executable, "-c", PROGRAM, str(folder), json.dumps(cases)]
    return json.loads(subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def test_a_test_has_the_lines_of_the_fixtures_and_cached_values_that_it_uses(tmp_path):
    tests = run_cases(tmp_path, ("record", "", ""))["record"][3]
    lines = {name.partition("::")[2]: int(test["lines"].get("a.py", "0"), 16) for name, test in tests.items()}
    inside, larger = 1 << 7, 1 << 11
    for name, (first, second) in {
        "test_first": (True, False), "test_cached": (True, False), "test_fixture": (False, True),
        "test_same_fixture": (False, True), "test_thread": (False, True), "test_none": (False, False),
    }.items():  # fmt: skip
        assert (bool(lines[name] & inside), bool(lines[name] & larger)) == (first, second), name
    assert not any(test["failed"] for test in tests.values())


def test_a_mutant_is_caught_by_a_test_that_fails_and_fails_again(tmp_path):
    once = "from pathlib import Path; first = not Path('once').exists(); Path('once').touch()\n    return x + 1 + first"
    runs = run_cases(tmp_path, ("caught", "x + 1", "x - 1"), ("once", "return x + 1", once))
    assert runs["caught"][:3] == [True, "test_a.py::test_cached", True]
    assert runs["once"][:3] == [False, "", True]


@pytest.mark.slow
def test_a_mutant_is_caught_where_a_test_hangs_or_cannot_be_imported(tmp_path):
    hangs = ("hangs", "return x + 1", "while x: pass\n    return x + 1")
    runs = run_cases(tmp_path, hangs, ("unimportable", "LIMIT = 3", "LIMIT = 1 / 0"))
    assert runs["hangs"][:3] == [True, "test_a.py::test_cached", True]
    assert runs["unimportable"][:3] == [True, "", True]
