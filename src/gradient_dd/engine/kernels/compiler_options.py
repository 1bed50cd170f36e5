"""The options with which every kernel is compiled. No fast-math: a lane's bits must not depend on its neighbours."""

from typing import Any

COMPILE: dict[str, Any] = {"error_model": "numpy", "boundscheck": False}
INNER: dict[str, Any] = COMPILE | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called by kernels only
INLINE: dict[str, Any] = INNER | {"forceinline": True}
