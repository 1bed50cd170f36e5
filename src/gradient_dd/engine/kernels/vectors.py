"""The width of the vectors that kernels compute with: the widest the processor has, whatever LLVM prefers.

LLVM takes 256-bit vectors on many processors that have 512-bit ones. A kernel asks for 512 function by function, so no
setting of Numba changes and other compiled code of the process stays as it is. Results have the same bits at any width.
`GRADIENT_DD_VECTOR_BITS` (128, 256 or 512) asks for less.
"""

import os
from typing import Any

from llvmlite import binding
from numba import types

from gradient_dd.engine.kernels.intrinsics import typed_as_any
from gradient_dd.errors import must

VARIABLE = "GRADIENT_DD_VECTOR_BITS"
WIDTHS = ("128", "256", "512")


def wanted_bits() -> int:
    """Return the width that is asked for: 512, or what the environment says."""
    text = os.environ.get(VARIABLE) or WIDTHS[-1]
    if text not in WIDTHS:
        raise must(VARIABLE, "be 128, 256 or 512", text)
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
