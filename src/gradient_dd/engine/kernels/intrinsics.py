"""What the lane kernels say to the compiler that Python has no words for.

`disjoint` and `barrier` belong together: the one promises that the weight rows of a step do not overlap, so that the
loop over lanes becomes vector code without checks; the other ends the promise with the step, because the row of x'
is the row of x in the next one.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray


def typed_as_any(function: Any) -> Any:
    """Return the intrinsic of a function, which compiled code calls without its first argument."""
    return intrinsic(function)


def aligned(rows: int, columns: int, fill: float = 0.0) -> NDArray[np.float64]:
    """Return a flat array for (rows, columns) that starts on a cache line.

    NumPy promises 16 bytes only, and a vector access that straddles two lines costs two: 1.3 to 1.6 times the time.
    """
    size = rows * columns
    raw = np.empty(size * 8 + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    array = raw[begin : begin + size * 8].view(np.float64)
    array[:] = fill
    return array


def disjoint(scope: str, scopes: list[str]) -> tuple[Any, Any]:
    """Return load(array, i) and store(array, i, value) that touch nothing the other scopes touch.

    The promise is kept between two calls of `barrier` only.
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


@typed_as_any
def barrier(typing):
    """Let the compiler move no memory access across this point. Costs no instruction."""

    def emit(context, builder, signature, arguments):
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", [], side_effect=True)
        return context.get_dummy_value()

    return types.void(), emit


# Subnormal numbers ------------------------------------------------------------------------------------------------
#
# Weights that decay towards zero end in the subnormal range, where each operation is slow and holds up all lanes of
# its vector. The kernels therefore set the processor to take subnormal numbers for zero while they run, on whatever
# thread, and put it back as it was. Results change below 2.3e-308 only.


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


@njit
def _flush_subnormals():
    control = float_control()
    set_float_control(control | np.uint64(FLUSH_SUBNORMALS))
    return control


@njit
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
