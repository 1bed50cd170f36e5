"""Plant small errors in the source, one at a time, and count how many the tests catch.

    python tools/mutants.py --count 200 --seed 1            a sample over all targets
    python tools/mutants.py --only studies/statistics.py    every mutant of one file

A mutant is one change of the syntax tree: a comparison, an operator, a number, a condition, a statement left out. The
tests of its file are run on a copy of the source that has the change. A mutant that survives is either a test that is
missing, or equivalent: it does the same as the original. Those that were looked at and found equivalent are listed in
tools/equivalent_mutants.txt and do not count.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "gradient_dd"
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.txt"
SECONDS = 300  # a mutant whose tests take longer counts as caught: it hangs

# Which tests watch which files. The first pattern that fits counts; tests run in this order, quick ones first.
TARGETS = {
    "learners/*.py": ["test_learners.py", "test_contracts.py", "test_own_contracts.py", "test_reference.py"],
    "engine/reference.py": ["test_reference.py", "test_learners.py"],
    "engine/horizon.py": ["test_horizon.py", "test_lanes.py"],
    "engine/schedules.py": ["test_reference.py", "test_horizon.py"],
    "engine/trajectories.py": ["test_trajectories.py"],
    "engine/metric.py": ["test_reference.py"],
    "engine/lanes.py": ["test_lanes.py", "test_horizon.py"],
    "engine/kernels/*.py": ["test_trajectories.py", "test_lanes.py", "test_horizon.py"],
    "online/*.py": ["test_learner.py", "test_learner_memory.py"],
    "studies/statistics.py": ["test_statistics.py", "test_intervals.py"],
    "studies/*.py": ["test_study.py", "test_store.py", "test_statistics.py", "test_sweep.py"],
    "experiments/verdicts.py": ["test_claims.py", "test_reproduce.py"],
    "experiments/claims.py": ["test_claims.py", "test_reproduce.py"],
    "experiments/tuning.py": ["test_claims.py", "test_reproduce.py"],
    "experiments/paper/asking.py": ["test_claims.py", "test_reproduce.py"],
    "experiments/paper/baird.py": ["test_claims.py", "test_reproduce.py"],
    "tasks/exact.py": ["test_exact.py", "test_tasks.py"],
    "theory/advice.py": ["test_analysis.py"],
    "theory/*.py": [
        "test_theory_trust_region.py", "test_theory_natural.py", "test_theory_recursion.py", "test_theory_effective.py",
        "test_theory_dynamics.py", "test_theory_mean_square.py", "test_errata.py", "test_analysis.py",
    ],
}  # fmt: skip

COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Pow: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


class Mutant(NamedTuple):
    """A change of one file: where, and what it was and became."""

    file: str
    line: int
    before: str
    after: str
    source: str

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


def mutants_of(path: Path) -> list[Mutant]:
    """Return every mutant of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name, found = path.relative_to(SOURCE).as_posix(), []
    for parent, field, index, child in list(places(tree)):
        for changed in changes(child):
            put(parent, field, index, ast.copy_location(changed, child))
            source = ast.unparse(ast.fix_missing_locations(tree))
            put(parent, field, index, child)
            line = getattr(child, "lineno", 0)
            found.append(Mutant(name, line, ast.unparse(child), ast.unparse(changed), source))
    return found


def tests_of(file: str) -> list[str]:
    """Return the tests that watch a file."""
    for pattern, tests in TARGETS.items():
        if Path(file).match(pattern):
            return [str(ROOT / "tests" / test) for test in tests if (ROOT / "tests" / test).exists()]
    return []


def is_caught(mutant: Mutant) -> bool:
    """Run the tests of a mutant's file on a copy of the source with the change; return whether one fails."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(SOURCE.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "gradient_dd" / mutant.file).write_text(mutant.source, encoding="utf-8")
        call = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests_of(mutant.file)]
        environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return True
    return done.returncode != 0


def main() -> None:
    """Try a sample of mutants and print the survivors and the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="how many mutants, drawn evenly from all files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="FILE", help="all mutants of one file, e.g. studies/statistics.py")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    files = [path for path in sorted(SOURCE.rglob("*.py")) if tests_of(path.relative_to(SOURCE).as_posix())]
    if given.only:
        files = [SOURCE / given.only]
    known = set(EQUIVALENT.read_text(encoding="utf-8").splitlines()) if EQUIVALENT.exists() else set()
    every = [mutant for path in files for mutant in mutants_of(path) if mutant.name not in known]
    chosen = every if given.only else random.Random(given.seed).sample(every, min(given.count, len(every)))
    print(f"{len(chosen)} of {len(every)} mutants of {len(files)} files", flush=True)
    begin, survivors = perf_counter(), []
    with ThreadPoolExecutor(given.workers) as pool:
        for number, (mutant, caught) in enumerate(zip(chosen, pool.map(is_caught, chosen), strict=True), 1):
            if not caught:
                survivors.append(mutant)
                print(f"survived  line {mutant.line} of {mutant.name}", flush=True)
            if number % 20 == 0:
                print(f"{number} tried, {len(survivors)} survived, {perf_counter() - begin:.0f} s", flush=True)
    score = 1 - len(survivors) / len(chosen)
    print(f"caught {len(chosen) - len(survivors)} of {len(chosen)}: {score:.0%}")


if __name__ == "__main__":
    main()
