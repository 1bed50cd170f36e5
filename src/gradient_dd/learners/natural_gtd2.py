"""Natural GTD2: the GTD2 rule along M⁻¹x and M⁻¹x'.

    δ = r + γ x'·w − x·w
    M = (ε I + Σ x xᵀ) / (n + 1), the sum being over the n transitions so far, this one included
    η ← η + β (ρ δ − x·η) x
    w ← w + α ρ (x·η) M⁻¹(x − γ x')

On average, with M = C = XᵀDX, the metric of the paper's appendix:  Δη = β (b − A w − C η),  Δw = α C⁻¹Aᵀη.  So w
follows the natural gradient of the MSPBE. Sherman-Morrison updates M⁻¹ in O(p²) per step; η is not preconditioned.
"""

from gradient_dd.learners.gtd2 import GTD2
from gradient_dd.learners.rule import RIDGE, Rule

NATURAL_GTD2 = Rule(
    name="natural_gtd2",
    label="natural GTD2",
    step=GTD2.step,
    expected=GTD2.expected,
    moves=GTD2.moves,
    parameters=(*GTD2.plain.parameters, RIDGE),
    reference="Dabney & Thomas (2014), Natural temporal difference learning. AAAI; metric of Zhu & Murray (2022).",
    module=__name__,
    natural=True,
    stable_off_policy=True,
)
