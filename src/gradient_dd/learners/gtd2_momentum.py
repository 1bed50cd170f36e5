"""GTD2 with momentum: GTD2 plus a share of the last change of w.

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α ρ (x·η) (x − γ x') + momentum (w − w_prev)

On average  Δη = β (b − A w − C η),  Δw = α Aᵀη + momentum (w − w_prev).  The authors tie the momentum
to the step size; here it is a constant. momentum = 0 is GTD2. Every step moves all weights that have moved before.
"""

from gradient_dd.learners.rule import ALPHA, ZETA, Parameter, Rule

MOMENTUM = Parameter("momentum", "share of the last change of w that is repeated", 0.5, high=1.0, grid=(0.3, 0.6, 0.9))


def step(alpha, beta, momentum, rho, rho_x, discount, delta, x_eta):
    w_x = alpha * (rho_x * x_eta)
    w_next = -alpha * rho * discount * x_eta
    return w_x, w_next, momentum, beta * (rho * delta - x_eta)


def expected(alpha, beta, momentum, A, b, C, w, eta, change):
    return alpha * (A.T @ eta) + momentum * change, beta * (b - A @ w - C @ eta)


GTD2_MOMENTUM = Rule(
    name="gtd2_momentum",
    label="GTD2-M",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "w_change", "eta_x"),
    parameters=(ALPHA, ZETA, MOMENTUM),
    reference="Deb & Bhatnagar (2021), Gradient temporal difference with momentum: stability and convergence.",
    stable_off_policy=True,
)
