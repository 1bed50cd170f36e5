"""PGTD2-DD: proximal GTD2 with Gradient-DD's penalty on the change in values, in both half steps.

    δ = r + γ x'·w − x·w
    z ← ρ (γ λ z + x),  d = κ x·(w − w_prev)
    η_m = η + β (δ z − (x·η) x),  w_m = w + α ((x·η − d) x − γ (1 − λ) (z·η) x')
    η ← η + β (δ_m z − (x·η_m) x),  w ← w + α ((x·η_m − d) x − γ (1 − λ) (z·η_m) x')

δ_m is δ at w_m. The scalars of the second half step follow from the first half step and the products of x, x' and z.
The rule uses each sample twice, so the mean update equals `expected` only up to terms of order α². κ = 0 is PGTD2.
"""

from gradient_dd.learners.rule import ALPHA, KAPPA, LAM, ZETA, Rule
from gradient_dd.learners.trace import Z


def step(
    alpha, beta, kappa, lam, discount, delta, x_eta, z_eta, x_change, x_x, x_next, next_next, x_z, z_z
):  # fmt: skip
    held = kappa * x_change
    w_x, w_next = alpha * (x_eta - held), -alpha * ((1.0 - lam) * discount) * z_eta
    eta_z, eta_x = beta * delta, -beta * x_eta
    delta += w_x * (discount * x_next - x_x) + w_next * (discount * next_next - x_next)
    x_eta, z_eta = x_eta + eta_z * x_z + eta_x * x_x, z_eta + eta_z * z_z + eta_x * x_z
    return alpha * (x_eta - held), -alpha * ((1.0 - lam) * discount) * z_eta, beta * delta, -beta * x_eta


def expected(alpha, beta, kappa, A, b, B, C, w, eta, change):
    held = kappa * (C @ change)
    w_half, eta_half = w + alpha * ((C - B) @ eta - held), eta + beta * (b - A @ w - C @ eta)
    return alpha * ((C - B) @ eta_half - held), beta * (b - A @ w_half - C @ eta_half)


PGTD2_DD = Rule(
    name="pgtd2_dd",
    label="PGTD2-DD",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_z", "eta_x"),
    parameters=(ALPHA, ZETA, KAPPA, LAM),
    traces=(Z,),
    reference="This project; penalty term from Zhu & Murray (2022).",
    td_fixed_point=False,
    uses_sample_twice=True,
)
