"""Gradient-DD: GTD2 with a penalty on the change in values since the last step. [SQ-GDD]

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α (ρ (x·η) (x − γ x') − κ (x·(w − w_prev)) x)
    with λ > 0:  z ← ρ (γ λ z + x)
    η ← η + β (δ z − (x·η) x)
    w ← w + α ((x·η) x − γ (1 − λ) (z·η) x' − κ (x·(w − w_prev)) x)

On average  Δη = β (b − A w − C η),  Δw = α (Aᵀη − κ C (w − w_prev)).  This is a gradient step on
J_GDD(w | w_prev) = MSPBE(w) + κ ‖V_w − V_w_prev‖²_D. The paper uses κ = 1 and β = α. w_prev is w one time step
earlier, even across episode boundaries, and w_prev = w at the first step. The added term has no ρ, because it compares
two values of the visited state, and the behaviour policy already weights the states.

All right-hand sides use the old w and η. The arguments of `step` are signals: x_eta is x·η, x_change is x·(w − w_prev),
and rho_x is the ρ of the part along x. Its results are moves: w_x moves w along x, w_next moves w along x', and eta_x
moves η along x. vocabulary.py has all names.
"""

from gradient_dd.learners.rule import ALPHA, KAPPA, LAM, ZETA, Rule
from gradient_dd.learners.trace import AlongTrace, Z


def step(alpha, beta, kappa, rho, rho_x, discount, delta, x_eta, x_change):
    w_x = alpha * (rho_x * x_eta - kappa * x_change)
    w_next = -alpha * rho * discount * x_eta
    eta_x = beta * (rho * delta - x_eta)
    return w_x, w_next, eta_x


def traced_step(alpha, beta, kappa, lam, discount, delta, x_eta, x_change, z_eta):
    w_next = -alpha * ((1.0 - lam) * discount) * z_eta
    return alpha * (x_eta - kappa * x_change), w_next, beta * delta, -beta * x_eta


def expected(alpha, beta, kappa, A, b, C, w, eta, change):
    return alpha * (A.T @ eta - kappa * (C @ change)), beta * (b - A @ w - C @ eta)


def traced_expected(alpha, beta, kappa, A, b, B, C, w, eta, change):
    return alpha * ((C - B) @ eta - kappa * (C @ change)), beta * (b - A @ w - C @ eta)


GRADIENT_DD = Rule(
    name="gradient_dd",
    label="Gradient-DD",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x"),
    parameters=(ALPHA, ZETA, KAPPA, LAM),
    along_trace=AlongTrace(traced_step, ("w_x", "w_next", "eta_z", "eta_x"), (Z,), traced_expected),
    reference="Zhu & Murray (2022), Gradient descent temporal difference-difference learning.",
    stable_off_policy=True,
)
