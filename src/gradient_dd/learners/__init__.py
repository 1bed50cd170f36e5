"""The learners: one rule per file. `LEARNERS` is the only list of them."""

from collections.abc import Mapping
from types import MappingProxyType

from gradient_dd.errors import bad_request, unknown
from gradient_dd.learners.abtd import ABTD
from gradient_dd.learners.etd import ETD
from gradient_dd.learners.etd_beta import ETD_BETA
from gradient_dd.learners.gradient_dd import GRADIENT_DD
from gradient_dd.learners.gtd import GTD
from gradient_dd.learners.gtd2 import GTD2
from gradient_dd.learners.gtd2_momentum import GTD2_MOMENTUM
from gradient_dd.learners.gtd2_to_td import GTD2_TO_TD
from gradient_dd.learners.htd import HTD
from gradient_dd.learners.htd_dd import HTD_DD
from gradient_dd.learners.natural_gtd2 import NATURAL_GTD2
from gradient_dd.learners.natural_tdc import NATURAL_TDC
from gradient_dd.learners.pgtd2 import PGTD2
from gradient_dd.learners.pgtd2_dd import PGTD2_DD
from gradient_dd.learners.residual_gradient import RESIDUAL_GRADIENT
from gradient_dd.learners.rule import Parameter, Rule, Setting
from gradient_dd.learners.td import TD
from gradient_dd.learners.tdc import TDC
from gradient_dd.learners.tdc_dd import TDC_DD
from gradient_dd.learners.tdc_momentum import TDC_MOMENTUM
from gradient_dd.learners.tdc_to_td import TDC_TO_TD
from gradient_dd.learners.tdrc import TDRC
from gradient_dd.learners.tdrc_dd import TDRC_DD
from gradient_dd.learners.tree_backup import TREE_BACKUP
from gradient_dd.learners.true_online_td import TRUE_ONLINE_TD
from gradient_dd.learners.vocabulary import MOVES, PLAIN_MOVES, PLAIN_SIGNALS, RHO_MODES, SIGNALS, TERMS
from gradient_dd.learners.vtrace import VTRACE

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

_LEARNERS: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        TD,
        GTD,
        GTD2,
        TDC,
        TDRC,
        GRADIENT_DD,
        NATURAL_GTD2,
        NATURAL_TDC,
        GTD2_TO_TD,
        TDC_TO_TD,
        HTD,
        PGTD2,
        ETD,
        ETD_BETA,
        VTRACE,
        TREE_BACKUP,
        ABTD,
        TRUE_ONLINE_TD,
        RESIDUAL_GRADIENT,
        GTD2_MOMENTUM,
        TDC_MOMENTUM,
        TDC_DD,
        TDRC_DD,
        HTD_DD,
        PGTD2_DD,
    )
}


LEARNERS: Mapping[str, Rule] = MappingProxyType(_LEARNERS)  # read only; `register` adds a rule of your own


def register(rule: Rule) -> Rule:
    """Make a rule of your own known by its name, in this process, and return it; a name is given once.

    >>> from dataclasses import replace
    >>> _ = register(replace(LEARNERS["td"], name="my_td"))
    >>> find("my_td").name
    'my_td'
    """
    if not isinstance(rule, Rule):
        raise bad_request("A learner", "be a Rule", rule)
    if _LEARNERS.get(rule.name, rule) != rule:
        raise bad_request("The name of a rule", "not be that of another learner", rule.name)
    _LEARNERS[rule.name] = rule
    return rule


def find(learner: str | Rule) -> Rule:
    """Return `learner` if it is a rule, else the registered rule with that name."""
    if isinstance(learner, Rule):
        return learner
    if not isinstance(learner, str) or learner not in LEARNERS:
        raise unknown("learner", learner, LEARNERS)
    return LEARNERS[learner]
