"""GTD: gradient descent on NEU, the squared norm ‖b − A w‖² of the expected TD update.

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ x − η)
    w ← w + α ρ (x·η) (x − γ x')
    with λ > 0:  z ← ρ (γ λ z + x)
    η ← η + β (δ z − η)
    w ← w + α ((x·η) x − γ (1 − λ) (z·η) x')

On average  Δη = β (b − A w − η),  Δw = α Aᵀη.  So η estimates E[ρδx] without C⁻¹, because the decay term is
−η instead of GTD2's −(x·η) x. Some implementations multiply this term by ρ, which keeps the mean and adds variance.
"""

from gradient_dd.learners.rule import ALPHA, LAM, ZETA, Rule
from gradient_dd.learners.trace import AlongTrace, Z


def step(alpha, beta, rho, rho_x, discount, delta, x_eta):
    w_x = alpha * (rho_x * x_eta)
    w_next = -alpha * rho * discount * x_eta
    eta_x = beta * (rho * delta)
    eta_eta = -beta
    return w_x, w_next, eta_x, eta_eta


def traced_step(alpha, beta, lam, discount, delta, x_eta, z_eta):
    w_next = -alpha * ((1.0 - lam) * discount) * z_eta
    return alpha * x_eta, w_next, beta * delta, -beta


def expected(alpha, beta, A, b, w, eta):
    return alpha * (A.T @ eta), beta * (b - A @ w - eta)


def traced_expected(alpha, beta, A, b, B, C, w, eta):
    return alpha * ((C - B) @ eta), beta * (b - A @ w - eta)


GTD = Rule(
    name="gtd",
    label="GTD",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x", "eta_eta"),
    parameters=(ALPHA, ZETA, LAM),
    along_trace=AlongTrace(traced_step, ("w_x", "w_next", "eta_z", "eta_eta"), (Z,), traced_expected),
    reference=(
        "Sutton, Szepesvári & Maei (2008), A convergent O(n) algorithm for off-policy temporal-difference "
        "learning with linear function approximation. NeurIPS."
    ),
    stable_off_policy=True,
)
