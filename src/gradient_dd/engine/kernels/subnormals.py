"""Subnormal numbers are taken for zero while kernels run.

Weights that decay towards zero end in the subnormal range, where each operation is slow and holds up all lanes of
its vector. The kernels therefore set the processor to take subnormal numbers for zero while they run, on whatever
thread, and put it back as it was. Results change below 2.3e-308 only.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from gradient_dd.engine.kernels.compiler import typed_as_any
from gradient_dd.engine.kernels.keep import kept


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
