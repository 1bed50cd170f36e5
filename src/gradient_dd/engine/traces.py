"""Traces, as every engine keeps them: what a trace asks for, and what it remembers from the step before."""

from collections.abc import Mapping
from typing import NamedTuple

from gradient_dd.errors import Words, must
from gradient_dd.learners import Rule
from gradient_dd.learners.trace import Trace

Memory = tuple[float, ...]


class Before(NamedTuple):
    """The transition before: its discount, ratio and probabilities, or zeros where an episode starts."""

    discount: float
    rho: float
    pi: float
    mu: float


START = Before(0.0, 0.0, 0.0, 0.0)


def memory_at_first(rule: Rule) -> dict[str, Memory]:
    """Return the numbers that each trace of a rule keeps, all 0."""
    return {trace.name: (0.0,) * len(trace.memory) for trace in rule.traces}


def trace_numbers(
    trace: Trace, signals: Mapping[str, float], before: Before, memory: Memory, x_trace: float
) -> tuple[float, float, Memory]:
    """Return the decay and the gain of a trace in this step, and its new memory.

    `signals` are those of `Setting.signals`; `x_trace` is the product of x with the trace before this step.
    """
    known = dict(signals) | {f"{name}_before": value for name, value in before._asdict().items()}
    known |= {"x_trace": x_trace} | dict(zip(trace.memory, memory, strict=True))
    decay, gain, *kept = trace.step(*(known[name] for name in trace.arguments))
    return decay, gain, tuple(kept)


def check_sampling(rule: Rule, sampling: str) -> None:
    """Raise if a rule with a trace is to be fed with independent draws: they do not follow each other."""
    if rule.traces and sampling != "trajectory":
        raise must(f"'sampling' for {rule.name}", "be 'trajectory', for it keeps a trace", Words(repr(sampling)))
