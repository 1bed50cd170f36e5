"""Traces: vectors that remember the features of the states before.

A trace is z ← decay z + gain x. Its `step` is a function of scalars, as that of a rule is, and returns (decay, gain).
It asks for what it needs by the names of its arguments, TRACE_SIGNALS or parameters of the rule:

    def step(lam, rho, discount_before):
        return rho * discount_before * lam, rho

The discount *into* the present state decays it, so the end of an episode, a discount of 0, clears it. A trace does not
depend on the weights. All settings that share the parameters it asks for share one.

A trace may keep numbers of its own from step to step, its `memory`: it asks for them by name, and returns their new
values after decay and gain. They are 0 at first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature

from gradient_dd.errors import one_of
from gradient_dd.fingerprint import code_of
from gradient_dd.learners.vocabulary import TRACES


@dataclass(frozen=True)
class Trace:
    """A trace: which of TRACES it is, how it decays and grows, and the names of the numbers it keeps."""

    name: str
    step: Callable[..., tuple[float, ...]]
    memory: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of("The name of a trace", self.name, TRACES)

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The names its step asks for, in its order."""
        return tuple(signature(self.step).parameters)

    @property
    def described(self) -> list[object]:
        """All that makes it another trace."""
        return [self.name, code_of(self.step), list(self.memory)]


@dataclass(frozen=True)
class AlongTrace:
    """The form of a rule with lam > 0: its step along the trace, what that moves, and its mean update.

    `expected` is left out where the one of the form without a trace serves: A, b and B then are those of the trace.
    """

    step: Callable[..., tuple[float, ...]]
    moves: tuple[str, ...]
    traces: tuple[Trace, ...]
    expected: Callable[..., tuple[object, ...]] | None = None


def with_ratio(lam, rho, discount_before):
    """Z ← ρ (γ λ z + x)."""
    return rho * discount_before * lam, rho


def without_ratio(lam, discount_before):
    """B ← γ λ b + x."""
    return discount_before * lam, 1.0


Z = Trace("z", with_ratio)
B = Trace("b", without_ratio)
