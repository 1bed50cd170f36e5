"""Compilation of kernels: options, source text, code on disk, and processor instructions that Python lacks.

Fast-math is off, because a lane's bits must not depend on its neighbours.

LLVM uses 256-bit vectors on many processors that support 512 bits. Each function of a kernel requests 512 bits, so
other compiled code of the process does not change. Results are bit-identical at any width. `GRADIENT_DD_VECTOR_BITS`
(128, 256 or 512) sets a smaller width.

`disjoint` promises that the weight rows of a step do not overlap, so that the loop over lanes is vectorised without
checks. `barrier` ends the promise after a step, because the row of x' is the row of x in the next step.

Weights that decay towards zero become subnormal numbers, on which each operation is slow and delays all lanes of its
vector. So the processor treats subnormal numbers as zero while kernels run (`subnormals_flushed`). Only results that
involve numbers below 2.3e-308 change.

Compiled code is stored on disk under a key of everything it depends on: the bytecode of the rule and the numbers it
reads (`rules.describe_kernel`), the contents of all files of the engine, the versions of Python, Numba, llvmlite and
NumPy, the processor and its features, the width of vectors, and Numba's settings. Numba's own `cache=True` checks only
one source file, so it would run stale code after a change in another file.
"""

import os
import pickle
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from gradient_dd.engine import kernel_folder
from gradient_dd.errors import bad_request
from gradient_dd.fingerprint import digest
from gradient_dd.learners import rule as rule_module

COMPILE: dict[str, Any] = {"error_model": "numpy", "boundscheck": False}
INNER: dict[str, Any] = COMPILE | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # only kernels call these
INLINE: dict[str, Any] = INNER | {"forceinline": True}
STRIP = 8  # the number of lanes of a block is a multiple of this, so vector loops have no remainder
WHOLE_STRIPS = ~np.uintp(STRIP - 1)  # B & WHOLE_STRIPS equals B, and tells the compiler that B is a multiple of STRIP
VARIABLE = "GRADIENT_DD_VECTOR_BITS"
WIDTHS = ("128", "256", "512")


def wanted_bits() -> int:
    """Return the requested width of vectors: the number in `GRADIENT_DD_VECTOR_BITS`, or 512."""
    text = os.environ.get(VARIABLE) or WIDTHS[-1]
    if text not in WIDTHS:
        raise bad_request(VARIABLE, "be 128, 256 or 512", text)
    return int(text)


WANTED_BITS = wanted_bits()


def vector_bits() -> int:
    """Return the vector width that kernels are compiled for: the requested width, or the processor's if smaller."""
    features: Any = binding.get_host_cpu_features()
    widest = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
    return min(WANTED_BITS, widest)


# Functions to kernels ---------------------------------------------------------------------------------------------


def compile_source(source: str, names: Mapping[str, Any]) -> Any:
    """Return the function that a source text defines; `names` are the functions and numbers that it uses."""
    scope = dict(names)
    exec(source, scope)
    return scope[source.removeprefix("def ").partition("(")[0]]


def named(function: Any, made_of: str) -> Any:
    """Add a digest of `made_of` to the name of a function, and return the function.

    Code from disk is linked by name, and kernels of several rules would otherwise have the same name.
    """
    function.__qualname__ = f"{function.__name__}_{digest(made_of)}"
    return function


def keep(function: Callable[..., Any], made_of: str | None, **options: Any) -> Any:
    """Return a function that its first call compiles, or reads from disk unless `made_of` is None."""
    function = function if made_of is None else named(function, made_of)
    options |= {"no_cfunc_wrapper": True}  # only Python calls this function
    dispatcher = numba.njit(**options)(function)
    if made_of is not None and ENGINE_CONTENTS is not None:
        dispatcher._cache = KeptCode(f"{made_of} {WANTED_BITS}")
    return dispatcher


def kept(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator for a function of the engine that is compiled once per machine."""
    return lambda function: keep(function, f"{function.__module__}.{function.__name__}", **options)


# Code on disk -----------------------------------------------------------------------------------------------------


def engine_contents() -> str | None:
    """Return a digest of the files that kernels are made from, or None if they cannot be read."""
    try:
        files = [*sorted(Path(__file__).parents[1].rglob("*.py")), Path(rule_module.__file__)]
        return sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()
    except OSError:
        return None


ENGINE_CONTENTS = engine_contents()  # read at import, because a file that is edited later is not the code that runs


@cache
def environment() -> str:
    """Return a digest of what every kernel depends on, except its own source."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("NUMBA_")}
    versions = platform.python_version(), numba.__version__, llvmlite.__version__, np.__version__
    processor = cpu_target.target_context.codegen().magic_tuple()
    return digest(repr((ENGINE_CONTENTS, versions, processor, sorted(settings.items()))))


class KeptCode(NullCache):
    """The compiled code of one function on disk. Numba reads it before compiling, and writes it afterwards."""

    def __init__(self, made_of: str) -> None:
        self.made_of = made_of

    def key(self, signature: Any) -> str:
        """Return the name of the code for arguments of these types."""
        return digest(repr((self.made_of, environment(), str(signature))))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled code, or None if it is missing or damaged."""
        target_context.refresh()
        key = self.key(sig)
        content = kernel_folder.read(key)
        try:
            return content and CompileResult._rebuild(target_context, *pickle.loads(content))
        except Exception:  # after any error, the kernel is compiled again
            kernel_folder.report_damage(key)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write compiled code to disk, unless it refers to addresses of this process."""
        if not data.lifted and not data.library.has_dynamic_globals and kernel_folder.folder():
            kernel_folder.write(self.key(sig), numba.core.serialize.dumps(data._reduce()))


# Instructions -----------------------------------------------------------------------------------------------------


def typed_as_any(function: Any) -> Any:
    """Return a function as an intrinsic, which compiled code calls without its first argument."""
    return intrinsic(function)


@typed_as_any
def use_widest_vectors(typing):
    """Compile the calling function for vectors of `WANTED_BITS`, if the processor supports them. Adds no instruction.

    Each function with a loop over lanes needs this call, because Numba optimises a function before it inlines it.
    """

    def emit(context, builder, signature, arguments):
        attribute = f'"prefer-vector-width"="{WANTED_BITS}"'
        set.add(builder.function.attributes, attribute)  # llvmlite's own `add` accepts only attributes it knows
        return context.get_dummy_value()

    return types.void(), emit


def disjoint(scope: str, scopes: list[str]) -> tuple[Any, Any]:
    """Return load(array, i) and store(array, i, value), which promise not to access memory of the other scopes.

    The promise holds only between two calls of `barrier`.
    """

    def tag(builder, instruction):
        module = builder.module
        domain = module.add_metadata(["lanes"])
        node = {name: module.add_metadata([name, domain]) for name in scopes}
        instruction.set_metadata("alias.scope", module.add_metadata([node[scope]]))
        instruction.set_metadata("noalias", module.add_metadata([node[name] for name in scopes if name != scope]))

    def element(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.gep(array.data, [arguments[1]])

    @intrinsic
    def load(typing, array, i):
        def emit(context, builder, signature, arguments):
            value = builder.load(element(context, builder, signature, arguments))
            tag(builder, value)
            return value

        return array.dtype(array, i), emit

    @intrinsic
    def store(typing, array, i, value):
        def emit(context, builder, signature, arguments):
            tag(builder, builder.store(arguments[2], element(context, builder, signature, arguments)))
            return context.get_dummy_value()

        return types.void(array, i, array.dtype), emit

    return load, store


def disjoint_accesses(scopes: list[str]) -> dict[str, Any]:
    """Return the functions `load_…` and `store_…` of every scope, by name."""
    names = {}
    for scope in scopes:
        names[f"load_{scope}"], names[f"store_{scope}"] = disjoint(scope, scopes)
    return names


@typed_as_any
def barrier(typing):
    """Prevent the compiler from moving memory accesses across this point. Adds no instruction."""

    def emit(context, builder, signature, arguments):
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", [], side_effect=True)
        return context.get_dummy_value()

    return types.void(), emit


# Subnormal numbers ------------------------------------------------------------------------------------------------


X86, ARM = platform.machine() in ("x86_64", "AMD64"), platform.machine() in ("aarch64", "arm64")
FLUSH_SUBNORMALS = 0x8040 if X86 else 1 << 24 if ARM else 0  # other processors keep subnormal numbers, which is slower
I32, I64, VOID, POINTER = ir.IntType(32), ir.IntType(64), ir.VoidType(), ir.IntType(8).as_pointer()


def call_intrinsic(builder, name, result, *arguments):
    """Emit a call of an LLVM intrinsic, and return its result."""
    kind = ir.FunctionType(result, [one.type for one in arguments])
    return builder.call(builder.module.declare_intrinsic(name, (), kind), arguments)


@typed_as_any
def float_control(typing):
    """Return this thread's floating-point control register."""

    def emit(context, builder, signature, arguments):
        if not X86:
            return call_intrinsic(builder, "llvm.aarch64.get.fpcr", I64) if ARM else I64(0)
        slot = cgutils.alloca_once(builder, I32)
        call_intrinsic(builder, "llvm.x86.sse.stmxcsr", VOID, builder.bitcast(slot, POINTER))
        return builder.zext(builder.load(slot), I64)

    return types.uint64(), emit


@typed_as_any
def set_float_control(typing, control):
    """Set this thread's floating-point control register."""

    def emit(context, builder, signature, arguments):
        if X86:
            slot = cgutils.alloca_once_value(builder, builder.trunc(arguments[0], I32))
            call_intrinsic(builder, "llvm.x86.sse.ldmxcsr", VOID, builder.bitcast(slot, POINTER))
        elif ARM:
            call_intrinsic(builder, "llvm.aarch64.set.fpcr", VOID, arguments[0])
        return context.get_dummy_value()

    return types.void(types.uint64), emit


@kept()
def _flush_subnormals():
    control = float_control()
    set_float_control(control | np.uint64(FLUSH_SUBNORMALS))
    return control


@kept()
def _restore(control):
    set_float_control(np.uint64(control))


@contextmanager
def subnormals_flushed() -> Iterator[None]:
    """Treat subnormal numbers as zero on this thread until the block ends."""
    before = _flush_subnormals()
    try:
        yield
    finally:
        _restore(before)
