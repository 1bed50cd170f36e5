"""Translation of a rule's scalar functions from Python to JavaScript: the same operations in the same order and bits.

Only expressions that mean the same in both languages are translated: + − × ÷, comparisons, `min`, `max`, `abs`,
conditions, and named numbers of the rule's file. All other expressions are refused, and the error names their line:
powers and logarithms, for example, differ in the last bit between mathematical libraries.
"""

import ast
from collections.abc import Callable, Iterator
from functools import reduce
from inspect import getclosurevars, getsourcefile, getsourcelines, unwrap
from numbers import Real
from pathlib import Path
from textwrap import dedent
from typing import Any

from gradient_dd.errors import BadRequestError, Unquoted, bad_request

OPERATORS: dict[type[ast.operator | ast.unaryop | ast.cmpop], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.UAdd: "+", ast.USub: "-",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "===", ast.NotEq: "!==",
}  # fmt: skip
# Math.min and Math.max treat NaN and the order of their arguments differently from Python.
OF_SEVERAL = {"min": "lesser", "max": "larger"}
SUPPORT = "const lesser = (a, b) => b < a ? b : a, larger = (a, b) => b > a ? b : a;"


def name_in_javascript(name: str) -> str:
    """Return a JavaScript name that is not a keyword. Python names contain no `$`, so distinct names stay distinct."""
    return "$" + "".join(one if one.isascii() else f"${ord(one):x}$" for one in name)


def javascript_of(function: Callable[..., Any], returned: tuple[str, ...]) -> list[str]:
    """Return the lines of JavaScript that are equivalent to a function of scalars.

    They read its arguments from variables with the names `name_in_javascript`, and assign its results to the variables
    `returned`. The lines are a block with its own scope, so its names do not clash with the names outside.
    """
    return Translation(function).block(returned)


class Translation:
    """One function and its translation."""

    def __init__(self, function: Callable[..., Any]) -> None:
        function = unwrap(function)
        try:
            lines, first = getsourcelines(function)
            self.tree = ast.parse(dedent("".join(lines))).body[0]
        except (OSError, TypeError, SyntaxError):
            rule = "be a function whose source can be read, to run on a page"
            raise bad_request(f"{getattr(function, '__name__', 'The step')!r}", rule, function) from None
        self.file, self.first = Path(getsourcefile(function) or "").name, first
        if not isinstance(self.tree, ast.FunctionDef) or self.tree.decorator_list:
            raise self.refused(self.tree, "a function that is written with 'def' and has no decorator")
        if not always_returns(self.tree.body):
            raise self.refused(self.tree, "a function that ends with a return on every path")
        self.arguments = [one.arg for one in self.tree.args.args]
        found = getclosurevars(function)
        self.numbers, self.builtins = {**found.globals, **found.nonlocals}, found.builtins
        self.assigned = {
            one.id for one in ast.walk(self.tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }

    def block(self, returned: tuple[str, ...]) -> list[str]:
        """Return the function as a labelled block, which a `return` leaves."""
        assert isinstance(self.tree, ast.FunctionDef)
        self.returned, self.fresh = returned, 0
        body = [line for one in self.tree.body for line in self.statement(one)]
        changed = sorted(self.assigned & set(self.arguments))
        outside = [f"const {name_in_javascript(name)}$ = {name_in_javascript(name)};" for name in changed]
        inside = [f"let {name_in_javascript(name)} = {name_in_javascript(name)}$;" for name in changed]
        own = sorted(self.assigned - set(self.arguments))
        if own:
            inside.append(f"let {', '.join(map(name_in_javascript, own))};")
        return ["step: {", *outside, "{", *inside, *body, "}", "}"]

    def refused(self, node: ast.AST, allowed: str) -> BadRequestError:
        """Return the error that names the line that cannot be translated."""
        line = self.first + getattr(node, "lineno", 1) - 1
        what = f"Line {line} of {self.file}"
        return bad_request(what, f"be {allowed}, to run on a page", Unquoted(ast.unparse(node).splitlines()[0]))

    # Statements -----------------------------------------------------------------------------------------------------

    def statement(self, node: ast.stmt) -> Iterator[str]:
        """Yield the lines of a statement."""
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return
            case ast.Assign(targets=[target], value=value):
                yield from self.assignment(node, target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                yield from self.assignment(node, target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                yield f"{name_in_javascript(name)} = {self.operation(node, op, ast.Name(name), value)};"
            case ast.If(test=test, body=body, orelse=others):
                yield f"if ({self.condition(test)}) {{"
                for one in body:
                    yield from self.statement(one)
                yield "} else {"
                for one in others:
                    yield from self.statement(one)
                yield "}"
            case ast.Return(value=ast.Tuple(elts=values)) if len(values) == len(self.returned):
                yield from (
                    f"{name} = {self.expression(one)};" for name, one in zip(self.returned, values, strict=True)
                )
                yield "break step;"
            case _:
                allowed = f"an assignment, a condition, or a return of a tuple of {len(self.returned)}"
                raise self.refused(node, allowed)

    def assignment(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> Iterator[str]:
        """Yield the lines of an assignment to one name, or of a tuple to as many names."""
        match target, value:
            case ast.Name(id=name), _:
                yield f"{name_in_javascript(name)} = {self.expression(value)};"
            case ast.Tuple(elts=names), ast.Tuple(elts=values) if len(names) == len(values):
                self.fresh += 1  # all values are computed before the first name changes
                held = [f"held{self.fresh}_{place}" for place in range(len(values))]
                yield from (f"const {one} = {self.expression(v)};" for one, v in zip(held, values, strict=True))
                for into, one in zip(names, held, strict=True):
                    if not isinstance(into, ast.Name):
                        raise self.refused(node, "an assignment to names")
                    yield f"{name_in_javascript(into.id)} = {one};"
            case _:
                raise self.refused(node, "an assignment to names")

    # Expressions ----------------------------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> str:
        """Return a number as JavaScript."""
        match node:
            case ast.Constant(value=value) if isinstance(value, int | float) and not isinstance(value, bool):
                return number_in_javascript(value)
            case ast.Name(id=name) if name in self.arguments or name in self.assigned:
                return name_in_javascript(name)
            case ast.Name(id=name) if isinstance(value := self.numbers.get(name), Real):
                return number_in_javascript(float(value))
            case ast.Name(id=name):
                raise self.refused(node, "made of arguments, local names and numbers")
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(node, op, left, right)
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() as op, operand=operand):
                return f"({OPERATORS[type(op)]}{self.expression(operand)})"
            case ast.IfExp(test=test, body=body, orelse=other):
                return f"({self.condition(test)} ? {self.expression(body)} : {self.expression(other)})"
            case ast.Call(func=ast.Name(id=name), args=values, keywords=[]) if name in self.builtins:
                numbers = [self.expression(one) for one in values]
                if name == "abs" and len(numbers) == 1:
                    return f"Math.abs({numbers[0]})"
                if name in OF_SEVERAL and len(numbers) > 1:
                    return reduce(lambda one, other: f"{OF_SEVERAL[name]}({one}, {other})", numbers)
        raise self.refused(node, "made of + - * /, min, max, abs, conditions and numbers")

    def operation(self, node: ast.AST, op: ast.operator, left: ast.expr, right: ast.expr) -> str:
        """Return an operation on two numbers."""
        if type(op) not in OPERATORS:
            raise self.refused(node, "made of + - * / alone (a power as products)")
        return f"({self.expression(left)} {OPERATORS[type(op)]} {self.expression(right)})"

    def condition(self, node: ast.expr) -> str:
        """Return a condition: comparisons, joined by `and`, `or` and `not`."""
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others) if all(type(op) in OPERATORS for op in ops):
                numbers = [self.expression(one) for one in (left, *others)]
                pairs = zip(numbers, ops, numbers[1:], strict=False)
                return "(" + " && ".join(f"{a} {OPERATORS[type(op)]} {b}" for a, op, b in pairs) + ")"
            case ast.BoolOp(op=op, values=values):
                joined = " && " if isinstance(op, ast.And) else " || "
                return "(" + joined.join(map(self.condition, values)) + ")"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self.condition(operand)}"
        raise self.refused(node, "a comparison, because it is a condition")


def always_returns(body: list[ast.stmt]) -> bool:
    """Return whether every path through a body ends with a return."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return always_returns(last.body) and always_returns(last.orelse)
    return isinstance(last, ast.Return)


def number_in_javascript(value: float) -> str:
    """Return a number as the text that JavaScript reads as the same double, a negative one in parentheses."""
    text = repr(float(value)).replace("inf", "Infinity").replace("nan", "NaN")
    return f"({text})" if text.startswith("-") else text
