"""True-online TD(λ): TD with traces, equal to the forward-view λ-return algorithm at every step.

    δ = r + γ x'·w − x·w
    z ← ρ (γ λ z + (1 − α ρ γ λ x·z) x)
    w ← w + α δ z + α (x·(w − w_prev)) (z − ρ x)

w − w_prev is the last change of w. On-policy and with a constant α the equality is exact. λ = 0 is TD. The trace
depends on α, so every step size needs its own trace.
"""

from gradient_dd.learners.rule import ALPHA, LAM, Rule
from gradient_dd.learners.trace import Trace


def dutch_trace(alpha, lam, rho, discount_before, x_trace):
    decay = rho * discount_before * lam
    return decay, rho * (1.0 - alpha * decay * x_trace)


def step(alpha, rho, delta, x_change):
    return alpha * (delta + x_change), -alpha * rho * x_change


TRUE_ONLINE_TD = Rule(
    name="true_online_td",
    label="true-online TD",
    step=step,
    moves=("w_z", "w_x"),
    parameters=(ALPHA, LAM),
    traces=(Trace("z", dutch_trace),),
    reference="van Seijen & Sutton (2014), True online TD(λ). ICML; with ρ: van Hasselt, Mahmood & Sutton (2014). UAI.",
    td_fixed_point=False,
    uses_sample_twice=True,
)
