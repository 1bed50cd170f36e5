"""Fingerprints: short names for what a result depends on, so that old and new are never mixed."""

import ast
import json
from collections.abc import Callable
from hashlib import sha256
from inspect import getsource
from textwrap import dedent
from typing import Any


def fingerprint(*parts: Any) -> str:
    """Return a short name for JSON-like values; equal values have equal names on every machine."""
    return digest(json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str))


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
