"""Eligibility traces: decaying sums of the features of earlier states.

A trace is z ← decay z + gain x. Like the step of a rule, its `step` is a function of scalars; it returns (decay, gain).
Its argument names select its inputs from TRACE_SIGNALS and the parameters of the rule:

    def step(lam, rho, discount_before):
        return rho * discount_before * lam, rho

The discount *into* the current state decays the trace, so the end of an episode (discount 0) clears it. A trace does
not depend on the weights. All settings with equal values of the trace's parameters share one trace.

A trace may keep numbers from step to step in its `memory`. Its step takes these numbers by name and returns their new
values after decay and gain. They start at 0.
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
    """A trace: its name in TRACES, its step, and the names of the numbers in its memory."""

    name: str
    step: Callable[..., tuple[float, ...]]
    memory: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of("The name of a trace", self.name, TRACES)

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The argument names of `step`, in order."""
        return tuple(signature(self.step).parameters)

    @property
    def described(self) -> list[object]:
        """The parts of the definition that identify the trace."""
        return [self.name, code_of(self.step), list(self.memory)]


@dataclass(frozen=True)
class AlongTrace:
    """The form of a rule with lam > 0: its step along the trace, its moves, and its mean update.

    Without `expected`, the mean update of the form without a trace applies, with the trace's A, b and B.
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
