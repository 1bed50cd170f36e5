"""TDC-DD: TDC that also holds on to the values of one step before, as Gradient-DD does.

    δ = r + γ x'·w − x·w
    η ← η + β (ρ δ − x·η) x
    w ← w + α (ρ (δ x − γ (x·η) x') − κ (x·(w − w_prev)) x)

Sweep it next to the others:

gradient-dd sweep --rule examples/my_rule.py:TDC_DD --learner tdc --task random_walk --alpha 0.01..1:7 --episodes 500
"""

from gradient_dd.learners.rule import ALPHA, ZETA, Parameter, Rule


def step(alpha, beta, kappa, rho, discount, delta, x_eta, x_change):
    w_x = alpha * (rho * delta - kappa * x_change)
    w_next = -alpha * rho * discount * x_eta
    eta_x = beta * (rho * delta - x_eta)
    return w_x, w_next, eta_x


TDC_DD = Rule(
    name="tdc_dd",
    label="TDC-DD",
    step=step,
    moves=("w_x", "w_next", "eta_x"),
    parameters=(ALPHA, ZETA, Parameter("kappa", "weight of the change of the values", default=1.0)),
    reference="An example.",
    module=__name__,
)
