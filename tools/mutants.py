"""Plant small errors in the source, one at a time, and count how many the tests catch, room by room.

    python tools/mutants.py --count 400 --seed 1            a sample, as many from each room
    python tools/mutants.py --room evaluation --count 60    a sample of one room
    python tools/mutants.py --only studies/intervals.py    every mutant of one file

A mutant is one change of the syntax tree: a comparison, an operator, a number, a condition, a statement left out. The
tests that watch its file are run on a copy of the source that has the change: those that import the file first, then
those of its room. A mutant that survives is either a test that is missing, or equivalent: it does the same as the
original. Those that were looked at and found equivalent are listed in tools/equivalent_mutants.txt and do not count.

Each worker is one process that has imported NumPy, Numba and pytest; it makes a child for each mutant, so that a test
begins at once. Kernels come from the folder that all tests share, except for mutants of the engine.
"""

import argparse
import ast
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TESTS = ROOT / "src" / "gradient_dd", ROOT / "tests"
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.txt"
SECONDS = 25  # of a core, that the tests of a mutant may take; those of most rooms end before
HANGS = 12  # seconds of a core within one test, at that end, that count as caught: no test takes so long by itself
PATIENCE = 10 * SECONDS  # of the wall, after which the tests are ended, and a mutant has made them wait for ever
PROBE = "tests/project/test_mutants.py"  # runs before all mutants, to see that tests can run
WARM = ("numpy", "scipy.linalg", "scipy.sparse", "numba", "pandas", "pyarrow", "gymnasium", "click")
SLOW_SIGNS = ("subprocess", "(made", "kernels of", "BROWSER", "reproduction")  # a file of tests with these comes last
EVERYWHERE = "project"  # the folder of tests for files that stand in no room

COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Pow: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


class Mutant(NamedTuple):
    """A change of one file: where, the number of the change in the file, and what was there and became of it."""

    file: str
    line: int
    number: int
    before: str
    after: str

    @property
    def name(self) -> str:
        """A name that survives changes elsewhere in the file."""
        return f"{self.file}: {self.before}  ->  {self.after}"


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every changed form of one node of the tree."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield ast.Compare(node.left, [COMPARISONS[type(op)]()], node.comparators)
        case ast.BinOp(op=op) if type(op) in OPERATORS:
            yield ast.BinOp(node.left, OPERATORS[type(op)](), node.right)
        case ast.BoolOp(op=op):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), node.values)
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(2 * value if value else 1.0)
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.IfExp():
            yield node.body
            yield node.orelse


def is_left_alone(node: ast.AST) -> bool:
    """Return whether nothing is changed inside a node: sentences of errors, types, and how things print."""
    match node:
        case ast.Raise() | ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Assert():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(name="__repr__" | "__str__"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield (parent, field, index, child) for every node that may be changed."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not is_left_alone(child):
                yield node, field, index, child
                yield from places(child)


def put(parent: ast.AST, field: str, index: int | None, child: ast.AST) -> None:
    """Put a node into its place in the tree."""
    if index is None:
        setattr(parent, field, child)
    else:
        getattr(parent, field)[index] = child


def all_changes(tree: ast.AST) -> Iterator[tuple[tuple[ast.AST, str, int | None, ast.AST], ast.AST]]:
    """Yield (place, changed node) for every change of a tree, always in the same order."""
    for place in list(places(tree)):
        for changed in changes(place[-1]):
            yield place, ast.copy_location(changed, place[-1])


def mutants_of(path: Path) -> list[Mutant]:
    """Return every mutant of a file."""
    tree, name = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(SOURCE).as_posix()
    return [
        Mutant(name, getattr(child, "lineno", 0), number, ast.unparse(child), ast.unparse(changed))
        for number, ((*_, child), changed) in enumerate(all_changes(tree))
    ]


def source_of(mutant: Mutant) -> str:
    """Return the source of a file with the change of a mutant."""
    tree = ast.parse((SOURCE / mutant.file).read_text(encoding="utf-8"))
    (parent, field, index, _), changed = next(islice(all_changes(tree), mutant.number, None))
    put(parent, field, index, changed)
    return ast.unparse(ast.fix_missing_locations(tree))


# Which tests watch a file -----------------------------------------------------------------------------------------


def room_of(file: str) -> str:
    """Return the room of a source file, e.g. "studies"; files beside the rooms are in one called "beside"."""
    return Path(file).parts[0] if len(Path(file).parts) > 1 else "beside"


@cache
def texts_of_tests() -> dict[Path, str]:
    """Return every file of tests and its text, quick ones first."""
    found = {file: file.read_text(encoding="utf-8") for file in sorted(TESTS.rglob("test_*.py"))}
    found = {file: text for file, text in found.items() if file.parent.name != "adversary"}
    return dict(sorted(found.items(), key=lambda one: sum(sign in one[1] for sign in SLOW_SIGNS)))


def watchers(file: str) -> list[Path]:
    """Return the tests that watch a source file: those that import it, then the others of its room."""
    path, room = Path(file), room_of(file)
    module = ".".join(("gradient_dd", *path.with_suffix("").parts)).removesuffix(".__init__")
    parent, _, name = module.rpartition(".")
    imports = re.compile(rf"{re.escape(module)}\b|from {re.escape(parent)} import [^\n]*\b{name}\b")
    texts = texts_of_tests()
    direct = [test for test, text in texts.items() if imports.search(text)]
    home = TESTS / (EVERYWHERE if room == "beside" else room)
    same_room = [test for test in texts if test.is_relative_to(home)]
    named = [test for test in same_room if test.stem.removeprefix("test_") in (path.stem, path.parent.name)]
    direct.sort(key=lambda test: not test.is_relative_to(home))  # those of its own room first; the sort is stable
    return list(dict.fromkeys([*named, *direct, *same_room]))


# Running them -----------------------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """How the tests of a mutant ended: with a test that failed or hung, or without one; and whether all were run."""

    failed: str = ""
    whole: bool = True


def run_tests(source: Path, tests: list[str]) -> Outcome:
    """Run tests on a copy of the source in a child of this process; return how they ended."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "output"
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                pytest_in_this_process(source, tests, Path(folder), output)
            os._exit(1)
        status = ended(child, begin + PATIENCE)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what the tests have left behind, and they themselves if they wait
        if status is None:
            os.waitpid(child, 0)
            return Outcome("a test that waits")
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
            last = (Path(folder) / "started").read_text(encoding="utf-8").splitlines()[-1:] or ["0"]
            return Outcome("a test that hangs" if SECONDS - float(last[0]) > HANGS else "", whole=False)
        printed = output.read_text(encoding="utf-8", errors="replace")
    if os.waitstatus_to_exitcode(status) == 0:
        return Outcome()
    named = re.search(r"^(?:FAILED|ERROR) (\S+)", printed, re.MULTILINE)
    return Outcome(named[1] if named else "the start of the tests")


class Started:
    """A plugin of pytest that writes the processor seconds at which every test begins."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logstart(self) -> None:
        """Write a line."""
        with self.file.open("a", encoding="utf-8") as opened:
            opened.write(f"{time.process_time():.2f}\n")


def pytest_in_this_process(source: Path, tests: list[str], folder: Path, output: Path) -> None:
    """Run tests on a copy of the source and end this process with the exit code of pytest."""
    os.setsid()  # what the tests start ends with them
    os.dup2(os.open(output, os.O_CREAT | os.O_WRONLY), 1)
    os.dup2(1, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    os.chdir(ROOT)
    os.environ.update(PYTHONPATH=str(source), PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    sys.path[:0] = [str(source), str(ROOT)]
    import pytest

    words = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--durations=0", "--tb=no", f"--basetemp={folder}/tmp"]
    (folder / "started").touch()
    os._exit(int(pytest.main([*words, *tests], [Started(folder / "started")])))


def ended(child: int, deadline: float) -> int | None:
    """Wait for a child; return its status, or None if it has not ended in time."""
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.02)
    return None


def work(worker: int, jobs: "list[tuple[str, str, list[str]]]", answers: "object") -> None:
    """Run mutants, (name of the file, its source, its tests), and put (worker, place in the jobs, outcome) for each."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in WARM:
        with suppress(ImportError):
            import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(SOURCE.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for place, (file, source, tests) in enumerate(jobs):
            target = copy / "gradient_dd" / file
            whole = target.read_text(encoding="utf-8")
            target.write_text(source or whole, encoding="utf-8")
            outcome = run_tests(copy, tests)
            target.write_text(whole, encoding="utf-8")
            answers.put((worker, place, outcome))  # type: ignore[attr-defined]


def outcomes(jobs: list[tuple[str, str, list[str]]], workers: int) -> Iterator[tuple[int, Outcome]]:
    """Yield (number of the job, outcome) as they come from several workers."""
    context = get_context("fork")
    answers, shares = context.Queue(), [range(worker, len(jobs), workers) for worker in range(workers)]
    processes = [
        context.Process(target=work, args=(worker, [jobs[number] for number in share], answers))
        for worker, share in enumerate(shares)
    ]
    for process in processes:
        process.start()
    for _ in jobs:
        worker, place, outcome = answers.get(timeout=2 * PATIENCE)
        yield shares[worker][place], outcome
    for process in processes:
        process.join()


# The sample and the score -----------------------------------------------------------------------------------------


def sampled(every: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return a sample with as many mutants from each room, as far as a room has them; in a random order."""
    rng, rooms = random.Random(seed), defaultdict(list)
    for mutant in every:
        rooms[room_of(mutant.file)].append(mutant)
    for mutants in rooms.values():
        rng.shuffle(mutants)
    turns = [
        mutants[turn]
        for turn in range(max(map(len, rooms.values())))
        for mutants in rooms.values()
        if turn < len(mutants)
    ]
    chosen = turns[:count]
    rng.shuffle(chosen)
    return chosen


def main() -> None:
    """Try a sample of mutants and print the survivors and the score of every room."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400, help="how many mutants, as many from each room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--room", help="mutants of one room only")
    parser.add_argument("--only", metavar="FILE", help="all mutants of one file, e.g. studies/intervals.py")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    files = [SOURCE / given.only] if given.only else sorted(SOURCE.rglob("*.py"))
    known = set(EQUIVALENT.read_text(encoding="utf-8").splitlines()) if EQUIVALENT.exists() else set()
    every = [mutant for path in files for mutant in mutants_of(path) if mutant.name not in known]
    every = [mutant for mutant in every if given.room in (None, room_of(mutant.file))]
    if not every:
        raise SystemExit("There is nothing to change there.")
    chosen = every if given.only else sampled(every, given.count, given.seed)
    print(f"{len(chosen)} of {len(every):,} mutants of {len(files)} files, seed {given.seed}", flush=True)
    begin = time.monotonic()
    if broken := [outcome for _, outcome in outcomes([("__init__.py", "", [PROBE])], 1) if outcome != Outcome()]:
        raise SystemExit(f"The tests cannot be run here, or fail without any change: {broken[0]}")
    caught, killers = judged(chosen, given.workers)
    spurious = failing_without_a_change(sorted(killers), given.workers)
    print("\nroom          caught   of")
    for room in sorted({room_of(mutant.file) for mutant in chosen}):
        here = [one for one, mutant in zip(caught, chosen, strict=True) if room_of(mutant.file) == room]
        print(f"{room:12} {sum(here):7} {len(here):4}  {sum(here) / len(here):.0%}")
    print(f"{'all':12} {sum(caught):7} {len(caught):4}  {sum(caught) / len(caught):.0%}")
    print(f"{time.monotonic() - begin:.0f} s")
    if spurious:
        raise SystemExit(f"These tests fail without any change, so the score says nothing: {', '.join(spurious)}")


def judged(chosen: list[Mutant], workers: int) -> tuple[list[bool], set[str]]:
    """Return whether each mutant was caught, and the tests that caught some; prints survivors as they come."""
    jobs = [(one.file, source_of(one), list(map(str, watchers(one.file)))) for one in chosen]
    caught, killers = [False] * len(chosen), set[str]()
    for done, (number, outcome) in enumerate(outcomes(jobs, workers), 1):
        mutant = chosen[number]
        if outcome.failed:
            caught[number] = True
            killers.add(outcome.failed)
        else:
            words = "survived" if outcome.whole else f"survived what ran in {SECONDS} s"
            print(f"{words}:  line {mutant.line} of {mutant.name}", flush=True)
        if done % 20 == 0:
            print(f"{done} tried, {sum(caught)} caught", flush=True)
    return caught, killers


def failing_without_a_change(tests: list[str], workers: int) -> list[str]:
    """Return those of some tests that fail on the source as it is."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        by_file[test.partition("::")[0]].append(test)
    jobs = [("__init__.py", "", some) for some in by_file.values() if "::" in some[0]]
    return [outcome.failed for _, outcome in outcomes(jobs, workers) if outcome.failed]


if __name__ == "__main__":
    main()
