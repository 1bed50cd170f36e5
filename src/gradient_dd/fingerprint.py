"""Fingerprints: short names for what a result depends on, so that old and new are never mixed."""

import ast
import json
from collections.abc import Callable
from hashlib import sha256
from inspect import getsource
from textwrap import dedent
from typing import Any

from gradient_dd.errors import bad_request

DEEPEST = 50  # lists inside one another: far more than any parameter has, far less than Python's own limit


def fingerprint(*parts: Any) -> str:
    """Return a short name for JSON-like values; equal values have equal names on every machine."""
    return digest(json.dumps(plain(parts), sort_keys=True, ensure_ascii=False, default=str))


def plain(value: Any, depth: int = 0) -> Any:
    """Return the same data with Python's own numbers and texts in place of those of NumPy."""
    if depth > DEEPEST:
        raise bad_request("A value", f"have at most {DEEPEST} lists inside one another", value)
    if isinstance(value, dict):
        return {plain(name): plain(one, depth + 1) for name, one in value.items()}
    if isinstance(value, list):
        return [plain(one, depth + 1) for one in value]
    if isinstance(value, tuple):
        return tuple(plain(one, depth + 1) for one in value)
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def digest(text: str) -> str:
    """Return a short name for a text."""
    return sha256(text.encode()).hexdigest()[:24]


def code_of(function: Callable[..., Any]) -> str:
    """Return what a function is, in a form that comments and layout do not change.

    A function without source (typed at a prompt) is its bytecode. What it calls is not looked into.
    """
    if not hasattr(function, "__code__"):
        return repr(function)  # a record that can be called, such as a schedule's
    try:
        return ast.unparse(ast.parse(dedent(getsource(function))))
    except (OSError, TypeError, SyntaxError, IndentationError):
        code = function.__code__
        return f"{code.co_code.hex()} {code.co_consts} {code.co_names}"
