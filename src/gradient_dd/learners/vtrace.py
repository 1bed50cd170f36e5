"""V-trace(λ) for prediction: a trace that decays with the importance ratio, clipped at 1.

    δ = r + γ x'·w − x·w
    z ← γ λ min(1, ρ_before) z + x
    w ← w + α ρ δ z

On average  Δw = α (E[ρ r z] − E[ρ z (x − γ x')ᵀ] w).  The ratio of the current action is not clipped. λ = 0 is TD. The
fixed point depends on λ, but not in the same way as that of TD(λ).
"""

from gradient_dd.learners.rule import ALPHA, LAM, Rule
from gradient_dd.learners.trace import Trace


def clipped_trace(lam, discount_before, rho_before):
    return discount_before * lam * min(1.0, rho_before), 1.0


def step(alpha, rho, delta):
    return (alpha * rho * delta,)


def expected(alpha, A_rho, b_rho, w):
    return (alpha * (b_rho - A_rho @ w),)


VTRACE = Rule(
    name="vtrace",
    label="V-trace",
    step=step,
    expected=expected,
    moves=("w_z",),
    parameters=(ALPHA, LAM),
    traces=(Trace("z", clipped_trace),),
    reference="Espeholt et al. (2018), IMPALA: scalable distributed deep-RL with actor-learner architectures. ICML.",
)
