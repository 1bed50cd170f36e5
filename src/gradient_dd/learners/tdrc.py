"""TDRC: TDC with a regularised correction.

    δ = r + γ x'·w − x·w
    η ← η + β ((ρ δ − x·η) x − reg η)
    w ← w + α ρ (δ x − γ (x·η) x')
    with λ > 0:  z ← ρ (γ λ z + x)
    η ← η + β (δ z − (x·η) x − reg η)
    w ← w + α (δ z − γ (1 − λ) (z·η) x')

On average  Δη = β (b − A w − C η − reg η),  Δw = α (b − A w − B η)  with B = E[ρ γ x' xᵀ] = C − Aᵀ.  As reg grows
from 0 to ∞, the rule changes from TDC to TD with the same fixed point. The regulariser shrinks the old η, without ρ.
"""

from dataclasses import replace

from gradient_dd.learners.rule import ALPHA, LAM, ZETA, Parameter, Rule
from gradient_dd.learners.trace import AlongTrace, Z

REG = Parameter("reg", "regulariser of η", default=1.0, grid=(1.0,))  # the authors recommend ζ = 1, reg = 1
ZETA_ONE = replace(ZETA, grid=(1.0,))


def step(alpha, beta, reg, rho, discount, delta, x_eta):
    w_x = alpha * rho * delta
    w_next = -alpha * rho * discount * x_eta
    eta_x = beta * (rho * delta - x_eta)
    eta_eta = -beta * reg
    return w_x, w_next, eta_x, eta_eta


def traced_step(alpha, beta, reg, lam, discount, delta, x_eta, z_eta):
    w_next = -alpha * ((1.0 - lam) * discount) * z_eta
    return alpha * delta, w_next, beta * delta, -beta * x_eta, -beta * reg


def expected(alpha, beta, reg, A, b, B, C, w, eta):
    return alpha * (b - A @ w - B @ eta), beta * (b - A @ w - C @ eta - reg * eta)


TDRC = Rule(
    name="tdrc",
    label="TDRC",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x", "eta_eta"),
    parameters=(ALPHA, ZETA_ONE, REG, LAM),
    along_trace=AlongTrace(traced_step, ("w_z", "w_next", "eta_z", "eta_x", "eta_eta"), (Z,)),
    reference=(
        "Ghiassian, Patterson, Garg, Gupta, White & White (2020), Gradient temporal-difference learning with "
        "regularized corrections. ICML."
    ),
)
