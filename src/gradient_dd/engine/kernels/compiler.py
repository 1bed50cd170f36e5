"""How functions become kernels: options, source text, code on disk, and instructions that Python has no words for.

No fast-math: a lane's bits must not depend on its neighbours.

LLVM takes 256-bit vectors on many processors that have 512-bit ones. A kernel asks for 512 function by function, so no
setting of Numba changes and other compiled code of the process stays as it is. Results have the same bits at any width.
`GRADIENT_DD_VECTOR_BITS` (128, 256 or 512) asks for less.

`disjoint` and `barrier` belong together: the one promises that the weight rows of a step do not overlap, so that the
loop over lanes becomes vector code without checks; the other ends the promise with the step, because the row of x'
is the row of x in the next one.

Weights that decay towards zero end in the subnormal range, where each operation is slow and holds up all lanes of
its vector. So processors take subnormal numbers for zero while kernels run (`subnormals_flushed`). Results change below
2.3e-308 only.

Compiled code is kept on disk under a key of all that it is made of. `cache=True` would not do: Numba then compares one
source file, and runs stale code when a function of another file changes. Here the key has the bytecode of the rule and
the numbers it reads (`rules.describe_kernel`), the contents of all files of the engine, the versions of Python, Numba,
llvmlite and NumPy, the processor and its features, the width of vectors, and Numba's settings.
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
INNER: dict[str, Any] = COMPILE | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by kernels only
INLINE: dict[str, Any] = INNER | {"forceinline": True}
STRIP = 8  # the number of lanes of a block is a multiple of this, so vector loops need no loop for the remainder
WHOLE_STRIPS = ~np.uintp(STRIP - 1)  # B & WHOLE_STRIPS is B, and tells the compiler that it is a multiple of STRIP
VARIABLE = "GRADIENT_DD_VECTOR_BITS"
WIDTHS = ("128", "256", "512")
ENGINE = Path(__file__).parent.parent


def wanted_bits() -> int:
    """Return the width of vectors that is asked for: 512, or what the environment says."""
    text = os.environ.get(VARIABLE) or WIDTHS[-1]
    if text not in WIDTHS:
        raise bad_request(VARIABLE, "be 128, 256 or 512", text)
    return int(text)


WANTED_BITS = wanted_bits()


def vector_bits() -> int:
    """Return the width that kernels are compiled for: what is asked for, as far as the processor has it."""
    features: Any = binding.get_host_cpu_features()
    widest = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
    return min(WANTED_BITS, widest)


# Functions to kernels ---------------------------------------------------------------------------------------------


def compile_source(source: str, names: Mapping[str, Any]) -> Any:
    """Return the function that a source text defines; `names` are what it may call."""
    scope = dict(names)
    exec(source, scope)
    return scope[source.removeprefix("def ").partition("(")[0]]


def named(made_of: str | None) -> Callable[[Any], Any]:
    """Return a decorator that puts a digest of what a function is made of into its name.

    Code that comes from disk is linked by name. Functions that are made in a loop of Python, such as kernels, would
    otherwise share one.
    """

    def rename(function: Any) -> Any:
        if made_of is not None:
            function.__qualname__ = f"{function.__name__}_{digest(made_of)}"
        return function

    return rename


def keep(function: Callable[..., Any], made_of: str | None, **options: Any) -> Any:
    """Return a function that is compiled on its first call or taken from disk; if `made_of` is None it is not kept."""
    options |= {"no_cfunc_wrapper": True}  # only Python calls it
    dispatcher = numba.njit(**options)(named(made_of)(function))
    if made_of is not None and ENGINE_CONTENTS is not None:
        dispatcher._cache = KeptCode(f"{made_of} {WANTED_BITS}")
    return dispatcher


def kept(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator for a function of the engine that is compiled once per machine."""
    return lambda function: keep(function, f"{function.__module__}.{function.__name__}", **options)


# Code on disk -----------------------------------------------------------------------------------------------------


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


# Instructions -----------------------------------------------------------------------------------------------------


def typed_as_any(function: Any) -> Any:
    """Return the intrinsic of a function, which compiled code calls without its first argument."""
    return intrinsic(function)


@typed_as_any
def use_widest_vectors(typing):
    """Compile the function that calls this for vectors of `WANTED_BITS`. Costs no instruction.

    The attribute is a wish. It adds no instruction that the processor, or `NUMBA_CPU_FEATURES`, does not have. Each
    function with a loop over lanes needs it, because Numba optimises each one before it is inlined into the next.
    """

    def emit(context, builder, signature, arguments):
        attribute = f'"prefer-vector-width"="{WANTED_BITS}"'
        set.add(builder.function.attributes, attribute)  # the `add` of llvmlite takes only attributes it has a list of
        return context.get_dummy_value()

    return types.void(), emit


def disjoint(scope: str, scopes: list[str]) -> tuple[Any, Any]:
    """Return load(array, i) and store(array, i, value) that touch nothing the other scopes touch.

    The promise holds between two calls of `barrier` only.
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
    """Return `load_…` and `store_…` of every scope, by name."""
    names = {}
    for scope in scopes:
        names[f"load_{scope}"], names[f"store_{scope}"] = disjoint(scope, scopes)
    return names


@typed_as_any
def barrier(typing):
    """Let the compiler move no memory access across this point. Costs no instruction."""

    def emit(context, builder, signature, arguments):
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", [], side_effect=True)
        return context.get_dummy_value()

    return types.void(), emit


# Subnormal numbers ------------------------------------------------------------------------------------------------


def _x86_control():
    i32, i64, pointer = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()

    def call(builder, name, slot):
        function = builder.module.declare_intrinsic(name, (), ir.FunctionType(ir.VoidType(), [pointer]))
        builder.call(function, [builder.bitcast(slot, pointer)])

    def read(builder):
        slot = cgutils.alloca_once(builder, i32)
        call(builder, "llvm.x86.sse.stmxcsr", slot)
        return builder.zext(builder.load(slot), i64)

    def write(builder, value):
        slot = cgutils.alloca_once(builder, i32)
        builder.store(builder.trunc(value, i32), slot)
        call(builder, "llvm.x86.sse.ldmxcsr", slot)

    return read, write, 0x8040  # flush to zero, denormals are zero


def _arm_control():
    i64 = ir.IntType(64)

    def function(builder, name, result, arguments):
        return builder.module.declare_intrinsic(name, (), ir.FunctionType(result, arguments))

    def read(builder):
        return builder.call(function(builder, "llvm.aarch64.get.fpcr", i64, []), [])

    def write(builder, value):
        builder.call(function(builder, "llvm.aarch64.set.fpcr", ir.VoidType(), [i64]), [value])

    return read, write, 1 << 24  # flush to zero


def _no_control():
    """On other machines subnormal numbers stay: right, only slower."""
    return (lambda builder: ir.IntType(64)(0)), (lambda builder, value: None), 0


_CONTROLS = {"x86_64": _x86_control, "AMD64": _x86_control, "aarch64": _arm_control, "arm64": _arm_control}
_read, _write, FLUSH_SUBNORMALS = _CONTROLS.get(platform.machine(), _no_control)()


@typed_as_any
def float_control(typing):
    """Return this thread's floating-point control register."""
    return types.uint64(), lambda context, builder, signature, arguments: _read(builder)


@typed_as_any
def set_float_control(typing, control):
    """Set this thread's floating-point control register."""

    def emit(context, builder, signature, arguments):
        _write(builder, arguments[0])
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
    """Take subnormal numbers for zero on this thread, until the end, however it comes."""
    before = _flush_subnormals()
    try:
        yield
    finally:
        _restore(before)
