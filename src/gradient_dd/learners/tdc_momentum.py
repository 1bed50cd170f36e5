"""TDC with momentum: TDC plus a share of the last change of w.

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α ρ (δ x − γ (x·η) x') + momentum (w − w_prev)

On average  Δη = β (b − A w − C η),  Δw = α (b − A w − B η) + momentum (w − w_prev).  The authors tie the momentum
to the step size; here it is a constant. momentum = 0 is TDC. Every step moves all weights that have moved before.
"""

from gradient_dd.learners.gtd2_momentum import MOMENTUM
from gradient_dd.learners.rule import ALPHA, ZETA, Rule


def step(alpha, beta, momentum, rho, discount, delta, x_eta):
    w_x = alpha * rho * delta
    w_next = -alpha * rho * discount * x_eta
    return w_x, w_next, momentum, beta * (rho * delta - x_eta)


def expected(alpha, beta, momentum, A, b, B, C, w, eta, change):
    return alpha * (b - A @ w - B @ eta) + momentum * change, beta * (b - A @ w - C @ eta)


TDC_MOMENTUM = Rule(
    name="tdc_momentum",
    label="TDC-M",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "w_change", "eta_x"),
    parameters=(ALPHA, ZETA, MOMENTUM),
    reference="Deb & Bhatnagar (2021), Gradient temporal difference with momentum: stability and convergence.",
    stable_off_policy=True,
)
