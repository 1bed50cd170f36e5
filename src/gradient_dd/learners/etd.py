"""ETD(λ): emphatic TD, which reweights states so that the mean update is stable off-policy.

    δ = r + γ x'·w − x·w
    F ← γ ρ_before F + 1,  M = λ + (1 − λ) F
    z ← ρ (γ λ z + M x)
    w ← w + α δ z

On average  Δw = α (b − A w)  with the A and b of this trace, A = Xᵀ diag(λ d + (1 − λ) f) (I − λ PΓ)⁻¹(I − PΓ) X and
f = (I − Γ Pᵀ)⁻¹ d. Its fixed point differs from TD's. The variance of F can be infinite.
"""

from gradient_dd.learners.rule import ALPHA, LAM, Rule
from gradient_dd.learners.trace import Trace


def emphatic_trace(lam, rho, discount_before, rho_before, F):
    F = discount_before * rho_before * F + 1.0
    return rho * discount_before * lam, rho * (lam + (1.0 - lam) * F), F


def step(alpha, delta):
    return (alpha * delta,)


def expected(alpha, A, b, w):
    return (alpha * (b - A @ w),)


ETD = Rule(
    name="etd",
    label="ETD",
    step=step,
    expected=expected,
    moves=("w_z",),
    parameters=(ALPHA, LAM),
    traces=(Trace("z", emphatic_trace, memory=("F",)),),
    reference="Sutton, Mahmood & White (2016), An emphatic approach to the problem of off-policy TD learning. JMLR 17.",
    stable_off_policy=True,
)
