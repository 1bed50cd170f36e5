"""TDC: TD with gradient correction, also known as GTD(λ).

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α ρ (δ x − γ (x·η) x')
    with λ > 0:  z ← ρ (γ λ z + x)
    η ← η + β (δ z − (x·η) x)
    w ← w + α (δ z − γ (1 − λ) (z·η) x')

On average  Δη = β (b − A w − C η),  Δw = α (b − A w − B η)  with B = E[ρ γ x' xᵀ] = C − Aᵀ.  This is the TD step
minus the part that is not a gradient of the MSPBE. The decay term −(x·η) x has no ρ.
"""

from gradient_dd.learners.rule import ALPHA, LAM, ZETA, Rule
from gradient_dd.learners.trace import AlongTrace, Z


def step(alpha, beta, rho, discount, delta, x_eta):
    w_x = alpha * rho * delta
    w_next = -alpha * rho * discount * x_eta
    eta_x = beta * (rho * delta - x_eta)
    return w_x, w_next, eta_x


def traced_step(alpha, beta, lam, discount, delta, x_eta, z_eta):
    w_next = -alpha * ((1.0 - lam) * discount) * z_eta
    return alpha * delta, w_next, beta * delta, -beta * x_eta


def expected(alpha, beta, A, b, B, C, w, eta):
    return alpha * (b - A @ w - B @ eta), beta * (b - A @ w - C @ eta)


TDC = Rule(
    name="tdc",
    label="TDC",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x"),
    parameters=(ALPHA, ZETA, LAM),
    along_trace=AlongTrace(traced_step, ("w_z", "w_next", "eta_z", "eta_x"), (Z,)),
    reference=(
        "Sutton, Maei, Precup, Bhatnagar, Silver, Szepesvári & Wiewiora (2009), Fast gradient-descent methods "
        "for temporal-difference learning with linear function approximation. ICML."
    ),
    stable_off_policy=True,
)
