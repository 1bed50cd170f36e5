"""Several rules combined in one, for lanes: a number selects the rule of each lane.

The step of a rule costs nothing compared with the passes through a network. So one compiled program computes the steps
of all its rules and selects the step of the lane's rule.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradient_dd.errors import extra
from gradient_dd.learners import Rule
from gradient_dd.networks.step import on_arrays

with extra("neural"):
    import jax.numpy as jnp

CHOICE = "choice"


@dataclass(frozen=True)
class JointNetworkRule:
    """Rules without traces, combined in one rule; `choice` is the number of the rule to follow."""

    rules: tuple[Rule, ...]

    traces = ()

    @cached_property
    def moves(self) -> tuple[str, ...]:
        """The quantities that any of the rules changes."""
        return tuple(dict.fromkeys(move for rule in self.rules for move in rule.moves))

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of all rules, and the choice."""
        return (CHOICE, *dict.fromkeys(name for rule in self.rules for name in rule.arguments))

    @cached_property
    def defaults(self) -> dict[str, float]:
        """The parameters of all rules, and the choice."""
        return {CHOICE: 0.0} | {name: value for rule in self.rules for name, value in rule.defaults.items()}

    @property
    def has_eta(self) -> bool:
        """Whether any rule has secondary weights."""
        return any(rule.has_eta for rule in self.rules)

    @property
    def name(self) -> str:
        """The names of all rules."""
        return " + ".join(rule.name for rule in self.rules)

    def step(self, choice: Any, *signals: Any) -> tuple[Any, ...]:
        """Return the moves of the selected rule, and 0 for all other moves."""
        known = dict(zip(self.arguments[1:], signals, strict=True))
        found = dict.fromkeys(self.moves, jnp.zeros_like(known["delta"]))
        for place, rule in enumerate(self.rules):
            returned = on_arrays(rule.step)(*(known[name] for name in rule.arguments))
            for move, value in zip(rule.moves, returned, strict=True):
                found[move] = jnp.where(choice == place, value, found[move])
        return tuple(found.values())
