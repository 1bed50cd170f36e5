"""The learners: one rule per file. `LEARNERS` is the only list of them."""

from gradient_dd.errors import unknown
from gradient_dd.learners.gradient_dd import GRADIENT_DD
from gradient_dd.learners.gtd import GTD
from gradient_dd.learners.gtd2 import GTD2
from gradient_dd.learners.gtd2_to_td import GTD2_TO_TD
from gradient_dd.learners.natural_gtd2 import NATURAL_GTD2
from gradient_dd.learners.natural_tdc import NATURAL_TDC
from gradient_dd.learners.rule import Parameter, Rule, Setting
from gradient_dd.learners.td import TD
from gradient_dd.learners.tdc import TDC
from gradient_dd.learners.tdc_to_td import TDC_TO_TD
from gradient_dd.learners.tdrc import TDRC
from gradient_dd.learners.vocabulary import MOVES, RHO_MODES, SIGNALS, TERMS

__all__ = ["LEARNERS", "MOVES", "RHO_MODES", "SIGNALS", "TERMS", "Parameter", "Rule", "Setting", "find"]

LEARNERS: dict[str, Rule] = {
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
    )
}


def find(learner: str | Rule) -> Rule:
    """Return the rule itself, or the registered rule of that name."""
    if isinstance(learner, Rule):
        return learner
    if not isinstance(learner, str) or learner not in LEARNERS:
        raise unknown("learner", learner, LEARNERS)
    return LEARNERS[learner]
