"""Proximal GTD2(λ), also GTD2-MP: GTD2 with a look-ahead half step.

    δ = r + γ x'·w − x·w
    z ← ρ (γ λ z + x)
    η_m = η + β (δ z − (x·η) x),  w_m = w + α ((x·η) x − γ (1 − λ) (z·η) x')
    η ← η + β (δ_m z − (x·η_m) x),  w ← w + α ((x·η_m) x − γ (1 − λ) (z·η_m) x')

δ_m is δ at w_m. The scalars of the second half step follow from the first half step and the products of x, x' and z.
The rule uses each sample twice, so the mean update equals `expected` only up to terms of order α², and the rule
converges to a point whose distance to the TD fixed point is of order α.
"""

from gradient_dd.learners.rule import ALPHA, LAM, ZETA, Rule
from gradient_dd.learners.trace import Z


def step(alpha, beta, lam, discount, delta, x_eta, z_eta, x_x, x_next, next_next, x_z, z_z):
    w_x, w_next = alpha * x_eta, -alpha * ((1.0 - lam) * discount) * z_eta
    eta_z, eta_x = beta * delta, -beta * x_eta
    delta += w_x * (discount * x_next - x_x) + w_next * (discount * next_next - x_next)
    x_eta, z_eta = x_eta + eta_z * x_z + eta_x * x_x, z_eta + eta_z * z_z + eta_x * x_z
    return alpha * x_eta, -alpha * ((1.0 - lam) * discount) * z_eta, beta * delta, -beta * x_eta


def expected(alpha, beta, A, b, B, C, w, eta):
    w_half, eta_half = w + alpha * ((C - B) @ eta), eta + beta * (b - A @ w - C @ eta)
    return alpha * ((C - B) @ eta_half), beta * (b - A @ w_half - C @ eta_half)


PGTD2 = Rule(
    name="pgtd2",
    label="PGTD2",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_z", "eta_x"),
    parameters=(ALPHA, ZETA, LAM),
    traces=(Z,),
    reference="Liu, Liu, Ghavamzadeh, Mahadevan & Petrik (2015), Finite-sample analysis of proximal gradient TD. UAI.",
    td_fixed_point=False,
    uses_sample_twice=True,
)
