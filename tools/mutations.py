"""Small changes of a source file, one at a time: a comparison, an operator, a number, a condition, a lost statement.

A change replaces the text of one node of the syntax tree and leaves every other character of the file as it is.
"""

import ast
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "gradient_dd"

COMPARISONS: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Pow: ast.Mult,
    ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


class Mutant(NamedTuple):
    """A change of one file: its number in the file, the line and the text of the line, the code before and after."""

    file: str
    number: int
    line: int
    text: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """A name that survives changes elsewhere in the file."""
        return f"{self.file} | {self.text} | {self.before} -> {self.after}"

    @property
    def package(self) -> str:
        """The package of the file, e.g. "studies"; files beside the packages count as one called "beside"."""
        return Path(self.file).parts[0] if len(Path(self.file).parts) > 1 else "beside"


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
    """Return whether nothing is changed inside a node: errors, assertions, types, and how things print."""
    match node:
        case ast.keyword(arg="strict"):  # of `zip`: an assertion
            return True
        case ast.Raise() | ast.Import() | ast.ImportFrom() | ast.JoinedStr() | ast.Assert():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(name="__repr__" | "__str__"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
    return False


def places(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every node below this one that may be changed."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not is_left_alone(child):
                yield child
                yield from places(child)


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def all_changes(path: Path) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield (node, changed node) for every change of a file, always in the same order."""
    for node in places(tree_of(path)):
        for changed in changes(node):
            yield node, changed


def mutants_of(path: Path) -> list[Mutant]:
    """Return every mutant of a file."""
    name, lines = path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8").splitlines()
    found = ((number, node.lineno, node, changed) for number, (node, changed) in enumerate(all_changes(path)))  # type: ignore[attr-defined]
    return [
        Mutant(name, number, line, lines[line - 1].strip(), ast.unparse(node), ast.unparse(changed))
        for number, line, node, changed in found
    ]


def source_of(mutant: Mutant) -> str:
    """Return the text of a file with the change of a mutant; every other line keeps its number."""
    path = SOURCE / mutant.file
    node, changed = next(islice(all_changes(path), mutant.number, None))
    lines = path.read_bytes().splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]  # type: ignore[attr-defined]
    text = mutant.after
    if not isinstance(changed, ast.Constant | ast.Name | ast.Pass):
        text = f"({text})"
    text += "\n" * (last - first) if isinstance(changed, ast.Pass) else " \\\n" * (last - first)
    return b"".join([*lines[:first], head + text.encode() + tail, *lines[last + 1 :]]).decode()
