"""TDRC-DD: TDRC with Gradient-DD's penalty on the change in values since the last step.

    δ = r + γ x'·w − x·w
    η ← η + β ((ρ δ − x·η) x − reg η)
    w ← w + α (ρ (δ x − γ (x·η) x') − κ (x·(w − w_prev)) x)
    with λ > 0:  z ← ρ (γ λ z + x)
    η ← η + β (δ z − (x·η) x − reg η)
    w ← w + α (δ z − γ (1 − λ) (z·η) x' − κ (x·(w − w_prev)) x)

On average  Δη = β (b − A w − C η − reg η),  Δw = α (b − A w − B η − κ C (w − w_prev)).  κ = 0 is TDRC.
"""

from gradient_dd.learners.rule import ALPHA, KAPPA, LAM, Rule
from gradient_dd.learners.tdrc import REG, ZETA_ONE
from gradient_dd.learners.trace import AlongTrace, Z


def step(alpha, beta, kappa, reg, rho, discount, delta, x_eta, x_change):
    w_x = alpha * (rho * delta - kappa * x_change)
    w_next = -alpha * rho * discount * x_eta
    eta_x = beta * (rho * delta - x_eta)
    return w_x, w_next, eta_x, -beta * reg


def traced_step(alpha, beta, kappa, reg, lam, discount, delta, x_eta, x_change, z_eta):
    w_next = -alpha * ((1.0 - lam) * discount) * z_eta
    return alpha * delta, -alpha * kappa * x_change, w_next, beta * delta, -beta * x_eta, -beta * reg


def expected(alpha, beta, kappa, reg, A, b, B, C, w, eta, change):
    w_mean = b - A @ w - B @ eta - kappa * (C @ change)
    return alpha * w_mean, beta * (b - A @ w - C @ eta - reg * eta)


TDRC_DD = Rule(
    name="tdrc_dd",
    label="TDRC-DD",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x", "eta_eta"),
    parameters=(ALPHA, ZETA_ONE, REG, KAPPA, LAM),
    along_trace=AlongTrace(traced_step, ("w_z", "w_x", "w_next", "eta_z", "eta_x", "eta_eta"), (Z,)),
    reference="This project; penalty term from Zhu & Murray (2022).",
)
