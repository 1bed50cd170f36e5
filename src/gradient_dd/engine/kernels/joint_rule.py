"""A joint rule: the steps of several rules in one, so that lanes of all of them stand in one block.

A step costs something beside its lanes: its outcome is read, and it waits for what the step before has written. With
few lanes that is most of it. A joint rule computes the moves of all its parts, and each lane takes those of its own.
What a part does not move stays where it is, so a lane has the same results as in a block of its own rule.

    print(joint_source((LEARNERS["td"].plain, LEARNERS["gtd2"].plain)))
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numba

from gradient_dd.engine.kernels.compiler_options import INLINE
from gradient_dd.fingerprint import fingerprint
from gradient_dd.learners import PLAIN_MOVES, PLAIN_SIGNALS, Rule
from gradient_dd.learners.rule import Parameter

MEMBER = Parameter("member", "which of the parts the lane follows", default=0.0)

Parts = tuple[Rule, ...]


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
    names: dict[str, Any] = {f"step_{i}": numba.njit(part.step, **INLINE) for i, part in enumerate(parts)}
    exec(joint_source(parts), names)
    step: Callable[..., tuple[float, ...]] = names["step"]
    name = " + ".join(part.name for part in parts)
    return JointRule(name, name, step, moves_of(parts), parameters_of(parts), "", __name__, parts=parts)
