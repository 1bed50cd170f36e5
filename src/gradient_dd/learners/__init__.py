"""The learners, one rule per file; `LEARNERS` is their registry."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from gradient_dd.errors import bad_request, unknown
from gradient_dd.learners.rule import Parameter, Rule, Setting
from gradient_dd.learners.vocabulary import MOVES, PLAIN_MOVES, PLAIN_SIGNALS, RHO_MODES, SIGNALS, TERMS

__all__ = [
    "LEARNERS",
    "MOVES",
    "PLAIN_MOVES",
    "PLAIN_SIGNALS",
    "RHO_MODES",
    "SIGNALS",
    "TERMS",
    "Parameter",
    "Rule",
    "Setting",
    "find",
    "register",
]

FILES = (  # each file defines a rule under the name of the file in capitals
    "td",
    "gtd",
    "gtd2",
    "tdc",
    "tdrc",
    "gradient_dd",
    "natural_gtd2",
    "natural_tdc",
    "gtd2_to_td",
    "tdc_to_td",
    "htd",
    "pgtd2",
    "etd",
    "etd_beta",
    "vtrace",
    "tree_backup",
    "abtd",
    "true_online_td",
    "residual_gradient",
    "gtd2_momentum",
    "tdc_momentum",
    "tdc_dd",
    "tdrc_dd",
    "htd_dd",
    "pgtd2_dd",
)
_LEARNERS: dict[str, Rule] = {name: getattr(import_module(f"{__name__}.{name}"), name.upper()) for name in FILES}
LEARNERS: Mapping[str, Rule] = MappingProxyType(_LEARNERS)  # read-only; `register` adds your own rule


def register(rule: Rule) -> Rule:
    """Register your own rule under its name in this process, and return it; names are unique.

    >>> from dataclasses import replace
    >>> _ = register(replace(LEARNERS["td"], name="my_td"))
    >>> find("my_td").name
    'my_td'
    """
    if not isinstance(rule, Rule):
        raise bad_request("A learner", "be a Rule", rule)
    if _LEARNERS.get(rule.name, rule) != rule:
        raise bad_request("The name of a rule", "not be the name of another learner", rule.name)
    _LEARNERS[rule.name] = rule
    return rule


def find(learner: str | Rule) -> Rule:
    """Return `learner` if it is a rule, else the registered rule with that name."""
    if isinstance(learner, Rule):
        return learner
    if not isinstance(learner, str) or learner not in LEARNERS:
        raise unknown("learner", learner, LEARNERS)
    return LEARNERS[learner]
