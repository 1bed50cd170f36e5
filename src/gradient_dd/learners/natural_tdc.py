"""Natural TDC: the TDC rule along M⁻¹x and M⁻¹x'.

    δ = r + γ x'·w − x·w
    M = (ε I + Σ x xᵀ) / (n + 1), the sum being over the n transitions so far, this one included
    η ← η + β (ρ δ − x·η) x
    w ← w + α ρ M⁻¹(δ x − γ (x·η) x')

On average, with M = C:  Δη = β (b − A w − C η),  Δw = α C⁻¹(b − A w − B η)  with B = E[ρ γ x' xᵀ] = C − Aᵀ.  Once η
has converged, natural GTD2 has the same mean update: both are C⁻¹AᵀC⁻¹(b − A w). Sherman-Morrison updates M⁻¹ in
O(p²) per step; η is not preconditioned.
"""

from gradient_dd.learners.rule import RIDGE, Rule
from gradient_dd.learners.tdc import TDC

NATURAL_TDC = Rule(
    name="natural_tdc",
    label="natural TDC",
    step=TDC.step,
    expected=TDC.expected,
    moves=TDC.moves,
    parameters=(*TDC.plain.parameters, RIDGE),
    reference="Dabney & Thomas (2014), Natural temporal difference learning. AAAI; metric of Zhu & Murray (2022).",
    module=__name__,
    natural=True,
    stable_off_policy=True,
)
