"""The tangent kernel k(s, s') = ∇V(s)·∇V(s'): how far a step that raises V(s) raises V(s')."""

from functools import cache
from typing import Any

import numpy as np

from gradient_dd.arrays import Array
from gradient_dd.errors import extra
from gradient_dd.networks.learner import states
from gradient_dd.networks.network import Network

with extra("neural"):
    import jax


@cache
def compiled_kernel(network: Network) -> Any:
    """Return the compiled kernel matrix of states."""

    def kernel(w: Any, s: Any) -> Any:
        slopes = jax.jacrev(lambda w: network.values(w, s)[:, 0])(w)
        return slopes @ slopes.T

    return jax.jit(kernel)


def tangent_kernel(network: Network, w: Any, s: Any) -> Array:
    """Return k of every pair of states s (n, inputs), (n, n), at weights w."""
    rows, _ = states("s", s, network.inputs)
    w = network.checked_weights("w", w, network.n_weights)
    with network.working():
        return np.asarray(compiled_kernel(network)(network.array(w), network.array(rows))).astype(float)
