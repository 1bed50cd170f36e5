"""Which rules a network can follow.

A rule is a function of numbers, and here the numbers are arrays under JAX. So a rule with a Python `if` cannot be
followed; `min` and `max` are read as those of arrays. Natural rules need M⁻¹ for a matrix M of all weights.
"""

from collections.abc import Callable
from functools import reduce
from types import FunctionType
from typing import Any

from gradient_dd.errors import BadRequestError, Unquoted, bad_request, extra
from gradient_dd.learners import Rule
from gradient_dd.learners.vocabulary import MOVES, SIGNALS
from gradient_dd.networks.network import Network

with extra("neural"):
    import jax
    import jax.numpy as jnp

PRODUCTS = ("x_x", "x_next", "next_next", "x_z", "z_z")
ON_ARRAYS = {
    "min": lambda *numbers: reduce(jnp.minimum, numbers),
    "max": lambda *numbers: reduce(jnp.maximum, numbers),
}
CORRECTED = ("gtd2", "tdc", "tdrc", "gradient_dd", "tdc_dd", "tdrc_dd")  # rules that follow −½∇MSPBE, DD term apart


def on_arrays(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return the step of a rule or a trace with `min` and `max` of arrays."""
    if not isinstance(step, FunctionType):
        return step
    made = FunctionType(step.__code__, step.__globals__ | ON_ARRAYS, step.__name__, step.__defaults__, step.__closure__)
    made.__kwdefaults__ = step.__kwdefaults__
    return made


def check_rule(rule: Rule, network: Network, correction: bool = False) -> None:
    """Raise unless a network can follow the rule; the sentence says which rule and why."""
    what = f"A network cannot follow the rule {rule.name!r}"
    if rule.natural:
        raise BadRequestError(f"{what}: it is natural, and a metric of all weights of a network is too large.")
    rule.check_known("`NetworkLearner`", SIGNALS, MOVES)
    asked = [name for name in rule.arguments if name not in rule.defaults]
    products = [name for name in asked if name in PRODUCTS]
    if products and not network.has_one_kind_of_gradient:
        raise BadRequestError(
            f"{what} with second={network.second!r}: its {products[0]!r} stands for products of the gradients of V and "
            "of h, which are the same only with second='tangent'. Use that."
        )
    along = [name for name in asked if name in ("z_eta", "b_eta")]
    if along and not network.is_linear_in_eta:
        raise BadRequestError(
            f"{what} with second='network': its {along[0]!r} needs an h that is linear in η. "
            "Use second='head' or second='tangent'."
        )
    for step, arguments in ((rule.step, rule.arguments), *((one.step, one.arguments) for one in rule.traces)):
        check_traceable(what, step, arguments)
    if correction and rule.name not in CORRECTED:
        raise bad_request(
            "The rule of a NetworkLearner with correction=True", f"be one of {', '.join(CORRECTED)}", rule.name
        )
    if correction and network.second != "tangent":
        raise bad_request("'second' of a network with correction=True", "be 'tangent'", network.second)


def check_traceable(what: str, step: Callable[..., Any], arguments: tuple[str, ...]) -> None:
    """Raise unless a step can be computed on arrays."""
    number = jax.ShapeDtypeStruct((), jnp.float32)
    try:
        jax.eval_shape(on_arrays(step), *(number for _ in arguments))
    except Exception as error:  # the step is the user's, and may raise anything
        asks = isinstance(error, jax.errors.TracerBoolConversionError)
        why = "it asks `if` of a number. Write it with min and max" if asks else Unquoted(f"{type(error).__name__}")
        raise BadRequestError(f"{what}: {why}.") from None
