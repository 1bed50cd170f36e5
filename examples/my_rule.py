"""My TDC-DD: TDC with Gradient-DD's penalty on the change in values since the last step.

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α (ρ (δ x − γ (x·η) x') − κ (x·(w − w_prev)) x)

On average  Δη = β (b − A w − C η),  Δw = α (b − A w − B η − κ C (w − w_prev))  with B = E[ρ γ x' xᵀ].

Check it, and compare it with other learners:

python -c "from examples.my_rule import TDC_DD; from gradient_dd.testing import check_learner; check_learner(TDC_DD)"
gradient-dd sweep --rule examples/my_rule.py:TDC_DD --learner tdc --task random_walk --alpha 0.01..1:7 --episodes 500
gradient-dd rank examples/my_rule.py:TDC_DD
"""

from gradient_dd.learners.rule import ALPHA, ZETA, Parameter, Rule


def step(alpha, beta, kappa, rho, discount, delta, x_eta, x_change):
    w_x = alpha * (rho * delta - kappa * x_change)
    w_next = -alpha * rho * discount * x_eta
    eta_x = beta * (rho * delta - x_eta)
    return w_x, w_next, eta_x


def expected(alpha, beta, kappa, A, b, B, C, w, eta, change):
    return alpha * (b - A @ w - B @ eta - kappa * (C @ change)), beta * (b - A @ w - C @ eta)


TDC_DD = Rule(
    name="my_tdc_dd",
    label="my TDC-DD",
    step=step,
    expected=expected,
    moves=("w_x", "w_next", "eta_x"),
    parameters=(ALPHA, ZETA, Parameter("kappa", "weight of the change of the values", default=1.0, grid=(1.0, 8.0))),
    reference="An example.",
    module=__name__,
    stable_off_policy=True,
)
