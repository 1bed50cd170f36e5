"""What the lane kernels say to the compiler that Python has no words for.

`disjoint` and `barrier` belong together: the one promises that the weight rows of a step do not overlap, so that the
loop over lanes becomes vector code without checks; the other ends the promise with the step, because the row of x'
is the row of x in the next one.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
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
