"""Fingerprints: short hashes of everything a result depends on, so that old and new results are never mixed."""

import ast
import json
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from inspect import findsource, getsource
from textwrap import dedent
from typing import Any

from gradient_dd.errors import bad_request

DEEPEST = 50  # maximum nesting of lists, far above that of any parameter and far below Python's recursion limit


def fingerprint(*parts: Any) -> str:
    """Return a short hash of JSON-like values; equal values have the same hash on every machine."""
    return digest(json.dumps(plain(parts), sort_keys=True, ensure_ascii=False, default=str))


def plain(value: Any, depth: int = 0) -> Any:
    """Return the same data with NumPy scalars converted to Python scalars."""
    if depth > DEEPEST:
        raise bad_request("A value", f"have at most {DEEPEST} nested lists", value)
    if isinstance(value, dict):
        return {plain(name): plain(one, depth + 1) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one, depth + 1) for one in value]
    if isinstance(value, tuple):
        return tuple(plain(one, depth + 1) for one in value)
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def digest(text: str) -> str:
    """Return a short hash of a text."""
    return sha256(text.encode()).hexdigest()[:24]


def code_of(function: Callable[..., Any]) -> str:
    """Return the source of a function, docstring included, in a form that comments and layout do not change.

    If there is no source, e.g. for a function typed at a prompt, return the bytecode. Called functions are excluded.
    """
    if not hasattr(function, "__code__"):
        return repr(function)  # a callable object, such as the function of a tapered schedule
    try:
        if function.__name__ == "<lambda>":
            return lambda_source(function)
        return ast.unparse(ast.parse(dedent(getsource(function))))
    except (OSError, TypeError, SyntaxError, StopIteration):
        code = function.__code__
        return f"{code.co_code.hex()} {code.co_consts} {code.co_names}"


def lambda_source(function: Callable[..., Any]) -> str:
    """Return the source of a lambda expression without the code around it."""
    code = function.__code__
    lines, _ = findsource(function)
    places = {(line, column) for line, _, column, _ in code.co_positions() if line is not None}
    found = [
        node
        for node in ast.walk(ast.parse("".join(lines)))
        if isinstance(node, ast.Lambda) and (node.body.lineno, node.body.col_offset) in places
    ]
    return ast.unparse(next(iter(found)))


LIBRARIES = ("gradient_dd", "jax", "numpy", "optax", "scipy")  # packages whose functions are identified by name


def made_of(value: Any, depth: int = 0) -> Any:
    """Return a value as plain data for a fingerprint; a function becomes its code and its closure."""
    if depth > DEEPEST or value is None or isinstance(value, str | int | float | bool):
        return value if depth <= DEEPEST else "..."
    if isinstance(value, tuple | list):
        return [made_of(one, depth + 1) for one in value]
    if isinstance(value, partial):
        return made_of((value.func, value.args, *value.keywords.items()), depth + 1)
    if hasattr(value, "tobytes"):
        return [str(value.dtype), list(value.shape), sha256(value.tobytes()).hexdigest()]
    if not hasattr(value, "__code__"):
        return type(value).__qualname__
    named = str(value.__module__).partition(".")[0] in LIBRARIES
    enclosed = [made_of(cell.cell_contents, depth + 1) for cell in value.__closure__ or ()]
    return [value.__qualname__ if named else code_of(value), enclosed]
