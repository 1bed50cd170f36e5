"""Whether a rule shrinks η by the same factor in every step of a segment, found by following its arguments.

TDRC returns eta_eta = −β reg: only step sizes and parameters are in it, so the shrink is steady. The rule is called
with arguments that remember their names through arithmetic. Whatever they cannot follow, such as a branch or a
function, counts as dependent on all arguments.
"""

from functools import cache
from typing import Any

from gradient_dd.engine.kernels.joint_rule import JointRule
from gradient_dd.learners import Rule

BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
UNARY = ("neg", "pos", "abs")


class Followed:
    """A number of which only the names of the arguments that it was made from are known."""

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)

    def __bool__(self) -> bool:
        raise TypeError("A branch cannot be followed.")

    def __eq__(self, other: object) -> Any:
        raise TypeError("A comparison cannot be followed.")

    __hash__ = None  # type: ignore[assignment]


def names_behind(value: Any) -> frozenset[str]:
    """Return the names of the arguments that a value was made from."""
    return value.names if isinstance(value, Followed) else frozenset()


def followed(*values: Any) -> Followed:
    """Return what any arithmetic on these values depends on."""
    return Followed(*frozenset().union(*map(names_behind, values)))


for _name in BINARY:
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(Followed, _method, followed)
for _name in UNARY:
    setattr(Followed, f"__{_name}__", followed)


@cache
def has_steady_shrink(rule: Rule) -> bool:
    """Return whether the rule shrinks η by a factor of its parameters and step sizes alone."""
    if "eta_eta" not in rule.moves:
        return False
    if isinstance(rule, JointRule):
        return all(has_steady_shrink(part) for part in rule.parts if "eta_eta" in part.moves)
    try:
        moved = rule.step(*map(Followed, rule.arguments))
    except Exception:  # the step does more than arithmetic
        return False
    return names_behind(moved[rule.moves.index("eta_eta")]) <= {"alpha", "beta", *rule.defaults}
