"""Rules in the form that kernels use: fields of a lane, coefficients, joint rules, steady shrinks, keys on disk.

A joint rule is for blocks of few lanes. Each step has a cost that does not depend on the number of lanes: the kernel
reads an outcome, and waits for the writes of the previous step. With few lanes this cost dominates. A joint rule
computes the moves of all its parts, and each lane applies the moves of its own part. Moves that a part does not make
are 0, so a lane has the same results as in a block of its own rule.

    print(joint_source((LEARNERS["td"].plain, LEARNERS["gtd2"].plain)))

The key of a kernel on disk contains the code of its rule. A rule that calls its own helper functions is compiled in
every process.
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

MEMBER = Parameter("member", "the number of the part that the lane follows", default=0.0)
STEP_SIZES = ("alpha", "beta")
PLAIN = tuple(name for name in PLAIN_SIGNALS if name not in STEP_SIZES)
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
FEW = 16  # rules with at most this many lanes join lanes of other rules

Parts = tuple[Rule, ...]
Names = tuple[str, ...]
Group = tuple[list[int], list[Setting]]  # places among all settings, and the settings that run there


def lane_parameters(rule: Rule) -> list[str]:
    """Return the names of the parameters that a lane holds: alpha, beta, then the rule's own."""
    return [*STEP_SIZES, *rule.plain.own_parameters]


def lane_fields(rule: Rule) -> list[str]:
    """Return the names of the rows of `Lanes.fields`, in order; prefixes allow a parameter called "scale"."""
    held = [f"parameter_{name}" for name in lane_parameters(rule)]
    steady = ["shrink", "inverse_shrink", "memory_inverse"] if has_inverse(rule) else []
    return [*held, "memory_x_change", *steady, "memory_scale"]


IN_A_ROW, IN_LANES = "own[{}]", "own[{}, lane]"  # the source that reads parameter i of a rule


@cache
def make_coefficients(rule: Rule, place: str, signals: Names, moves: Names) -> Any:
    """Compile `coefficients`, which returns `moves` from `signals`; moves that the rule lacks are 0."""
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
    """A rule whose parameter `member` selects one of its `parts` for each lane."""

    parts: Parts = ()

    def __post_init__(self) -> None:
        """Skip all checks, because each part has been checked."""

    @cached_property
    def key(self) -> str:
        """A fingerprint of the definitions of all parts."""
        return fingerprint("joint", [part.key for part in self.parts])


def moves_of(parts: Parts) -> tuple[str, ...]:
    """Return the moves that at least one of several rules makes."""
    return tuple(move for move in PLAIN_MOVES if any(move in part.moves for part in parts))


def joint_source(parts: Parts) -> str:
    """Return the source of the step of a joint rule: all parts make their moves, and `member` selects one."""
    asked = {MEMBER.name, *(name for part in parts for name in part.arguments)}
    known = dict.fromkeys((*PLAIN_SIGNALS, *(name for part in parts for name in part.own_parameters), MEMBER.name))
    lines = [f"def step({', '.join(name for name in known if name in asked)}):"]
    for i, part in enumerate(parts):
        lines.append(f"    {', '.join(f'{move}_{i}' for move in part.moves)}, = step_{i}({', '.join(part.arguments)})")
    for move in moves_of(parts):
        made = [f"{move}_{i}" if move in part.moves else "0.0" for i, part in enumerate(parts)]
        chosen = [*(f"{value} if member == {i}.0" for i, value in enumerate(made[:-1])), made[-1]]
        lines.append(f"    {move} = {' else '.join(chosen)}")
    return "\n".join([*lines, f"    return ({', '.join(moves_of(parts))},)"])


@cache
def joint_rule(parts: Parts) -> JointRule:
    """Return the rule that represents several rules. Only kernels can call its step."""
    step = compile_source(joint_source(parts), {f"step_{i}": numba.njit(p.step, **INLINE) for i, p in enumerate(parts)})
    name = " + ".join(part.name for part in parts)
    parameters = *{one.name: one for part in parts for one in part.parameters}.values(), MEMBER
    return JointRule(name, name, step, moves_of(parts), parameters, "", __name__, parts=parts)


def can_join(rule: Rule) -> bool:
    """Return whether lanes of a rule may join lanes of other rules.

    Natural rules may not join: each has its metric. A shrink of η that is not steady would make all lanes divide.
    """
    return rule.is_plain and not rule.natural and ("eta_eta" not in rule.moves or has_steady_shrink(rule))


def join_few(settings: Sequence[Setting], groups: Iterable[list[int]], fits: Callable[[Setting], bool]) -> list[Group]:
    """Merge small groups whose rules may join and whose settings `fits` accepts; return all groups with their settings.

    A group holds the places of settings with one rule and one placement of ρ. Groups that differ in the placement of ρ
    are not merged.
    """
    made: list[Group] = []
    few: dict[str, list[list[int]]] = {}
    for group in groups:
        first = settings[group[0]]
        if len(group) <= FEW and can_join(first.rule) and fits(first):
            few.setdefault(first.rho_mode, []).append(group)
        else:
            made.append((group, [settings[place] for place in group]))
    together = [groups for groups in few.values() if len(groups) > 1]
    made += [(one[0], [settings[place] for place in one[0]]) for one in few.values() if len(one) == 1]
    rules = {settings[group[0]].rule for groups in together for group in groups}
    parts = tuple(sorted(rules, key=lambda rule: (rule.name, rule.key)))  # one order for all ρ, so one kernel
    for places in ([place for group in groups for place in group] for groups in together):
        rule, lanes = joint_rule(parts), []
        for setting in (settings[place] for place in places):
            member = {MEMBER.name: float(parts.index(setting.rule))}
            lanes.append(Setting(rule, rule.defaults | dict(setting.values) | member))
        made.append((places, lanes))
    return made


# A steady shrink ---------------------------------------------------------------------------------------------------


class Followed:
    """A number of unknown value that records whether it is `steady`: computed only from step sizes and parameters."""

    def __init__(self, steady: bool) -> None:
        self.steady = steady

    def __bool__(self) -> bool:
        raise TypeError("A branch cannot be followed.")

    def __eq__(self, other: object) -> Any:
        raise TypeError("A comparison cannot be followed.")

    __hash__ = None  # type: ignore[assignment]


def followed(*values: Any) -> Followed:
    """Return the result of arithmetic on these values."""
    return Followed(all(getattr(value, "steady", True) for value in values))


for _name in (*BINARY, *(f"r{name}" for name in BINARY), "neg", "pos", "abs"):
    setattr(Followed, f"__{_name}__", followed)


@cache
def has_steady_shrink(rule: Rule) -> bool:
    """Return whether the rule shrinks η by the same factor in every step of a segment.

    TDRC returns eta_eta = −β reg, which contains only step sizes and parameters. A step that `Followed` cannot follow,
    because it branches or calls a function, counts as not steady.
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
    """Return whether lanes store the inverse of the scale of η; the traced kernel divides in every step."""
    return rule.is_plain and has_steady_shrink(rule)


# Keys of kernels on disk ------------------------------------------------------------------------------------------


class NotKeepableError(Exception):
    """Raised when a function depends on a value that a key cannot contain."""


def describe(value: Any) -> str:
    """Describe a global or a constant of a step, for a key."""
    if isinstance(value, bool | int | float | complex | str | None):
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
    """Describe bytecode, for a key: with the names of its variables and its constants."""
    parts = code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, code.co_exceptiontable.hex()
    return f"{parts} {describe(code.co_consts)}"


def names_in(code: CodeType) -> set[str]:
    """Return every name that code, or a function inside it, may look up."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def describe_function(function: Callable[..., Any]) -> str:
    """Describe a function, for a key: its code and every global or outer variable it may read."""
    code = function.__code__
    read = {name: function.__globals__[name] for name in names_in(code) if name in function.__globals__}
    read |= dict(zip(code.co_freevars, (cell.cell_contents for cell in function.__closure__ or ()), strict=True))
    seen = {name: describe(value) for name, value in sorted(read.items())}
    if function.__module__ not in sys.modules:  # stored code refers to its module by name
        raise NotKeepableError
    return f"{function.__module__} {describe_code(code)} {seen} {describe(function.__defaults__ or ())}"


def describe_rule(rule: Rule) -> str | None:
    """Describe a rule, for a key; return None if it depends on more than its own code and numbers."""
    if isinstance(rule, JointRule):
        described = [describe_rule(part) for part in rule.parts]
        return None if None in described else repr(described)
    try:
        parameters = [(parameter.name, parameter.shared) for parameter in rule.parameters]
        traces = [(trace.name, describe_function(trace.step), trace.memory) for trace in rule.traces]
        return repr((describe_function(rule.step), rule.moves, rule.natural, parameters, *([traces] if traces else [])))
    except (NotKeepableError, AttributeError, ValueError):  # not a plain function, or a function with an empty cell
        return None


def describe_kernel(kind: str, rule: Rule, *compiled_for: Any) -> str | None:
    """Describe the kernel of a rule, for a key; return None if it cannot be stored on disk."""
    described = describe_rule(rule)
    return None if described is None else repr((kind, described, compiled_for))
