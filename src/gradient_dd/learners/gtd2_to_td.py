"""GTD2 to TD: GTD2 without a share c of its bootstrapped half.

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α ρ (x·η) (x − (1 − c) γ x')
    with λ > 0:  z ← ρ (γ λ z + x)
    η ← η + β (δ z − (x·η) x)
    w ← w + α ((x·η) x − (1 − c) γ (1 − λ) (z·η) x')

On average  Δη = β (b − A w − C η),  Δw = α (Aᵀ + c B) η,  B = C − Aᵀ.  c = 0 is GTD2. c = 1 is TD if η
adapts so fast that η = C⁻¹(b − A w). The fixed point is the same for every c, because η is 0 there. Along trajectories
Gradient-DD is close to this rule with c = κα. The largest c with a stable mean depends on the task: it is close to 1 on
Baird's counterexample and close to 0 on the tasks of `theory.diverging_mdps`.
"""

from gradient_dd.learners.rule import ALPHA, LAM, ZETA, Parameter, Rule
from gradient_dd.learners.trace import AlongTrace, Z

SHARE = Parameter("c", "omitted share of the bootstrapped half: 0 none, 1 all", default=0.5, high=1.0, grid=(0.5, 1.0))


def step(alpha, beta, c, rho, rho_x, discount, delta, x_eta):
    w_x = alpha * (rho_x * x_eta)
    w_next = -alpha * rho * ((1.0 - c) * discount) * x_eta
    eta_x = beta * (rho * delta - x_eta)
    return w_x, w_next, eta_x


def traced_step(alpha, beta, c, lam, discount, delta, x_eta, z_eta):
    w_next = -alpha * ((1.0 - c) * (1.0 - lam) * discount) * z_eta
    return alpha * x_eta, w_next, beta * delta, -beta * x_eta


def expected(alpha, beta, c, A, b, B, C, w, eta):
    return alpha * (A.T @ eta + c * (B @ eta)), beta * (b - A @ w - C @ eta)


def traced_expected(alpha, beta, c, A, b, B, C, w, eta):
    return alpha * (C @ eta - (1 - c) * (B @ eta)), beta * (b - A @ w - C @ eta)


GTD2_TO_TD = Rule(
    name="gtd2_to_td",
    label="GTD2 to TD",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x"),
    parameters=(ALPHA, ZETA, SHARE, LAM),
    along_trace=AlongTrace(traced_step, ("w_x", "w_next", "eta_z", "eta_x"), (Z,), traced_expected),
    reference="This project (docs/explanation/theory.md).",
)
