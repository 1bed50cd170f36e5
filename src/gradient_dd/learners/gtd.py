"""GTD: gradient descent on NEU, the norm of the expected TD update ‖b − A w‖².

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ x − η)
    w ← w + α ρ (x·η) (x − γ x')

On average  Δη = β (b − A w − η),  Δw = α Aᵀη.  So η estimates E[ρδx] itself, with no C⁻¹: the leak −η stands where
GTD2 has −(x·η) x. Other code multiplies the leak by ρ, which has the same mean and a higher variance.
"""

from gradient_dd.learners.rule import ALPHA, ZETA, Rule


def step(alpha, beta, rho, rho_x, discount, delta, x_eta):
    w_x = alpha * (rho_x * x_eta)
    w_next = -alpha * rho * discount * x_eta
    eta_x = beta * (rho * delta)
    eta_eta = -beta
    return w_x, w_next, eta_x, eta_eta


def expected(alpha, beta, A, b, w, eta):
    return alpha * (A.T @ eta), beta * (b - A @ w - eta)


GTD = Rule(
    name="gtd",
    label="GTD",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x", "eta_eta"),
    parameters=(ALPHA, ZETA),
    reference=(
        "Sutton, Szepesvári & Maei (2008), A convergent O(n) algorithm for off-policy temporal-difference "
        "learning with linear function approximation. NeurIPS."
    ),
    module=__name__,
    stable_off_policy=True,
)
