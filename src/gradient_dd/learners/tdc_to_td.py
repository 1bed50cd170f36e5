"""TDC to TD: TDC without a share c of its correction.

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α ρ (δ x − (1 − c) γ (x·η) x')
    with λ > 0:  z ← ρ (γ λ z + x)
    η ← η + β (δ z − (x·η) x)
    w ← w + α (δ z − (1 − c) γ (1 − λ) (z·η) x')

On average  Δη = β (b − A w − C η),  Δw = α (b − A w − (1 − c) B η).  c = 0 is TDC, c = 1 is TD for any η. The
fixed point is the same for every c. The related rule `gtd2_to_td` moves w by x·η instead of δ.
"""

from gradient_dd.learners.gtd2_to_td import SHARE
from gradient_dd.learners.rule import ALPHA, LAM, ZETA, Rule
from gradient_dd.learners.trace import AlongTrace, Z


def step(alpha, beta, c, rho, discount, delta, x_eta):
    w_x = alpha * rho * delta
    w_next = -alpha * rho * ((1.0 - c) * discount) * x_eta
    eta_x = beta * (rho * delta - x_eta)
    return w_x, w_next, eta_x


def traced_step(alpha, beta, c, lam, discount, delta, x_eta, z_eta):
    w_next = -alpha * ((1.0 - c) * (1.0 - lam) * discount) * z_eta
    return alpha * delta, w_next, beta * delta, -beta * x_eta


def expected(alpha, beta, c, A, b, B, C, w, eta):
    return alpha * (b - A @ w - (1 - c) * (B @ eta)), beta * (b - A @ w - C @ eta)


TDC_TO_TD = Rule(
    name="tdc_to_td",
    label="TDC to TD",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x"),
    parameters=(ALPHA, ZETA, SHARE, LAM),
    along_trace=AlongTrace(traced_step, ("w_z", "w_next", "eta_z", "eta_x"), (Z,)),
    reference="This project (docs/explanation/theory.md).",
)
