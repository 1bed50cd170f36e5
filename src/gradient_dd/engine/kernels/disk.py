"""Kernels on disk: Numba's own form of compiled code, under a key of all that it is made of.

`cache=True` would not do: Numba then compares one source file, and runs stale code when a function of another file
changes. Here the key has the bytecode of the rule and the numbers it reads, the contents of all files of the engine,
the versions of Python, Numba, llvmlite and NumPy, the processor and its features, the width of vectors, and Numba's
settings. A rule that calls functions of its own is compiled in every process.
"""

import builtins
import math
import os
import pickle
import platform
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target

from gradient_dd.engine import kernel_folder
from gradient_dd.fingerprint import digest
from gradient_dd.learners import rule as rule_module

ENGINE = Path(__file__).parent.parent
PLAIN = (bool, int, float, complex, str, type(None))


def engine_contents() -> str | None:
    """Return a digest of the files that kernels are made from, or None where they cannot be read."""
    try:
        files = [*sorted(ENGINE.rglob("*.py")), Path(rule_module.__file__)]
        return sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
    except OSError:
        return None


ENGINE_CONTENTS = engine_contents()  # taken when the engine is imported: a file edited later is not what runs


@cache
def environment() -> str:
    """Return a digest of what every kernel depends on beside its own source."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("NUMBA_")}
    versions = platform.python_version(), numba.__version__, llvmlite.__version__, np.__version__
    processor = cpu_target.target_context.codegen().magic_tuple()
    return digest(repr((ENGINE_CONTENTS, versions, processor, sorted(settings.items()))))


class NotKeepableError(Exception):
    """A function depends on something that a key cannot hold."""


def describe(value: Any) -> str:
    """Return what a global or a constant of a step is, for a key."""
    if isinstance(value, PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, tuple):
        return f"({', '.join(map(describe, value))})"
    if isinstance(value, CodeType):
        return describe_code(value)
    name = getattr(value, "__name__", "")
    for module in (math, np, builtins):
        if value is module or (name and value is getattr(module, name, None)):
            return f"{module.__name__} {name}"
    raise NotKeepableError


def describe_code(code: CodeType) -> str:
    """Return what a compiled function does, for a key: names of variables and its constants included."""
    parts = code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable.hex()
    return f"{parts} {describe(code.co_consts)}"


def names_in(code: CodeType) -> set[str]:
    """Return every name that code or a function inside it may look up."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def describe_function(function: Callable[..., Any]) -> str:
    """Return what a function does, for a key: its code and every global or outer variable it may read."""
    code = function.__code__
    read = {name: function.__globals__[name] for name in names_in(code) if name in function.__globals__}
    read |= dict(zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True))
    seen = {name: describe(value) for name, value in sorted(read.items())}
    if function.__module__ not in sys.modules:  # kept code names the module of its function, and is read with it
        raise NotKeepableError
    return f"{function.__module__} {describe_code(code)} {seen} {describe(function.__defaults__ or ())}"


class KeptCode(NullCache):
    """Compiled code of one function on disk; Numba reads it before compiling, and writes it afterwards."""

    def __init__(self, made_of: str) -> None:
        self.made_of = made_of

    def key(self, signature: Any) -> str:
        """Return the name of the code for arguments of these types."""
        return digest(repr((self.made_of, environment(), str(signature))))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code, or None where it is not there or cannot be used."""
        target_context.refresh()
        key = self.key(sig)
        content = kernel_folder.read(key)
        if content is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception:  # whatever it is, compiling again is right
            kernel_folder.report_damage(key)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code, unless it refers to addresses of this process."""
        if not data.lifted and not data.library.has_dynamic_globals and kernel_folder.folder():
            kernel_folder.write(self.key(sig), numba.core.serialize.dumps(data._reduce()))
