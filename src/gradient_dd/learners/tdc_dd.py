"""TDC-DD: TDC with Gradient-DD's penalty on the change in values since the last step.

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α (ρ (δ x − γ (x·η) x') − κ (x·(w − w_prev)) x)
    with λ > 0:  z ← ρ (γ λ z + x)
    η ← η + β (δ z − (x·η) x)
    w ← w + α (δ z − γ (1 − λ) (z·η) x' − κ (x·(w − w_prev)) x)

On average  Δη = β (b − A w − C η),  Δw = α (b − A w − B η − κ C (w − w_prev))  with B = C − Aᵀ.  κ = 0 is TDC.
"""

from gradient_dd.learners.rule import ALPHA, KAPPA, LAM, ZETA, Rule
from gradient_dd.learners.trace import AlongTrace, Z


def step(alpha, beta, kappa, rho, discount, delta, x_eta, x_change):
    w_x = alpha * (rho * delta - kappa * x_change)
    w_next = -alpha * rho * discount * x_eta
    eta_x = beta * (rho * delta - x_eta)
    return w_x, w_next, eta_x


def traced_step(alpha, beta, kappa, lam, discount, delta, x_eta, x_change, z_eta):
    w_next = -alpha * ((1.0 - lam) * discount) * z_eta
    return alpha * delta, -alpha * kappa * x_change, w_next, beta * delta, -beta * x_eta


def expected(alpha, beta, kappa, A, b, B, C, w, eta, change):
    return alpha * (b - A @ w - B @ eta - kappa * (C @ change)), beta * (b - A @ w - C @ eta)


TDC_DD = Rule(
    name="tdc_dd",
    label="TDC-DD",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x"),
    parameters=(ALPHA, ZETA, KAPPA, LAM),
    along_trace=AlongTrace(traced_step, ("w_z", "w_x", "w_next", "eta_z", "eta_x"), (Z,)),
    reference="This project; penalty term from Zhu & Murray (2022).",
    stable_off_policy=True,
)
