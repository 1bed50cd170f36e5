"""Network: a value function with hidden layers and one flat vector of weights.

The vector holds W (inputs × outputs, row by row) and then b of each layer: in a network with one input and 64 hidden
units, w[:64] are the weights of the input. Without hidden layers V(s) = w·(s, 1), the linear case, in which every rule
makes the same updates as in a `Learner`.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from gradient_dd.arrays import Array, check_memory, dimensions, numbers
from gradient_dd.errors import GradientDDError, bad_request, extra, one_of, whole_number

with extra("neural"):
    import jax
    import jax.numpy as jnp

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"tanh": jnp.tanh, "relu": jax.nn.relu}
GAINS = {"tanh": 1.0, "relu": 2.0}  # variance of an initial weight, times the number of inputs of its layer
MOST_LAYERS = 20


@cache
def first_process() -> int:
    """Return the id of the process that used JAX first."""
    return os.getpid()


@dataclass(frozen=True)
class Network:
    """The shape of a value function, and of the second output h that rules with η need.

    inputs      length of a state vector
    hidden      units of each hidden layer; () is the linear case
    activation  "tanh" or "relu"
    second      the definition of h(s). "head": linear in the last hidden layer and a constant, with no gradient into
                that layer. "tangent": η·∇V(s), as in theory (Maei 2009). "network": a second network of the same shape
    precision   "float32" or "float64"
    outputs     1 for state values; the number of actions for action values

    >>> Network(inputs=4, hidden=(64, 64)).n_weights
    4545
    """

    inputs: int
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    second: str = "head"
    precision: str = "float32"
    outputs: int = 1

    def __post_init__(self) -> None:
        for name in ("inputs", "outputs"):
            object.__setattr__(self, name, whole_number(f"{name!r} of a network", getattr(self, name)))
        if not isinstance(self.hidden, list | tuple) or len(self.hidden) > MOST_LAYERS:
            rule = f"be a tuple of at most {MOST_LAYERS} whole numbers"
            raise bad_request("'hidden' of a network", rule, self.hidden)
        widths = tuple(whole_number("A width in 'hidden' of a network", width) for width in self.hidden)
        object.__setattr__(self, "hidden", widths)
        one_of("'activation' of a network", self.activation, ACTIVATIONS)
        one_of("'second' of a network", self.second, ("head", "tangent", "network"))
        one_of("'precision' of a network", self.precision, ("float32", "float64"))
        size = min(self.n_weights, 10**18)  # more than any memory, and short enough to print
        check_memory(f"A network of {size:,} weights", 80 * size, "Use fewer units.")

    @property
    def widths(self) -> tuple[int, ...]:
        """The widths of the input, of each hidden layer, and of the output."""
        return (self.inputs, *self.hidden, self.outputs)

    @property
    def shape(self) -> str:
        """The widths as text, such as 4-64-64-1."""
        return "-".join(map(str, self.widths))

    @cached_property
    def n_weights(self) -> int:
        """The length of w."""
        return sum((here + 1) * there for here, there in pairwise(self.widths))

    @property
    def n_second_weights(self) -> int:
        """The length of η."""
        return (self.widths[-2] + 1) * self.outputs if self.second == "head" else self.n_weights

    def working(self) -> AbstractContextManager[Any]:
        """Return the context in which JAX uses the precision of the network; other uses of JAX are not affected.

        Raise an error in a forked child, where JAX's threads do not exist and its first computation would never end.
        """
        if first_process() != os.getpid():
            raise GradientDDError(
                "JAX was used before this process was forked, and its threads did not survive. Start the process with "
                "multiprocessing's 'spawn' method, or create the NetworkLearner in the child only."
            )
        return jax.enable_x64(True) if self.precision == "float64" else nullcontext()

    def array(self, values: Any) -> Any:
        """Return numbers as an array in the precision of the network; call this inside `working`."""
        with np.errstate(over="ignore"):  # a number that is too large becomes infinite, and the update raises an error
            return jnp.asarray(np.asarray(values, self.precision))

    def layers(self, w: Any) -> list[tuple[Any, Any]]:
        """Return W and b of each layer of the flat weights w."""
        sizes = [size for here, there in pairwise(self.widths) for size in (here * there, there)]
        split = np.split if isinstance(w, np.ndarray) else jnp.split  # the gradient of a split is one concatenation
        parts = iter(split(w, np.cumsum(sizes)[:-1]))
        return [(next(parts).reshape(here, there), next(parts)) for here, there in pairwise(self.widths)]

    def last_hidden(self, w: Any, s: Any) -> Any:
        """Return the last hidden layer for states s (n, inputs); without hidden layers, s itself."""
        for W, b in self.layers(w)[:-1]:
            s = ACTIVATIONS[self.activation](s @ W + b)
        return s

    def values(self, w: Any, s: Any) -> Any:
        """Return the values (n, outputs) of states s (n, inputs)."""
        W, b = self.layers(w)[-1]
        return self.last_hidden(w, s) @ W + b

    def second_values(self, eta: Any, w: Any, s: Any) -> Any:
        """Return h (n, outputs) of states s (n, inputs)."""
        if self.second == "network":
            return self.values(eta, s)
        if self.second == "tangent":
            return jax.jvp(lambda at: self.values(at, s), (w,), (eta,))[1]
        last = jax.lax.stop_gradient(self.last_hidden(w, s))
        W, b = eta[: -self.outputs].reshape(-1, self.outputs), eta[-self.outputs :]
        return last @ W + b

    def first_w(self, seed: int) -> Array:
        """Return the initial weights for a seed: W normal with variance 1 (2 for relu) over a layer's inputs, b = 0.

        Without hidden layers all initial weights are 0, as in `Learner`.
        """
        if not self.hidden:
            return np.zeros(self.n_weights)
        return self._drawn(np.random.default_rng([seed, 0]))

    def first_eta(self, seed: int) -> Array:
        """Return the initial secondary weights, for which h is 0 everywhere."""
        if self.second != "network" or not self.hidden:
            return np.zeros(self.n_second_weights)
        eta = self._drawn(np.random.default_rng([seed, 1]))
        eta[-(self.widths[-2] + 1) * self.outputs :] = 0.0
        return eta

    def _drawn(self, rng: np.random.Generator) -> Array:
        parts = []
        for here, there in pairwise(self.widths):
            deviation = (GAINS[self.activation] / here) ** 0.5
            parts += [deviation * rng.standard_normal(here * there), np.zeros(there)]
        return np.concatenate(parts)


def states(name: str, s: Any, inputs: int, used: Any = None) -> tuple[Array, bool]:
    """Return states as rows (n, inputs), and whether one state was given; rows that are not `used` become 0."""
    if used is not None and dimensions(s) == 2 and len(s) == len(used) and not used.all():
        s = np.where(used[:, None], np.asarray(s, float), 0.0)
    elif used is not None and dimensions(s) == 1 and not used.any():
        s = np.zeros(inputs)
    rows = numbers(f"{name!r}", s)
    if rows.ndim not in (1, 2) or rows.shape[-1] != inputs:
        raise bad_request(f"The shape of {name!r}", f"be ({inputs},) or (n, {inputs})", rows.shape)
    return (rows[None], True) if rows.ndim == 1 else (rows, False)


@cache
def predictions(network: Network) -> Any:
    """Return the compiled function that computes the values of states (n, inputs)."""
    return jax.jit(network.values)
