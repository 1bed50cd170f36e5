"""What the kernels say to the compiler: options, the width of vectors, and what Python has no words for.

No fast-math: a lane's bits must not depend on its neighbours.

LLVM takes 256-bit vectors on many processors that have 512-bit ones. A kernel asks for 512 function by function, so no
setting of Numba changes and other compiled code of the process stays as it is. Results have the same bits at any width.
`GRADIENT_DD_VECTOR_BITS` (128, 256 or 512) asks for less.

`disjoint` and `barrier` belong together: the one promises that the weight rows of a step do not overlap, so that the
loop over lanes becomes vector code without checks; the other ends the promise with the step, because the row of x'
is the row of x in the next one.
"""

import os
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

from gradient_dd.arrays import Array
from gradient_dd.errors import bad_request

COMPILE: dict[str, Any] = {"error_model": "numpy", "boundscheck": False}
INNER: dict[str, Any] = COMPILE | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by kernels only
INLINE: dict[str, Any] = INNER | {"forceinline": True}
STRIP = 8  # the number of lanes of a block is a multiple of this, so vector loops need no loop for the remainder
WHOLE_STRIPS = ~np.uintp(STRIP - 1)  # B & WHOLE_STRIPS is B, and tells the compiler that it is a multiple of STRIP
VARIABLE = "GRADIENT_DD_VECTOR_BITS"
WIDTHS = ("128", "256", "512")


def typed_as_any(function: Any) -> Any:
    """Return the intrinsic of a function, which compiled code calls without its first argument."""
    return intrinsic(function)


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


def aligned(rows: int, columns: int, fill: float = 0.0) -> Array:
    """Return a flat array for (rows, columns) that starts on a cache line.

    NumPy promises 16 bytes only, and a vector access that straddles two lines costs two: 1.3 to 1.6 times the time.
    """
    size = rows * columns
    raw = np.empty(size * 8 + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    array = raw[begin : begin + size * 8].view(np.float64)
    array[:] = fill
    return array
