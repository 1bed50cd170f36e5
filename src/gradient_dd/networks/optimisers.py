"""Optimisers: what turns the direction of a rule into a step.

With "sgd" the rule itself has the step sizes. Otherwise the rule gets alpha = beta = 1, and the optimiser has them.
"""

from typing import Any, NamedTuple

from gradient_dd.errors import extra, unknown

with extra("neural"):
    import optax

NAMED = {  # words that `optimiser` takes; the transformation has no step size yet
    "sgd": None,
    "adam": optax.scale_by_adam(),
    "adam_without_momentum": optax.scale_by_adam(b1=0.0),
}


class Optimiser(NamedTuple):
    """A transformation of Optax, or None for plain steps; `own` is one of the user's, which has its step size in it."""

    name: str
    transformation: Any
    own: bool

    def first(self, weights: Any) -> Any:
        """Return its memory for weights that have not moved yet."""
        return () if self.transformation is None else self.transformation.init(weights)

    def step(self, direction: Any, memory: Any, weights: Any, size: Any) -> tuple[Any, Any]:
        """Return the change of weights along a direction, and its new memory."""
        if self.transformation is None:
            return direction, memory
        if self.own:
            return self.transformation.update(-direction, memory, weights)
        change, memory = self.transformation.update(direction, memory, weights)
        return size * change, memory


def find_optimiser(given: Any) -> Optimiser:
    """Return the optimiser of a word, or one that holds a transformation of Optax."""
    if isinstance(given, optax.GradientTransformation):
        return Optimiser("own", given, own=True)
    if not isinstance(given, str) or given not in NAMED:
        raise unknown("optimiser", given, NAMED)
    return Optimiser(given, NAMED[given], own=False)
