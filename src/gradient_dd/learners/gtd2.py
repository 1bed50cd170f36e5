"""GTD2: stochastic gradient descent on the MSPBE. [SQ-GTD2]

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α ρ (x·η) (x − γ x')
    with λ > 0:  z ← ρ (γ λ z + x)
    η ← η + β (δ z − (x·η) x)
    w ← w + α ((x·η) x − γ (1 − λ) (z·η) x')

On average  Δη = β (b − A w − C η),  Δw = α Aᵀη.  So η estimates C⁻¹E[ρδx], and Aᵀη is then half the negative
gradient. The right-hand sides use the old w and η. With rho_mode="T" the ratio multiplies only the bootstrapped half.
The mean is the same, because E[ρ|s] = 1, but the variance differs. The form with λ uses "T".
"""

from gradient_dd.learners.rule import ALPHA, LAM, ZETA, Rule
from gradient_dd.learners.trace import AlongTrace, Z


def step(alpha, beta, rho, rho_x, discount, delta, x_eta):
    w_x = alpha * (rho_x * x_eta)
    w_next = -alpha * rho * discount * x_eta
    eta_x = beta * (rho * delta - x_eta)
    return w_x, w_next, eta_x


def traced_step(alpha, beta, lam, discount, delta, x_eta, z_eta):
    w_next = -alpha * ((1.0 - lam) * discount) * z_eta
    return alpha * x_eta, w_next, beta * delta, -beta * x_eta


def expected(alpha, beta, A, b, C, w, eta):
    return alpha * (A.T @ eta), beta * (b - A @ w - C @ eta)


def traced_expected(alpha, beta, A, b, B, C, w, eta):
    return alpha * ((C - B) @ eta), beta * (b - A @ w - C @ eta)


GTD2 = Rule(
    name="gtd2",
    label="GTD2",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x"),
    parameters=(ALPHA, ZETA, LAM),
    along_trace=AlongTrace(traced_step, ("w_x", "w_next", "eta_z", "eta_x"), (Z,), traced_expected),
    reference=(
        "Sutton, Maei, Precup, Bhatnagar, Silver, Szepesvári & Wiewiora (2009), Fast gradient-descent methods "
        "for temporal-difference learning with linear function approximation. ICML."
    ),
    stable_off_policy=True,
)
