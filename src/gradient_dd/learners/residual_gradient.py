"""Residual gradient: stochastic gradient descent on the squared TD error.

    δ = r + γ x'·w − x·w
    w ← w + α ρ δ (x − γ x')

On average  Δw = α (E[ρ r (x − γ x')] − E[ρ (x − γ x') (x − γ x')ᵀ] w).  δ and the direction use the same x',
so the rule converges to the minimum of the mean squared TD error, not to the TD fixed point. It is always stable.
"""

from gradient_dd.learners.rule import ALPHA, Rule


def step(alpha, rho, discount, delta):
    w_x = alpha * rho * delta
    return w_x, -discount * w_x


def expected(alpha, A_u, b_u, w):
    return (alpha * (b_u - A_u @ w),)


RESIDUAL_GRADIENT = Rule(
    name="residual_gradient",
    label="residual gradient",
    step=step,
    expected=expected,
    moves=("w_x", "w_next"),
    parameters=(ALPHA,),
    reference="Baird (1995), Residual algorithms: reinforcement learning with function approximation. ICML.",
    td_fixed_point=False,
    stable_off_policy=True,
)
