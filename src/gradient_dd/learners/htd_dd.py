"""HTD-DD: HTD(λ) with Gradient-DD's penalty on the change in values since the last step.

    δ = r + γ x'·w − x·w
    z ← ρ (γ λ z + x),  b ← γ λ b + x
    η ← η + β (δ z − (b·η) (x − γ x'))
    w ← w + α (δ z + ((z − b)·η) (x − γ x') − κ (x·(w − w_prev)) x)

On average  Δη = β (b − A w − A_μᵀη),  Δw = α (b − A w + (A − A_μ)ᵀη − κ C (w − w_prev)).  κ = 0 is HTD.
"""

from gradient_dd.learners.rule import ALPHA, KAPPA, LAM, ZETA, Rule
from gradient_dd.learners.trace import B, Z


def step(alpha, beta, kappa, discount, delta, x_change, z_eta, b_eta):
    hybrid = alpha * (z_eta - b_eta)
    w_x = hybrid - alpha * kappa * x_change
    return alpha * delta, w_x, -discount * hybrid, beta * delta, -beta * b_eta, beta * discount * b_eta


def expected(alpha, beta, kappa, A, A_mu, b, C, w, eta, change):
    w_mean = b - A @ w + (A - A_mu).T @ eta - kappa * (C @ change)
    return alpha * w_mean, beta * (b - A @ w - A_mu.T @ eta)


HTD_DD = Rule(
    name="htd_dd",
    label="HTD-DD",
    step=step,
    expected=expected,
    moves=("w_z", "w_x", "w_next", "eta_z", "eta_x", "eta_next"),
    parameters=(ALPHA, ZETA, KAPPA, LAM),
    traces=(Z, B),
    reference="This project; penalty term from Zhu & Murray (2022).",
)
