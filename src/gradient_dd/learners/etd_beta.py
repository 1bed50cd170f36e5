"""ETD(λ, β): emphatic TD with a separate decay rate for the follow-on trace, interpolating between TD and ETD.

    δ = r + γ x'·w − x·w
    F ← decay ρ_before F + 1,  M = λ + (1 − λ) F
    z ← ρ (γ λ z + M x)
    w ← w + α δ z

On average  Δw = α (b − A w)  with the A and b of this trace. decay = 0 is TD(λ); decay = γ is ETD(λ). A smaller
decay gives less variance but more bias, and stability is not guaranteed. F restarts at 1 in every episode.
"""

from gradient_dd.learners.etd import ETD
from gradient_dd.learners.rule import ALPHA, LAM, Parameter, Rule
from gradient_dd.learners.trace import Trace

DECAY = Parameter("decay", "β: decay of F per step", 0.5, high=1.0, grid=(0.2, 0.4, 0.6, 0.8))


def emphatic_trace(lam, decay, rho, discount_before, rho_before, F):
    F = decay * rho_before * F + 1.0
    return rho * discount_before * lam, rho * (lam + (1.0 - lam) * F), F


ETD_BETA = Rule(
    name="etd_beta",
    label="ETD(λ, β)",
    step=ETD.step,
    expected=ETD.expected,
    moves=ETD.moves,
    parameters=(ALPHA, LAM, DECAY),
    traces=(Trace("z", emphatic_trace, memory=("F",)),),
    reference="Hallak, Tamar, Munos & Mannor (2016), Generalized emphatic temporal difference learning. AAAI.",
    module=__name__,
)
