"""Rules as the kernels see them: fields of a lane, coefficients, several rules in one, a steady shrink, keys on disk.

A joint rule is for blocks of few lanes. A step costs something beside its lanes: its outcome is read, and it waits for
what the step before has written. With few lanes that is most of it. A joint rule computes the moves of all its parts,
and each lane takes those of its own. What a part does not move stays where it is, so a lane has the same results as in
a block of its own rule.

    print(joint_source((LEARNERS["td"].plain, LEARNERS["gtd2"].plain)))

The key of a kernel on disk has the code of its rule. A rule that calls functions of its own is compiled in every
process.
"""

import builtins
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import CodeType
from typing import Any

import numba
import numpy as np

from gradient_dd.engine.kernels.compiler import INLINE, compile_source
from gradient_dd.fingerprint import fingerprint
from gradient_dd.learners import PLAIN_MOVES, PLAIN_SIGNALS, Rule, Setting
from gradient_dd.learners.rule import Parameter

MEMBER = Parameter("member", "which of the parts the lane follows", default=0.0)
STEP_SIZES = ("alpha", "beta")
PLAIN = tuple(name for name in PLAIN_SIGNALS if name not in STEP_SIZES)
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
UNARY = ("neg", "pos", "abs")
CONSTANT = (bool, int, float, complex, str, type(None))

FEW = 16  # lanes of a rule up to which they join those of others

Parts = tuple[Rule, ...]
Names = tuple[str, ...]
Group = tuple[list[int], list[Setting]]  # places among all settings, and what runs there


def lane_parameters(rule: Rule) -> list[str]:
    """Return the names of the parameters that a lane holds: alpha, beta, then the rule's own."""
    return [*STEP_SIZES, *rule.plain.own_parameters]


def lane_fields(rule: Rule) -> list[str]:
    """Return the names of the rows of `Lanes.fields`, in their order. A parameter may be called "scale" too."""
    held = [f"parameter_{name}" for name in lane_parameters(rule)]
    steady = ["shrink", "inverse_shrink", "memory_inverse"] if has_inverse(rule) else []
    return [*held, "memory_x_change", *steady, "memory_scale"]


IN_A_ROW, IN_LANES = "own[{}]", "own[{}, lane]"  # where the i-th of a rule's own parameters is, as source


@cache
def make_coefficients(rule: Rule, place: str, signals: Names, moves: Names) -> Any:
    """Compile `coefficients`, a function of these signals that returns all of these moves, in that order."""
    own = rule.own_parameters
    arguments = [place.format(own.index(name)) if name in own else name for name in rule.arguments]
    lines = [
        "def coefficients(own, lane, signals):",
        f"    {', '.join(signals)} = signals",
        f"    {' = '.join(moves)} = 0.0",
        f"    {', '.join(rule.moves)}, = step({', '.join(arguments)})",
        f"    return {', '.join(moves)}",
    ]
    return numba.njit(compile_source("\n".join(lines), {"step": numba.njit(rule.step, **INLINE)}), **INLINE)


@dataclass(frozen=True, eq=False)
class JointRule(Rule):
    """A rule whose lanes follow one of its `parts` each: the one that their parameter `member` counts."""

    parts: Parts = ()

    def __post_init__(self) -> None:
        """Check nothing: each part has been checked."""

    @cached_property
    def key(self) -> str:
        """A short name for the definitions of all parts."""
        return fingerprint("joint", [part.key for part in self.parts])


def moves_of(parts: Parts) -> tuple[str, ...]:
    """Return the moves that any of several rules makes."""
    return tuple(move for move in PLAIN_MOVES if any(move in part.moves for part in parts))


def parameters_of(parts: Parts) -> tuple[Parameter, ...]:
    """Return the parameters that any of several rules has, and `member`; equal names are one."""
    return *{one.name: one for part in parts for one in part.parameters}.values(), MEMBER


def joint_source(parts: Parts) -> str:
    """Return the source of the step of a joint rule: all parts make their moves, and `member` chooses among them."""
    own = [one.name for one in parameters_of(parts) if one.name not in PLAIN_SIGNALS]
    asked = {MEMBER.name, *(name for part in parts for name in part.arguments)}
    lines = [f"def step({', '.join(name for name in (*PLAIN_SIGNALS, *own) if name in asked)}):"]
    for i, part in enumerate(parts):
        lines.append(f"    {', '.join(f'{move}_{i}' for move in part.moves)}, = step_{i}({', '.join(part.arguments)})")
    for move in moves_of(parts):
        made = [f"{move}_{i}" if move in part.moves else "0.0" for i, part in enumerate(parts)]
        chosen = [*(f"{value} if member == {i}.0" for i, value in enumerate(made[:-1])), made[-1]]
        lines.append(f"    {move} = {' else '.join(chosen)}")
    return "\n".join([*lines, f"    return ({', '.join(moves_of(parts))},)"])


@cache
def joint_rule(parts: Parts) -> JointRule:
    """Return the rule that stands for several. Its step is for kernels only."""
    step = compile_source(joint_source(parts), {f"step_{i}": numba.njit(p.step, **INLINE) for i, p in enumerate(parts)})
    name = " + ".join(part.name for part in parts)
    return JointRule(name, name, step, moves_of(parts), parameters_of(parts), "", __name__, parts=parts)


def can_join(rule: Rule) -> bool:
    """Return whether lanes of a rule may stand beside those of others.

    A natural rule has a metric of its own, and a shrink of η that is not steady would make all lanes divide.
    """
    return rule.is_plain and not rule.natural and ("eta_eta" not in rule.moves or has_steady_shrink(rule))


def join_few(settings: Sequence[Setting], groups: Iterable[list[int]], fits: Callable[[Setting], bool]) -> list[Group]:
    """Merge small groups whose rules may join and whose settings `fits` accepts; return all groups with their settings.

    A group holds the places of settings with one rule and one placement of ρ. Groups that differ in the placement of ρ
    are not merged.
    """
    alone: list[list[int]] = []
    few: dict[str, list[list[int]]] = {}
    for group in groups:
        first = settings[group[0]]
        joins = len(group) <= FEW and can_join(first.rule) and fits(first)
        (few.setdefault(first.rho_mode, []) if joins else alone).append(group)
    alone += [groups[0] for groups in few.values() if len(groups) == 1]
    together = [groups for groups in few.values() if len(groups) > 1]
    rules = {settings[group[0]].rule for groups in together for group in groups}
    parts = tuple(sorted(rules, key=lambda rule: (rule.name, rule.key)))  # in one order, for all ρ: one kernel
    made = [(group, [settings[place] for place in group]) for group in alone]
    return made + [join(settings, groups, parts) for groups in together]


def join(settings: Sequence[Setting], groups: list[list[int]], parts: Parts) -> Group:
    """Return several groups as one, whose lanes have a joint rule."""
    rule = joint_rule(parts)
    places = [place for group in groups for place in group]
    lanes = []
    for setting in (settings[place] for place in places):
        member = {MEMBER.name: float(parts.index(setting.rule))}
        lanes.append(Setting(rule, rule.defaults | dict(setting.values) | member))
    return places, lanes


# A steady shrink ---------------------------------------------------------------------------------------------------


class Followed:
    """A number of which only is known whether it is `steady`: made from step sizes and parameters alone."""

    def __init__(self, steady: bool) -> None:
        self.steady = steady

    def __bool__(self) -> bool:
        raise TypeError("A branch cannot be followed.")

    def __eq__(self, other: object) -> Any:
        raise TypeError("A comparison cannot be followed.")

    __hash__ = None  # type: ignore[assignment]


def followed(*values: Any) -> Followed:
    """Return what arithmetic on these values makes."""
    return Followed(all(getattr(value, "steady", True) for value in values))


for _name in (*BINARY, *(f"r{name}" for name in BINARY), *UNARY):
    setattr(Followed, f"__{_name}__", followed)


@cache
def has_steady_shrink(rule: Rule) -> bool:
    """Return whether the rule shrinks η by the same factor in every step of a segment.

    TDRC returns eta_eta = −β reg: only step sizes and parameters are in it, so the shrink is steady. Whatever
    `Followed` cannot follow, such as a branch or a function, counts as not steady.
    """
    if "eta_eta" not in rule.moves:
        return False
    if isinstance(rule, JointRule):
        return all(has_steady_shrink(part) for part in rule.parts if "eta_eta" in part.moves)
    lasting = {*STEP_SIZES, *rule.defaults}
    try:
        moved = rule.step(*(Followed(name in lasting) for name in rule.arguments))
    except Exception:  # the step does more than arithmetic
        return False
    return followed(moved[rule.moves.index("eta_eta")]).steady


def has_inverse(rule: Rule) -> bool:
    """Return whether lanes carry the inverse of the scale of η along; the traced kernel divides in every step."""
    return rule.is_plain and has_steady_shrink(rule)


# Keys of kernels on disk ------------------------------------------------------------------------------------------


class NotKeepableError(Exception):
    """A function depends on something that a key cannot hold."""


def describe(value: Any) -> str:
    """Return what a global or a constant of a step is, for a key."""
    if isinstance(value, CONSTANT):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, tuple):
        return f"({', '.join(map(describe, value))})"
    if isinstance(value, CodeType):
        return describe_code(value)
    name = getattr(value, "__name__", "")
    for module in (math, np, builtins):
        if value is module or (name and value is getattr(module, name, None)):
            return f"{module.__name__} {name}"
    raise NotKeepableError


def describe_code(code: CodeType) -> str:
    """Return what a compiled function does, for a key: names of variables and its constants included."""
    parts = code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable.hex()
    return f"{parts} {describe(code.co_consts)}"


def names_in(code: CodeType) -> set[str]:
    """Return every name that code or a function inside it may look up."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def describe_function(function: Callable[..., Any]) -> str:
    """Return what a function does, for a key: its code and every global or outer variable it may read."""
    code = function.__code__
    read = {name: function.__globals__[name] for name in names_in(code) if name in function.__globals__}
    read |= dict(zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True))
    seen = {name: describe(value) for name, value in sorted(read.items())}
    if function.__module__ not in sys.modules:  # kept code names the module of its function, and is read with it
        raise NotKeepableError
    return f"{function.__module__} {describe_code(code)} {seen} {describe(function.__defaults__ or ())}"


def describe_rule(rule: Rule) -> str | None:
    """Return what a rule is, for a key; None if it depends on more than its own code and numbers."""
    if isinstance(rule, JointRule):
        described = [describe_rule(part) for part in rule.parts]
        return None if None in described else repr(described)
    try:
        parameters = [(parameter.name, parameter.shared) for parameter in rule.parameters]
        traces = [(trace.name, describe_function(trace.step), trace.memory) for trace in rule.traces]
        return repr((describe_function(rule.step), rule.moves, rule.natural, parameters, *([traces] if traces else [])))
    except (NotKeepableError, AttributeError, ValueError):  # not a plain function, or one with an empty cell
        return None


def describe_kernel(kind: str, rule: Rule, *compiled_for: Any) -> str | None:
    """Return all that makes the kernel of a rule another one; None if the rule is not keepable."""
    described = describe_rule(rule)
    return None if described is None else repr((kind, described, compiled_for))
