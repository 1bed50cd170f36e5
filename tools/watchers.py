"""Which tests watch a line of the source: those that execute it, from a record of one run of all tests."""

import ast
import gzip
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from tools.mutant_runs import WORK, Job, Workers
from tools.mutations import ROOT, SOURCE, Mutant, all_changes, tree_of

TESTS = ROOT / "tests"
READ = "tools/recorder.py", "pyproject.toml", "constraints.txt"  # what a record depends on beside source and tests
RECORDS = WORK / "records"
PATIENCE, SECONDS = 5.0, 20.0  # a test hangs that takes so many times its own time and so many seconds more
COMPILING = 10.0  # seconds that a kernel may take to compile
QUICK = 0.02  # seconds; tests are ordered by the power of 4 of this that they take
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@cache
def parents_of(path: Path) -> dict[ast.AST, ast.AST]:
    """Return the parent of every node of a file."""
    return {child: node for node in ast.walk(tree_of(path)) for child in ast.iter_child_nodes(node)}


def chain(path: Path, node: ast.AST) -> list[ast.AST]:
    """Return a node and all that it is part of, up to the statement at the top of the file."""
    found, parents = [node], parents_of(path)
    while not isinstance(parents.get(found[-1]), ast.Module | None):
        found.append(parents[found[-1]])
    return found


def is_in_function(found: list[ast.AST]) -> bool:
    """Return whether a chain passes through the body of a function, which runs when the function is called."""
    return any(
        isinstance(outer, FUNCTIONS) and inner in (outer.body if isinstance(outer.body, list) else [outer.body])
        for inner, outer in pairwise(found)
    )


def own_lines(statement: ast.AST) -> set[int]:
    """Return the lines of a statement without those of the statements inside it."""
    inner = [child for child in ast.walk(statement) if isinstance(child, ast.stmt) and child is not statement]
    lines = set(range(statement.lineno, (statement.end_lineno or 0) + 1))  # type: ignore[attr-defined]
    return lines.difference(*(range(child.lineno, (child.end_lineno or 0) + 1) for child in inner))


@cache
def lines_of_functions(path: Path) -> set[int]:
    """Return the lines of the bodies of all functions in a file."""
    found: set[int] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.update(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
    return found


@cache
def statements(path: Path) -> dict[int, ast.stmt]:
    """Return for every line of a file the statement at the top of the file that it belongs to."""
    return {
        line: one
        for one in tree_of(path).body
        for line in range(one.lineno - len(getattr(one, "decorator_list", ())), (one.end_lineno or 0) + 1)
    }


@cache
def mentions() -> dict[str, set[tuple[Path, int]]]:
    """Return for every word of the source the lines that it stands in."""
    found = defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for word in re.findall(r"[^\W\d]\w*", line):
                found[word].add((path, number))
    return found


def names_bound(statement: ast.AST) -> set[str]:
    """Return the names that a statement at the top of a file defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    nodes = ast.walk(statement)
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def readers(names: set[str]) -> dict[Path, set[int]]:
    """Return the lines of functions that mention a name, or another one that is defined with its help."""
    found, done, wanted = defaultdict(set), set(names), list(names)
    while wanted:
        for path, line in mentions().get(wanted.pop(), ()):
            inside, statement = lines_of_functions(path), statements(path).get(line)
            if line in inside:
                found[path].add(line)
            elif statement and not isinstance(statement, ast.Import | ast.ImportFrom):
                found[path] |= inside.intersection(range(statement.lineno, (statement.end_lineno or 0) + 1))
                wanted += names_bound(statement) - done  # a constant made of it, a class with such an attribute
                done |= names_bound(statement)
    return found


class Record:
    """What one run of all tests without a change has shown."""

    def __init__(self, tests: dict[str, dict[str, Any]]) -> None:
        self.tests = tests
        self.masks = {
            name: {file: int(mask, 16) for file, mask in test["lines"].items()} for name, test in tests.items()
        }
        self.place = {name: number for number, name in enumerate(tests)}
        self.slowest: dict[str, float] = {}  # test of each file among those that share fixtures: they stay together
        for name, test in tests.items():
            if test["shares"]:
                file = name.partition("::")[0]
                self.slowest[file] = max(self.slowest.get(file, 0.0), test["seconds"])
        self.left_out = [name for name, test in tests.items() if test["failed"]]

    def executing(self, path: Path, lines: set[int]) -> set[str]:
        """Return the tests that execute one of some lines of a file."""
        file, mask = path.relative_to(SOURCE).as_posix(), sum(1 << line for line in lines)
        return {test for test, masks in self.masks.items() if masks.get(file, 0) & mask}

    def watchers(self, mutant: Mutant) -> list[str]:
        """Return the tests that may notice a mutant, those to run first at the beginning."""
        path = SOURCE / mutant.file
        node = next(islice(all_changes(path), mutant.number, None))[0]
        found = chain(path, node)
        statement = next(one for one in found if isinstance(one, ast.stmt))
        if is_in_function(found):
            tests = self.executing(path, own_lines(statement))
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):  # a default value
            tests = self.executing(path, set(range(statement.body[0].lineno, (statement.end_lineno or 0) + 1)))
        else:
            tests = self.reading(names_bound(found[-1])) or self.executing(path, own_lines(statement))
        return sorted(tests.difference(self.left_out), key=lambda test: self.turn(test, mutant))

    def reading(self, names: set[str]) -> set[str]:
        """Return the tests that execute lines which mention a name, and all tests of test files which mention it."""
        tests = set().union(*(self.executing(path, lines) for path, lines in readers(names).items()))
        word = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
        files = {test.partition("::")[0] for test in self.tests}
        named = {file for file in files if names and word.search((ROOT / file).read_text(encoding="utf-8"))}
        return tests | {test for test in self.tests if test.partition("::")[0] in named}

    def cost(self, test: str, mutant: Mutant) -> float:
        """Return the seconds that a test may take: a change of the engine or of a rule compiles kernels again."""
        facts = self.tests[test]
        compiled = facts["kernels"] if mutant.package in ("engine", "learners") else 0
        seconds = self.slowest[test.partition("::")[0]] if facts["shares"] else facts["seconds"]
        return float(seconds + compiled * COMPILING)

    def turn(self, test: str, mutant: Mutant) -> tuple[int, bool, bool, int]:
        """Return the key that tests of a mutant are ordered by: quick ones, with its file's name, of its package."""
        size = round(math.log(max(self.cost(test, mutant), QUICK) / QUICK, 4))
        elsewhere = not test.startswith(f"tests/{mutant.package}/")
        return size, Path(mutant.file).stem not in test, elsewhere, self.place[test]

    def limits(self, tests: list[str], mutant: Mutant) -> list[float]:
        """Return the processor seconds after which each test of a mutant hangs."""
        return [PATIENCE * self.tests[test]["seconds"] + SECONDS + self.cost(test, mutant) for test in tests]

    def leave_out_failing(self, tests: list[str], workers: Workers) -> set[str]:
        """Run some tests without a change and leave out those that fail; return them."""
        known = [test for test in tests if test in self.tests]
        nothing = Mutant("", 0, 0, "", "", "")
        by_file: dict[str, list[str]] = {}
        for test in known:
            by_file.setdefault(test.partition("::")[0], []).append(test)
        found: set[str] = set()
        wanted = list(by_file.values())
        while wanted:
            jobs = [Job(some, limits=self.limits(some, nothing)) for some in wanted]
            failed = {number: outcome.test for number, outcome in workers.outcomes(jobs) if outcome.caught}
            found |= {test for test in failed.values() if test}
            wanted = [[test for test in wanted[number] if test != bad] for number, bad in failed.items() if bad]
            wanted = [some for some in wanted if some]
        self.left_out += sorted(found)
        return found


def digest(files: Iterable[Path]) -> str:
    """Return a digest of the names and contents of files."""
    contents = sha256()
    for file in sorted(files):
        contents.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes() + b"\0")
    return contents.hexdigest()


class Kept:
    """The records of test files from the last time, as long as the source and the test file are the same."""

    def __init__(self, names: list[str]) -> None:
        helpers = (file for file in TESTS.rglob("*.py") if not file.name.startswith("test_"))
        common = digest([*SOURCE.rglob("*.py"), *helpers, *(ROOT / name for name in READ)])
        self.of = {name: common + digest([ROOT / name]) for name in names}

    def place(self, name: str) -> Path:
        """Return where the record of a test file is kept."""
        return RECORDS / f"{name.replace('/', '-')}.json.gz"

    def read(self, name: str) -> dict[str, Any] | None:
        """Return the record of a test file, or None if it has to be made."""
        if not self.place(name).exists():
            return None
        kept: dict[str, Any] = json.loads(gzip.decompress(self.place(name).read_bytes()))
        return kept["tests"] if kept["of"] == self.of[name] else None

    def write(self, name: str, tests: dict[str, Any]) -> None:
        """Keep the record of a test file."""
        RECORDS.mkdir(parents=True, exist_ok=True)
        kept = {"of": self.of[name], "tests": tests}
        self.place(name).write_bytes(gzip.compress(json.dumps(kept).encode(), 1))


def recorded(workers: Workers, places: Sequence[str] = ("tests",)) -> Record:
    """Return the record of all tests in some folders or files; those that changed since the last record run now."""
    found = {
        file
        for place in places
        for file in ([ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("test_*.py"))
    }
    files = sorted(found, key=lambda path: -path.stat().st_size)
    names = [path.relative_to(ROOT).as_posix() for path in files]
    kept = Kept(names)
    records = {name: kept.read(name) for name in names}
    missing = [name for name in names if records[name] is None]
    if missing:
        print(f"{len(missing)} of {len(names)} test files run without a change, to see what they execute.", flush=True)
    for number, outcome in workers.outcomes([Job([name]) for name in missing]):
        name, tests = missing[number], outcome.record
        if outcome.caught or tests is None:
            print(f"left out, as it cannot be run: {name} {tests or ''}", flush=True)
            tests = {}
        else:
            kept.write(name, tests)
        records[name] = tests
    for name in missing:
        tests = records[name] or {}
        if failed := [test for test in tests if tests[test]["failed"]]:  # perhaps only because they were recorded
            bad = Record(tests).leave_out_failing(failed, workers)
            for test in failed:
                tests[test]["failed"] = test in bad
            kept.write(name, tests)
    record = Record({test: facts for name in names for test, facts in (records[name] or {}).items()})
    for test in record.left_out:
        print(f"left out, as it fails without any change: {test}", flush=True)
    return record
