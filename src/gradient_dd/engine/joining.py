"""Which settings share a block: those of one rule, and those of several rules that have few each."""

from collections.abc import Callable, Iterable, Sequence

from gradient_dd.engine.kernels.joint_rule import MEMBER, Parts, joint_rule
from gradient_dd.engine.kernels.steady import has_steady_shrink
from gradient_dd.learners import Rule, Setting

FEW = 16  # lanes of a rule up to which they join those of others

Group = tuple[list[int], list[Setting]]  # places among all settings, and what runs there


def can_join(rule: Rule) -> bool:
    """Return whether lanes of a rule may stand beside those of others.

    A natural rule has a metric of its own, and a shrink of η that is not steady would make all lanes divide.
    """
    return rule.is_plain and not rule.natural and ("eta_eta" not in rule.moves or has_steady_shrink(rule))


def join_few(settings: Sequence[Setting], groups: Iterable[list[int]], fits: Callable[[Setting], bool]) -> list[Group]:
    """Return the groups with their settings; those of few lanes whose rules may join, and that `fits` allows, as one.

    `groups` are places of settings with one rule and one placement of ρ. Lanes that differ in the latter do not join.
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
    return made + [joined(settings, groups, parts) for groups in together]


def joined(settings: Sequence[Setting], groups: list[list[int]], parts: Parts) -> Group:
    """Return several groups as one, of lanes with a joint rule."""
    rule = joint_rule(parts)
    places = [place for group in groups for place in group]
    lanes = []
    for setting in (settings[place] for place in places):
        member = {MEMBER.name: float(parts.index(setting.rule))}
        lanes.append(Setting(rule, rule.defaults | dict(setting.values) | member))
    return places, lanes
